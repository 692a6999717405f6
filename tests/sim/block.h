/// Our block of one float, filled from MuJoCo's state, everything else poisoned; and the stages that tests run on it,
/// compiled once for all of them (block.cpp).
#pragma once
#include <vector>

#include "oracle.h"
#include "sim/kernels/step.h"

namespace cohort::sim::test {

/// Memory for our block of one float.
class Block {
 public:
  explicit Block(const ModelView& m);
  /// Poisons everything with infinity, then copies MuJoCo's state and inputs.
  void load(const ModelView& m, const mjData& d);
  BlockSpace<ScalarLane> space;

 private:
  std::vector<float> values_;
  std::vector<Group> groups_;
  std::vector<int> cols_, start_;
  std::vector<unsigned long long> bits_;
};

void kinematics(const ModelView& m, Workspace<ScalarLane>& w);
void velocities(const ModelView& m, Workspace<ScalarLane>& w);
void tendons(const ModelView& m, Workspace<ScalarLane>& w);
void smooth_dynamics(const ModelView& m, Workspace<ScalarLane>& w);
void make_rows(const ModelView& m, BlockSpace<ScalarLane>& b);
/// Returns the iterations.
float solve_constraints(const ModelView& m, BlockSpace<ScalarLane>& b);
/// Newton's first second derivatives, of the rows that make_rows made: (nv, nv), symmetric.
std::vector<float> second_derivatives(const ModelView& m, BlockSpace<ScalarLane>& b);
void evaluate(const ModelView& m, BlockSpace<ScalarLane>& b);
void sensors(const ModelView& m, BlockSpace<ScalarLane>& b, float time);
/// evaluate and one step of the model's integrator.
void evaluate_and_step(const ModelView& m, BlockSpace<ScalarLane>& b);

}  // namespace cohort::sim::test
