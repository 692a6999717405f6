#include "parallel/module_layout.h"

#include <algorithm>
#include <sstream>
#include <unordered_set>

#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>
#include <torch/types.h>

#include "core/error.h"
#include "core/fnv.h"
#include "dist/group.h"

namespace cohort::parallel {
namespace {

bool produces_sparse_gradient(const torch::nn::Module& layer) {
  if (const auto* embedding = dynamic_cast<const torch::nn::EmbeddingImpl*>(&layer)) return embedding->options.sparse();
  if (const auto* bag = dynamic_cast<const torch::nn::EmbeddingBagImpl*>(&layer)) return bag->options.sparse();
  return false;
}

std::string shape_text(const at::Tensor& tensor) {
  std::string text;
  for (const std::int64_t n : tensor.sizes()) text += format("{}{}", text.empty() ? "" : ", ", n);
  std::string type(c10::toString(tensor.scalar_type()));
  return format("{} ({})", type, text);
}

/// One line per tensor: kind, name, type and shape, trainable or not.
std::vector<std::string> layout_lines(const torch::nn::Module& module) {
  std::vector<std::string> lines;
  for (const NamedTensor& p : parameters_of(module))
    lines.push_back(
        format("parameter\t{}\t{}{}", p.name, shape_text(p.tensor), p.tensor.requires_grad() ? "" : ", frozen"));
  for (const NamedTensor& b : buffers_of(module))
    lines.push_back(format("buffer\t{}\t{}", b.name, shape_text(b.tensor)));
  return lines;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

std::string difference(int rank, const std::vector<std::string>& theirs, const std::vector<std::string>& first) {
  for (std::size_t i = 0; i < std::max(theirs.size(), first.size()); ++i) {
    if (i < theirs.size() && i < first.size() && theirs[i] == first[i]) continue;
    if (i >= theirs.size() || i >= first.size()) {
      const auto missing = split(i < first.size() ? first[i] : theirs[i], '\t');
      return i < first.size()
                 ? format("rank {} has no {} '{}' ({} on rank 0)", rank, missing[0], missing[1], missing[2])
                 : format("rank {} has a {} '{}' ({}) that rank 0 has not", rank, missing[0], missing[1], missing[2]);
    }
    const auto a = split(theirs[i], '\t');
    const auto b = split(first[i], '\t');
    if (a[0] == b[0] && a[1] == b[1])
      return format("{} '{}' is {} on rank {}, but {} on rank 0", a[0], a[1], a[2], rank, b[2]);
    return format("where rank 0 has the {} '{}', {}, rank {} has the {} '{}', {}", b[0], b[1], b[2], rank, a[0], a[1],
                  a[2]);
  }
  return "";
}

std::vector<NamedTensor> without_duplicates(std::vector<NamedTensor> all) {
  std::unordered_set<const c10::TensorImpl*> seen;
  std::erase_if(all, [&](const NamedTensor& t) { return !seen.insert(t.tensor.unsafeGetTensorImpl()).second; });
  return all;
}

}  // namespace

std::vector<NamedTensor> parameters_of(const torch::nn::Module& module) {
  std::vector<NamedTensor> result;
  // named_modules starts with the module itself under the name "".
  for (const auto& layer : module.named_modules("", /*include_self=*/false)) {
    const bool sparse = produces_sparse_gradient(*layer.value());
    for (const auto& p : layer.value()->named_parameters(/*recurse=*/false))
      if (p.value().defined()) result.push_back({layer.key() + "." + p.key(), p.value(), sparse});
  }
  std::vector<NamedTensor> own;
  for (const auto& p : module.named_parameters(/*recurse=*/false))
    if (p.value().defined()) own.push_back({p.key(), p.value(), produces_sparse_gradient(module)});
  own.insert(own.end(), result.begin(), result.end());
  return without_duplicates(std::move(own));
}

std::vector<NamedTensor> buffers_of(const torch::nn::Module& module) {
  std::vector<NamedTensor> result;
  for (const auto& b : module.named_buffers())
    if (b.value().defined()) result.push_back({b.key(), b.value(), false});
  return without_duplicates(std::move(result));
}

std::vector<NamedTensor> changing_buffers_of(const torch::nn::Module& module,
                                             const std::vector<std::string>& constant) {
  std::vector<NamedTensor> result = buffers_of(module);
  std::erase_if(result, [&](const NamedTensor& b) {
    return std::any_of(constant.begin(), constant.end(),
                       [&](const std::string& ending) { return b.name.ends_with(ending); });
  });
  return result;
}

void check_on_device(const torch::nn::Module& module, c10::Device device) {
  const auto check = [&](const char* kind, const NamedTensor& t) {
    const c10::Device actual = t.tensor.device();
    const bool same = actual.type() == device.type() && (device.is_cpu() || actual.index() == device.index());
    COHORT_THROW_UNLESS(same,
                        "{} '{}' of the model lies on {}, but this process trains on {}; call model->to({}) first",
                        kind, t.name, actual.str(), device.str(), device.str());
  };
  for (const NamedTensor& p : parameters_of(module)) check("parameter", p);
  for (const NamedTensor& b : buffers_of(module)) check("buffer", b);
}

void check_same_layout(const torch::nn::Module& module, dist::Group& group) {
  std::string text;
  for (const std::string& line : layout_lines(module)) text += line + "\n";
  // Names can be many; as long as all agree, a digest of 8 bytes is all that travels.
  const std::uint64_t digest = fnv1a(text);
  const auto digests = group.all_gather_bytes(std::string(reinterpret_cast<const char*>(&digest), sizeof digest));
  if (std::all_of(digests.begin(), digests.end(), [&](const std::string& d) { return d == digests.front(); })) return;

  const auto layouts = group.all_gather_bytes(text);
  const auto first = split(layouts[0], '\n');
  for (std::size_t rank = 1; rank < layouts.size(); ++rank) {
    const std::string found = difference(static_cast<int>(rank), split(layouts[rank], '\n'), first);
    COHORT_THROW_UNLESS(found.empty(),
                        "the ranks' models differ: {}. All ranks must build the same model; compare their "
                        "configurations and code versions",
                        found);
  }
}

}  // namespace cohort::parallel
