/// The benchmark's initial states of a task: LIBERO's files init_files/SUITE/TASK.pruned_init, which torch.save() wrote
/// of a NumPy array, or LIBERO-Pro's TASK.pruned_init.npz, whose array is `states`. Nothing in them is executed.
#pragma once
#include <filesystem>

#include "formats/npy.h"

namespace cohort::tasks::libero::compose {

/// file: without ".npz", which is added where only that is there.
/// float64 (states, 1 + nq + nv). most: of the first, no more than so many; 0: all. Throws Error naming the file.
NpyArray read_initial_states(const std::filesystem::path& file, int most = 0);

}  // namespace cohort::tasks::libero::compose
