/// Which of Newton's two forms an engine solves a model's constraints with: its plan at build, no part of the model.
#pragma once
#include "sim/model.h"

namespace cohort::sim {

/// ModelView::row_space: environments with at most so many constraint rows are solved for the rows' forces. wanted: of
/// SceneOptions::row_space; -1: what was measured to be quicker on CPUs. 0 where the model has no rows, or the solver
/// or the cones are others. Throws Error for more than kMostRowSpaceRows.
int choose_row_space(const Model& model, int wanted);

}  // namespace cohort::sim
