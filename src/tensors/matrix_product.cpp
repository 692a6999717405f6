#include "tensors/matrix_product.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include <fbgemm/Utils.h>

#include <ATen/CPUFunctions.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/native/CPUBlas.h>
#include <c10/util/Exception.h>
#include <torch/library.h>
#include <torch/types.h>

#include "core/error.h"

namespace cohort::tensors {
namespace {

constexpr const char* kLibraryVariable = "COHORT_MATRIX_PRODUCTS";
constexpr std::string_view kMkl = "mkl", kOneDnn = "onednn";

/// What the environment asks for; "" leaves the choice to the processor.
std::string_view library_asked_for() {
  const char* value = std::getenv(kLibraryVariable);
  const std::string_view library = value ? value : "";
  COHORT_THROW_UNLESS(library.empty() || library == kMkl || library == kOneDnn, "{}={}: it is {} or {}",
                      kLibraryVariable, library, kMkl, kOneDnn);
  return library;
}

}  // namespace
}  // namespace cohort::tensors

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)

namespace cohort::tensors {
namespace {

// What one call of oneDNN's kernel multiplies: a tile of A (rows x depth) stays in the first-level cache, a panel of B
// (depth x columns) in the second-level one.
constexpr std::int64_t kRows = 32, kDepth = 256, kColumns = 256;
// Below these the kernels' registers are mostly empty: MKL's products of vectors do as well.
constexpr std::int64_t kLeastDepth = 8, kLeastColumns = 8;
// Multiply-adds that are worth a thread.
constexpr std::int64_t kThreadWork = std::int64_t{1} << 20;

/// A matrix of float32 whose rows or columns are contiguous.
struct Matrix {
  const float* data = nullptr;
  std::int64_t row = 0, column = 0;  ///< strides; one of them is 1
  const float* at(std::int64_t i, std::int64_t j) const { return data + i * row + j * column; }
};

struct Product {
  Matrix a, b;         // (m, k), (k, n)
  float* c = nullptr;  // (m, n), rows contiguous
  std::int64_t m = 0, n = 0, k = 0, ldc = 0;
  bool add = false;  // to what is in c
};

/// to (rows, columns), contiguous, from a matrix whose columns are contiguous.
void transpose(const Matrix& from, std::int64_t rows, std::int64_t columns, float* to) {
  fbgemm::transpose_simd(columns, rows, from.data, from.column, to, columns);
}

/// Rows [first, last) of a product, columns [left, right).
void multiply(const Product& p, std::int64_t first, std::int64_t last, std::int64_t left, std::int64_t right) {
  thread_local std::vector<float> tile, panel;
  tile.resize(kRows * kDepth), panel.resize(kDepth * kColumns);
  for (std::int64_t j = left; j < right; j += kColumns) {
    const std::int64_t columns = std::min(kColumns, right - j);
    for (std::int64_t l = 0; l < p.k; l += kDepth) {
      const std::int64_t depth = std::min(kDepth, p.k - l);
      const float* b = p.b.at(l, j);
      std::int64_t ldb = p.b.row;
      if (p.b.column != 1) {
        transpose({b, p.b.row, p.b.column}, depth, columns, panel.data());
        b = panel.data(), ldb = columns;
      }
      for (std::int64_t i = first; i < last; i += kRows) {
        const std::int64_t rows = std::min(kRows, last - i);
        const float* a = p.a.at(i, l);
        std::int64_t lda = p.a.row;
        if (p.a.column != 1) {
          transpose({a, p.a.row, p.a.column}, rows, depth, tile.data());
          a = tile.data(), lda = depth;
        }
        at::native::cpublas::brgemm(rows, columns, depth, lda, ldb, p.ldc, p.add || l > 0, a, b, p.c + i * p.ldc + j,
                                    /*is_vnni=*/false);
      }
    }
  }
}

void multiply(const Product& p) {
  const std::int64_t work = p.m * p.n * p.k;
  if (work < 2 * kThreadWork || at::in_parallel_region() || at::get_num_threads() == 1)
    return multiply(p, 0, p.m, 0, p.n);
  // Threads share the longer side, in whole tiles.
  const bool by_rows = p.m >= p.n;
  const std::int64_t unit = kRows, side = by_rows ? p.m : p.n, units = (side + unit - 1) / unit;
  const std::int64_t grain = std::max<std::int64_t>(1, units * kThreadWork / work);
  at::parallel_for(0, units, grain, [&](std::int64_t from, std::int64_t to) {
    const std::int64_t begin = from * unit, end = std::min(to * unit, side);
    by_rows ? multiply(p, begin, end, 0, p.n) : multiply(p, 0, p.m, begin, end);
  });
}

bool plain(const at::Tensor& t) {
  return t.device().is_cpu() && t.layout() == at::kStrided && t.scalar_type() == at::kFloat && t.dim() == 2 &&
         !t.is_conj() && !t.is_neg();
}

bool readable(const at::Tensor& t) {
  return plain(t) && ((t.stride(1) == 1 && t.stride(0) >= t.size(1)) || (t.stride(0) == 1 && t.stride(1) >= t.size(0)));
}

/// Whether a product is one that multiply() takes. What decides does not depend on the number of rows, m.
bool takes(const at::Tensor& a, const at::Tensor& b) {
  return readable(a) && readable(b) && a.size(1) == b.size(0) && a.size(1) >= kLeastDepth &&
         b.size(1) >= kLeastColumns && a.size(0) > 0;
}

bool takes(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out) {
  return takes(a, b) && plain(out) && out.size(0) == a.size(0) && out.size(1) == b.size(1) && out.stride(1) == 1 &&
         out.stride(0) >= out.size(1);
}

Matrix matrix(const at::Tensor& t) {
  // With one row or column both strides may be 1: then the one that is read along the row.
  const bool rows = t.stride(1) == 1;
  return {t.const_data_ptr<float>(), t.stride(0), rows ? 1 : t.stride(1)};
}

void multiply_into(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out, bool add) {
  multiply({matrix(a), matrix(b), out.mutable_data_ptr<float>(), a.size(0), b.size(1), a.size(1), out.stride(0), add});
}

at::Tensor mm(const at::Tensor& a, const at::Tensor& b) {
  if (!takes(a, b)) return at::cpu::mm(a, b);
  at::Tensor out = at::empty({a.size(0), b.size(1)}, a.options());
  multiply_into(a, b, out, false);
  return out;
}

at::Tensor& mm_out(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
  if (!takes(a, b, out)) return at::cpu::mm_outf(a, b, out);
  multiply_into(a, b, out, false);
  return out;
}

bool is(const at::Scalar& x, double value) {
  return !x.isSymbolic() && !x.isComplex() && x.toDouble() == value;
}

at::Tensor& addmm_out(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                      const at::Scalar& alpha, at::Tensor& out) {
  if (!takes(a, b, out) || !is(beta, 1) || !is(alpha, 1) || self.scalar_type() != at::kFloat || !self.device().is_cpu())
    return at::cpu::addmm_outf(self, a, b, beta, alpha, out);
  if (!self.is_same(out)) out.copy_(self.expand_as(out));
  multiply_into(a, b, out, true);
  return out;
}

at::Tensor addmm(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                 const at::Scalar& alpha) {
  if (!takes(a, b)) return at::cpu::addmm(self, a, b, beta, alpha);
  at::Tensor out = at::empty({a.size(0), b.size(1)}, a.options());
  return addmm_out(self, a, b, beta, alpha, out);
}

at::Tensor& addmm_(at::Tensor& self, const at::Tensor& a, const at::Tensor& b, const at::Scalar& beta,
                   const at::Scalar& alpha) {
  if (!takes(a, b, self)) return at::cpu::addmm_(self, a, b, beta, alpha);
  return addmm_out(self, a, b, beta, alpha, self);
}

/// LibTorch warns of every kernel that takes another's place; here that is meant.
class Silence : public c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

}  // namespace

bool speed_up_matrix_products(bool on_every_processor) {
  static const bool done = [&] {
    const std::string_view wanted = library_asked_for();
    const bool can =
        __builtin_cpu_supports("avx2") && at::globalContext().hasMKLDNN() && at::globalContext().userEnabledMkldnn();
    COHORT_THROW_UNLESS(wanted != kOneDnn || can,
                        "{}={}: oneDNN's products need a processor with AVX2; leave the variable unset, or say {}",
                        kLibraryVariable, kOneDnn, kMkl);
    if (!can || wanted == kMkl) return false;
    const bool faster = __builtin_cpu_supports("avx512f") && !__builtin_cpu_is("intel");
    if (!faster && wanted.empty() && !on_every_processor) return false;
    Silence silence;
    const c10::WarningUtils::WarningHandlerGuard guard(&silence);
    static auto* const library =  // for as long as the process lives
        new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::CPU, __FILE__, __LINE__);
    library->impl("mm", mm);
    library->impl("mm.out", mm_out);
    library->impl("addmm", addmm);
    library->impl("addmm.out", addmm_out);
    library->impl("addmm_", addmm_);
    return true;
  }();
  return done;
}

}  // namespace cohort::tensors

#else

namespace cohort::tensors {

bool speed_up_matrix_products(bool) {
  COHORT_THROW_UNLESS(library_asked_for() != kOneDnn, "{}={}: oneDNN's products are for x86-64 processors",
                      kLibraryVariable, kOneDnn);
  return false;
}

}  // namespace cohort::tensors

#endif
