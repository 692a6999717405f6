// What needs a CUDA device: dropout's kernel against the CPU's bits, Informer against the reference's fixtures on the
// device.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <torch/cuda.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/json_text.h"
#include "models/cuda/dropout.h"
#include "models/dropout.h"
#include "models/fixture.h"
#include "models/informer/informer.h"
#include "models/informer/key_sampling.h"
#include "models/random_context.h"

namespace cohort::models {
namespace {

/// Why there is no CUDA device, or empty. Loads LibTorch's CUDA part.
std::string no_cuda() {
  if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) return dlerror();
  return at::hasCUDA() && torch::cuda::device_count() > 0 ? "" : "no CUDA device";
}

class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = no_cuda();
    if (!reason.empty()) GTEST_SKIP() << reason;
    if (!cuda::available()) GTEST_SKIP() << "built without nvcc";
  }
  const at::Device device_{at::kCUDA, 0};
};

using DropoutOnGpu = OnGpu;
using InformerOnGpu = OnGpu;

TEST_F(DropoutOnGpu, GivesTheCpusBits) {
  const RandomContextGuard guard({.seed = 0x123456789abcdefull,
                                  .step = (1ull << 33) + 5,
                                  .sample_ids = torch::tensor(std::vector<std::int64_t>{7, 3, std::int64_t{1} << 40})});
  const DropoutLayer layer{.p = 0.3, .id = 12};
  for (const std::int64_t width : {1, 127, 128, 1000, 100003})
    for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) {
      const at::Tensor x = at::randn({3, width}).to(type), residual = at::randn({3, width});
      const at::Tensor on_cpu = dropout(x, layer, true), sum_on_cpu = add_dropout(residual, x, layer, true);
      EXPECT_TRUE(at::equal(dropout(x.to(device_), layer, true).cpu(), on_cpu)) << width << ' ' << c10::toString(type);
      EXPECT_TRUE(at::equal(add_dropout(residual.to(device_), x.to(device_), layer, true).cpu(), sum_on_cpu))
          << width << ' ' << c10::toString(type);
      at::Tensor leaf = x.to(device_).requires_grad_();
      add_dropout(residual.to(device_), leaf, layer, true).sum().backward();
      EXPECT_TRUE(at::equal(leaf.grad().cpu(), dropout(at::ones_like(x), layer, true)));
    }
}

TEST_F(InformerOnGpu, GivesTheReferencesOutputLossAndGradients) {
  // float32 products on the device without TF32; sums in another order.
  constexpr double kTolerance = 1e-4;
  at::globalContext().setAllowTF32CuBLAS(false);
  for (const std::string name :
       {"multivariate_factor3", "univariate_factor5_odd", "no_distil_fixed_relu_minutes", "stack"}) {
    const Fixture fixture = read_fixture(name);
    InformerSettings settings;
    config::Fields fields;
    describe(fields, settings);
    fields.apply_json(parse_json<nlohmann::ordered_json>(fixture.metadata.at("settings").get<std::string>()), name);
    const auto model = make_informer(settings, 1);
    load_state(*model, fixture.under("weight."));
    model->to(device_);
    const auto moved = [&](const char* field) { return fixture.at(field).to(device_); };
    const InformerInput input{moved("input.x_enc"), moved("input.x_mark_enc"), moved("input.x_dec"),
                              moved("input.x_mark_dec")};
    const KeySampleOverride given([&](int position, std::int64_t, std::int64_t, std::int64_t) {
      return fixture.at("samples.train." + std::to_string(position));
    });
    const RandomContextGuard guard({.seed = 1, .step = 1, .sample_ids = {}});
    const at::Tensor output = informer_forward(*model, input);
    EXPECT_LE(relative_difference(output.cpu(), fixture.at("output.train"), 1.0), kTolerance) << name;
    at::mse_loss(output, moved("input.target")).backward();
    const auto gradients = fixture.under("grad.");
    for (const auto& p : model->named_parameters())
      if (p.value().requires_grad()) {
        EXPECT_LE(relative_difference(p.value().grad().cpu(), gradients.at(p.key()), 1e-2), kTolerance)
            << name << ": " << p.key();
      }
  }
}

}  // namespace
}  // namespace cohort::models
