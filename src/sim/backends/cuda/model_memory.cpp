#include "sim/backends/cuda/model_memory.h"

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "sim/host/model_arrays.h"

namespace cohort::sim::cuda {

namespace {

/// Where an array may begin.
constexpr std::size_t kAlign = 256;

template <class Items>
std::size_t padded(const Items& items) {
  return (items.size() * sizeof(items[0]) + kAlign - 1) / kAlign * kAlign;
}

}  // namespace

std::size_t model_bytes(const Model& model) {
  std::size_t bytes = 0;
  for_each_array([&](const auto& array) {
    if (array.pointer) bytes += padded(model.*array.items);
  });
  return bytes;
}

DeviceMemory upload_model(const Model& model, int device, void* stream, ModelView& view) {
  std::vector<std::uint8_t> image(model_bytes(model));
  DeviceMemory memory = make_device_memory(device, stream, image.size());
  view = model.sizes;
  std::size_t at = 0;
  for_each_array([&](const auto& array) {
    if (!array.pointer) return;
    const auto& items = model.*array.items;
    if (!items.empty()) std::memcpy(image.data() + at, items.data(), items.size() * sizeof(items[0]));
    using Pointer = std::remove_reference_t<decltype(view.*array.pointer)>;
    view.*array.pointer = reinterpret_cast<Pointer>(static_cast<std::uint8_t*>(memory.get()) + at);
    at += padded(items);
  });
  need(upload(device, stream, memory.get(), image.data(), image.size()), device, "the model cannot be copied");
  return memory;
}

}  // namespace cohort::sim::cuda
