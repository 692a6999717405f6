#include "parallel/batch.h"

#include <torch/types.h>

#include "core/error.h"

namespace cohort::parallel {

const at::Tensor& Batch::at(const std::string& name) const {
  for (const auto& [key, tensor] : fields)
    if (key == name) return tensor;
  std::string known;
  for (const auto& [key, tensor] : fields) known += (known.empty() ? "" : ", ") + key;
  throw Error(format("the batch has no field '{}'; it has {}", name, known));
}

void Batch::add(std::string name, at::Tensor tensor) {
  COHORT_THROW_UNLESS(fields.empty() || tensor.size(0) == size(), "field '{}' holds {} samples, the batch {}", name,
                      tensor.size(0), size());
  fields.emplace_back(std::move(name), std::move(tensor));
}

std::int64_t Batch::size() const {
  return fields.empty() ? 0 : fields.front().second.size(0);
}

Batch Batch::slice(std::int64_t begin, std::int64_t count) const {
  Batch part;
  for (const auto& [key, tensor] : fields) part.fields.emplace_back(key, tensor.narrow(0, begin, count));
  if (sample_ids.defined()) part.sample_ids = sample_ids.narrow(0, begin, count);
  return part;
}

Batch Batch::to(c10::Device device, bool non_blocking) const {
  Batch moved;
  for (const auto& [key, tensor] : fields) moved.fields.emplace_back(key, tensor.to(device, non_blocking));
  moved.sample_ids = sample_ids;
  return moved;
}

}  // namespace cohort::parallel
