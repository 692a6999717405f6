// Products by oneDNN's kernels against sums in double, in every layout that LibTorch hands them, and against LibTorch's own.
#include "tensors/matrix_product.h"

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/CPUFunctions.h>
#include <ATen/Parallel.h>
#include <torch/torch.h>

namespace cohort::tensors {
namespace {

class MatrixProduct : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!speed_up_matrix_products(/*on_every_processor=*/true)) GTEST_SKIP() << "needs a processor with AVX2";
    at::manual_seed(1);
  }
  ~MatrixProduct() override { at::set_num_threads(threads_); }

 private:
  int threads_ = at::get_num_threads();
};

/// (rows, columns), its rows or its columns contiguous, within something wider or not.
at::Tensor matrix(std::int64_t rows, std::int64_t columns, bool by_rows, bool inside) {
  const at::Tensor whole =
      by_rows ? at::randn({rows + inside, columns + 3 * inside}) : at::randn({columns + inside, rows + 3 * inside}).t();
  return inside ? whole.narrow(0, 1, rows).narrow(1, 1, columns) : whole;
}

void expect_near(const at::Tensor& got, const at::Tensor& expected, const at::Tensor& a, const at::Tensor& b) {
  // A sum of k products in float32 is off by at most k roundings of the sum of their sizes.
  const at::Tensor bound = at::matmul(a.abs().to(at::kDouble), b.abs().to(at::kDouble)) + 1;
  const double off = ((got.to(at::kDouble) - expected).abs() / bound).max().item<double>();
  EXPECT_LE(off, static_cast<double>(a.size(1) + 1) * 6e-8) << a.sizes() << " x " << b.sizes();
}

TEST_F(MatrixProduct, IsTheSumOfProductsInEveryLayout) {
  const std::vector<std::tuple<int, int, int>> sizes{{1, 8, 8},    {7, 300, 33},   {32, 256, 256},
                                                     {33, 17, 16}, {100, 513, 70}, {64, 40, 600}};
  for (const auto& [m, k, n] : sizes)
    for (int layout = 0; layout < 16; ++layout) {
      const at::Tensor a = matrix(m, k, layout & 1, layout & 2), b = matrix(k, n, layout & 4, layout & 8);
      const at::Tensor expected = at::matmul(a.to(at::kDouble), b.to(at::kDouble)), bias = at::randn({n});
      expect_near(at::mm(a, b), expected, a, b);
      expect_near(at::addmm(bias, a, b), expected + bias, a, b);
      at::Tensor out = at::full({m, n + 5}, NAN).narrow(1, 2, n);
      at::mm_out(out, a, b);
      expect_near(out, expected, a, b);
      out.addmm_(a, b);
      expect_near(out, 2 * expected, a, b);
      at::addmm_out(out, bias, a, b);
      expect_near(out, expected + bias, a, b);
    }
}

TEST_F(MatrixProduct, GivesARowTheSameBitsAloneAndAmongOthersOnAnyNumberOfThreads) {
  const at::Tensor x = at::randn({301, 700}), weight = at::randn({270, 700}), bias = at::randn({270});
  at::set_num_threads(1);
  const at::Tensor all = at::linear(x, weight, bias), gradient = at::mm(all.t(), x);
  for (const std::int64_t row : {0, 31, 32, 300})
    EXPECT_TRUE(at::equal(at::linear(x.narrow(0, row, 1), weight, bias), all.narrow(0, row, 1))) << row;
  EXPECT_TRUE(at::equal(at::linear(x.narrow(0, 40, 57), weight, bias), all.narrow(0, 40, 57)));
  for (const int threads : {2, 3, 5}) {
    at::set_num_threads(threads);
    EXPECT_TRUE(at::equal(at::linear(x, weight, bias), all)) << threads;
    EXPECT_TRUE(at::equal(at::mm(all.t(), x), gradient)) << threads;
  }
}

TEST_F(MatrixProduct, LinearLayersHaveTheGradientsOfThoseInDouble) {
  torch::nn::Linear layer(90, 50);
  const at::Tensor x = at::randn({4, 25, 90}).requires_grad_(), pull = at::randn({4, 25, 50});
  (layer(x) * pull).sum().backward();
  torch::nn::Linear exact(90, 50);
  exact->to(at::kDouble);
  {
    const at::NoGradGuard no_grad;
    exact->weight.copy_(layer->weight), exact->bias.copy_(layer->bias);
  }
  const at::Tensor x2 = x.detach().to(at::kDouble).requires_grad_();
  (exact(x2) * pull).sum().backward();
  EXPECT_TRUE(at::allclose(x.grad().to(at::kDouble), x2.grad(), 1e-5, 1e-5));
  EXPECT_TRUE(at::allclose(layer->weight.grad().to(at::kDouble), exact->weight.grad(), 1e-5, 1e-4));
}

TEST_F(MatrixProduct, LeavesToLibTorchWhatItDoesNotTake) {
  const auto same = [](const at::Tensor& a, const at::Tensor& b) {
    EXPECT_TRUE(at::equal(at::mm(a, b), at::cpu::mm(a, b))) << a.sizes() << b.sizes() << a.dtype();
  };
  same(at::randn({20, 30}, at::kDouble), at::randn({30, 40}, at::kDouble));
  same(at::arange(600).view({20, 30}), at::arange(1200).view({30, 40}));
  same(at::randn({20, 30}), at::randn({30, 1}));                      // a vector
  same(at::randn({20, 4}), at::randn({4, 40}));                       // a short sum
  same(at::randn({20, 60}).slice(1, 0, 60, 2), at::randn({30, 40}));  // every other column
  same(at::randn({1, 30}).expand({20, 30}), at::randn({30, 40}));     // one row for all
  same(at::randn({0, 30}), at::randn({30, 40}));                      // nothing
  const at::Tensor a = at::randn({20, 30}), b = at::randn({30, 40}), c = at::randn({20, 40});
  EXPECT_TRUE(at::equal(at::addmm(c, a, b, 0.5, 2), at::cpu::addmm(c, a, b, 0.5, 2)));
  EXPECT_THROW(at::mm(a, at::randn({31, 40})), c10::Error);
  EXPECT_THROW(at::addmm(at::randn({41}), a, b), c10::Error);
  EXPECT_THROW(at::mm(a, b.to(at::kDouble)), c10::Error);
}

}  // namespace
}  // namespace cohort::tensors
