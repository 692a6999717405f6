#include <algorithm>

#include "core/error.h"
#include "core/format.h"
#include "tasks/file/plan_reader.h"

namespace cohort::tasks {

using config::Json;
using config::JsonSection;
using terms::Expr;
using terms::Graph;
using terms::Op;

void PlanReader::read_stages(JsonSection& curriculum) {
  each(curriculum, [&](const std::string& name, const Json& value) {
    static const std::vector<std::string> kTypes{"terrain_levels", "commands_vel", "command_levels", "reward_weight"};
    const std::string type = type_of(name, value);
    if (type == "terrain_levels") return;  // with the terrain
    if (std::ranges::find(kTypes, type) == kTypes.end()) {
      const std::string near = config::nearest(type, kTypes);
      throw Error(format("there is no curriculum '{}'{}; there are {}", type,
                         near.empty() ? "" : format(", did you mean '{}'?", near), join(kTypes, ", ")));
    }
    JsonSection s(value, curriculum.path() + "." + name, wrong_);
    s.ignore("type");
    if (type == "command_levels") return read_growth(name, s);
    std::string of = type == "commands_vel" ? "twist" : "";
    s.take(type == "commands_vel" ? "command_name" : "reward_name", of);
    COHORT_THROW_UNLESS(!of.empty(), "needs `reward_name`: whose weight");
    const std::string key = type == "commands_vel"   ? "velocity_stages"
                            : s.has("weight_stages") ? "weight_stages"
                                                     : "stages";
    const Json& stages = s.get(key);
    COHORT_THROW_UNLESS(stages.is_array() && !stages.empty(), "needs `{}`: a list of stages, each with its `step`",
                        key);
    double before = 0;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      JsonSection stage(stages[i], format("{}.{}[{}]", s.path(), key, i), wrong_);
      double step = 0;
      stage.take("step", step);
      COHORT_THROW_UNLESS(step >= before, "{}[{}] begins at step {:g}, before the one above it", key, i, step);
      before = step;
      if (type == "commands_vel") {
        for (const char* range : kRanges)
          if (stage.has(range))
            range_stages_[of][range].emplace_back(step, range_of(stage.get(range), range));
          else
            stage.ignore(range);  // so that it is the nearest of a wrong name
      } else {
        COHORT_THROW_UNLESS(stage.has("weight"), "{}[{}] needs `weight`", key, i);
        double weight = 0;
        stage.take("weight", weight);
        weight_stages_[of].emplace_back(step, weight);
      }
    }
  });
}

void PlanReader::read_growth(const std::string& name, JsonSection& s) {
  Growth growth{.name = name};
  std::string of = "twist";
  s.take("command_name", of), s.take("reward_name", growth.reward);
  s.take("threshold", growth.threshold), s.take("increment", growth.increment);
  COHORT_THROW_UNLESS(!growth.reward.empty(), "needs `reward_name`: the reward that says when the command may grow");
  COHORT_THROW_UNLESS(growth.increment > 0 && growth.increment <= 1,
                      "increment is {:g}: the share of the way that the ranges grow by, above 0 and at most 1",
                      growth.increment);
  s.in("limit_ranges", [&](JsonSection& limits) {
    for (const char* range : kRanges)
      if (limits.has(range))
        growth.limits[range] = range_of(limits.get(range), range);
      else
        limits.ignore(range);
  });
  COHORT_THROW_UNLESS(!growth.limits.empty(), "needs `limit_ranges`: to what the ranges grow");
  growths_[of] = std::move(growth);
}

PlanReader::Ends PlanReader::ends_of(Quantities& names, const std::string& command, const std::string& key,
                                     const Range& first) {
  Graph& g = names.graph();
  const auto number = [&](double x) { return g.constant(static_cast<float>(x)); };
  Range begin = first;
  const auto growth = growths_.find(command);
  const bool grows = growth != growths_.end() && growth->second.limits.contains(key);
  const auto& all = range_stages_[command];
  const auto stages = all.find(key);
  if (at_ends_ && stages != all.end()) begin = stages->second.back().second;
  if (at_ends_ && grows) begin = growth->second.limits.at(key);
  Ends ends{number(begin.low), number(begin.high), number(begin.high - begin.low)};
  if (at_ends_ && grows) names.define("curriculum." + growth->second.name, number(1));
  if (at_ends_) return ends;
  if (stages != all.end()) {
    const Expr lifetime = names.read("lifetime", "curriculum");
    for (const auto& [step, range] : stages->second) {
      const Expr reached = g.compare(Op::kAtMost, number(step), lifetime);
      ends.low = g.select(reached, number(range.low), ends.low);
      ends.high = g.select(reached, number(range.high), ends.high);
    }
    ends.width = g.subtract(ends.high, ends.low);
  }
  if (grows) {
    Growth& of = growth->second;
    const std::string place = "curriculum." + of.name;
    if (of.share.node < 0) {
      const Expr share = g.memory(place + ".share", 1, 1);
      of.total = g.memory(place + ".total", 1, 1);
      // In the first evaluation after a reset the total is that of the episode before.
      const Expr enough =
          g.compare(Op::kLess, number(of.threshold * static_cast<double>(plan_.spec.horizon)), of.total);
      const Expr more = g.binary(Op::kMinimum, g.add(share, number(of.increment)), number(1));
      of.share = g.select(g.binary(Op::kAnd, g.started(names.step()), enough), more, share);
      g.keep(share, of.share);
      names.define(place, of.share);
    }
    const Range limit = of.limits.at(key);
    ends.low = g.add(ends.low, g.multiply(of.share, g.subtract(number(limit.low), ends.low)));
    ends.high = g.add(ends.high, g.multiply(of.share, g.subtract(number(limit.high), ends.high)));
    ends.width = g.subtract(ends.high, ends.low);
  }
  return ends;
}

Expr PlanReader::weighted(Quantities& names, const std::string& reward, const Expr& term, double factor,
                          double weight) {
  Graph& g = names.graph();
  const auto number = [&](double x) { return g.constant(static_cast<float>(x)); };
  const auto stages = weight_stages_.find(reward);
  if (stages == weight_stages_.end()) return g.multiply(term, number(weight * factor));
  if (at_ends_) return g.multiply(term, number(stages->second.back().second * factor));
  Expr by = number(weight * factor);
  const Expr lifetime = names.read("lifetime", "curriculum");
  for (const auto& [step, then] : stages->second)
    by = g.select(g.compare(Op::kAtMost, number(step), lifetime), number(then * factor), by);
  return g.multiply(term, by);
}

void PlanReader::read_curriculum(JsonSection& curriculum, Quantities& names) {
  const auto none = [](const std::string& what, const std::string& name, std::vector<std::string> known) {
    const std::string near = config::nearest(name, known);
    return format("there is no {} '{}'{}", what, name, near.empty() ? "" : format(", did you mean '{}'?", near));
  };
  each(curriculum, [&](const std::string& name, const Json& value) {
    const std::string type = type_of(name, value);
    std::vector<std::string> commands;
    for (const auto& [command, unused] : commands_) commands.push_back(command);
    const auto of = [&](const char* key, const char* standard) {
      return value.is_object() && value.contains(key) && value[key].is_string() ? value[key].get<std::string>()
                                                                                : standard;
    };
    if (type == "commands_vel" || type == "command_levels") {
      const std::string command = of("command_name", "twist");
      COHORT_THROW_UNLESS(commands_.contains(command), "{}", none("command", command, commands));
      const auto missing = [&](const std::string& key) {
        const auto& has = command_ranges_[command];
        return std::ranges::find(has, key) == has.end();
      };
      for (const auto& [key, unused] : range_stages_[command])
        COHORT_THROW_UNLESS(!missing(key), "the command '{}' has no range {}", command, key);
      if (const auto growth = growths_.find(command); type == "command_levels" && growth != growths_.end())
        for (const auto& [key, unused] : growth->second.limits)
          COHORT_THROW_UNLESS(!missing(key), "the command '{}' has no range {}", command, key);
    }
    if (type == "reward_weight" || type == "command_levels") {
      const std::string reward = of("reward_name", "");
      COHORT_THROW_UNLESS(reward.empty() || std::ranges::find(rewards_, reward) != rewards_.end(), "{}",
                          none("reward", reward, rewards_));
    }
    if (type != "terrain_levels") return;
    JsonSection s(value, curriculum.path() + "." + name, wrong_);
    s.ignore("type");
    COHORT_THROW_UNLESS(plan_.terrain != nullptr, "terrain_levels needs a terrain in the scene");
    COHORT_THROW_UNLESS(plan_.model.of_robot().free_qpos >= 0, "terrain_levels needs a robot that walks");
    plan_.terrain_levels = "twist";
    s.take("command_name", plan_.terrain_levels);
    const auto command = commands_.find(plan_.terrain_levels);
    COHORT_THROW_UNLESS(command != commands_.end(), "there is no command '{}'", plan_.terrain_levels);
    names.graph().require(command->second);
    plan_.first_levels = plan_.terrain->num_levels;
    int most = plan_.first_levels - 1;
    s.take("max_init_terrain_level", most);
    COHORT_THROW_UNLESS(most >= 0, "max_init_terrain_level is {}: at least 0", most);
    plan_.first_levels = std::min(plan_.first_levels, most + 1);
  });
}

}  // namespace cohort::tasks
