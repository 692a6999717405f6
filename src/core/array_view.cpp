#include "core/array_view.h"

#include <charconv>

namespace cohort {

std::size_t element_size(ElementType type) {
  switch (type) {
    case ElementType::kFloat64:
    case ElementType::kInt64:
      return 8;
    case ElementType::kFloat32:
    case ElementType::kInt32:
      return 4;
    case ElementType::kFloat16:
    case ElementType::kBFloat16:
    case ElementType::kInt16:
      return 2;
    case ElementType::kUInt8:
    case ElementType::kBool:
      return 1;
  }
  return 0;
}

const char* element_name(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return "float32";
    case ElementType::kFloat64:
      return "float64";
    case ElementType::kFloat16:
      return "float16";
    case ElementType::kBFloat16:
      return "bfloat16";
    case ElementType::kInt64:
      return "int64";
    case ElementType::kInt32:
      return "int32";
    case ElementType::kInt16:
      return "int16";
    case ElementType::kUInt8:
      return "uint8";
    case ElementType::kBool:
      return "bool";
  }
  return "unknown";
}

std::string to_string(DeviceId device) {
  switch (device.kind) {
    case DeviceKind::kCpu:
      return "cpu";
    case DeviceKind::kCuda:
      return format("cuda:{}", device.index);
    case DeviceKind::kMetal:
      return format("mps:{}", device.index);
  }
  return "unknown";
}

DeviceId parse_device(const std::string& text) {
  const auto colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  int index = 0;
  bool index_ok = true;
  if (colon != std::string::npos) {
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, index);
    index_ok = error == std::errc() && rest == end && index >= 0;
  }
  if (index_ok && kind == "cpu" && index == 0) return {DeviceKind::kCpu, 0};
  if (index_ok && kind == "cuda") return {DeviceKind::kCuda, index};
  if (index_ok && kind == "mps") return {DeviceKind::kMetal, index};
  throw Error(format("'{}' is no device; write cpu, cuda:N or mps:0", text));
}

bool ArrayView::contiguous() const {
  std::int64_t expected = 1;
  for (int i = rank - 1; i >= 0; --i) {
    const auto k = static_cast<std::size_t>(i);
    if (shape[k] != 1 && strides[k] != expected) return false;
    expected *= shape[k];
  }
  return true;
}

ArrayView make_view(void* data, ElementType type, std::span<const std::int64_t> shape, DeviceId device) {
  COHORT_CHECK(shape.size() <= kMaxRank, "an array has at most {} dimensions, not {}", kMaxRank, shape.size());
  ArrayView view;
  view.data = data;
  view.type = type;
  view.rank = static_cast<int>(shape.size());
  view.device = device;
  std::int64_t stride = 1;
  for (int i = view.rank - 1; i >= 0; --i) {
    const auto k = static_cast<std::size_t>(i);
    view.shape[k] = shape[k];
    view.strides[k] = stride;
    stride *= shape[k];
  }
  return view;
}

}  // namespace cohort
