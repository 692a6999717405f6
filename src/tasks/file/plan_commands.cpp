#include "core/error.h"
#include "core/format.h"
#include "tasks/file/angles.h"
#include "tasks/file/plan_reader.h"

namespace cohort::tasks {

using config::Json;
using config::JsonSection;
using terms::Expr;
using terms::Graph;
using terms::Op;

Expr PlanReader::drawn(Graph& g, const std::string& stream, const Range& range) {
  return g.add(g.constant(static_cast<float>(range.low)),
               g.multiply(g.uniform(stream, 1), g.constant(static_cast<float>(range.high - range.low))));
}

Expr PlanReader::timer(Quantities& names, const std::string& place, const Range& seconds, const Range& first) {
  COHORT_THROW_UNLESS(seconds.low > 0, "a time of {:g} s: above zero", seconds.low);
  Graph& g = names.graph();
  const Expr left = g.memory(place + ".time_left", 1, 1);
  const Expr less = g.subtract(left, g.constant(static_cast<float>(plan_.spec.control_period)));
  // What single precision adds up over a thousand steps is less than a hundredth of one.
  const Expr up = g.compare(Op::kAtMost, less, g.constant(static_cast<float>(0.01 * plan_.spec.control_period)));
  const Expr anew = g.binary(Op::kOr, g.started(names.step()), up);
  Expr next = g.select(anew, drawn(g, place + ".time", seconds), less);
  if (first.high > 0) next = g.select(g.started(names.step()), drawn(g, place + ".first", first), next);
  g.keep(left, next);
  return anew;
}

void PlanReader::read_commands(JsonSection& commands, Quantities& names) {
  each(commands, [&](const std::string& name, const Json& value) {
    JsonSection s(value, commands.path() + "." + name, wrong_);
    std::string type = "uniform_velocity";
    s.take_choice("type", type, {"uniform_velocity", "uniform_pose", "uniform"});
    const std::string place = "commands." + name;
    plan_.contract.command_names.push_back(name);
    const Expr anew = timer(names, place, take_range(s, "resampling_time_range", {10, 10}));
    if (type == "uniform_velocity")
      velocity_command(name, place, s, anew, names);
    else
      uniform_command(name, place, s, anew, names, type == "uniform_pose");
  });
}

Expr PlanReader::command_share(const std::string& name, const std::string& place, JsonSection& s, const Expr& anew,
                               Quantities& names) {
  Graph& g = names.graph();
  int count = 4;
  std::string followed;
  double raise = 0.8, lower = 0.5;
  s.in("levels", [&](JsonSection& levels) {
    levels.take("count", count), levels.take("followed", followed);
    levels.take("raise_above", raise), levels.take("lower_below", lower);
  });
  COHORT_THROW_UNLESS(count >= 2 && count <= 1000, "levels.count is {}: 2 to 1000", count);
  COHORT_THROW_UNLESS(!followed.empty(),
                      "levels.followed is missing: a formula that is 1 where the command is followed");
  COHORT_THROW_UNLESS(lower <= raise, "levels.lower_below is above levels.raise_above");
  // What was followed is the command of the step that is over.
  const Expr during = g.memory(place, 1, 3);
  names.add_command(name, {.next = during, .during = during});
  const Expr value = g.flat(names.read(followed, place + ".levels.followed"));
  const Expr started = g.started(names.step()), zero = g.constant(0), one = g.constant(1);
  const Expr sum = g.memory(place + ".followed", 1, value.size()), steps = g.memory(place + ".steps", 1, 1),
             level = g.memory(place + ".level", 1, 1);
  const Expr sum_now = g.select(started, zero, g.add(sum, value));
  const Expr steps_now = g.select(started, zero, g.add(steps, one));
  g.keep(sum, g.select(anew, zero, sum_now)), g.keep(steps, g.select(anew, zero, steps_now));
  const Expr mean = g.binary(Op::kDivide, g.reduce(Op::kSmallest, sum_now), g.binary(Op::kMaximum, steps_now, one));
  const Expr up = g.compare(Op::kAtMost, g.constant(static_cast<float>(raise)), mean),
             down = g.compare(Op::kLess, mean, g.constant(static_cast<float>(lower)));
  const Expr moved = g.subtract(g.add(level, up), down);
  const Expr within =
      g.binary(Op::kMinimum, g.binary(Op::kMaximum, moved, zero), g.constant(static_cast<float>(count - 1)));
  const Expr now = g.select(started, zero, g.select(anew, within, level));
  g.keep(level, now);
  return g.multiply(g.add(now, one), g.constant(1.0f / static_cast<float>(count)));
}

void PlanReader::velocity_command(const std::string& name, const std::string& place, JsonSection& s, const Expr& anew,
                                  Quantities& names) {
  Graph& g = names.graph();
  Range x, y, turn, heading{-3.14159265358979, 3.14159265358979};
  s.in("ranges", [&](JsonSection& r) {
    x = take_range(r, "lin_vel_x"), y = take_range(r, "lin_vel_y"), turn = take_range(r, "ang_vel_z");
    heading = take_range(r, "heading", heading);
    check_angles(heading, "heading");
  });
  double standing = 0, with_heading = 1, forward = 0, stiffness = 0.5;
  bool heading_command = false;
  s.take("rel_standing_envs", standing);
  s.take("heading_command", heading_command);
  s.take("rel_heading_envs", with_heading);
  s.take("rel_forward_envs", forward);
  s.take("heading_control_stiffness", stiffness);
  const auto flag = [&](const char* what, double share) {
    return latch(g, anew, g.compare(Op::kLess, g.uniform(place + "." + what, 1), g.constant(static_cast<float>(share))),
                 place + "." + what);
  };
  const bool by_level = s.has("levels");
  const Expr share = by_level ? command_share(name, place, s, anew, names) : Expr{};
  const auto latched = [&](const char* what, const Range& range) {
    command_ranges_[name].emplace_back(what);
    const Expr value = drawn_between(g, place + "." + what, ends_of(names, name, what, range));
    return latch(g, anew, by_level && what != std::string("heading") ? g.multiply(value, share) : value,
                 place + "." + what);
  };
  Expr vx = latched("lin_vel_x", x), vy = latched("lin_vel_y", y), w = latched("ang_vel_z", turn);
  if (forward > 0) {
    const Expr ahead = flag("forward", forward), zero = g.constant(0);
    vx = g.select(ahead, g.binary(Op::kMaximum, g.unary(Op::kAbsolute, vx), g.constant(0.3f)), vx);
    vy = g.select(ahead, zero, vy), w = g.select(ahead, zero, w);
  }
  if (heading_command) {
    const Expr target = latched("heading", heading);
    const Expr error = heading_error(names, place, target);
    const Ends turns = ends_of(names, name, "ang_vel_z", turn);
    const Expr steered = g.binary(
        Op::kMinimum, g.binary(Op::kMaximum, g.multiply(error, g.constant(static_cast<float>(stiffness))), turns.low),
        turns.high);
    w = with_heading >= 1 ? steered : g.select(flag("by_heading", with_heading), steered, w);
  }
  Expr all = g.join({vx, vy, w});
  if (standing > 0) all = g.select(flag("standing", standing), g.constant(0), all);
  const std::vector<Ends> ranges{ends_of(names, name, "lin_vel_x", x), ends_of(names, name, "lin_vel_y", y),
                                 ends_of(names, name, "ang_vel_z", turn)};
  finish_command(name, place, or_held(name, place, all, ranges, names), names);
}

void PlanReader::uniform_command(const std::string& name, const std::string& place, JsonSection& s, const Expr& anew,
                                 Quantities& names, bool pose) {
  Graph& g = names.graph();
  std::vector<Expr> parts;
  if (pose) {
    Range r[6];
    static constexpr const char* kNames[] = {"pos_x", "pos_y", "pos_z", "roll", "pitch", "yaw"};
    bool turns = false;
    s.in("ranges", [&](JsonSection& ranges) {
      for (int i = 0; i < 6; ++i) {
        turns = turns || (i >= 3 && ranges.has(kNames[i]));
        r[i] = take_range(ranges, kNames[i]);
        if (i >= 3) check_angles(r[i], kNames[i]);
      }
    });
    for (int i = 0; i < (turns ? 6 : 3); ++i) {
      command_ranges_[name].emplace_back(kNames[i]);
      parts.push_back(latch(g, anew, drawn_between(g, place + "." + kNames[i], ends_of(names, name, kNames[i], r[i])),
                            place + "." + kNames[i]));
    }
    if (plan_.commands_by_hand) {
      std::vector<Ends> ranges;
      for (std::size_t i = 0; i < parts.size(); ++i) ranges.push_back(ends_of(names, name, kNames[i], r[i]));
      const Expr all = or_held(name, place, g.join(parts), ranges, names);
      for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = g.columns(all, {static_cast<int>(i)});
    }
    if (turns) {
      // Roll, pitch, yaw as a quaternion.
      const auto turned = [&](int axis, const Expr& angle) {
        const Expr half = g.multiply(angle, g.constant(0.5f)), zero = g.constant(0);
        std::vector<Expr> q{g.unary(Op::kCosine, half), zero, zero, zero};
        q[static_cast<std::size_t>(axis) + 1] = g.unary(Op::kSine, half);
        return g.join(q);
      };
      const Expr q = g.quat_multiply(turned(2, parts[5]), g.quat_multiply(turned(1, parts[4]), turned(0, parts[3])));
      parts.resize(3);
      parts.push_back(q);
    }
  } else {
    std::vector<double> low, high;
    s.take("low", low), s.take("high", high);
    COHORT_THROW_UNLESS(!low.empty() && low.size() == high.size(), "needs `low` and `high`, lists of as many numbers");
    for (std::size_t i = 0; i < low.size(); ++i) {
      COHORT_THROW_UNLESS(low[i] <= high[i], "low[{}] is above high[{}]", i, i);
      parts.push_back(
          latch(g, anew, drawn(g, format("{}.{}", place, i), {low[i], high[i]}), format("{}.{}", place, i)));
    }
    std::vector<Ends> ranges;
    for (std::size_t i = 0; i < low.size(); ++i)
      ranges.push_back({g.constant(static_cast<float>(low[i])), g.constant(static_cast<float>(high[i])), {}});
    parts = {or_held(name, place, g.join(parts), ranges, names)};
  }
  finish_command(name, place, g.join(parts), names);
}

Expr PlanReader::heading_error(Quantities& names, const std::string& place, const Expr& target) {
  names.give({{"target", {.value = target}}});
  const Expr error = names.read("wrap(target - base.heading)", place);
  names.give({});
  return error;
}

Expr PlanReader::latch(Graph& g, const Expr& anew, const Expr& value, const std::string& name) {
  const Expr memory = g.memory(name, value.rows, value.cols);
  Expr now = g.select(anew, value, memory);
  now.truth = value.truth;
  g.keep(memory, now);
  return now;
}

Expr PlanReader::or_held(const std::string& name, const std::string& place, const Expr& drawn,
                         const std::vector<Ends>& ranges, Quantities& names) {
  if (!plan_.commands_by_hand) return drawn;
  Graph& g = names.graph();
  CommandShape& shape = plan_.commands.emplace_back();
  shape.name = name;
  const std::vector<std::string>& known = command_ranges_[name];
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    // A range that grows while somebody learns has no ends that hold for all environments.
    const std::vector<float> low = g.constant_value(ranges[i].low), high = g.constant_value(ranges[i].high);
    shape.parts.push_back(i < known.size() ? known[i] : std::to_string(i));
    shape.low.push_back(low.empty() ? -1 : low[0]), shape.high.push_back(high.empty() ? 1 : high[0]);
  }
  const Expr held = g.memory(place + ".held", 1, 1), by_hand = g.memory(place + ".by_hand", 1, drawn.size()),
             shown = g.memory(place + ".shown", 1, drawn.size());
  const Expr now = g.select(g.compare(Op::kLess, g.constant(0.5f), held), by_hand, drawn);
  g.keep(held, held), g.keep(by_hand, by_hand), g.keep(shown, now);
  g.require(shown);
  return now;
}

void PlanReader::finish_command(const std::string& name, const std::string& place, const Expr& next,
                                Quantities& names) {
  Graph& g = names.graph();
  const Expr during = g.memory(place, 1, next.size());
  g.keep(during, next);
  names.add_command(name, {.next = next, .during = during});
  commands_[name] = during;
}

}  // namespace cohort::tasks
