#include "core/error.h"
#include "core/format.h"
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

Expr PlanReader::timer(Quantities& names, const std::string& place, const Range& seconds) {
  COHORT_THROW_UNLESS(seconds.low > 0, "a time of {:g} s: above zero", seconds.low);
  Graph& g = names.graph();
  const Expr left = g.memory(place + ".time_left", 1, 1);
  const Expr less = g.subtract(left, g.constant(static_cast<float>(plan_.spec.control_period)));
  const Expr up = g.compare(Op::kAtMost, less, g.constant(1e-6f));
  const Expr anew = g.binary(Op::kOr, g.started(names.step()), up);
  g.keep(left, g.select(anew, drawn(g, place + ".time", seconds), less));
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

void PlanReader::velocity_command(const std::string& name, const std::string& place, JsonSection& s, const Expr& anew,
                                  Quantities& names) {
  Graph& g = names.graph();
  Range x, y, turn, heading{-3.14159265358979, 3.14159265358979};
  s.in("ranges", [&](JsonSection& r) {
    x = take_range(r, "lin_vel_x"), y = take_range(r, "lin_vel_y"), turn = take_range(r, "ang_vel_z");
    heading = take_range(r, "heading", heading);
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
  const auto latched = [&](const char* what, const Range& range) {
    command_ranges_[name].emplace_back(what);
    return latch(g, anew, drawn_between(g, place + "." + what, ends_of(names, name, what, range)), place + "." + what);
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
  finish_command(name, place, all, names);
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
      }
    });
    for (int i = 0; i < (turns ? 6 : 3); ++i) {
      command_ranges_[name].emplace_back(kNames[i]);
      parts.push_back(latch(g, anew, drawn_between(g, place + "." + kNames[i], ends_of(names, name, kNames[i], r[i])),
                            place + "." + kNames[i]));
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

void PlanReader::finish_command(const std::string& name, const std::string& place, const Expr& next,
                                Quantities& names) {
  Graph& g = names.graph();
  const Expr during = g.memory(place, 1, next.size());
  g.keep(during, next);
  names.add_command(name, {.next = next, .during = during});
  commands_[name] = during;
}

}  // namespace cohort::tasks
