/// MuJoCo's answer for a state, and how much of it single precision cannot know.
#pragma once
#include <string>
#include <vector>

#include "sim/host/import/handle.h"

namespace cohort::sim::test {

struct ReferenceAnswer {
  mj::DataPtr state;         ///< what was asked for
  mj::DataPtr forward;       ///< after mj_forward with the model's own options
  mj::DataPtr step;          ///< after mj_step with the solver of qacc
  std::vector<double> qacc;  ///< (nv) of a solver that has more iterations and ends at 1e-14

  /// How far MuJoCo parts from itself when the state moves by rounding, at most of several moves.
  struct Noise {
    double qacc_smooth = 0, qacc = 0, step = 0;  ///< relative to 1 and to the largest element; step: of qvel and qpos
    std::vector<double> sensor;                  ///< (nsensordata), absolute
    std::vector<double> dist, place, normal;     ///< (ncon), m and 1
    std::vector<double> row;                     ///< (nefc), as row_difference of differential.cpp
  } noise;

  /// Why the state tells nothing of our arithmetic; empty: it does.
  std::string useless;
};

/// Whether MuJoCo counted a warning of any kind.
bool warned(const mjData& d);

/// No noise, for as many sensors, contacts and rows as d has.
ReferenceAnswer::Noise quiet(const mjModel& m, const mjData& d);

/// Leaves the model's options as they were.
ReferenceAnswer reference_answer(mjModel& m, mj::DataPtr state);

}  // namespace cohort::sim::test
