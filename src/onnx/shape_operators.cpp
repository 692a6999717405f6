#include "onnx/operator_parts.h"

namespace cohort::onnx {
namespace {

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

constexpr Operator kShapeOperators[] = {
    {"Cast", cast},
    {"Concat", concat},
    {"Constant", constant},
    {"ConstantOfShape", constant_of_shape},
    {"Dropout", same},
    {"Expand", expand},
    {"Flatten", flatten},
    {"Gather", gather},
    {"Identity", same},
    {"ReduceMean", reduce_mean},
    {"ReduceSum", reduce_sum},
    {"Reshape", reshape},
    {"Shape", shape_of},
    {"Slice", slice},
    {"Split", split},
    {"Squeeze", squeeze},
    {"Transpose", transpose},
    {"Unsqueeze", unsqueeze},
};

}  // namespace

std::span<const Operator> shape_operators() {
  return kShapeOperators;
}

}  // namespace cohort::onnx
