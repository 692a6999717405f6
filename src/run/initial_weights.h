/// The weights of a run, for another one to begin with: fine-tuning. Optimizer, schedule, data order and steps are the new
/// run's own.
///
///   load(*model, read_initial_weights("outputs/push/latest", "policy"));
#pragma once
#include <map>
#include <string>

#include "weights/named_tensors.h"

namespace torch::nn {
class Module;
}

namespace cohort::run {

struct InitialWeights {
  std::string source;  ///< the checkpoint that they are of
  weights::NamedTensors tensors;
  std::map<std::string, std::string> aliases;  ///< names of tied weights
};

/// Of the last whole checkpoint of a run, or of the checkpoint, that `path` names: the moving average where one is kept,
/// which is what is evaluated. Throws Error where there is none, or where it is of another job than `job`.
InitialWeights read_initial_weights(const std::string& path, const std::string& job);

/// Copies them into the module. Throws Error naming tensors that are missing, left over, or of another shape.
void load(torch::nn::Module& module, const InitialWeights& weights);

}  // namespace cohort::run
