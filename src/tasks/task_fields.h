/// How a task's own settings are described and read.
///
///   struct ReachSettings { double within = 0.02; };
///   void describe(config::Fields& fields, ReachSettings& s) { fields.add("within", s.within, "m: ..."); }
///   ...
///   ReachSettings own;
///   TaskFields fields = read_fields(settings, own);   // own has what TaskSettings::overrides say
#pragma once
#include <memory>
#include <utility>

#include "core/config.h"
#include "tasks/task.h"

namespace cohort::tasks {

/// Settings and their fields, which refer to them.
template <class Settings>
struct DescribedSettings {
  explicit DescribedSettings(Settings v) : values(std::move(v)) { describe(fields, values); }
  Settings values;
  config::Fields fields;
};

/// The fields of these values, which they keep.
template <class Settings>
TaskFields fields_of(Settings values) {
  const auto both = std::make_shared<DescribedSettings<Settings>>(std::move(values));
  return {both, &both->fields};
}

/// Applies TaskSettings::overrides. Throws Error for an unknown key, with the nearest, or a wrong value.
void apply_overrides(const TaskSettings& settings, config::Fields& fields);

/// Reads TaskSettings::overrides on top of `values`, its defaults, into it.
template <class Settings>
TaskFields read_fields(const TaskSettings& settings, Settings& values) {
  const auto both = std::make_shared<DescribedSettings<Settings>>(values);
  apply_overrides(settings, both->fields);
  values = both->values;
  return {both, &both->fields};
}

}  // namespace cohort::tasks
