/// What should come to rest: shapes put down on what carries them, in lanes and in MuJoCo, and how much either still
/// moves after two seconds.
///
/// A case is a pair of shapes that may rest upon each other. Its scene has four of the upper shapes, light and heavy, on
/// level and on sloped supports (10 degrees, below the friction's angle), each 5 mm above its place; its environments
/// differ in how the shapes are turned and where they are put down.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace cohort::sim::test {

struct RestCase {
  std::string upper, lower;
};

/// Of one shape in one scene, over all environments: the worst.
struct RestFigures {
  double speed = 0;     ///< m/s, of its centre
  double turning = 0;   ///< rad/s
  double height = 1e9;  ///< m, the lowest height of its centre above the support, against where it would lie undeformed
};

/// One shape of a case beside MuJoCo's.
struct RestResult {
  RestCase pair;
  bool heavy = false, sloped = false;
  RestFigures ours, mujoco;
  /// What is wrong, in words; empty: it rests as it should.
  std::string wrong;
};

/// Shapes that are put on others, and supports.
std::vector<std::string> rest_uppers();
std::vector<std::string> rest_lowers();
/// All pairs that may rest.
std::vector<RestCase> rest_cases();
/// The scene of a case.
std::string rest_scene(const RestCase& c);
/// Two simulated seconds of a case with both engines: four results.
std::vector<RestResult> run_rest_case(const RestCase& c);
/// The contacts that both engines have at the end, in words.
std::string rest_contacts(const RestCase& c);
/// A line for a results file, and what the columns are.
std::string rest_line(const RestResult& r);
std::string rest_columns();

}  // namespace cohort::sim::test
