#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/format.h"
#include "core/json_text.h"
#include "tasks/file/patterns.h"
#include "tasks/file/plan_reader.h"

namespace cohort::tasks {

using config::Json;
using config::JsonSection;
using terms::Expr;
using terms::Graph;
using terms::Op;

std::map<std::string, TermParameter> PlanReader::parameters_of(JsonSection& s, const TermEntry& entry,
                                                               Quantities& names, const std::string& place) {
  std::map<std::string, TermParameter> all;
  for (const TermParameterEntry& parameter : entry.parameters) {
    const std::string name = parameter.name, standard = parameter.standard;
    s.ignore(name);
    COHORT_THROW_UNLESS(s.has(name) || !standard.empty(), "the term {} needs `{}`: {}", entry.name, name,
                        parameter.means);
    const Json value = s.has(name) ? s.get(name) : parse_json<Json>(standard);
    TermParameter& given = all[name];
    if (parameter.kind == TermParameterEntry::kNames) {
      if (value.is_string()) {
        given.texts = {value.get<std::string>()};
      } else {
        COHORT_THROW_UNLESS(config::read_value(value, given.texts), "`{}` is {}: a name, or a list of names", name,
                            json_text(value));
      }
    } else if (parameter.kind == TermParameterEntry::kJointValues) {
      const auto joints = all.find("joints");
      const std::vector<int> chosen =
          names.joints(joints == all.end() ? std::vector<std::string>() : joints->second.texts);
      const std::vector<double> values = values_by_name(value, plan_.model.joint_names(chosen), "joint");
      given.value = names.graph().constant(std::vector<float>(values.begin(), values.end()));
    } else if (value.is_string()) {
      given.value = names.read(value.get<std::string>(), place + "." + name);
    } else {
      std::vector<double> values;
      if (value.is_number())
        values.push_back(value.get<double>());
      else
        COHORT_THROW_UNLESS(config::read_value(value, values) && !values.empty(),
                            "`{}` is {}: a number, numbers or a formula", name, json_text(value));
      given.value = names.graph().constant(std::vector<float>(values.begin(), values.end()));
    }
  }
  return all;
}

Expr PlanReader::term_of(const std::string& name, const Json& value, JsonSection& s, char kind, Quantities& names,
                         const std::string& place, const TermEntry** used) {
  names.give({});
  std::string formula;
  if (value.is_string()) return names.read(value.get<std::string>(), place);
  if (s.has("formula")) {
    COHORT_THROW_UNLESS(!s.has("term"), "has both a formula and a term: one of them");
    if (s.get("formula").is_number()) return names.graph().constant(s.get("formula").get<float>());
    s.take("formula", formula);
    return names.read(formula, place + ".formula");
  }
  std::string wanted = name;
  s.take("term", wanted);
  const TermEntry* entry = find_term(wanted, kind);
  if (entry == nullptr) {
    const std::vector<std::string> known = term_names(kind);
    const std::string near = config::nearest(wanted, known);
    throw Error(format("there is no {} '{}'{}: `formula: ...` says what it is; the terms are {}",
                       kind == 'o'   ? "observation"
                       : kind == 'r' ? "reward"
                                     : "termination",
                       wanted, near.empty() ? "" : format(", did you mean '{}'?", near), join(known, ", ")));
  }
  if (used != nullptr) *used = entry;
  names.give(parameters_of(s, *entry, names, place));
  const Expr result = names.read(entry->formula, place);
  names.give({});
  return result;
}

Expr PlanReader::condition(const Expr& e) {
  COHORT_THROW_UNLESS(e.truth, "is a number, not true or false: compare it, such as `x > 0`");
  COHORT_THROW_UNLESS(e.is_number(), "has {} conditions: any(...) or all(...) makes one of them", shape_text(e));
  return e;
}

void PlanReader::read_definitions(JsonSection& definitions, Quantities& names) {
  each(definitions, [&](const std::string& name, const Json& value) {
    COHORT_THROW_UNLESS(value.is_string() || value.is_number(), "is a formula: `{}: joint_pos[0]`", name);
    try {
      names.define(name, value.is_number() ? names.graph().constant(value.get<float>())
                                           : names.read(value.get<std::string>(), "define." + name));
    } catch (const Error& e) {
      const std::string what = e.what();
      for (const auto& [other, unused] : content_["define"].items())
        if (what.find(format("quantity or function '{}'", other)) != std::string::npos)
          throw Error(format("{}; '{}' is defined {}: a definition uses those above it", what, other,
                             other == name ? "by this itself" : "below"));
      throw;
    }
  });
}

void PlanReader::give_settings(const Json& settings, Quantities& names) {
  if (!settings.is_object()) return;
  for (const auto& [name, value] : settings.items())
    if (value.is_number()) names.define(name, names.graph().constant(value.get<float>()));
}

void PlanReader::read_expert(JsonSection& root) {
  const Json value = root.get("expert");
  if (value.is_null()) return;
  attempt("expert", [&] {
    static const Json kNone = Json::object();
    JsonSection s(value.is_object() ? value : kNone, ".expert", wrong_);
    std::string formula = value.is_string() ? value.get<std::string>() : "";
    plan_.spec.expert = "a formula of the file";
    s.take("summary", plan_.spec.expert), s.take("formula", formula);
    COHORT_THROW_UNLESS(!formula.empty(), "needs a formula of the action");
    Graph g;
    Quantities names(plan_.model, g);
    give_settings(root.get("settings"), names);
    // Definitions that an expert cannot have, such as those that remember, are missed only where they are named.
    if (const Json& definitions = root.get("define"); definitions.is_object())
      for (const auto& [name, text] : definitions.items()) {
        try {
          if (text.is_string()) names.define(name, names.read(text.get<std::string>(), "define." + name));
          if (text.is_number()) names.define(name, g.constant(text.get<float>()));
        } catch (const Error&) {
        }
      }
    const Expr action = g.flat(names.read(formula, "expert"));
    const auto width = static_cast<int>(plan_.spec.action.names.size());
    COHORT_THROW_UNLESS(action.size() == width, "has {} numbers, and an action {}", action.size(), width);
    const ActionSpec& bounds = plan_.spec.action;
    const Expr low = g.constant(bounds.low), high = g.constant(bounds.high);
    g.store(names.array({ArrayPlace::kExpert}), 0, g.binary(Op::kMinimum, g.binary(Op::kMaximum, action, low), high));
    plan_.expert = g.compile();
    COHORT_THROW_UNLESS(plan_.expert.memory_rows == 0,
                        "remembers: an expert takes up any situation, by the present state alone");
    plan_.expert_arrays = names.arrays();
    for (const sim::Field field : names.leaves())
      if (std::ranges::find(plan_.leaves, field) == plan_.leaves.end()) plan_.leaves.push_back(field);
    plan_.spec.has_expert = true;
  });
}

void PlanReader::read_terminations(JsonSection& terminations, Quantities& names) {
  Graph& g = names.graph();
  Expr over = g.constant(0), cut = g.constant(0);
  each(terminations, [&](const std::string& name, const Json& value) {
    const std::string place = "terminations." + name;
    static const Json kNone = Json::object();
    JsonSection s(value.is_object() ? value : kNone, terminations.path() + "." + name, wrong_);
    bool time_out = name == "time_out";
    s.take("time_out", time_out);
    const Expr ends = condition(term_of(name, value, s, 't', names, place));
    Expr& all = time_out ? cut : over;
    all = g.binary(Op::kOr, all, ends);
  });
  names.define("terminated", over);
  g.store(names.array({ArrayPlace::kTerminated}), 0, over);
  g.store(names.array({ArrayPlace::kTruncated}), 0, cut);
}

void PlanReader::read_success(JsonSection& root, Quantities& names) {
  attempt("success", [&] {
    static const Json kNone = Json::object();
    const Json value = root.get("success");
    Graph& g = names.graph();
    Expr success;
    if (value.is_null()) {
      success = names.read("last_step and not terminated", "success");
    } else {
      JsonSection s(value.is_object() ? value : kNone, ".success", wrong_);
      s.ignore("ends_episode");  // the default of the setting end_on_success
      success = condition(term_of("success", value, s, 't', names, "success"));
    }
    names.define("success", success);
    g.store(names.array({ArrayPlace::kSuccess}), 0, success);
  });
}

void PlanReader::read_rewards(JsonSection& rewards, Quantities& names) {
  Graph& g = names.graph();
  Expr sum = g.constant(0);
  each(rewards, [&](const std::string& name, const Json& value) {
    const std::string place = "rewards." + name;
    static const Json kNone = Json::object();
    JsonSection s(value.is_object() ? value : kNone, rewards.path() + "." + name, wrong_);
    double weight = 1;
    bool per_second = true;
    double best = NAN;
    if (value.is_number())
      weight = value.get<double>();
    else
      s.take("weight", weight);
    s.take("per_second", per_second);
    s.take("best", best);
    names.define("reward", sum);
    const TermEntry* entry = nullptr;
    const Expr term = term_of(name, value, s, 'r', names, place, &entry);
    COHORT_THROW_UNLESS(term.is_number(), "has {} numbers, and a reward is one: sum(...), norm2(...) or mean(...)",
                        shape_text(term));
    rewards_.push_back(name);
    for (auto& [unused, growth] : growths_)
      if (growth.reward == name && growth.total.node >= 0)
        g.keep(growth.total, g.select(g.started(names.step()), g.constant(0), g.add(growth.total, term)));
    const auto is = [&](char sign) { return entry != nullptr && std::strchr(entry->kinds, sign) != nullptr; };
    if ((is('-') && weight > 0) || (is('+') && weight < 0)) {
      plan_.remarks.push_back(
          format("{}: {} has the weight {}, and what it measures ({}) is {}: is {} meant?", plan_.file, place, weight,
                 entry->means, weight > 0 ? "to be avoided: the policy is paid for it" : "to be wanted", -weight));
    }
    if (weight == 0 && !weight_stages_.contains(name)) return;
    const double per = per_second ? plan_.spec.control_period : 1, factor = weight * per;
    const Expr part = weighted(names, name, term, per, weight);
    g.store(names.array({ArrayPlace::kTerms}), static_cast<int>(plan_.spec.reward_terms.size()), part);
    plan_.spec.reward_terms.push_back(name);
    best_of_terms_.push_back(std::isnan(best) ? NAN : static_cast<float>(factor * best));
    // A formula that names the reward sees it as the settings have it.
    const auto scale = reward_scales_.find(name);
    sum = g.add(sum, scale == reward_scales_.end() ? part : g.multiply(part, g.constant(scale->second)));
  });
  names.define("reward", sum);
  // Known of one, unknown of none.
  if (std::ranges::any_of(best_of_terms_, [](float best) { return !std::isnan(best); }))
    for (const float best : best_of_terms_) plan_.spec.reward_best.push_back(std::isnan(best) ? 0 : best);
}

void PlanReader::read_metrics(JsonSection& metrics, Quantities& names) {
  Graph& g = names.graph();
  each(metrics, [&](const std::string& name, const Json& value) {
    static const Json kNone = Json::object();
    JsonSection s(value.is_object() ? value : kNone, metrics.path() + "." + name, wrong_);
    std::string reduce = "mean";
    s.take_choice("reduce", reduce, {"mean", "last"});
    const Expr e = term_of(name, value, s, 'r', names, "metrics." + name);
    COHORT_THROW_UNLESS(e.is_number(), "has {} numbers, and a metric is one: sum(...), norm(...) or mean(...)",
                        shape_text(e));
    g.store(names.array({ArrayPlace::kMetrics}), static_cast<int>(plan_.spec.metrics.size()), e);
    plan_.spec.metrics.push_back({name, reduce == "last"});
  });
}

void PlanReader::read_observations(JsonSection& observations, Quantities& names) {
  std::vector<std::string> critic;
  each(observations, [&](const std::string& group, const Json& terms) {
    COHORT_THROW_UNLESS(group == "policy" || group == "actor" || group == "critic",
                        "the groups are policy (what acts sees it) and critic");
    COHORT_THROW_UNLESS(terms.is_object(), "is an object from names to terms");
    for (const auto& [name, value] : terms.items()) {
      if (value.is_null()) continue;
      attempt(observations.path() + "." + group + "." + name, [&, n = name, v = value] {
        const bool is_critic = group == "critic";
        const auto taken = [&](const std::string& as) {
          return std::ranges::any_of(plan_.spec.observations, [&](const FieldSpec& f) { return f.name == as; });
        };
        const std::string field = is_critic && taken(n) ? "critic_" + n : n;
        read_observation(field, n, v, "observations." + group + "." + n, is_critic, names);
        if (is_critic) critic.push_back(field);
      });
    }
  });
  if (wrong_.empty() && plan_.spec.observations.size() == critic.size())
    wrong("observations.policy", "is missing: what the policy sees");
  if (!critic.empty()) plan_.ppo.push_back("policy.critic_only=[" + join(critic, ",") + "]");
}

Expr PlanReader::measured(Quantities& names, JsonSection& s, const std::string& term, const Expr& e, bool biased) {
  const std::vector<int> joints = names.joints(texts_of(s, "joints", {}));
  Graph& g = names.graph();
  Expr now = e;
  if (biased && has_event("encoder_bias")) now = g.add(now, names.drawn(TaskParameter::kEncoderBias, joints));
  if (term == "joint_pos_rel" && has_event("joint_default_pos"))
    now = g.subtract(now, names.drawn(TaskParameter::kJointDefault, joints));
  return now;
}

void PlanReader::read_observation(const std::string& field, const std::string& name, const Json& value,
                                  const std::string& place, bool privileged, Quantities& names) {
  static const Json kNone = Json::object();
  JsonSection s(value.is_object() ? value : kNone, "." + place, wrong_);
  Graph& g = names.graph();
  const TermEntry* entry = nullptr;
  Expr e = g.flat(term_of(name, value, s, 'o', names, place, &entry));
  const std::string term = entry != nullptr ? entry->name : "";
  if (term == "joint_pos" || term == "joint_pos_rel") {
    bool biased = !privileged;
    s.take("biased", biased);
    e = measured(names, s, term, e, biased);
  }
  if (s.has("noise")) {
    const Json& noise = s.get("noise");
    if (noise.is_object()) {
      double deviation = 0;
      s.in("noise", [&](JsonSection& n) { n.take("gaussian", deviation); });
      e = g.add(e, g.multiply(g.normal(place, e.size()), g.constant(static_cast<float>(deviation))));
    } else {
      const Range range =
          noise.is_number() ? Range{-noise.get<double>(), noise.get<double>()} : range_of(noise, "noise");
      e = g.add(e,
                g.add(g.constant(static_cast<float>(range.low)),
                      g.multiply(g.uniform(place, e.size()), g.constant(static_cast<float>(range.high - range.low)))));
    }
  }
  if (s.has("bias")) {
    const Json& bias = s.get("bias");
    const Range range = bias.is_number() ? Range{-bias.get<double>(), bias.get<double>()} : range_of(bias, "bias");
    const Expr drawn =
        g.add(g.constant(static_cast<float>(range.low)),
              g.multiply(g.uniform(place + ".bias", e.size()), g.constant(static_cast<float>(range.high - range.low))));
    e = g.add(e, terms::at_reset(g, names.step(), drawn));
  }
  TaskContract::Term done;
  if (s.has("clip")) {
    const Range clip = take_range(s, "clip");
    done.low = clip.low, done.high = clip.high;
    e = g.binary(Op::kMinimum, g.binary(Op::kMaximum, e, g.constant(static_cast<float>(clip.low))),
                 g.constant(static_cast<float>(clip.high)));
  }
  if (s.has("scale")) {
    std::vector<double> scale;
    if (s.get("scale").is_number())
      scale.push_back(s.get("scale").get<double>());
    else
      s.take("scale", scale);
    COHORT_THROW_UNLESS(scale.size() == 1 || static_cast<int>(scale.size()) == e.size(),
                        "scale has {} numbers, and the observation {}", scale.size(), e.size());
    e = g.multiply(e, g.constant(std::vector<float>(scale.begin(), scale.end())));
    done.scale = scale;
  }
  e = delayed_by(names, e, take_range(s, "delay"), place);
  int history = 1;
  s.take("history", history);
  COHORT_THROW_UNLESS(history >= 1 && history <= 1000, "history is {}: 1 to 1000 control steps", history);
  e = terms::history(g, names.step(), e, history);
  done.history = history > 1 ? history : 0;
  plan_.contract.observations.push_back(std::move(done));
  std::string unit = entry ? entry->unit : "", means = entry ? entry->means : "";
  s.take("unit", unit), s.take("summary", means), s.take("privileged", privileged);
  g.store(names.array({ArrayPlace::kObservation, static_cast<int>(plan_.spec.observations.size())}), 0, e);
  plan_.spec.observations.push_back({field, {e.size()}, unit.empty() ? "1" : unit, means, privileged});
}

}  // namespace cohort::tasks
