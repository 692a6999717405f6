#include "run/banner.h"

#include <nlohmann/json.hpp>

#include <torch/nn/module.h>

#include "core/format.h"
#include "core/typed_text.h"
#include "tensors/convert.h"
#include "weights/named_tensors.h"

namespace cohort::run {
namespace {

/// 11330055 -> "11,330,055".
std::string with_commas(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (std::ptrdiff_t place = static_cast<std::ptrdiff_t>(digits.size()) - 3; place > 0; place -= 3)
    digits.insert(static_cast<std::size_t>(place), ",");
  return digits;
}

/// "train.lr=0.001", "data.columns.inputs=[a,b]", ... of a section, in its order.
void collect_settings(const config::Json& json, const std::string& path, std::vector<std::string>& out) {
  if (!json.is_object()) {
    out.push_back(path + "=" + typed_text(json));
    return;
  }
  for (const auto& [key, value] : json.items()) collect_settings(value, path + "." + key, out);
}

}  // namespace

std::vector<std::string> settings_lines(const config::Json& configuration) {
  constexpr std::size_t kWidth = 110;
  std::vector<std::string> lines;
  bool in_section = true;  // settings of the top level share lines
  for (const auto& [key, value] : configuration.items()) {
    std::vector<std::string> words;
    collect_settings(value, key, words);
    bool new_line = lines.empty() || value.is_object() || in_section;
    in_section = value.is_object();
    for (const std::string& word : words) {
      new_line = new_line || lines.back().size() + 1 + word.size() > kWidth;
      if (new_line) {
        lines.push_back(word);
      } else {
        lines.back() += " " + word;
      }
      new_line = false;
    }
  }
  return lines;
}

std::string describe_model(const torch::nn::Module& model) {
  std::int64_t count = 0;
  double bytes = 0;
  for (const auto& [name, tensor] : weights::trainable_parameters(model)) {
    count += tensor.numel();
    bytes += static_cast<double>(tensor.nbytes());
  }
  return format("{} parameters ({})", with_commas(count), format_bytes(bytes));
}

std::string device_names(const std::vector<DeviceId>& devices) {
  std::string names;
  for (const DeviceId device : devices) names += (names.empty() ? "" : ", ") + tensors::to_torch_device(device).str();
  return names;
}

std::vector<int> cuda_indices(const std::vector<DeviceId>& devices) {
  std::vector<int> indices;
  for (const DeviceId device : devices)
    if (device.kind == DeviceKind::kCuda) indices.push_back(device.index);
  return indices;
}

}  // namespace cohort::run
