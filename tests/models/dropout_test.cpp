#include "models/dropout.h"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/Parallel.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/message_of.h"
#include "models/cpu/kernels.h"
#include "models/dropout_mask.h"
#include "models/random_context.h"

namespace cohort::models {
namespace {

constexpr std::uint64_t kSeed = 0x123456789abcdefull, kStep = 77;

RandomContext context(at::Tensor ids = {}, std::uint64_t step = kStep, std::uint64_t seed = kSeed) {
  return {.seed = seed, .step = step, .sample_ids = std::move(ids)};
}

/// The mask by its definition, one element at a time: 1 where kept. (n_sample, per_sample)
at::Tensor defined_mask(const std::vector<std::int64_t>& ids, std::int64_t per_sample, const DropoutLayer& layer,
                        std::uint64_t step = kStep, std::uint64_t seed = kSeed) {
  at::Tensor mask = at::empty({static_cast<std::int64_t>(ids.size()), per_sample});
  auto* out = mask.mutable_data_ptr<float>();
  for (const std::int64_t id : ids) {
    const RandomStream stream(seed, RandomPurpose::kDropout, static_cast<std::uint64_t>(id), step);
    for (std::int64_t i = 0; i < per_sample; ++i)
      *out++ = dropout_keeps(stream, layer.id, static_cast<std::uint64_t>(i), dropout_threshold(layer.p)) ? 1.0f : 0.0f;
  }
  return mask;
}

std::string type_name(cpu::Element type) {
  return type == cpu::Element::kFloat32 ? "float32" : "bfloat16";
}

TEST(DropoutKernels, EveryInstructionSetGivesTheDefinitionsBits) {
  // 1000 elements: seven whole tiles and a part of one. Ids and steps beyond 32 bits.
  constexpr std::int64_t kCount = 1000;
  const std::uint64_t id = (1ull << 35) + 12345, step = (1ull << 33) + 7;
  const RandomStream stream(kSeed, RandomPurpose::kDropout, id, step);
  const at::Tensor in = at::linspace(-3, 5, kCount), residual = at::linspace(1, 2, kCount).square();
  const std::uint32_t threshold = dropout_threshold(0.3);
  const float scale = dropout_scale(threshold);
  int tried = 0;
  for (const cpu::Kernels* kernels : cpu::all_kernels())
    for (const auto in_type : {at::kFloat, at::kBFloat16})
      for (const auto residual_type : {at::kFloat, at::kBFloat16, at::kByte})  // kByte: none
        for (const auto out_type : {at::kFloat, at::kBFloat16}) {
          const at::Tensor x = in.to(in_type);
          const bool adds = residual_type != at::kByte;
          const at::Tensor base = adds ? residual.to(residual_type) : at::Tensor();
          at::Tensor out = at::full({kCount}, std::nan(""), at::TensorOptions().dtype(out_type));
          const auto element = [](at::ScalarType t) {
            return t == at::kFloat ? cpu::Element::kFloat32 : cpu::Element::kBFloat16;
          };
          cpu::DropoutTiles tiles{};
          tiles.stream = stream.fixed();
          tiles.layer = 9;
          tiles.threshold = threshold;
          tiles.scale = scale;
          tiles.in_type = element(in_type);
          tiles.residual_type = adds ? element(residual_type) : cpu::Element::kFloat32;
          tiles.out_type = element(out_type);
          tiles.count = kCount;
          tiles.in = x.const_data_ptr();
          tiles.residual = adds ? base.const_data_ptr() : nullptr;
          tiles.out = out.mutable_data_ptr();
          // In two calls, as two threads would.
          tiles.first_tile = 3, tiles.last_tile = 8;
          kernels->dropout(tiles);
          tiles.first_tile = 0, tiles.last_tile = 3;
          kernels->dropout(tiles);
          at::Tensor expected = at::empty({kCount});
          for (std::int64_t i = 0; i < kCount; ++i) {
            const float kept = dropout_keeps(stream, 9, static_cast<std::uint64_t>(i), threshold)
                                   ? x[i].to(at::kFloat).item<float>() * scale
                                   : 0.0f;
            expected[i] = adds ? base[i].to(at::kFloat).item<float>() + kept : kept;
          }
          EXPECT_TRUE(at::equal(out, expected.to(out_type)))
              << kernels->name << ": " << type_name(tiles.in_type) << " -> " << type_name(tiles.out_type)
              << ", residual " << adds;
          ++tried;
        }
  EXPECT_EQ(tried % 12, 0);
  EXPECT_GE(tried, 12);
}

TEST(DropoutKernels, BFloat16RoundsAsATenDoesAlsoAtTheEdges) {
  // Kept by all (threshold 0) and scaled by 1: the kernels then only round.
  const std::vector<float> edges{0.0f,   -0.0f,     1.00390625f, 1.01171875f, 3.3895314e38f, 3.4028235e38f,
                                 1e-40f, -INFINITY, INFINITY,    NAN,         1e-45f,        65536.5f};
  at::Tensor in = at::zeros({128});
  for (std::size_t i = 0; i < edges.size(); ++i) in[static_cast<std::int64_t>(i)] = edges[i];
  for (const cpu::Kernels* kernels : cpu::all_kernels()) {
    at::Tensor out = at::empty({128}, at::kBFloat16);
    cpu::DropoutTiles tiles{};
    tiles.scale = 1.0f;
    tiles.out_type = cpu::Element::kBFloat16;
    tiles.last_tile = 1;
    tiles.count = 128;
    tiles.in = in.const_data_ptr();
    tiles.out = out.mutable_data_ptr();
    kernels->dropout(tiles);
    EXPECT_TRUE(at::equal(out.nan_to_num(7.0), in.to(at::kBFloat16).nan_to_num(7.0))) << kernels->name;
    EXPECT_TRUE(at::equal(out.isnan(), in.isnan())) << kernels->name;
  }
}

TEST(Dropout, FollowsTheDefinitionForEverySample) {
  const std::vector<std::int64_t> ids{5, 3, 1ll << 40, 0};
  const DropoutLayer layer{.p = 0.25, .id = 4};
  const RandomContextGuard guard(context(torch::tensor(ids)));
  const at::Tensor x = at::rand({4, 7, 30}) + 1.0;
  const at::Tensor expected = (x * dropout_scale(dropout_threshold(0.25))) * defined_mask(ids, 210, layer).view_as(x);
  EXPECT_TRUE(at::equal(dropout(x, layer, true), expected));
  at::Tensor copy = x.clone();
  EXPECT_TRUE(at::equal(dropout_(copy, layer, true), expected));
  EXPECT_TRUE(at::equal(copy, expected)) << "dropout_ works in place";
  const at::Tensor residual = at::rand_like(x);
  EXPECT_TRUE(at::equal(add_dropout(residual, x, layer, true), residual + expected));
  const at::Tensor transposed = x.transpose(1, 2).contiguous().transpose(1, 2);
  EXPECT_TRUE(at::equal(dropout(transposed, layer, true), expected)) << "elements count in logical order";
}

TEST(Dropout, KeepsTheRightShareAndTheMean) {
  const RandomContextGuard guard(context());
  for (const double p : {0.05, 0.1, 0.5, 0.9}) {
    const at::Tensor out = dropout(at::ones({16, 65536}), {.p = p, .id = 1}, true);
    const double n = static_cast<double>(out.numel());
    const double kept = (out != 0).sum().item<double>() / n;
    // Five standard errors; the threshold is within 1/131072 of p.
    EXPECT_NEAR(kept, 1 - p, 5 * std::sqrt(p * (1 - p) / n) + 1.0 / 131072) << p;
    EXPECT_NEAR(out.mean().item<double>(), 1.0, 5 * std::sqrt(p / (1 - p) / n) + 1e-6) << p;
  }
}

TEST(Dropout, ProbabilityZeroKeepsAllAndOneDropsAll) {
  const RandomContextGuard guard(context());
  const at::Tensor x = at::rand({3, 50});
  EXPECT_TRUE(at::equal(dropout(x, {.p = 0.0, .id = 1}, true), x));
  EXPECT_TRUE(at::equal(dropout(x, {.p = 1.0, .id = 1}, true), at::zeros_like(x)));
  EXPECT_TRUE(at::equal(dropout(at::full({2, 200}, INFINITY), {.p = 1.0, .id = 1}, true), at::zeros({2, 200})));
}

TEST(Dropout, LayersStepsSamplesAndSeedsAreIndependent) {
  constexpr std::int64_t kN = 1 << 16;
  const auto mask = [](std::uint32_t layer, std::uint64_t step, std::int64_t id, std::uint64_t seed) {
    const RandomContextGuard guard(context(torch::tensor({id}), step, seed));
    return (dropout(at::ones({1, kN}), {.p = 0.5, .id = layer}, true) != 0).to(at::kDouble).flatten();
  };
  const at::Tensor base = mask(1, 1, 1, 1);
  const std::vector<std::pair<std::string, at::Tensor>> others{{"layer", mask(2, 1, 1, 1)},
                                                               {"step", mask(1, 2, 1, 1)},
                                                               {"sample", mask(1, 1, 2, 1)},
                                                               {"seed", mask(1, 1, 1, 2)},
                                                               {"neighbour in the row", base.roll(1)},
                                                               {"next lane group", base.roll(16)},
                                                               {"next tile", base.roll(128)}};
  for (const auto& [name, other] : others) {
    const double agree = (base == other).to(at::kDouble).mean().item<double>();
    EXPECT_NEAR(agree, 0.5, 5 * 0.5 / std::sqrt(static_cast<double>(kN))) << name;
  }
}

TEST(Dropout, ASampleKeepsItsMaskWhereverItStandsInABatch) {
  const DropoutLayer layer{.p = 0.4, .id = 3};
  const at::Tensor x = at::rand({6, 5, 33});
  const at::Tensor ids = torch::tensor({60, 10, 50, 20, 40, 30}, at::kLong);
  const auto forward = [&](const at::Tensor& part, const at::Tensor& part_ids) {
    const RandomContextGuard guard(context(part_ids));
    return dropout(part, layer, true);
  };
  const at::Tensor whole = forward(x, ids);
  const at::Tensor halves =
      at::cat({forward(x.narrow(0, 0, 3), ids.narrow(0, 0, 3)), forward(x.narrow(0, 3, 3), ids.narrow(0, 3, 3))});
  EXPECT_TRUE(at::equal(whole, halves));
  const at::Tensor order = torch::tensor({5, 2, 0, 4, 1, 3}, at::kLong);
  EXPECT_TRUE(at::equal(forward(x.index_select(0, order), ids.index_select(0, order)), whole.index_select(0, order)));
}

TEST(Dropout, NumberOfThreadsDoesNotMatter) {
  const RandomContextGuard guard(context());
  const at::Tensor x = at::rand({7, 100003});
  const int former = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor one = dropout(x, {.p = 0.2, .id = 1}, true);
  at::set_num_threads(3);
  const at::Tensor three = dropout(x, {.p = 0.2, .id = 1}, true);
  at::set_num_threads(former);
  EXPECT_TRUE(at::equal(one, three));
}

TEST(Dropout, GradientIsTheMaskTimesTheScale) {
  const std::vector<std::int64_t> ids{8, 9};
  const DropoutLayer layer{.p = 0.3, .id = 2};
  const at::Tensor mask = defined_mask(ids, 300, layer) * dropout_scale(dropout_threshold(0.3));
  const at::Tensor weight = at::rand({2, 300});
  const auto gradient = [&](const auto& apply) {
    at::Tensor x = at::rand({2, 300}).requires_grad_();
    at::Tensor out;
    {
      const RandomContextGuard guard(context(torch::tensor(ids)));
      out = apply(x);
    }
    (out * weight).sum().backward();  // the context is gone: backward must not need it
    return x.grad();
  };
  EXPECT_TRUE(at::allclose(gradient([&](const at::Tensor& x) { return dropout(x, layer, true); }), mask * weight));
  EXPECT_TRUE(
      at::allclose(gradient([&](const at::Tensor& x) { return dropout_(x * 2.0, layer, true); }), 2 * mask * weight));
  at::Tensor residual = at::rand({2, 300}).requires_grad_();
  EXPECT_TRUE(at::allclose(gradient([&](const at::Tensor& x) { return add_dropout(residual, x, layer, true); }),
                           mask * weight));
  EXPECT_TRUE(at::equal(residual.grad(), weight));
}

TEST(Dropout, LowPrecisionFollowsTheSameMask) {
  const std::vector<std::int64_t> ids{1, 2, 3};
  const DropoutLayer layer{.p = 0.35, .id = 6};
  const at::Tensor mask = defined_mask(ids, 77, layer);
  const RandomContextGuard guard(context(torch::tensor(ids)));
  const float scale = dropout_scale(dropout_threshold(layer.p));
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    at::Tensor x = (at::rand({3, 77}) + 0.5).to(type).requires_grad_();
    const at::Tensor out = dropout(x, layer, true);
    EXPECT_EQ(out.scalar_type(), type);
    EXPECT_TRUE(at::equal(out, (x.to(at::kFloat) * scale * mask).to(type)));
    out.sum().backward();
    EXPECT_TRUE(at::equal(x.grad(), (mask * scale).to(type)));
    // Autocast's case: a float32 residual stream and a low-precision branch.
    x.mutable_grad().reset();
    at::Tensor residual = at::rand({3, 77}).requires_grad_();
    const at::Tensor sum = add_dropout(residual, x, layer, true);
    EXPECT_EQ(sum.scalar_type(), at::kFloat);
    EXPECT_TRUE(at::equal(sum, residual + x.to(at::kFloat) * scale * mask));
    sum.sum().backward();
    EXPECT_EQ(x.grad().scalar_type(), type);
    EXPECT_EQ(residual.grad().scalar_type(), at::kFloat);
  }
}

TEST(Dropout, EvaluationIsTheIdentityAndNeedsNoContext) {
  const at::Tensor x = at::rand({2, 3});
  EXPECT_TRUE(dropout(x, {.p = 0.5, .id = 0}, false).is_same(x));
  EXPECT_TRUE(at::equal(add_dropout(x, x, {.p = 0.5, .id = 0}, false), x + x));
}

TEST(Dropout, SaysWhatIsMissing) {
  const DropoutLayer layer{.p = 0.5, .id = 0};
  EXPECT_NE(message_of([&] { dropout(at::ones({2, 2}), layer, true); }).find("RandomContextGuard"), std::string::npos);
  const RandomContextGuard guard(context(torch::arange(3)));
  EXPECT_NE(message_of([&] {
              dropout(at::ones({2, 2}), layer, true);
            }).find("sample_ids must be (2) int64"),
            std::string::npos);
}

TEST(Dropout, WithoutAKernelATensGeneratorIsSeededByTheKey) {
  // float64 has no kernel: the path that other devices take. The masks must repeat, differ between layers, and leave
  // the process's own generator alone.
  const at::Tensor x = at::ones({4, 5000}, at::kDouble);
  torch::manual_seed(3);
  const at::Tensor untouched = at::rand({4});
  torch::manual_seed(3);
  const RandomContextGuard guard(context());
  const at::Tensor first = dropout(x, {.p = 0.3, .id = 1}, true);
  EXPECT_TRUE(at::equal(at::rand({4}), untouched));
  EXPECT_TRUE(at::equal(first, dropout(x, {.p = 0.3, .id = 1}, true)));
  EXPECT_FALSE(at::equal(first, dropout(x, {.p = 0.3, .id = 2}, true)));
  EXPECT_NEAR((first != 0).to(at::kDouble).mean().item<double>(), 0.7, 5 * std::sqrt(0.21 / 20000));
  EXPECT_NEAR(first.max().item<double>(), 1 / 0.7, 1e-4);
}

}  // namespace
}  // namespace cohort::models
