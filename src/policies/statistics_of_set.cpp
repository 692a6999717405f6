#include "policies/statistics_of_set.h"

#include <nlohmann/json.hpp>

#include "core/config.h"
#include "core/error.h"
#include "core/json_text.h"

namespace cohort::policies {

data::RobotStatistics statistics_of_set(const std::string& text, const std::string& data_set,
                                        const std::string& source) {
  const config::Json json = try_json<config::Json>(text);
  COHORT_THROW_UNLESS(json.is_object() && !json.empty(),
                      "{}: there are no statistics of the data, without which a policy's numbers have no units: name a "
                      "checkpoint as `cohort train` writes it, with this file",
                      source);
  if (json.contains("action")) {
    COHORT_THROW_UNLESS(data_set.empty(), "{}: there are statistics for all data together only; leave '{}' out", source,
                        data_set);
    return data::statistics_from_json(json, source);
  }
  std::string names;
  for (const auto& item : json.items()) names += (names.empty() ? "" : ", ") + item.key();
  COHORT_THROW_UNLESS(!data_set.empty() && json.contains(data_set),
                      "{}: each data set has statistics of its own; say whose hold with --data-set, one of {}. While a "
                      "policy is trained only data.combine_statistics=true lets it be rolled out (rollout.enabled)",
                      source, names);
  return data::statistics_from_json(json.at(data_set), source);
}

}  // namespace cohort::policies
