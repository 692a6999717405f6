#include "models/policy_network.h"

#include <torch/types.h>

#include "core/error.h"

namespace cohort::models {

void PolicyNetwork::set_frequency(double) {
  COHORT_CHECK(false, "this policy ({}) acts at no frequency of its own", name());
}

std::int64_t PolicyNetwork::add_instruction(const at::Tensor&) {
  COHORT_CHECK(false, "this policy ({}) carries no instructions", name());
  return 0;
}

PolicyNetwork& as_policy(torch::nn::Module& module) {
  auto* policy = dynamic_cast<PolicyNetwork*>(&module);
  COHORT_CHECK(policy != nullptr, "this module ({}) is no policy", module.name());
  return *policy;
}

const PolicyNetwork& as_policy(const torch::nn::Module& module) {
  const auto* policy = dynamic_cast<const PolicyNetwork*>(&module);
  COHORT_CHECK(policy != nullptr, "this module ({}) is no policy", module.name());
  return *policy;
}

std::int64_t whole_blocks(std::int64_t n, std::int64_t block) {
  return (n + block - 1) / block * block;
}

at::Tensor padded_rows(const at::Tensor& x, std::int64_t block, std::int64_t dim) {
  const std::int64_t n = x.size(dim), missing = whole_blocks(n, block) - n;
  if (missing == 0) return x.contiguous();
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape[static_cast<std::size_t>(dim)] = missing;
  return at::cat({x, x.narrow(dim, n - 1, 1).expand(shape)}, dim);
}

void check_frame(const std::vector<ObservationSettings>& observations, const Observations& frame, std::int64_t n) {
  for (const ObservationSettings& o : observations) {
    const auto found = frame.find(o.name);
    COHORT_THROW_UNLESS(found != frame.end(), "observation {} is missing", o.name);
    const at::Tensor& x = found->second;
    COHORT_THROW_UNLESS(x.dim() >= 1 && x.size(0) == n, "observation {} is of {} environments, but {} are to act",
                        o.name, x.dim() >= 1 ? x.size(0) : 0, n);
    std::vector<std::int64_t> wanted{n};
    wanted.insert(wanted.end(), o.shape.begin(), o.shape.end());
    if (o.is_camera() && x.scalar_type() == at::kByte) wanted = {n, o.shape[1], o.shape[2], o.shape[0]};
    COHORT_THROW_UNLESS(x.sizes() == at::IntArrayRef(wanted), "observation {} has shape {}, but must be {}", o.name,
                        c10::str(x.sizes()), c10::str(at::IntArrayRef(wanted)));
  }
}

}  // namespace cohort::models
