#include "run/training.h"

#include <cctype>
#include <utility>

#include "core/command_line.h"
#include "core/error.h"

namespace cohort::run {
namespace {

/// What is said to the name of a policy or method that is no job: where it is, or what there is instead.
std::string instead_of(std::string name) {
  std::string bare;
  for (const char c : name)
    if (c != '_' && c != '-' && c != '.') bare += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const char* one : {"diffusion", "diffusionpolicy", "dp", "unet", "diffusionunet"})
    if (bare == one)
      return "a diffusion policy is what `cohort train policy` trains (model.algorithm=diffusion_policy, its default)";
  for (const char* one : {"bc", "bcrnn", "bctransformer", "behaviorcloning", "mlp"})
    if (bare == one) return "behaviour cloning is `cohort train policy model.algorithm=bc`";
  for (const char* one : {"rl", "sac", "td3", "ddpg", "trpo"})
    if (bare == one) return "of reinforcement learning there is `cohort train ppo TASK`";
  for (const char* one :
       {"act", "vqbet", "tdmpc", "smolvla", "pi0", "pi0fast", "pi05", "gr00t", "groot", "openvla", "octo", "xvla"})
    if (bare == one)
      return "it is not there yet. Of imitation learning there are `cohort train policy` (diffusion policy, or BC with "
             "model.algorithm=bc) and `cohort train rdt`; a model behind openpi's protocol is evaluated with `cohort "
             "evaluate --policy ws://HOST:PORT`";
  return "";
}

}  // namespace

void refuse_unknown_training(const std::string& name, const std::vector<std::string>& names) {
  if (const std::string other = instead_of(name); !other.empty())
    throw Error(format("there is nothing called '{}' to train: {}", name, other));
  const std::string near = config::nearest(name, names);
  throw Error(format("there is nothing called '{}' to train{}; there are {}", name,
                     near.empty() ? "" : format(", did you mean '{}'?", near), join(names, ", ")));
}

}  // namespace cohort::run
