#include "models/fixture.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "core/files.h"
#include "core/format.h"
#include "core/json_text.h"

namespace cohort::models {

const at::Tensor& Fixture::at(const std::string& name) const {
  const auto found = tensors.find(name);
  COHORT_CHECK(found != tensors.end(), "the fixture has no tensor {}", name);
  return found->second;
}

std::map<std::string, at::Tensor> Fixture::under(const std::string& prefix) const {
  std::map<std::string, at::Tensor> found;
  for (const auto& [name, tensor] : tensors)
    if (name.starts_with(prefix)) found.emplace(name.substr(prefix.size()), tensor);
  return found;
}

Fixture read_safetensors(const std::string& path) {
  // u64 header length, JSON header {name: {dtype, shape, data_offsets}}, data.
  const std::string file = read_file(path);
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data(), sizeof header_bytes);
  const auto header = parse_json<nlohmann::ordered_json>(file.substr(sizeof header_bytes, header_bytes));
  const char* data = file.data() + sizeof header_bytes + header_bytes;
  Fixture fixture;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      fixture.metadata = entry;
      continue;
    }
    const std::string type = entry.at("dtype");
    COHORT_CHECK(type == "F32" || type == "I64", "{}: no reader for {}", name, type);
    const auto shape = entry.at("shape").get<std::vector<std::int64_t>>();
    const auto begin = entry.at("data_offsets")[0].get<std::size_t>(),
               end = entry.at("data_offsets")[1].get<std::size_t>();
    at::Tensor tensor = at::empty(shape, type == "F32" ? at::kFloat : at::kLong);
    COHORT_CHECK(tensor.nbytes() == end - begin, "{}: size and shape differ", name);
    std::memcpy(tensor.mutable_data_ptr(), data + begin, end - begin);
    fixture.tensors.emplace(name, tensor);
  }
  return fixture;
}

Fixture read_fixture(const std::string& name) {
  return read_safetensors(format(COHORT_SOURCE_DIR "/tests/models/fixtures/{}.safetensors", name));
}

std::map<std::string, at::Tensor> state_of(const torch::nn::Module& module) {
  std::map<std::string, at::Tensor> state;
  for (const auto& item : module.named_parameters()) state.emplace(item.key(), item.value());
  for (const auto& item : module.named_buffers()) state.emplace(item.key(), item.value());
  return state;
}

void load_state(torch::nn::Module& module, const std::map<std::string, at::Tensor>& values) {
  const at::NoGradGuard no_grad;
  const auto state = state_of(module);
  for (const auto& [name, value] : values) {
    const auto found = state.find(name);
    COHORT_CHECK(found != state.end(), "the model has no {}", name);
    COHORT_CHECK(found->second.sizes() == value.sizes(), "{} has another shape", name);
    at::Tensor target = found->second;
    target.copy_(value);
  }
}

double relative_difference(const at::Tensor& a, const at::Tensor& b, double floor) {
  COHORT_CHECK(a.sizes() == b.sizes(), "shapes differ: {} and {}", c10::str(a.sizes()), c10::str(b.sizes()));
  if (a.numel() == 0) return 0.0;
  const double difference = (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
  const double scale = std::max(floor, b.to(at::kDouble).abs().max().item<double>());
  return difference == difference ? difference / scale : std::numeric_limits<double>::infinity();
}

}  // namespace cohort::models
