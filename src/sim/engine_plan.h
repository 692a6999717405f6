/// What a batched engine decides about a model when it is built: no part of the model, nor of a compiled model's file,
/// so that another machine or backend decides anew.
#pragma once
#include <vector>

#include "sim/engine.h"
#include "sim/host/model.h"

namespace cohort::sim {

/// ModelView::row_space, which of Newton's two forms solves the constraints: environments with at most so many
/// constraint rows are solved for the rows' forces. wanted: of SceneOptions::row_space; -1: what was measured to be
/// quicker on CPUs, on a CUDA device no more than kMostDeviceRows. 0 where the model has no rows, or the solver or the
/// cones are others. Throws Error for more than kMostRowSpaceRows.
int choose_row_space(const Model& model, int wanted, DeviceKind device = DeviceKind::kCpu);

/// What choose_row_space takes by itself at most on a CUDA device, where a block's lanes cannot fill each other's gaps:
/// of 42 rows the products cost twice what the factor of a humanoid's accelerations costs (counted).
inline constexpr int kMostDeviceRows = 24;

/// ModelView::contact_capacity, the most contacts of an environment: `wanted`, but no more than all pairs of geoms can
/// make; 0: as many as that. Throws Error with the numbers where the scratch memory of a lane would be more than
/// kernels can count.
int choose_contact_capacity(const Model& model, int wanted);

/// The model as an engine's kernels see it, with both, and with the contacts kept where a step leaves their forces.
/// Valid as long as the model.
ModelView planned_view(const Model& model, int row_space, int contact_capacity, const FieldSet& step_leaves = {},
                       DeviceKind device = DeviceKind::kCpu);

/// Throws Error where the kernels do not compute what a step is to leave: of models with equalities between links or
/// spatial tendons the links' forces, with masses of the environments' own what is made of masses.
void check_step_leaves(const Model& model, const FieldSet& step_leaves, const ParameterSet& parameters);

/// (nlink) the child of the world that each link hangs on; 0 for the world.
std::vector<int> roots_of_links(const ModelInfo& info);

}  // namespace cohort::sim
