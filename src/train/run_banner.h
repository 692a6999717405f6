/// What a run says of itself before it begins: nothing is decided silently.
#pragma once
#include <string>
#include <vector>

#include "parallel/plan.h"
#include "train/run.h"

namespace torch::nn {
class Module;
}

namespace cohort::train {

/// Label and text: job, data, the statistics that they are scaled by, model, devices and why, effective batch, learning rate and its rule, precision.
std::vector<std::pair<std::string, std::string>> banner_rows(const Trainable& trainable, const RunSettings& settings,
                                                             const parallel::Plan& plan,
                                                             const torch::nn::Module& model);

}  // namespace cohort::train
