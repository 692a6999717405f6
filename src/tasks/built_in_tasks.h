/// The tasks that Cohort brings: each file registers its own, and this is the list of the files.
#pragma once

namespace cohort::tasks {

/// Called once, by all_tasks().
void register_built_in_tasks();

// One for each file of suite/.
void register_open_drawer();
void register_peg_in_hole();
void register_pick_and_place();
void register_push();
void register_stack();

/// gymnasium/
void register_gymnasium_tasks();
void register_aloha_tasks();
namespace libero {
/// libero/
void register_libero_tasks();
}  // namespace libero

}  // namespace cohort::tasks
