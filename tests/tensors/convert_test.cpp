#include "tensors/convert.h"

#include <vector>

#include <gtest/gtest.h>

#include <torch/types.h>

#include "tensors/pinned_allocator.h"

namespace cohort::tensors {
namespace {

TEST(Convert, AViewAndItsTensorShareMemoryAndStrides) {
  std::vector<float> memory(24);
  ArrayView view = make_view(memory.data(), {2, 3, 4});
  at::Tensor tensor = to_tensor(view);
  tensor.index_put_({1, 2, 3}, 7.0f);
  EXPECT_EQ(memory[23], 7.0f);
  const ArrayView back = to_view(tensor.transpose(0, 2));
  EXPECT_EQ(back.data, memory.data());
  EXPECT_EQ(back.shape[0], 4);
  EXPECT_EQ(back.strides[0], 1);
  EXPECT_EQ(back.strides[2], 12);
  EXPECT_FALSE(back.contiguous());
}

TEST(Convert, EveryElementTypeGoesBothWays) {
  for (const auto type :
       {ElementType::kFloat32, ElementType::kFloat64, ElementType::kFloat16, ElementType::kBFloat16,
        ElementType::kInt64, ElementType::kInt32, ElementType::kInt16, ElementType::kUInt8, ElementType::kBool}) {
    EXPECT_EQ(to_element_type(to_scalar_type(type)), type);
    EXPECT_EQ(c10::elementSize(to_scalar_type(type)), element_size(type));
  }
  EXPECT_THROW(to_element_type(c10::kComplexFloat), Error);
}

TEST(Convert, TheMemoryIsReleasedWithTheLastTensor) {
  int released = 0;
  std::vector<std::int64_t> memory{1, 2, 3};
  at::Tensor part;
  {
    const at::Tensor tensor = to_tensor(make_view(memory.data(), {3}), [&released] { ++released; });
    part = tensor.slice(0, 1);
  }
  EXPECT_EQ(released, 0);
  EXPECT_EQ(part[0].item<std::int64_t>(), 2);
  part.reset();
  EXPECT_EQ(released, 1);
}

TEST(Convert, DevicesKeepTheirNames) {
  for (const char* name : {"cpu", "cuda:0", "cuda:3", "mps:0"}) {
    const DeviceId device = parse_device(name);
    EXPECT_EQ(to_torch_device(device).str(), name);
    EXPECT_EQ(to_device_id(c10::Device(name)), device);
  }
  EXPECT_THROW(parse_device("gpu"), Error);
  EXPECT_THROW(parse_device("cuda:x"), Error);
  EXPECT_THROW(to_device_id(c10::Device("meta")), Error);
}

TEST(PinnedAllocator, WithoutAnAcceleratorMemoryIsOrdinary) {
  EXPECT_STREQ(host_allocator_for(c10::kCPU).name(), "host memory");
  if (!at::hasCUDA()) EXPECT_THROW(PinnedAllocator{c10::kCUDA}, Error);
}

}  // namespace
}  // namespace cohort::tensors
