// Controls of actuators as an action: those of tendons, muscles, sites and all that drive no joint by themselves.
#include "core/error.h"
#include "core/format.h"
#include "tasks/file/patterns.h"
#include "tasks/file/plan_reader.h"

namespace cohort::tasks {

using config::Json;
using config::JsonSection;
using terms::Expr;
using terms::Graph;

void PlanReader::read_actuator_action(const std::string& name, JsonSection& s, Quantities& names) {
  ActionSpec& spec = plan_.spec.action;
  const std::vector<sim::ActuatorInfo>& all = plan_.model.info.actuators;
  std::vector<std::string> all_names;
  for (const sim::ActuatorInfo& a : all) all_names.push_back(a.name);
  const std::vector<std::string> patterns = texts_of(s, "actuators", {});
  std::vector<const sim::ActuatorInfo*> chosen;
  std::vector<std::string> own_names;
  const auto take = [&](const sim::ActuatorInfo& a) {
    chosen.push_back(&a);
    own_names.push_back(bare_name(a.name));
  };
  if (patterns.empty()) {
    for (const sim::ActuatorInfo& a : all)
      if (!controlled_.contains(a.ctrl)) take(a);
    COHORT_THROW_UNLESS(!chosen.empty(), "the model has no actuator that no other action drives");
  } else {
    for (const int i : match_names(all_names, patterns, "actuator")) take(all[static_cast<std::size_t>(i)]);
  }
  // From one end of the controls' range to the other; what has none is its control itself.
  std::vector<double> scale, offset;
  for (const sim::ActuatorInfo* a : chosen) {
    COHORT_THROW_UNLESS(a->ctrl_count == 1, "the actuator '{}' takes {} controls: one is what an action drives",
                        a->name, a->ctrl_count);
    COHORT_THROW_UNLESS(controlled_.insert(a->ctrl).second, "the actuator '{}' has an action already", a->name);
    scale.push_back(a->limited ? 0.5 * (a->range[1] - a->range[0]) : 1);
    offset.push_back(a->limited ? 0.5 * (a->range[1] + a->range[0]) : 0);
  }
  if (s.has("scale")) scale = values_by_name(s.get("scale"), own_names, "actuator");
  if (s.has("offset") && s.get("offset") != "default") offset = values_by_name(s.get("offset"), own_names, "actuator");
  plan_.contract.action_scale.insert(plan_.contract.action_scale.end(), scale.begin(), scale.end());
  const Range clip = take_range(s, "clip", {-1, 1});
  COHORT_THROW_UNLESS(clip.low < clip.high, "clip is [{:g}, {:g}]: low has to be below high", clip.low, clip.high);
  const Range delay = take_range(s, "delay");
  std::vector<std::string> said = own_names;
  s.take("names", said);
  COHORT_THROW_UNLESS(said.size() == own_names.size(), "names has {} names, and there are {} actuators", said.size(),
                      own_names.size());
  std::vector<int> columns;
  for (const std::string& one : said) {
    columns.push_back(static_cast<int>(spec.names.size()));
    spec.names.push_back(one);
    spec.low.push_back(static_cast<float>(clip.low)), spec.high.push_back(static_cast<float>(clip.high));
  }
  std::string unit = "controls of actuators by scale";
  s.take("unit", unit);
  spec.unit += (spec.unit.empty() ? "" : "; ") + unit;
  Graph& g = names.graph();
  const auto numbers = [&](const std::vector<double>& values) {
    return g.constant(std::vector<float>(values.begin(), values.end()));
  };
  const Expr action = delayed_by_event(
      names, delayed_by(names, g.load(names.array({ArrayPlace::kAction}), columns), delay, "actions." + name));
  const Expr target = g.add(g.multiply(action, numbers(scale)), numbers(offset));
  for (std::size_t i = 0; i < chosen.size(); ++i)
    g.store(names.array({ArrayPlace::kControl}), chosen[i]->ctrl, g.columns(target, {static_cast<int>(i)}));
}

}  // namespace cohort::tasks
