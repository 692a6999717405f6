#include <array>

#include "onnx/operator_parts.h"

namespace cohort::onnx {
namespace {

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

constexpr unsigned kSecond = 1u << 1, kThird = 1u << 2;
constexpr Operator kMatrixOperators[] = {
    {"BatchNormalization", batch_normalization},
    {"GRU", gru, kSecond | kThird},
    {"Gemm", gemm, kSecond},
    {"LSTM", lstm, kSecond | kThird},
    {"LayerNormalization", layer_normalization},
    {"MatMul", matmul},
};

}  // namespace

std::span<const Operator> matrix_operators() {
  return kMatrixOperators;
}

}  // namespace cohort::onnx
