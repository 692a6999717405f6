#include "models/informer/prob_sparse.h"

#include <cmath>

#include <gtest/gtest.h>

#include <torch/types.h>

#include "core/error.h"
#include "models/cpu/kernels.h"
#include "models/random_context.h"

namespace cohort::models {
namespace {

// Sums of up to 40 float32 products in another order than ATen's.
constexpr double kTolerance = 1e-5;

RandomContext context_at(std::uint64_t seed, std::uint64_t step) {
  return {.seed = seed, .step = step, .sample_ids = {}};
}

TEST(KeySampling, CountsAreFactorTimesTheCeilingOfTheLogarithm) {
  EXPECT_EQ(prob_sparse_count(5, 96), 25);
  EXPECT_EQ(prob_sparse_count(5, 48), 20);
  EXPECT_EQ(prob_sparse_count(3, 72), 15);
  EXPECT_EQ(prob_sparse_count(5, 10), 10) << "at most the length";
  EXPECT_EQ(prob_sparse_count(5, 1), 0);
}

TEST(KeySampling, IsAFunctionOfSeedStepAndLayerInTraining) {
  const ProbSparseLayer layer{.id = 3, .position = 0, .factor = 5, .eval_seed = 0};
  const auto draw = [](const ProbSparseLayer& at_layer, std::uint64_t seed, std::uint64_t step) {
    const RandomContextGuard guard(context_at(seed, step));
    return draw_key_samples(at_layer, 96, 25, 96, true);
  };
  const at::Tensor first = draw(layer, 1, 1);
  EXPECT_TRUE(at::equal(first, draw(layer, 1, 1))) << "the same on every rank of a step";
  EXPECT_FALSE(at::equal(first, draw(layer, 2, 1)));
  EXPECT_FALSE(at::equal(first, draw(layer, 1, 2)));
  EXPECT_FALSE(at::equal(first, draw({.id = 4, .position = 0, .factor = 5, .eval_seed = 0}, 1, 1)));
  EXPECT_THROW(draw_key_samples(layer, 96, 25, 96, true), Error) << "training needs a context";
}

TEST(KeySampling, CoversAllKeysEvenly) {
  const RandomContextGuard guard(context_at(7, 0));
  constexpr std::int64_t kKeys = 37;
  const at::Tensor samples = draw_key_samples({.id = 1}, 4000, 25, kKeys, true);
  const at::Tensor counts = at::bincount(samples.flatten(), {}, kKeys).to(at::kDouble);
  const double expected = 100000.0 / kKeys;
  ASSERT_EQ(counts.size(0), kKeys);
  const double chi_square = ((counts - expected).square() / expected).sum().item<double>();
  // 36 degrees of freedom: mean 36, deviation 8.5; five deviations.
  EXPECT_LT(chi_square, 36 + 5 * 8.5);
}

TEST(KeySampling, EvaluationIsRepeatableWithoutAContext) {
  const ProbSparseLayer layer{.id = 3, .position = 0, .factor = 5, .eval_seed = 9};
  const at::Tensor alone = draw_key_samples(layer, 96, 25, 96, false);
  const RandomContextGuard guard(context_at(1, 55));
  EXPECT_TRUE(at::equal(alone, draw_key_samples(layer, 96, 25, 96, false))) << "a context changes nothing";
}

TEST(KeySampling, GivenSamplesOfTheWrongShapeOrRangeAreRefused) {
  const ProbSparseLayer layer{.id = 3};
  {
    const KeySampleOverride given([](int, std::int64_t, std::int64_t, std::int64_t) {
      return at::zeros({2, 2}, at::kLong);
    });
    EXPECT_THROW(draw_key_samples(layer, 96, 25, 96, false), Error);
    EXPECT_TRUE(at::equal(draw_key_samples(layer, 2, 2, 5, false), at::zeros({2, 2}, at::kLong)));
    EXPECT_THROW(KeySampleOverride([](int, std::int64_t, std::int64_t, std::int64_t) { return at::Tensor(); }), Error)
        << "one at a time";
  }
  const KeySampleOverride given([](int, std::int64_t, std::int64_t, std::int64_t) {
    return at::full({2, 2}, 5, at::kLong);
  });
  EXPECT_THROW(draw_key_samples(layer, 2, 2, 5, false), Error) << "key 5 of 0..4";
}

TEST(SparsityMeasurement, IsTheMaximumLessTheSumOverAllKeys) {
  // Width 40: two whole groups of 16 lanes and a remainder.
  const at::Tensor q = at::randn({2, 9, 3, 40}), k = at::randn({2, 13, 3, 40});
  const at::Tensor samples = at::randint(13, {9, 6}, at::kLong);
  at::Tensor expected = at::empty({2, 3, 9});
  for (int b = 0; b < 2; ++b)
    for (int h = 0; h < 3; ++h)
      for (int l = 0; l < 9; ++l) {
        const at::Tensor scores = k[b].select(1, h).index_select(0, samples[l]).mv(q[b][l][h]);
        expected[b][h][l] = scores.max() - scores.sum() / 13;
      }
  EXPECT_TRUE(at::allclose(sparsity_measurement(q, k, samples), expected, kTolerance, kTolerance));
  EXPECT_TRUE(at::allclose(sparsity_measurement_by_product(q, k, samples), expected, kTolerance, kTolerance));
  EXPECT_TRUE(at::allclose(
      sparsity_measurement(q.to(at::kBFloat16), k.to(at::kBFloat16), samples),
      sparsity_measurement(q.to(at::kBFloat16).to(at::kFloat), k.to(at::kBFloat16).to(at::kFloat), samples), kTolerance,
      kTolerance));
}

TEST(SparsityMeasurement, EveryInstructionSetGivesTheSameBits) {
  const at::Tensor q = at::randn({50, 70}), k = at::randn({60, 70});
  const at::Tensor samples = at::randint(60, {50, 20}, at::kLong);
  at::Tensor first;
  for (const cpu::Kernels* kernels : cpu::all_kernels()) {
    at::Tensor out = at::full({50}, std::nan(""));
    cpu::SparsityRows rows{};
    rows.q = q.const_data_ptr<float>();
    rows.k = k.const_data_ptr<float>();
    rows.samples = samples.const_data_ptr<std::int64_t>();
    rows.n_query = 50;
    rows.n_key = 60;
    rows.n_sample = 20;
    rows.width = rows.q_stride = rows.k_stride = 70;
    rows.out = out.mutable_data_ptr<float>();
    kernels->sparsity(rows);
    if (!first.defined()) first = out;
    EXPECT_TRUE(at::equal(out, first)) << kernels->name;
  }
  EXPECT_TRUE(first.isfinite().all().item<bool>());
}

TEST(ProbSparse, UnpickedQueriesTakeTheMeanOrTheRunningSumAndPickedOnesAttend) {
  const at::Tensor q = at::randn({2, 30, 2, 8}), k = at::randn({2, 30, 2, 8}), v = at::randn({2, 30, 2, 8});
  const ProbSparseLayer layer{.id = 1, .position = 0, .factor = 2, .eval_seed = 4};  // 8 of 30 queries
  const at::Tensor full = at::scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2));
  const at::Tensor causal =
      at::scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), {}, 0.0, true);
  for (const bool masked : {false, true}) {
    const at::Tensor context = prob_sparse_attention(q, k, v, masked, HeadOrder::kOutside, layer, false);
    const at::Tensor rest =
        masked ? v.transpose(1, 2).cumsum(2) : v.transpose(1, 2).mean(2, true).expand({2, 2, 30, 8});
    const at::Tensor attended = masked ? causal : full;
    const auto close = [&](const at::Tensor& a) { return (context - a).abs().amax(3) < 1e-5; };
    EXPECT_TRUE((close(attended) | close(rest)).all().item<bool>()) << masked;
    // Under the mask row 0 attends to itself alone, which is its running sum as well: it may be among the eight unseen.
    const at::Tensor picked = (~close(rest)).sum(2);
    EXPECT_TRUE((picked <= 8).all().item<bool>()) << masked;
    EXPECT_TRUE((picked >= (masked ? 7 : 8)).all().item<bool>()) << masked;
    EXPECT_TRUE(
        at::equal(prob_sparse_attention(q, k, v, masked, HeadOrder::kInside, layer, false), context.transpose(1, 2)));
  }
}

}  // namespace
}  // namespace cohort::models
