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

/// "11,330,055 parameters (45.3 MB of fp32 weights)".
std::string describe_model(const torch::nn::Module& model);

/// Label and text: job, data, the statistics that they are scaled by, model, devices and why, effective batch, learning rate and its rule, precision.
std::vector<std::pair<std::string, std::string>> banner_rows(const Trainable& trainable, const RunSettings& settings,
                                                             const parallel::Plan& plan,
                                                             const torch::nn::Module& model);

/// All settings as the command line would say them, several on a line and every section on lines of its own.
std::vector<std::string> settings_lines(const config::Json& configuration);

}  // namespace cohort::train
