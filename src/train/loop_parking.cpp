// When the job goes on with other ranks, since a node has come or gone (launch/recovery.h): this rank leaves the whole
// state of the training in its page, for the process that has the page in the next round. There the rank that has made
// most steps gives its state to the others, and no checkpoint is read.
//
// What only one rank has is made anew, as when a checkpoint is resumed by another number of processes: sums of losses
// are the mean of those that are known, buffers are the giver's, LibTorch's generators are seeded.
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/log.h"
#include "dist/group.h"
#include "parallel/module_layout.h"
#include "train/loop_impl.h"
#include "train/loop_standing.h"
#include "train/random_state.h"
#include "weights/checkpoint_folder.h"

namespace cohort::train {
namespace {

using config::Json;

/// What was parked: a JSON text behind its length, the tensors' bytes, and what was the rank's own.
struct ParkedState {
  Json head;  ///< step, after, hash, text, layout: [[name, type, sizes], ...], tensor_bytes
  std::string_view tensors, own;
};

std::optional<ParkedState> read_parked(const std::optional<std::string_view>& bytes) {
  std::uint64_t length = 0;
  if (!bytes || bytes->size() < sizeof length) return std::nullopt;
  std::memcpy(&length, bytes->data(), sizeof length);
  if (length > bytes->size() - sizeof length) return std::nullopt;
  ParkedState state{.head = Json::parse(bytes->substr(sizeof length, length)), .tensors = {}, .own = {}};
  const std::string_view rest = bytes->substr(sizeof length + length);
  state.tensors = rest.substr(0, state.head.at("tensor_bytes").get<std::size_t>());
  state.own = rest.substr(state.tensors.size());
  return state;
}

at::Tensor empty_for(const Json& entry) {
  return at::empty(entry.at(2).get<std::vector<std::int64_t>>(), static_cast<at::ScalarType>(entry.at(1).get<int>()));
}

}  // namespace

void TrainLoop::Impl::park() {
  parked = true;
  if (job.recovery->replaces() && !took_place) return;  // it has nothing yet
  const std::optional<std::string> own = job.recovery->kept(state.step);
  if (!own) return;
  weights::NamedTensors tensors;
  const std::string text = common_state(tensors);
  Json layout = Json::array();
  std::size_t bytes = 0;
  std::vector<at::Tensor> whole;
  for (const auto& [name, tensor] : tensors) {
    layout.push_back({name, static_cast<int>(tensor.scalar_type()), tensor.sizes().vec()});
    whole.push_back(tensor.contiguous());
    bytes += whole.back().nbytes();
  }
  const std::string head = Json{{"step", state.step}, {"after", after},   {"hash", hash_of(text, tensors)},
                                {"text", text},       {"layout", layout}, {"tensor_bytes", bytes}}
                               .dump();
  const std::uint64_t length = head.size();
  std::vector<std::string_view> pieces{{reinterpret_cast<const char*>(&length), sizeof length}, head};
  for (const at::Tensor& tensor : whole)
    if (tensor.nbytes() > 0) pieces.emplace_back(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
  pieces.emplace_back(*own);
  try {
    job.recovery->park(pieces);
    log::info("the job goes on with other ranks: the state after step {} stays in memory for them", state.step);
  } catch (const Error& problem) {
    log::warning("the job goes on with other ranks, from its last checkpoint: {}", problem.what());
  }
  if (writer) writer->wait();
}

/// Goes on from what ranks of the last round have parked. Collective; false on all ranks where there is nothing, or it
/// does not help.
bool TrainLoop::Impl::resume_parked() {
  if (!job.recovery || !job.recovery->may_find_parked()) return false;
  dist::Group* group = strategy.world_size() > 1 ? job.group : nullptr;
  const auto of_all = [&](const std::string& bytes) {
    return group ? group->all_gather_bytes(bytes) : std::vector<std::string>{bytes};
  };
  const std::optional<ParkedState> own = read_parked(job.recovery->parked());
  Standing standing;
  if (own) {
    standing.has_state = true;
    standing.step = own->head.at("step").get<std::int64_t>();
    standing.after = own->head.at("after").get<int>();
    standing.hash = own->head.at("hash").get<std::uint64_t>();
  }
  std::vector<Standing> ranks;
  for (const std::string& bytes : of_all(to_json(standing).dump())) ranks.push_back(standing_from(bytes));
  const int giver = giver_of(ranks);
  if (giver < 0) return false;
  const Standing chosen = ranks[static_cast<std::size_t>(giver)];
  const auto is_chosen = [&](const Standing& s) {
    return s.has_state && s.step == chosen.step && s.after == chosen.after;
  };
  const auto against = [&]() -> std::string {
    for (std::size_t r = 0; r < ranks.size(); ++r)
      if (is_chosen(ranks[r]) && ranks[r].hash != chosen.hash)
        return format("ranks {} and {} have different states after step {}", giver, r, chosen.step);
    if (writes_files)
      if (const auto steps = weights::CheckpointFolder(job.checkpoints).steps(); !steps.empty())
        if (const std::int64_t saved = *std::max_element(steps.begin(), steps.end()); saved > chosen.step)
          return format("there is a checkpoint of step {}, and memory has step {}", saved, chosen.step);
    return "";
  };
  for (const std::string& why : of_all(against()))
    if (!why.empty()) {
      log::warning("what the last round left in memory does not help: {}", why);
      return false;
    }

  const bool gives = strategy.rank() == giver;
  const auto from_giver = [&](std::string bytes) {
    return group ? group->broadcast_bytes(bytes, giver) : std::move(bytes);
  };
  const std::string text = from_giver(gives ? own->head.at("text").get<std::string>() : "");
  const Json layout = Json::parse(from_giver(gives ? own->head.at("layout").dump() : ""));
  const std::string own_of_giver = from_giver(gives ? std::string(own->own) : "");
  weights::NamedTensors received;
  Bytes bytes(gives ? own->tensors : std::string_view());
  for (const Json& entry : layout) {
    at::Tensor tensor = empty_for(entry);
    if (gives) bytes.take(tensor.mutable_data_ptr(), tensor.nbytes());
    if (group) group->broadcast(tensor, giver);
    received.emplace_back(entry.at(0).get<std::string>(), tensor);
  }
  std::string problem;
  if (hash_of(text, received) != chosen.hash) problem = "what arrived is not what was sent";
  for (const std::string& of_rank : of_all(problem))
    COHORT_THROW_UNLESS(of_rank.empty(), "the state of another rank could not be taken over: {}", of_rank);

  load_common_state(text, received);
  after = chosen.after;
  resumed_from = state.step;
  Bytes its(own_of_giver);
  weights::LossSums sums;
  double samples = 0.0;
  its.take(&sums, sizeof sums);
  its.take(&samples, sizeof samples);
  weights::NamedTensors generators = random_state(device);
  for (auto& [name, tensor] : generators) its.take(tensor);
  {
    const at::NoGradGuard no_grad;
    for (const auto& buffer : parallel::changing_buffers_of(module, job.constant_buffers)) {
      at::Tensor of_model = buffer.tensor;
      its.take(of_model);
    }
  }
  its.end();
  const std::size_t known = sizeof sums + sizeof samples;
  std::vector<weights::LossSums> all_sums;
  interval_samples = 0.0;
  for (const std::string& of_rank :
       of_all(own && is_chosen(standing) ? std::string(own->own.substr(0, known)) : std::string())) {
    if (of_rank.empty()) continue;
    std::memcpy(&all_sums.emplace_back(), of_rank.data(), sizeof sums);
    std::memcpy(&samples, of_rank.data() + sizeof sums, sizeof samples);
    interval_samples += samples / strategy.world_size();
  }
  weights::LossSums mean;
  for (const weights::LossSums& s : all_sums) {
    const double share = 1.0 / static_cast<double>(all_sums.size());
    mean.interval_sum += s.interval_sum * share;
    mean.interval_count += s.interval_count * share;
    mean.epoch_sum += s.epoch_sum * share;
    mean.epoch_count += s.epoch_count * share;
  }
  monitor.restore(mean);
  if (after >= kReported && state.step % settings.log_every == 0) {
    monitor.begin_interval();
    interval_samples = 0.0;
  }
  seed_rank(settings.seed, strategy.rank(), state.step);
  strategy.parameters_changed();
  job.recovery->drop_parked();
  log::info("going on with {} process(es) from memory: step {}, epoch {}, {} samples into it; no checkpoint is read",
            strategy.world_size(), state.step, state.epoch, state.samples_in_epoch);
  return true;
}

}  // namespace cohort::train
