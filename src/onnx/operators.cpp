#include "onnx/operators.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "core/error.h"

namespace cohort::onnx {
namespace {

using Shape = std::vector<std::int64_t>;
using Tensors = std::vector<Tensor>;

std::int64_t product(const Shape& shape, std::size_t begin, std::size_t end) {
  std::int64_t all = 1;
  for (std::size_t i = begin; i < end; ++i) all *= shape[i];
  return all;
}

/// Zeros.
Tensor empty_tensor(Shape shape, bool integral = false) {
  Tensor tensor{.name = {}, .shape = std::move(shape), .integral = integral, .floats = {}, .ints = {}};
  const auto n = static_cast<std::size_t>(tensor.elements());
  integral ? tensor.ints.resize(n) : tensor.floats.resize(n);
  return tensor;
}

Tensors one(Tensor tensor) {
  Tensors all;
  all.push_back(std::move(tensor));
  return all;
}

/// Index of an axis that may count from the end.
std::size_t axis_of(std::int64_t axis, std::size_t rank, const char* what = "axis") {
  const auto size = static_cast<std::int64_t>(rank);
  COHORT_THROW_UNLESS(axis >= -size && axis < size, "{} {} of a tensor with {} dimensions", what, axis, rank);
  return static_cast<std::size_t>(axis < 0 ? axis + size : axis);
}

const std::vector<std::int64_t>& ints_of(const Tensor& tensor, const char* what) {
  COHORT_THROW_UNLESS(tensor.integral, "{} has to be whole numbers", what);
  return tensor.ints;
}

const std::vector<float>& floats_of(const Tensor& tensor) {
  COHORT_THROW_UNLESS(!tensor.integral, "whole numbers of shape {} where float is expected", shape_text(tensor.shape));
  return tensor.floats;
}

/// Axes as an attribute (until opset 12) or an input (from 13 on).
std::optional<std::vector<std::int64_t>> axes_of(const Call& call, std::size_t input = 1) {
  if (const Attribute* const axes = call.node.attribute("axes")) return axes->ints;
  if (call.has(input)) return ints_of(*call.inputs[input], "axes");
  return std::nullopt;
}

// Elementwise.

Shape broadcast(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t of_a = i < a.size() ? a[a.size() - 1 - i] : 1, of_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    COHORT_THROW_UNLESS(of_a == of_b || of_a == 1 || of_b == 1, "shapes {} and {} do not fit", shape_text(a),
                        shape_text(b));
    out[out.size() - 1 - i] = of_a == 1 ? of_b : of_a;
  }
  return out;
}

/// Steps of `shape` through its numbers as `out` is walked; 0 where it is repeated.
Shape strides_in(const Shape& shape, const Shape& out) {
  Shape strides(out.size(), 0);
  std::int64_t step = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::size_t from = shape.size() - 1 - i, to = out.size() - 1 - i;
    strides[to] = shape[from] == 1 ? 0 : step;
    step *= shape[from];
  }
  return strides;
}

template <class T, class Function>
void combine(const std::vector<T>& a, const Shape& of_a, const std::vector<T>& b, const Shape& of_b, const Shape& shape,
             std::vector<T>& out, const Function& function) {
  if (of_a == of_b) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = function(a[i], b[i]);
    return;
  }
  const Shape step_a = strides_in(of_a, shape), step_b = strides_in(of_b, shape);
  const std::size_t rank = shape.size();
  const std::int64_t inner = rank == 0 ? 1 : shape.back(), inner_a = rank == 0 ? 0 : step_a.back(),
                     inner_b = rank == 0 ? 0 : step_b.back();
  std::vector<std::int64_t> index(rank, 0);
  std::int64_t at_a = 0, at_b = 0;
  for (std::size_t done = 0; done < out.size(); done += static_cast<std::size_t>(inner)) {
    for (std::int64_t i = 0; i < inner; ++i)
      out[done + static_cast<std::size_t>(i)] =
          function(a[static_cast<std::size_t>(at_a + i * inner_a)], b[static_cast<std::size_t>(at_b + i * inner_b)]);
    for (std::size_t d = rank < 2 ? 0 : rank - 1; d-- > 0;) {
      at_a += step_a[d], at_b += step_b[d];
      if (++index[d] < shape[d]) break;
      at_a -= step_a[d] * shape[d], at_b -= step_b[d] * shape[d];
      index[d] = 0;
    }
  }
}

template <class Function>
Tensor elementwise(const Tensor& a, const Tensor& b, const Function& function) {
  COHORT_THROW_UNLESS(a.integral == b.integral, "whole numbers and float are mixed");
  Tensor out = empty_tensor(broadcast(a.shape, b.shape), a.integral);
  if (a.integral)
    combine(a.ints, a.shape, b.ints, b.shape, out.shape, out.ints, function);
  else
    combine(a.floats, a.shape, b.floats, b.shape, out.shape, out.floats, function);
  return out;
}

Tensors add(const Call& call) {
  return one(elementwise(call.input(0), call.input(1), [](auto a, auto b) { return a + b; }));
}
Tensors subtract(const Call& call) {
  return one(elementwise(call.input(0), call.input(1), [](auto a, auto b) { return a - b; }));
}
Tensors multiply(const Call& call) {
  return one(elementwise(call.input(0), call.input(1), [](auto a, auto b) { return a * b; }));
}
Tensors divide(const Call& call) {
  const Tensor& by = call.input(1);
  COHORT_THROW_UNLESS(!by.integral || std::find(by.ints.begin(), by.ints.end(), 0) == by.ints.end(),
                      "whole numbers are divided by 0");
  return one(elementwise(call.input(0), by, [](auto a, auto b) { return a / b; }));
}
Tensors power(const Call& call) {
  const Tensor &base = call.input(0), &exponent = call.input(1);
  Tensor as_float = exponent;
  if (exponent.integral) {
    as_float.integral = false;
    as_float.floats.assign(exponent.ints.begin(), exponent.ints.end());
    as_float.ints.clear();
  }
  floats_of(base);
  return one(elementwise(base, as_float, [](auto a, auto b) { return static_cast<decltype(a)>(std::pow(a, b)); }));
}
template <class Function>
Tensors folded(const Call& call, const Function& function) {
  Tensor out = call.input(0);
  for (std::size_t i = 1; i < call.inputs.size(); ++i) out = elementwise(out, call.input(i), function);
  return one(std::move(out));
}
Tensors least(const Call& call) {
  return folded(call, [](auto a, auto b) { return std::min(a, b); });
}
Tensors greatest(const Call& call) {
  return folded(call, [](auto a, auto b) { return std::max(a, b); });
}

template <class Function>
Tensors mapped(const Call& call, const Function& function) {
  const Tensor& x = call.input(0);
  floats_of(x);
  Tensor out{.name = {}, .shape = x.shape, .floats = x.floats, .ints = {}};
  for (float& value : out.floats) value = function(value);
  return one(std::move(out));
}

float sigmoid(float x) {
  return 1 / (1 + std::exp(-x));
}

Tensors clip(const Call& call) {
  float low = call.node.number("min", -std::numeric_limits<float>::infinity()),
        high = call.node.number("max", std::numeric_limits<float>::infinity());
  if (call.has(1)) low = floats_of(call.input(1)).at(0);
  if (call.has(2)) high = floats_of(call.input(2)).at(0);
  return mapped(call, [&](float x) { return std::min(std::max(x, low), high); });
}
Tensors elu(const Call& call) {
  const float alpha = call.node.number("alpha", 1);
  return mapped(call, [&](float x) { return x < 0 ? alpha * std::expm1(x) : x; });
}
Tensors selu(const Call& call) {
  const float alpha = call.node.number("alpha", 1.67326319217681884765625f),
              gamma = call.node.number("gamma", 1.05070102214813232421875f);
  return mapped(call, [&](float x) { return gamma * (x > 0 ? x : alpha * std::expm1(x)); });
}
Tensors leaky_relu(const Call& call) {
  const float alpha = call.node.number("alpha", 0.01f);
  return mapped(call, [&](float x) { return x < 0 ? alpha * x : x; });
}
Tensors relu(const Call& call) {
  return mapped(call, [](float x) { return std::max(x, 0.0f); });
}
Tensors tanh_of(const Call& call) {
  return mapped(call, [](float x) { return std::tanh(x); });
}
Tensors sigmoid_of(const Call& call) {
  return mapped(call, sigmoid);
}
Tensors hard_sigmoid(const Call& call) {
  const float alpha = call.node.number("alpha", 0.2f), beta = call.node.number("beta", 0.5f);
  return mapped(call, [&](float x) { return std::clamp(alpha * x + beta, 0.0f, 1.0f); });
}
Tensors softplus(const Call& call) {
  return mapped(call, [](float x) { return std::max(x, 0.0f) + std::log1p(std::exp(-std::abs(x))); });
}
Tensors softsign(const Call& call) {
  return mapped(call, [](float x) { return x / (1 + std::abs(x)); });
}
Tensors exp_of(const Call& call) {
  return mapped(call, [](float x) { return std::exp(x); });
}
Tensors log_of(const Call& call) {
  return mapped(call, [](float x) { return std::log(x); });
}
Tensors sqrt_of(const Call& call) {
  return mapped(call, [](float x) { return std::sqrt(x); });
}
Tensors reciprocal(const Call& call) {
  return mapped(call, [](float x) { return 1 / x; });
}
Tensors negative(const Call& call) {
  return mapped(call, [](float x) { return -x; });
}
Tensors absolute(const Call& call) {
  return mapped(call, [](float x) { return std::abs(x); });
}
Tensors erf_of(const Call& call) {
  return mapped(call, [](float x) { return std::erf(x); });
}
Tensors sin_of(const Call& call) {
  return mapped(call, [](float x) { return std::sin(x); });
}
Tensors cos_of(const Call& call) {
  return mapped(call, [](float x) { return std::cos(x); });
}

/// Softmax over one axis, as from opset 13 on.
Tensors softmax(const Call& call) {
  const Tensor& x = call.input(0);
  Tensor out{.name = {}, .shape = x.shape, .floats = floats_of(x), .ints = {}};
  const std::size_t axis = axis_of(call.node.integer("axis", call.opset < 13 ? 1 : -1), x.shape.size());
  COHORT_THROW_UNLESS(call.opset >= 13 || axis + 1 == x.shape.size(), "softmax over several axes at once (opset {})",
                      call.opset);
  const std::int64_t count = x.shape[axis], inner = product(x.shape, axis + 1, x.shape.size()),
                     outer = product(x.shape, 0, axis);
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < inner; ++i) {
      float* const first = out.floats.data() + o * count * inner + i;
      float largest = -std::numeric_limits<float>::infinity(), sum = 0;
      for (std::int64_t k = 0; k < count; ++k) largest = std::max(largest, first[k * inner]);
      for (std::int64_t k = 0; k < count; ++k) sum += first[k * inner] = std::exp(first[k * inner] - largest);
      for (std::int64_t k = 0; k < count; ++k) first[k * inner] /= sum;
    }
  return one(std::move(out));
}

// Matrices.

/// out (m, n) += a (m, k) times b (k, n); a row of it does not depend on the others.
void add_product(const float* a, const float* b, float* out, std::int64_t m, std::int64_t k, std::int64_t n) {
  for (std::int64_t row = 0; row < m; ++row, a += k, out += n)
    for (std::int64_t i = 0; i < k; ++i) {
      const float factor = a[i];
      const float* const from = b + i * n;
      for (std::int64_t column = 0; column < n; ++column) out[column] += factor * from[column];
    }
}

Tensors gemm(const Call& call) {
  const bool turns_a = call.node.integer("transA", 0) != 0, turns_b = call.node.integer("transB", 0) != 0;
  const float alpha = call.node.number("alpha", 1), beta = call.node.number("beta", 1);
  Tensor turned_a, turned_b;
  const Tensor *a = &call.input(0), *b = &call.input(1);
  COHORT_THROW_UNLESS(a->shape.size() == 2 && b->shape.size() == 2, "Gemm of the shapes {} and {}",
                      shape_text(a->shape), shape_text(b->shape));
  if (turns_a) turned_a = transposed(*a), a = &turned_a;
  if (turns_b) {
    if (call.transposed[1] != nullptr) {
      b = call.transposed[1];
    } else {
      turned_b = transposed(*b);
      b = &turned_b;
    }
  }
  const std::int64_t m = a->shape[0], k = a->shape[1], n = b->shape[1];
  COHORT_THROW_UNLESS(b->shape[0] == k, "a matrix of {} is multiplied with one of {}", shape_text(a->shape),
                      shape_text(b->shape));
  Tensor out = empty_tensor({m, n});
  add_product(floats_of(*a).data(), floats_of(*b).data(), out.floats.data(), m, k, n);
  if (alpha != 1)
    for (float& value : out.floats) value *= alpha;
  if (call.has(2)) {
    Tensor bias = call.input(2);
    floats_of(bias);
    if (beta != 1)
      for (float& value : bias.floats) value *= beta;
    out = elementwise(out, bias, [](auto x, auto y) { return x + y; });
    COHORT_THROW_UNLESS((out.shape == Shape{m, n}), "a bias of {} for a product of {} x {}", shape_text(bias.shape), m,
                        n);
  }
  return one(std::move(out));
}

/// Stacks of matrices with dimensions that are broadcast before the last two; one-dimensional sides as NumPy has them.
Tensors matmul(const Call& call) {
  Tensor a = call.input(0), b = call.input(1);
  floats_of(a), floats_of(b);
  const bool row = a.shape.size() == 1, column = b.shape.size() == 1;
  COHORT_THROW_UNLESS(!a.shape.empty() && !b.shape.empty(), "MatMul of a single number");
  if (row) a.shape.insert(a.shape.begin(), 1);
  if (column) b.shape.push_back(1);
  const std::int64_t m = a.shape[a.shape.size() - 2], k = a.shape.back(), n = b.shape.back();
  COHORT_THROW_UNLESS(b.shape[b.shape.size() - 2] == k, "a matrix of {} is multiplied with one of {}",
                      shape_text(a.shape), shape_text(b.shape));
  const Shape stack_a(a.shape.begin(), a.shape.end() - 2), stack_b(b.shape.begin(), b.shape.end() - 2),
      stack = broadcast(stack_a, stack_b);
  const Shape step_a = strides_in(stack_a, stack), step_b = strides_in(stack_b, stack);
  Shape shape = stack;
  shape.push_back(m);
  shape.push_back(n);
  Tensor out = empty_tensor(shape);
  const std::int64_t matrices = product(stack, 0, stack.size());
  for (std::int64_t i = 0; i < matrices; ++i) {
    std::int64_t rest = i, at_a = 0, at_b = 0;
    for (std::size_t d = stack.size(); d-- > 0;) {
      const std::int64_t index = rest % stack[d];
      rest /= stack[d];
      at_a += index * step_a[d], at_b += index * step_b[d];
    }
    add_product(a.floats.data() + at_a * m * k, b.floats.data() + at_b * k * n, out.floats.data() + i * m * n, m, k, n);
  }
  if (column) out.shape.pop_back();
  if (row) out.shape.erase(out.shape.end() - (column ? 1 : 2));
  return one(std::move(out));
}

/// (x - mean) / sqrt(variance + epsilon), scaled and shifted, over the axes from `axis` on.
Tensors layer_normalization(const Call& call) {
  const Tensor& x = call.input(0);
  Tensor out{.name = {}, .shape = x.shape, .floats = floats_of(x), .ints = {}};
  const std::size_t axis = axis_of(call.node.integer("axis", -1), x.shape.size());
  const std::int64_t count = product(x.shape, axis, x.shape.size()), rows = product(x.shape, 0, axis);
  const float epsilon = call.node.number("epsilon", 1e-5f);
  for (std::int64_t r = 0; r < rows; ++r) {
    float* const row = out.floats.data() + r * count;
    double mean = 0, square = 0;
    for (std::int64_t i = 0; i < count; ++i) mean += static_cast<double>(row[i]);
    mean /= static_cast<double>(count);
    for (std::int64_t i = 0; i < count; ++i)
      square += (static_cast<double>(row[i]) - mean) * (static_cast<double>(row[i]) - mean);
    const double by = 1 / std::sqrt(square / static_cast<double>(count) + static_cast<double>(epsilon));
    for (std::int64_t i = 0; i < count; ++i) row[i] = static_cast<float>((static_cast<double>(row[i]) - mean) * by);
  }
  out = elementwise(out, call.input(1), [](auto a, auto b) { return a * b; });
  if (call.has(2)) out = elementwise(out, call.input(2), [](auto a, auto b) { return a + b; });
  return one(std::move(out));
}

/// By running moments: input X (N, C, ...), scale, B, mean, variance (C).
Tensors batch_normalization(const Call& call) {
  const Tensor& x = call.input(0);
  COHORT_THROW_UNLESS(x.shape.size() >= 2 && call.node.integer("training_mode", 0) == 0,
                      "a batch normalisation that still learns, or of shape {}", shape_text(x.shape));
  Tensor out{.name = {}, .shape = x.shape, .floats = floats_of(x), .ints = {}};
  const auto channels = static_cast<std::size_t>(x.shape[1]);
  std::array<const float*, 4> of{};
  for (std::size_t i = 0; i < 4; ++i) {
    COHORT_THROW_UNLESS(floats_of(call.input(i + 1)).size() == channels, "{} channels, and moments of another number",
                        channels);
    of[i] = call.input(i + 1).floats.data();
  }
  const float epsilon = call.node.number("epsilon", 1e-5f);
  const auto inner = static_cast<std::size_t>(product(x.shape, 2, x.shape.size()));
  for (std::size_t i = 0; i < out.floats.size(); ++i) {
    const std::size_t c = inner == 0 ? 0 : i / inner % channels;
    out.floats[i] = (out.floats[i] - of[2][c]) / std::sqrt(of[3][c] + epsilon) * of[0][c] + of[1][c];
  }
  return one(std::move(out));
}

// Recurrent cells: inputs X (steps, n, in), W (1, gates H, in), R (1, gates H, H), B (1, 2 gates H), ..., h (1, n, H).

struct Recurrent {
  std::int64_t steps = 0, n = 0, in = 0, hidden = 0, gates = 0;
  const Tensor* x = nullptr;
  Tensor turned_w, turned_r;
  const float *w = nullptr, *r = nullptr;  ///< (in, gates H), (H, gates H)
  std::vector<float> bias_w, bias_r;       ///< (gates H)
};

Recurrent recurrent(const Call& call, std::int64_t gates) {
  const Node& node = call.node;
  COHORT_THROW_UNLESS(node.text("direction", "forward") == "forward", "direction '{}': only forward is computed here",
                      node.text("direction", ""));
  COHORT_THROW_UNLESS(node.integer("layout", 0) == 0, "layout 1: only layout 0 is computed here");
  for (const char* other : {"activations", "clip"})
    COHORT_THROW_UNLESS(node.attribute(other) == nullptr, "the attribute '{}' is not computed here", other);
  Recurrent cell{.gates = gates};
  cell.x = &call.input(0);
  floats_of(*cell.x);
  const Tensor &w = call.input(1), &r = call.input(2);
  COHORT_THROW_UNLESS(
      cell.x->shape.size() == 3 && w.shape.size() == 3 && r.shape.size() == 3 && w.shape[0] == 1 && r.shape[0] == 1,
      "shapes {}, {} and {} of input and weights", shape_text(cell.x->shape), shape_text(w.shape), shape_text(r.shape));
  cell.steps = cell.x->shape[0], cell.n = cell.x->shape[1], cell.in = cell.x->shape[2];
  cell.hidden = r.shape[2];
  COHORT_THROW_UNLESS(w.shape[1] == gates * cell.hidden && r.shape[1] == gates * cell.hidden && w.shape[2] == cell.in &&
                          node.integer("hidden_size", cell.hidden) == cell.hidden,
                      "weights of {} and {} for an input of {}", shape_text(w.shape), shape_text(r.shape),
                      shape_text(cell.x->shape));
  if (call.transposed[1] == nullptr) cell.turned_w = transposed(w);
  if (call.transposed[2] == nullptr) cell.turned_r = transposed(r);
  cell.w = floats_of(call.transposed[1] ? *call.transposed[1] : cell.turned_w).data();
  cell.r = floats_of(call.transposed[2] ? *call.transposed[2] : cell.turned_r).data();
  const auto width = static_cast<std::size_t>(gates * cell.hidden);
  cell.bias_w.assign(width, 0), cell.bias_r.assign(width, 0);
  if (call.has(3)) {
    const std::vector<float>& b = floats_of(call.input(3));
    COHORT_THROW_UNLESS(b.size() == 2 * width, "a bias of {}", shape_text(call.input(3).shape));
    std::copy_n(b.begin(), width, cell.bias_w.begin());
    std::copy_n(b.begin() + static_cast<std::ptrdiff_t>(width), width, cell.bias_r.begin());
  }
  if (call.has(4))
    for (const std::int64_t length : ints_of(call.input(4), "sequence_lens"))
      COHORT_THROW_UNLESS(length == cell.steps, "sequences of different lengths are not computed here");
  return cell;
}

/// (n, H) of an initial state, or zeros.
std::vector<float> initial(const Call& call, std::size_t input, const Recurrent& cell) {
  if (!call.has(input)) return std::vector<float>(static_cast<std::size_t>(cell.n * cell.hidden), 0.0f);
  const Tensor& given = call.input(input);
  COHORT_THROW_UNLESS((given.shape == Shape{1, cell.n, cell.hidden}), "an initial state of {} for {} rows of {}",
                      shape_text(given.shape), cell.n, cell.hidden);
  return floats_of(given);
}

/// (n, gates H): bias, and a (n, k) times b (k, gates H).
void affine(const float* a, const float* b, const std::vector<float>& bias, std::vector<float>& out, std::int64_t n,
            std::int64_t k) {
  for (std::int64_t row = 0; row < n; ++row) std::copy(bias.begin(), bias.end(), out.begin() + row * std::ssize(bias));
  add_product(a, b, out.data(), n, k, std::ssize(bias));
}

Tensors gru(const Call& call) {
  const Recurrent cell = recurrent(call, 3);
  const bool before_reset = call.node.integer("linear_before_reset", 0) != 0;
  std::vector<float> h = initial(call, 5, cell);
  const std::int64_t H = cell.hidden, wide = 3 * H;
  std::vector<float> of_x(static_cast<std::size_t>(cell.n * wide)), of_h(of_x.size());
  std::vector<float> part(static_cast<std::size_t>(cell.n * H)), kept(part.size());
  Tensor y = empty_tensor({cell.steps, 1, cell.n, H});
  for (std::int64_t t = 0; t < cell.steps; ++t) {
    affine(cell.x->floats.data() + t * cell.n * cell.in, cell.w, cell.bias_w, of_x, cell.n, cell.in);
    affine(h.data(), cell.r, cell.bias_r, of_h, cell.n, H);
    if (!before_reset) {
      // The candidate's part of the state is of r * h, not r times that of h.
      for (std::int64_t row = 0; row < cell.n; ++row)
        for (std::int64_t k = 0; k < H; ++k) {
          const auto at = static_cast<std::size_t>(row * wide + H + k), to = static_cast<std::size_t>(row * H + k);
          kept[to] = sigmoid(of_x[at] + of_h[at]) * h[to];
          part[to] = cell.bias_r[static_cast<std::size_t>(2 * H + k)];
        }
      for (std::int64_t row = 0; row < cell.n; ++row)
        for (std::int64_t i = 0; i < H; ++i)
          for (std::int64_t k = 0; k < H; ++k)
            part[static_cast<std::size_t>(row * H + k)] +=
                kept[static_cast<std::size_t>(row * H + i)] * cell.r[i * wide + 2 * H + k];
    }
    for (std::int64_t row = 0; row < cell.n; ++row) {
      const float *i = of_x.data() + row * wide, *s = of_h.data() + row * wide;
      float* const state = h.data() + row * H;
      for (std::int64_t k = 0; k < H; ++k) {
        const float update = sigmoid(i[k] + s[k]), reset = sigmoid(i[H + k] + s[H + k]);
        const float fresh = std::tanh(
            i[2 * H + k] + (before_reset ? reset * s[2 * H + k] : part[static_cast<std::size_t>(row * H + k)]));
        state[k] = (1 - update) * fresh + update * state[k];
      }
    }
    std::copy(h.begin(), h.end(), y.floats.begin() + t * cell.n * H);
  }
  Tensors out = one(std::move(y));
  out.push_back(Tensor::of("", {1, cell.n, H}, std::move(h)));
  return out;
}

Tensors lstm(const Call& call) {
  const Recurrent cell = recurrent(call, 4);
  COHORT_THROW_UNLESS(!call.has(7) && call.node.integer("input_forget", 0) == 0,
                      "peepholes and coupled gates are not computed here");
  std::vector<float> h = initial(call, 5, cell), c = initial(call, 6, cell);
  const std::int64_t H = cell.hidden, wide = 4 * H;
  std::vector<float> of_x(static_cast<std::size_t>(cell.n * wide)), of_h(of_x.size());
  Tensor y = empty_tensor({cell.steps, 1, cell.n, H});
  for (std::int64_t t = 0; t < cell.steps; ++t) {
    affine(cell.x->floats.data() + t * cell.n * cell.in, cell.w, cell.bias_w, of_x, cell.n, cell.in);
    affine(h.data(), cell.r, cell.bias_r, of_h, cell.n, H);
    for (std::int64_t row = 0; row < cell.n; ++row) {
      const float *i = of_x.data() + row * wide, *s = of_h.data() + row * wide;
      for (std::int64_t k = 0; k < H; ++k) {
        const auto at = static_cast<std::size_t>(row * H + k);
        const float in = sigmoid(i[k] + s[k]), out = sigmoid(i[H + k] + s[H + k]),
                    forget = sigmoid(i[2 * H + k] + s[2 * H + k]), fresh = std::tanh(i[3 * H + k] + s[3 * H + k]);
        c[at] = forget * c[at] + in * fresh;
        h[at] = out * std::tanh(c[at]);
      }
    }
    std::copy(h.begin(), h.end(), y.floats.begin() + t * cell.n * H);
  }
  Tensors out = one(std::move(y));
  out.push_back(Tensor::of("", {1, cell.n, H}, std::move(h)));
  out.push_back(Tensor::of("", {1, cell.n, H}, std::move(c)));
  return out;
}

// What moves numbers and changes none.

/// body(from, to) with the tensor's numbers, whole or not.
template <class Body>
void with_numbers(const Tensor& from, Tensor& to, const Body& body) {
  from.integral ? body(from.ints, to.ints) : body(from.floats, to.floats);
}

Tensors same(const Call& call) {
  return one(call.input(0));
}

Tensors concat(const Call& call) {
  const Tensor& first = call.input(0);
  const std::size_t axis = axis_of(call.node.integer("axis", 0), first.shape.size());
  Shape shape = first.shape;
  for (std::size_t i = 1; i < call.inputs.size(); ++i) {
    Shape other = call.input(i).shape;
    COHORT_THROW_UNLESS(other.size() == shape.size() && call.input(i).integral == first.integral,
                        "shapes {} and {} side by side", shape_text(first.shape), shape_text(other));
    shape[axis] += other[axis];
    other[axis] = first.shape[axis];
    COHORT_THROW_UNLESS(other == first.shape, "shapes {} and {} side by side along axis {}", shape_text(first.shape),
                        shape_text(call.input(i).shape), axis);
  }
  Tensor out = empty_tensor(shape, first.integral);
  const std::int64_t outer = product(shape, 0, axis), inner = product(shape, axis + 1, shape.size());
  std::int64_t at = 0;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor& part = call.input(i);
    const std::int64_t stretch = part.shape[axis] * inner, whole = shape[axis] * inner;
    with_numbers(part, out, [&](const auto& from, auto& to) {
      for (std::int64_t o = 0; o < outer; ++o)
        std::copy_n(from.begin() + o * stretch, stretch, to.begin() + o * whole + at);
    });
    at += stretch;
  }
  return one(std::move(out));
}

/// Numbers begin, begin + step, ... of an axis, `count` of them.
Tensor taken(const Tensor& x, std::size_t axis, std::int64_t begin, std::int64_t step, std::int64_t count) {
  Shape shape = x.shape;
  shape[axis] = count;
  Tensor out = empty_tensor(shape, x.integral);
  const std::int64_t outer = product(shape, 0, axis), inner = product(shape, axis + 1, shape.size());
  with_numbers(x, out, [&](const auto& from, auto& to) {
    auto next = to.begin();
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t i = 0; i < count; ++i)
        next = std::copy_n(from.begin() + (o * x.shape[axis] + begin + i * step) * inner, inner, next);
  });
  return out;
}

Tensors split(const Call& call) {
  const Tensor& x = call.input(0);
  const std::size_t axis = axis_of(call.node.integer("axis", 0), x.shape.size());
  std::vector<std::int64_t> sizes;
  if (const Attribute* const given = call.node.attribute("split")) {
    sizes = given->ints;
  } else if (call.has(1)) {
    sizes = ints_of(call.input(1), "split");
  } else {
    const auto parts = static_cast<std::int64_t>(call.node.outputs.size());
    const std::int64_t each = (x.shape[axis] + parts - 1) / parts;
    for (std::int64_t left = x.shape[axis]; std::ssize(sizes) < parts; left -= sizes.back())
      sizes.push_back(std::min(each, left));
  }
  std::int64_t sum = 0;
  for (const std::int64_t size : sizes) {
    COHORT_THROW_UNLESS(size >= 0, "a part of {}", size);
    sum += size;
  }
  COHORT_THROW_UNLESS(sum == x.shape[axis], "parts of {} in all from an axis of {}", sum, x.shape[axis]);
  Tensors parts;
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes) {
    parts.push_back(taken(x, axis, begin, 1, size));
    begin += size;
  }
  return parts;
}

Tensors slice(const Call& call) {
  Tensor out = call.input(0);
  std::vector<std::int64_t> starts, ends, axes, steps;
  if (const Attribute* const given = call.node.attribute("starts")) {  // until opset 9
    starts = given->ints;
    if (const Attribute* const end = call.node.attribute("ends")) ends = end->ints;
    if (const Attribute* const which = call.node.attribute("axes")) axes = which->ints;
  } else {
    starts = ints_of(call.input(1), "starts");
    ends = ints_of(call.input(2), "ends");
    if (call.has(3)) axes = ints_of(call.input(3), "axes");
    if (call.has(4)) steps = ints_of(call.input(4), "steps");
  }
  if (axes.empty())
    for (std::int64_t i = 0; i < std::ssize(starts); ++i) axes.push_back(i);
  if (steps.empty()) steps.assign(starts.size(), 1);
  COHORT_THROW_UNLESS(ends.size() == starts.size() && axes.size() == starts.size() && steps.size() == starts.size(),
                      "{} starts, {} ends, {} axes, {} steps", starts.size(), ends.size(), axes.size(), steps.size());
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t axis = axis_of(axes[i], out.shape.size());
    const std::int64_t size = out.shape[axis], step = steps[i];
    COHORT_THROW_UNLESS(step != 0, "a step of 0");
    const auto within = [&](std::int64_t at, std::int64_t low, std::int64_t high) {
      return std::clamp(at < 0 ? at + size : at, low, high);
    };
    const std::int64_t begin = step > 0 ? within(starts[i], 0, size) : within(starts[i], 0, size - 1),
                       end = step > 0          ? within(ends[i], 0, size)
                             : ends[i] < -size ? -1
                                               : within(ends[i], -1, size - 1);
    const std::int64_t count = step > 0 ? std::max<std::int64_t>(0, (end - begin + step - 1) / step)
                                        : std::max<std::int64_t>(0, (begin - end - step - 1) / -step);
    out = taken(out, axis, begin, step, count);
  }
  return one(std::move(out));
}

Tensors gather(const Call& call) {
  const Tensor &x = call.input(0), &which = call.input(1);
  const std::size_t axis = axis_of(call.node.integer("axis", 0), x.shape.size());
  Shape shape(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  shape.insert(shape.end(), which.shape.begin(), which.shape.end());
  shape.insert(shape.end(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.shape.end());
  Tensor out = empty_tensor(shape, x.integral);
  const std::int64_t outer = product(x.shape, 0, axis), inner = product(x.shape, axis + 1, x.shape.size()),
                     size = x.shape[axis];
  const std::vector<std::int64_t>& rows = ints_of(which, "indices");
  for (const std::int64_t row : rows)
    COHORT_THROW_UNLESS(row >= -size && row < size, "index {} of {} numbers", row, size);
  with_numbers(x, out, [&](const auto& from, auto& to) {
    auto next = to.begin();
    for (std::int64_t o = 0; o < outer; ++o)
      for (const std::int64_t row : rows)
        next = std::copy_n(from.begin() + (o * size + (row < 0 ? row + size : row)) * inner, inner, next);
  });
  return one(std::move(out));
}

Tensors squeeze(const Call& call) {
  Tensor out = call.input(0);
  const auto axes = axes_of(call);
  std::vector<bool> goes(out.shape.size());
  if (axes)
    for (const std::int64_t axis : *axes) {
      const std::size_t at = axis_of(axis, out.shape.size());
      COHORT_THROW_UNLESS(out.shape[at] == 1, "axis {} of {} is not 1", axis, shape_text(out.shape));
      goes[at] = true;
    }
  Shape shape;
  for (std::size_t i = 0; i < out.shape.size(); ++i)
    if (axes ? !goes[i] : out.shape[i] != 1) shape.push_back(out.shape[i]);
  out.shape = std::move(shape);
  return one(std::move(out));
}

Tensors unsqueeze(const Call& call) {
  Tensor out = call.input(0);
  const auto axes = axes_of(call);
  COHORT_THROW_UNLESS(axes.has_value(), "no axes");
  const std::size_t rank = out.shape.size() + axes->size();
  std::vector<bool> is_new(rank);
  for (const std::int64_t axis : *axes) is_new[axis_of(axis, rank)] = true;
  Shape shape;
  std::size_t next = 0;
  for (std::size_t i = 0; i < rank; ++i) shape.push_back(is_new[i] || next == out.shape.size() ? 1 : out.shape[next++]);
  COHORT_THROW_UNLESS(next == out.shape.size(), "an axis is named twice");
  out.shape = std::move(shape);
  return one(std::move(out));
}

Tensors reshape(const Call& call) {
  Tensor out = call.input(0);
  Shape shape = ints_of(call.input(1), "shape");
  const bool keeps_zero = call.node.integer("allowzero", 0) != 0;
  std::ptrdiff_t open = -1;
  std::int64_t known = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && !keeps_zero) {
      COHORT_THROW_UNLESS(i < out.shape.size(), "size {} is to be that of a tensor of {}", i, shape_text(out.shape));
      shape[i] = out.shape[i];
    }
    if (shape[i] == -1)
      open = static_cast<std::ptrdiff_t>(i);
    else
      known *= shape[i];
  }
  if (open >= 0) shape[static_cast<std::size_t>(open)] = known == 0 ? 0 : out.elements() / known;
  COHORT_THROW_UNLESS(product(shape, 0, shape.size()) == out.elements(), "a tensor of {} cannot have the shape {}",
                      shape_text(out.shape), shape_text(shape));
  out.shape = std::move(shape);
  return one(std::move(out));
}

Tensors flatten(const Call& call) {
  Tensor out = call.input(0);
  const auto rank = static_cast<std::int64_t>(out.shape.size());
  std::int64_t axis = call.node.integer("axis", 1);
  if (axis < 0) axis += rank;
  COHORT_THROW_UNLESS(axis >= 0 && axis <= rank, "axis {} of a tensor with {} dimensions", axis, rank);
  const std::int64_t rows = product(out.shape, 0, static_cast<std::size_t>(axis));
  out.shape = {rows, product(out.shape, static_cast<std::size_t>(axis), out.shape.size())};
  return one(std::move(out));
}

Tensors transpose(const Call& call) {
  const Tensor& x = call.input(0);
  const std::size_t rank = x.shape.size();
  std::vector<std::int64_t> order;
  if (const Attribute* const perm = call.node.attribute("perm"))
    order = perm->ints;
  else
    for (std::size_t i = rank; i-- > 0;) order.push_back(static_cast<std::int64_t>(i));
  std::vector<std::int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < std::max(rank, sorted.size()); ++i)
    COHORT_THROW_UNLESS(sorted.size() == rank && sorted[i] == static_cast<std::int64_t>(i),
                        "perm is no order of {} dimensions", rank);
  Shape shape, step(rank, 1), steps;
  for (std::size_t i = rank; i-- > 1;) step[i - 1] = step[i] * x.shape[i];
  for (const std::int64_t from : order) {
    shape.push_back(x.shape[static_cast<std::size_t>(from)]);
    steps.push_back(step[static_cast<std::size_t>(from)]);
  }
  Tensor out = empty_tensor(shape, x.integral);
  with_numbers(x, out, [&](const auto& from, auto& to) {
    std::vector<std::int64_t> index(rank, 0);
    std::int64_t at = 0;
    for (auto& value : to) {
      value = from[static_cast<std::size_t>(at)];
      for (std::size_t d = rank; d-- > 0;) {
        at += steps[d];
        if (++index[d] < shape[d]) break;
        at -= steps[d] * shape[d];
        index[d] = 0;
      }
    }
  });
  return one(std::move(out));
}

Tensors expand(const Call& call) {
  const Tensor& x = call.input(0);
  Tensor ones = empty_tensor(ints_of(call.input(1), "shape"), x.integral);
  std::fill(ones.floats.begin(), ones.floats.end(), 1.0f);
  std::fill(ones.ints.begin(), ones.ints.end(), 1);
  return one(elementwise(x, ones, [](auto a, auto b) { return a * b; }));
}

Tensors cast(const Call& call) {
  Tensor out = call.input(0);
  const std::int64_t to = call.node.integer("to", 1);
  const bool integral = !(to == 1 || to == 10 || to == 11);  // float, float16, double
  if (integral && !out.integral) {
    for (const float value : out.floats)
      out.ints.push_back(to == 9 ? value != 0 : static_cast<std::int64_t>(value));  // 9: bool
    out.floats.clear();
  } else if (!integral && out.integral) {
    out.floats.assign(out.ints.begin(), out.ints.end());
    out.ints.clear();
  }
  out.integral = integral;
  return one(std::move(out));
}

Tensors constant(const Call& call) {
  if (const Attribute* const a = call.node.attribute("value")) return one(a->tensor);
  if (const Attribute* const a = call.node.attribute("value_float")) return one(Tensor::of("", {}, {a->number}));
  if (const Attribute* const a = call.node.attribute("value_int")) return one(Tensor::of_ints("", {}, {a->integer}));
  if (const Attribute* const a = call.node.attribute("value_floats"))
    return one(Tensor::of("", {std::ssize(a->floats)}, a->floats));
  if (const Attribute* const a = call.node.attribute("value_ints"))
    return one(Tensor::of_ints("", {std::ssize(a->ints)}, a->ints));
  throw Error("it has no numbers");
}

Tensors constant_of_shape(const Call& call) {
  Tensor value = Tensor::of("", {1}, {0});
  if (const Attribute* const given = call.node.attribute("value")) value = given->tensor;
  Tensor out = empty_tensor(ints_of(call.input(0), "shape"), value.integral);
  if (value.integral)
    std::fill(out.ints.begin(), out.ints.end(), value.ints.at(0));
  else
    std::fill(out.floats.begin(), out.floats.end(), value.floats.at(0));
  return one(std::move(out));
}

Tensors shape_of(const Call& call) {
  const Shape& shape = call.input(0).shape;
  const auto rank = static_cast<std::int64_t>(shape.size());
  const auto place = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const std::int64_t begin = place(call.node.integer("start", 0)), end = place(call.node.integer("end", rank));
  std::vector<std::int64_t> part;
  for (std::int64_t i = begin; i < end; ++i) part.push_back(shape[static_cast<std::size_t>(i)]);
  const auto count = std::ssize(part);
  return one(Tensor::of_ints("", {count}, std::move(part)));
}

/// Sums (or means) over axes.
Tensors reduced(const Call& call, bool mean) {
  const Tensor& x = call.input(0);
  const auto axes = axes_of(call);
  const bool keeps = call.node.integer("keepdims", 1) != 0;
  if (axes.value_or(std::vector<std::int64_t>{}).empty() && call.node.integer("noop_with_empty_axes", 0) != 0)
    return one(x);
  std::vector<bool> goes(x.shape.size(), !axes || axes->empty());
  if (axes)
    for (const std::int64_t axis : *axes) goes[axis_of(axis, x.shape.size())] = true;
  Shape kept = x.shape, shape;
  for (std::size_t i = 0; i < kept.size(); ++i)
    if (goes[i]) kept[i] = 1;
  std::vector<double> sums(static_cast<std::size_t>(product(kept, 0, kept.size())));
  const Shape steps = strides_in(kept, x.shape);
  const std::vector<float>& numbers = floats_of(x);
  std::vector<std::int64_t> index(x.shape.size(), 0);
  std::int64_t at = 0;
  for (const float value : numbers) {
    sums[static_cast<std::size_t>(at)] += static_cast<double>(value);
    for (std::size_t d = x.shape.size(); d-- > 0;) {
      at += steps[d];
      if (++index[d] < x.shape[d]) break;
      at -= steps[d] * x.shape[d];
      index[d] = 0;
    }
  }
  const double each =
      mean && !sums.empty() ? static_cast<double>(sums.size()) / static_cast<double>(numbers.size()) : 1;
  for (std::size_t i = 0; i < kept.size(); ++i)
    if (keeps || !goes[i]) shape.push_back(kept[i]);
  Tensor out = empty_tensor(shape);
  for (std::size_t i = 0; i < sums.size(); ++i) out.floats[i] = static_cast<float>(sums[i] * each);
  return one(std::move(out));
}
Tensors reduce_mean(const Call& call) {
  return reduced(call, true);
}
Tensors reduce_sum(const Call& call) {
  return reduced(call, false);
}

constexpr unsigned kSecond = 1u << 1, kThird = 1u << 2;
constexpr Operator kOperators[] = {
    {"Abs", absolute},
    {"Add", add},
    {"BatchNormalization", batch_normalization},
    {"Cast", cast},
    {"Clip", clip},
    {"Concat", concat},
    {"Constant", constant},
    {"ConstantOfShape", constant_of_shape},
    {"Cos", cos_of},
    {"Div", divide},
    {"Dropout", same},
    {"Elu", elu},
    {"Erf", erf_of},
    {"Exp", exp_of},
    {"Expand", expand},
    {"Flatten", flatten},
    {"GRU", gru, kSecond | kThird},
    {"Gather", gather},
    {"Gemm", gemm, kSecond},
    {"HardSigmoid", hard_sigmoid},
    {"Identity", same},
    {"LSTM", lstm, kSecond | kThird},
    {"LayerNormalization", layer_normalization},
    {"LeakyRelu", leaky_relu},
    {"Log", log_of},
    {"MatMul", matmul},
    {"Max", greatest},
    {"Min", least},
    {"Mul", multiply},
    {"Neg", negative},
    {"Pow", power},
    {"Reciprocal", reciprocal},
    {"ReduceMean", reduce_mean},
    {"ReduceSum", reduce_sum},
    {"Relu", relu},
    {"Reshape", reshape},
    {"Selu", selu},
    {"Shape", shape_of},
    {"Sigmoid", sigmoid_of},
    {"Sin", sin_of},
    {"Slice", slice},
    {"Softmax", softmax},
    {"Softplus", softplus},
    {"Softsign", softsign},
    {"Split", split},
    {"Sqrt", sqrt_of},
    {"Squeeze", squeeze},
    {"Sub", subtract},
    {"Tanh", tanh_of},
    {"Transpose", transpose},
    {"Unsqueeze", unsqueeze},
};

}  // namespace

const Tensor& Call::input(std::size_t i) const {
  COHORT_THROW_UNLESS(has(i), "input {} is missing", i);
  return *inputs[i];
}

const Operator* find_operator(const std::string& name) {
  const auto at =
      std::find_if(std::begin(kOperators), std::end(kOperators), [&](const Operator& op) { return name == op.name; });
  return at == std::end(kOperators) ? nullptr : &*at;
}

std::vector<std::string> operator_names() {
  std::vector<std::string> names;
  for (const Operator& op : kOperators) names.emplace_back(op.name);
  return names;
}

Tensor transposed(const Tensor& matrix) {
  COHORT_THROW_UNLESS(matrix.shape.size() >= 2, "a matrix is expected, and this has the shape {}",
                      shape_text(matrix.shape));
  const std::vector<float>& numbers = floats_of(matrix);
  Shape shape = matrix.shape;
  const std::size_t rank = shape.size();
  const auto rows = static_cast<std::size_t>(shape[rank - 2]), columns = static_cast<std::size_t>(shape[rank - 1]);
  std::swap(shape[rank - 2], shape[rank - 1]);
  Tensor out = empty_tensor(shape);
  const std::size_t size = rows * columns;
  for (std::size_t first = 0; size > 0 && first < numbers.size(); first += size)
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < columns; ++c) out.floats[first + c * rows + r] = numbers[first + r * columns + c];
  return out;
}

}  // namespace cohort::onnx
