#include "weights/foreign_weights.h"

#include <algorithm>
#include <cctype>

#include <torch/types.h>

#include "core/format.h"
#include "core/log.h"

namespace cohort::weights {
namespace {

bool is_plain_float(at::ScalarType type) {
  return type == at::kHalf || type == at::kBFloat16 || type == at::kFloat || type == at::kDouble;
}

}  // namespace

std::string without_wrappers(const std::string& key) {
  std::string plain = key;
  for (const std::string wrapper : {"module.", "_orig_mod."}) {
    while (plain.starts_with(wrapper)) plain.erase(0, wrapper.size());
    for (std::size_t at; (at = plain.find("." + wrapper)) != std::string::npos;) plain.erase(at + 1, wrapper.size());
  }
  return plain;
}

bool may_convert(at::ScalarType from, at::ScalarType to) {
  return from == to || (is_plain_float(from) && is_plain_float(to));
}

std::string type_name(at::ScalarType type) {
  switch (type) {
    case at::kByte:
      return "uint8";
    case at::kChar:
      return "int8";
    case at::kShort:
      return "int16";
    case at::kInt:
      return "int32";
    case at::kLong:
      return "int64";
    case at::kHalf:
      return "float16";
    case at::kFloat:
      return "float32";
    case at::kDouble:
      return "float64";
    default: {
      std::string name = c10::toString(type);  // BFloat16, Bool, Float8_e4m3fn
      std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
      return name;
    }
  }
}

std::string type_difference(const std::string& name, at::ScalarType in_file, at::ScalarType in_model) {
  return format("{} is {} in the file and {} in the model", name, type_name(in_file), type_name(in_model));
}

void TakenOtherwise::name(const std::string& in_file, const std::string& own) {
  if (in_file == own) return;
  if (names_++ == 0) example_ = format("{} for {}", in_file, own);
}

void TakenOtherwise::type(at::ScalarType in_file, at::ScalarType own) {
  if (in_file == own) return;
  if (types_++ == 0) {
    from_ = type_name(in_file);
    to_ = type_name(own);
  }
}

void TakenOtherwise::say() const {
  if (names_ > 0)
    log::info(
        "{}: {} names hold the prefixes of torch.compile (_orig_mod.), DataParallel or DistributedDataParallel "
        "(module.), which were left out: {}",
        source_, names_, example_);
  if (types_ > 0) log::info("{}: {} tensors were converted from {} to {}", source_, types_, from_, to_);
}

}  // namespace cohort::weights
