/// Lines that a run says of itself before it begins.
#pragma once
#include <string>
#include <vector>

#include "core/array_view.h"
#include "core/config.h"

namespace torch::nn {
class Module;
}

namespace cohort::run {

/// "11,330,055 parameters (45.3 MB of fp32 weights)".
std::string describe_model(const torch::nn::Module& model);

/// "cuda:0" or "cpu, cpu".
std::string device_names(const std::vector<DeviceId>& devices);
/// The numbers of those that are CUDA's: 1 for cuda:1.
std::vector<int> cuda_indices(const std::vector<DeviceId>& devices);

/// All settings as the command line would say them, several on a line and every section on lines of its own.
std::vector<std::string> settings_lines(const config::Json& configuration);

}  // namespace cohort::run
