/// What a batched engine decides about a model when it is built: no part of the model, nor of a compiled model's file,
/// so that another machine or backend decides anew.
#pragma once
#include "sim/model.h"

namespace cohort::sim {

/// ModelView::row_space, which of Newton's two forms solves the constraints: environments with at most so many
/// constraint rows are solved for the rows' forces. wanted: of SceneOptions::row_space; -1: what was measured to be
/// quicker on CPUs. 0 where the model has no rows, or the solver or the cones are others. Throws Error for more than
/// kMostRowSpaceRows.
int choose_row_space(const Model& model, int wanted);

/// ModelView::contact_capacity, the most contacts of an environment: `wanted`, but no more than all pairs of geoms can
/// make; 0: as many as that. Throws Error with the numbers where the scratch memory of a lane would be more than
/// kernels can count.
int choose_contact_capacity(const Model& model, int wanted);

/// The model as an engine's kernels see it, with both. Valid as long as the model.
ModelView planned_view(const Model& model, int row_space, int contact_capacity);

}  // namespace cohort::sim
