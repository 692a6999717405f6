/// gym-aloha's two tasks of the bimanual ViperX arms: a cube is handed over, a peg is put into a socket. Model, controls,
/// rewards and starts are those of gym-aloha 0.1.3 (huggingface/gym-aloha, gym_aloha/tasks/sim.py and utils.py); the
/// numbers that a start is drawn with are ours.
#pragma once
#include <filesystem>

namespace cohort::tasks {

/// A file of gym-aloha's models: in COHORT_GYM_ALOHA_ASSETS, else in share/cohort/gym_aloha of an installed prefix, else
/// in set-up's wheels. Throws Error, with the command that brings it, where it is not there.
std::filesystem::path aloha_model(const char* file);

}  // namespace cohort::tasks
