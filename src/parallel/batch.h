/// Named tensors that share their first dimension: what a loader yields and a model is fed.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace cohort::parallel {

/// Fields keep the order in which they were added. Every tensor is (n_sample, ...).
struct Batch {
  std::vector<std::pair<std::string, at::Tensor>> fields;
  /// (n_sample) int64 on the CPU: each sample's position in the global epoch order. It keys randomness (dropout,
  /// augmentation), so that a sample meets the same noise whichever rank or replica works on it.
  at::Tensor sample_ids;

  /// Throws Error naming the field when it is missing.
  const at::Tensor& at(const std::string& name) const;
  void add(std::string name, at::Tensor tensor);
  std::int64_t size() const;
  /// Samples [begin, begin + count), as views.
  Batch slice(std::int64_t begin, std::int64_t count) const;
  /// Copies to a device; non_blocking is honoured for pinned memory. sample_ids stay on the CPU.
  Batch to(c10::Device device, bool non_blocking = false) const;
};

}  // namespace cohort::parallel
