/// Robot data without some of their steps: what teleoperators waited, say.
///
///   auto source = keep_steps(open_episodes("cups"), "idle(action)", threads);
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "data/episodes.h"

namespace cohort::data {

/// The source without the steps that the rule leaves out; "" leaves none out and gives back the source itself.
///   idle(ACTION)                  a step does nothing: the norm of ACTION's elements but the last is below 1e-4, and the
///   idle(ACTION, EPS)             last, the gripper, is that of the step kept before (of the first: whatever it is).
///   idle(ACTION, EPS, none)       ACTION has no gripper: the norm of all elements counts.
/// The first form is OpenVLA's rule for LIBERO (experiments/robot/libero/regenerate_libero_dataset.py, is_noop) and is meant
/// for actions that are relative: of absolute ones the norm says nothing. An episode is then those steps one behind
/// the other: windows, statistics and lengths count them alone, and what is behind a pause follows what is before it.
/// selection() says how many steps were left out. An episode of idle steps only keeps its first.
/// Reads ACTION of all episodes. Throws Error for a rule or field that is not known, naming those that are.
std::unique_ptr<EpisodeSource> keep_steps(std::unique_ptr<EpisodeSource> source, const std::string& rule, int threads);

}  // namespace cohort::data
