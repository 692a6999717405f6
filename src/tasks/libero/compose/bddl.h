/// LIBERO's problem files: which objects and fixtures a task has, where they may stand, what holds at first and what
/// shall hold (BDDL, an s-expression; LIBERO's libero/libero/envs/bddl_utils.py says what it takes from one).
///
///   const Problem problem = read_problem(read_file(path), path);
///   problem.goal;  // {{"close", "wooden_cabinet_1_top_region"}}
///
/// Everything is in lower case, as the Python package bddl reads it.
#pragma once
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace cohort::tasks::libero::compose {

/// A place on the workspace, or a named site of an object.
struct Region {
  std::string target;                         ///< "kitchen_table", "wooden_cabinet_1"
  std::vector<std::array<double, 4>> ranges;  ///< m, in the workspace: low x, low y, high x, high y
  std::array<double, 2> yaw{0, 0};            ///< rad
  std::array<double, 4> rgba{0, 0, 1, 0};
  bool operator==(const Region&) const = default;
};

/// In the order of the file, and a name once: a later value takes the place of the earlier.
template <class Value>
using Ordered = std::vector<std::pair<std::string, Value>>;

struct Problem {
  std::string name;                            ///< "libero_kitchen_tabletop_manipulation"
  std::string language;                        ///< in lower case
  Ordered<std::vector<std::string>> fixtures;  ///< of each category: the things' names
  Ordered<std::vector<std::string>> objects;   ///< likewise
  Ordered<Region> regions;                     ///< by "target_name"
  std::vector<std::string> of_interest;
  std::vector<std::vector<std::string>> initial;  ///< predicates: {"on", "plate_1", "kitchen_table_plate_region"}
  std::vector<std::vector<std::string>> goal;     ///< all must hold

  const Region* region(const std::string& name) const;  ///< null without one
  bool operator==(const Problem&) const = default;
};

/// Throws Error naming `source`, the line where brackets do not match, and what is not understood.
Problem read_problem(const std::string& text, const std::string& source);

}  // namespace cohort::tasks::libero::compose
