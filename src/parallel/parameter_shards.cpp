#include "parallel/parameter_shards.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/json_text.h"
#include "tensors/convert.h"

namespace cohort::parallel {
namespace {

constexpr std::size_t kMessageBytes = 250 * 1024 * 1024;
constexpr std::size_t kPieceBytes = 1024 * 1024;  // of a rank, that go through shared memory at a time
constexpr const char* kSharing = "the exchange of updated parameters";

/// The bytes of a rank's tensors, one after the other.
class ByteStream {
 public:
  void add(const at::Tensor& tensor) {
    parts_.push_back({static_cast<char*>(tensor.mutable_data_ptr()), tensor.nbytes()});
    left_ += tensor.nbytes();
  }
  std::size_t left() const { return left_; }
  /// The next `size` bytes to `out`, or from `in`.
  void read(std::byte* out, std::size_t size) {
    move(size, [&](char* data, std::size_t n) {
      std::memcpy(out, data, n);
      out += n;
    });
  }
  void write(const std::byte* in, std::size_t size) {
    move(size, [&](char* data, std::size_t n) {
      std::memcpy(data, in, n);
      in += n;
    });
  }

 private:
  struct Part {
    char* data;
    std::size_t size;
  };
  template <class Copy>
  void move(std::size_t size, const Copy& copy) {
    left_ -= size;
    while (size > 0) {
      Part& part = parts_[next_];
      const std::size_t n = std::min(size, part.size);
      copy(part.data, n);
      part.data += n;
      part.size -= n;
      size -= n;
      if (part.size == 0) ++next_;
    }
  }
  std::vector<Part> parts_;
  std::size_t next_ = 0, left_ = 0;
};

}  // namespace

std::vector<int> owners_of(const std::vector<std::int64_t>& elements, int ranks) {
  std::vector<int> owners(elements.size());
  std::vector<std::int64_t> given(static_cast<std::size_t>(ranks), 0);
  std::vector<std::size_t> order(elements.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return elements[a] > elements[b]; });
  for (const std::size_t i : order) {
    const auto least = std::min_element(given.begin(), given.end());
    *least += elements[i];
    owners[i] = static_cast<int>(least - given.begin());
  }
  return owners;
}

ParameterShards::ParameterShards(const std::vector<NamedTensor>& parameters, std::shared_ptr<dist::Group> group,
                                 bool through_sockets)
    : group_(std::move(group)), elements_(static_cast<std::size_t>(group_->world_size()), 0) {
  for (const NamedTensor& p : parameters)
    if (p.tensor.requires_grad()) parameters_.push_back(p);
  std::vector<std::int64_t> sizes;
  for (const NamedTensor& p : parameters_) sizes.push_back(p.tensor.numel());
  owners_ = owners_of(sizes, group_->world_size());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    elements_[static_cast<std::size_t>(owners_[i])] += sizes[i];
    owner_of_[parameters_[i].tensor.unsafeGetTensorImpl()] = owners_[i];
  }
  const bool on_cpu = group_->options().device.kind == DeviceKind::kCpu;
  if (on_cpu && !through_sockets && group_->world_size() > 1)
    memory_ = dist::NodeMemory::open(*group_, 2 * kPieceBytes);
}

int ParameterShards::owner(const at::Tensor& parameter) const {
  const auto found = owner_of_.find(parameter.unsafeGetTensorImpl());
  COHORT_CHECK(found != owner_of_.end(), "a tensor that is no trained parameter has no owner");
  return found->second;
}

void ParameterShards::share(const std::vector<at::Tensor>& tensors, const std::vector<int>& owners) const {
  COHORT_CHECK(tensors.size() == owners.size(), "{} tensors of {} owners", tensors.size(), owners.size());
  if (group_->world_size() == 1) return;
  const at::NoGradGuard no_grad;
  if (memory_) return share_in_memory(tensors, owners);
  try {
    for (int rank = 0; rank < group_->world_size(); ++rank) {
      std::vector<at::Tensor> of_rank;
      for (std::size_t i = 0; i < tensors.size(); ++i)
        if (owners[i] == rank) of_rank.push_back(tensors[i].detach());
      if (!of_rank.empty()) c10d::broadcast_coalesced(group_->process_group(), of_rank, kMessageBytes, rank);
    }
  } catch (const std::exception& problem) {
    if (dist::Group::is_communication_failure(problem)) throw group_->explain(problem, kSharing);
    throw;
  }
}

/// Each rank lays the next piece of its tensors down; all take the others'. Two places are used in turn: who lays down
/// piece k + 2 knows by meeting k + 1 that all have taken piece k.
void ParameterShards::share_in_memory(const std::vector<at::Tensor>& tensors, const std::vector<int>& owners) const {
  const int own = group_->rank();
  std::vector<ByteStream> streams(static_cast<std::size_t>(group_->world_size()));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    COHORT_CHECK(tensors[i].is_non_overlapping_and_dense(), "a tensor with gaps cannot be shared");
    streams[static_cast<std::size_t>(owners[i])].add(tensors[i]);
  }
  std::size_t longest = 0;
  for (const ByteStream& stream : streams) longest = std::max(longest, stream.left());
  for (std::size_t piece = 0; piece * kPieceBytes < longest; ++piece) {
    const auto place = [&](int rank) { return memory_->part(rank) + (piece % 2) * kPieceBytes; };
    ByteStream& mine = streams[static_cast<std::size_t>(own)];
    mine.read(place(own), std::min(kPieceBytes, mine.left()));
    memory_->meet(kSharing);
    for (int rank = 0; rank < group_->world_size(); ++rank) {
      ByteStream& theirs = streams[static_cast<std::size_t>(rank)];
      if (rank != own) theirs.write(place(rank), std::min(kPieceBytes, theirs.left()));
    }
  }
  // What comes next through this memory may use either place.
  if (longest > 0) memory_->meet(kSharing);
}

void ParameterShards::share_parameters() const {
  std::vector<at::Tensor> tensors;
  for (const NamedTensor& p : parameters_) tensors.push_back(p.tensor.detach());
  share(tensors, owners_);
}

ParameterShards::Named ParameterShards::collect(const Named& own) const {
  if (group_->world_size() == 1) return own;
  const at::NoGradGuard no_grad;
  using Json = nlohmann::json;
  Json layout = Json::array();
  for (const auto& [name, tensor] : own)
    layout.push_back({name, static_cast<int>(tensor.scalar_type()), tensor.sizes().vec()});
  const std::vector<std::string> layouts = group_->all_gather_bytes(json_text(layout));
  const bool keeps = group_->rank() == 0;
  Named all = keeps ? own : Named();
  for (int rank = 1; rank < group_->world_size(); ++rank) {
    const Json theirs = parse_json<Json>(layouts[static_cast<std::size_t>(rank)]);
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      const bool gives = group_->rank() == rank;
      const auto options = at::TensorOptions()
                               .dtype(static_cast<at::ScalarType>(theirs[i].at(1).get<int>()))
                               .device(tensors::to_torch_device(group_->options().device));
      at::Tensor tensor = gives ? own[i].second.detach().contiguous()
                                : at::empty(theirs[i].at(2).get<std::vector<std::int64_t>>(), options);
      group_->broadcast(tensor, rank);
      if (keeps) all.emplace_back(theirs[i].at(0).get<std::string>(), tensor.cpu());
    }
  }
  return all;
}

void ParameterShards::sum(at::Tensor& values) const {
  group_->all_reduce(values, dist::Reduction::kSum);
}

}  // namespace cohort::parallel
