/// Names by pattern, as mjlab and Isaac Lab have them: a regular expression that matches a whole name.
#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/config.h"

namespace cohort::tasks {

/// A name without its entity's before it: "hip" of "robot/hip".
std::string bare_name(const std::string& name);

/// Indices of the names that one of the patterns matches, in the names' order; a name is matched with or without its
/// entity's before it ("robot/hip", "hip"). what: "joint", of messages. Throws Error for a pattern that matches nothing,
/// with the nearest name and what there is, and for one that is no regular expression.
std::vector<int> match_names(std::span<const std::string> names, std::span<const std::string> patterns,
                             const std::string& what);

/// A number for each of the names: one for all, or an object from patterns to numbers, of which each name takes the
/// first that matches. Throws Error for a name without one.
std::vector<double> values_by_name(const config::Json& value, std::span<const std::string> names,
                                   const std::string& what);

}  // namespace cohort::tasks
