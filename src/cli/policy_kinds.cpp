#include "cli/policy_kinds.h"

#include "onnx/onnx_policy.h"
#include "policies/acting_policy.h"
#include "rl/ppo_policy.h"
#include "serve/remote_policy.h"

namespace cohort::cli {

void register_policy_kinds() {
  policies::register_trained_policies();  // takes what the others leave
  rl::register_ppo_policies();
  onnx::register_onnx_policies();
  serve::register_remote_policies();
}

}  // namespace cohort::cli
