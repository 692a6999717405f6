// When the job goes on with other ranks, since a node has come or gone (launch/recovery.h): this rank leaves the whole
// state of the training in its page, for the process that has the page in the next round. There the rank that has made
// most steps gives its state to the others, and no checkpoint is read.
//
// What only one rank has is made anew, as when a checkpoint is resumed by another number of processes: sums of losses
// are the mean of those that are known, buffers are the source's, LibTorch's generators are seeded.
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "core/json_text.h"
#include "core/log.h"
#include "dist/group.h"
#include "train/memory_recovery.h"
#include "train/random_state.h"
#include "weights/checkpoint_folder.h"

namespace cohort::train {
namespace {

using config::Json;

/// In the page: the head, a JSON text behind its length; the image's tensors; the rank's own state.
struct ParkedState {
  Progress progress;
  std::string text, layout;  // of a StateImage
  std::string_view tensors, own;
};

std::optional<ParkedState> read_parked(const std::optional<std::string_view>& bytes) {
  std::uint64_t length = 0;
  if (!bytes || bytes->size() < sizeof length) return std::nullopt;
  std::memcpy(&length, bytes->data(), sizeof length);
  if (length > bytes->size() - sizeof length) return std::nullopt;
  const Json head = parse_json<Json>(bytes->substr(sizeof length, length));
  const std::string_view rest = bytes->substr(sizeof length + length);
  const auto tensor_bytes = head.at("tensor_bytes").get<std::size_t>();
  return ParkedState{.progress = progress_from(head.at("progress")),
                     .text = head.at("text"),
                     .layout = head.at("layout"),
                     .tensors = rest.substr(0, tensor_bytes),
                     .own = rest.substr(tensor_bytes)};
}

StateImage image_of(const ParkedState& parked) {
  StateImage image = StateImage::with_layout(parked.text, parked.layout);
  std::string_view rest = parked.tensors;
  for (auto& [name, tensor] : image.tensors) {
    COHORT_THROW_UNLESS(rest.size() >= tensor.nbytes(), "what the last round left in memory ends before '{}'", name);
    std::memcpy(tensor.mutable_data_ptr(), rest.data(), tensor.nbytes());
    rest.remove_prefix(tensor.nbytes());
  }
  return image;
}

}  // namespace

void TrainLoop::MemoryRecovery::park() {
  if (!has_state_) return;
  const std::optional<std::string> own = page_.kept(loop_.state.step);
  if (!own) return;
  StateImage image = loop_.image();
  std::size_t bytes = 0;
  for (auto& [name, tensor] : image.tensors) {
    tensor = tensor.contiguous();
    bytes += tensor.nbytes();
  }
  const Progress progress{true, loop_.state.step, loop_.state.after_step, image.hash()};
  const std::string head = json_text(
      Json{{"progress", to_text(progress)}, {"text", image.text}, {"layout", image.layout()}, {"tensor_bytes", bytes}});
  const std::uint64_t length = head.size();
  std::vector<std::string_view> pieces{{reinterpret_cast<const char*>(&length), sizeof length}, head};
  for (const auto& [name, tensor] : image.tensors)
    if (tensor.nbytes() > 0) pieces.emplace_back(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
  pieces.emplace_back(*own);
  try {
    page_.park(pieces);
    log::info("the job goes on with other ranks: the state after step {} stays in memory for them", loop_.state.step);
  } catch (const Error& problem) {
    log::warning("the job goes on with other ranks, from its last checkpoint: {}", problem.what());
  }
  if (loop_.writer) loop_.writer->wait();
}

bool TrainLoop::MemoryRecovery::resume_parked() {
  if (!page_.may_find_parked()) return false;
  const parallel::Strategy& strategy = loop_.strategy;
  dist::Group* group = strategy.world_size() > 1 ? loop_.job.group : nullptr;
  const auto of_all = [&](const std::string& bytes) {
    return group ? group->all_gather_bytes(bytes) : std::vector<std::string>{bytes};
  };
  const std::optional<ParkedState> parked = read_parked(page_.parked());
  const Progress mine = parked ? parked->progress : Progress();
  std::vector<Progress> ranks;
  for (const std::string& text : of_all(to_text(mine))) ranks.push_back(progress_from(text));
  const int source = source_rank(ranks);
  if (source < 0) return false;
  const Progress chosen = ranks[static_cast<std::size_t>(source)];
  const auto against = [&]() -> std::string {
    for (std::size_t r = 0; r < ranks.size(); ++r)
      if (ranks[r].same_point(chosen) && ranks[r].hash != chosen.hash)
        return format("ranks {} and {} have different states after step {}", source, r, chosen.step);
    if (loop_.writes_files)
      if (const auto steps = weights::CheckpointFolder(loop_.job.checkpoints).steps(); !steps.empty())
        if (const std::int64_t saved = *std::max_element(steps.begin(), steps.end()); saved > chosen.step)
          return format("there is a checkpoint of step {}, and memory has step {}", saved, chosen.step);
    return "";
  };
  for (const std::string& why : of_all(against()))
    if (!why.empty()) {
      log::warning("what the last round left in memory does not help: {}", why);
      return false;
    }

  std::optional<StateImage> image;
  if (strategy.rank() == source) image = image_of(*parked);
  const StateImage received = broadcast(group, source, image ? &*image : nullptr);
  const std::string problem = received.hash() == chosen.hash ? "" : "what arrived is not what was sent";
  for (const std::string& of_rank : of_all(problem))
    COHORT_THROW_UNLESS(of_rank.empty(), "the state of another rank could not be taken over: {}", of_rank);
  loop_.load(received);
  TrainState& state = loop_.state;
  state.after_step = chosen.after_step;
  state.resumed_from = state.step;

  const RankState like = loop_.rank_state({}, 0);
  std::vector<weights::LossSums> sums;
  double samples = 0.0;
  RankState own;
  const auto of_ranks = of_all(parked && mine.same_point(chosen) ? std::string(parked->own) : std::string());
  for (std::size_t r = 0; r < of_ranks.size(); ++r) {
    if (of_ranks[r].empty()) continue;
    RankState of_rank = rank_state_from(of_ranks[r], like);
    sums.push_back(of_rank.loss_sums);
    samples += of_rank.interval_samples / strategy.world_size();
    if (static_cast<int>(r) == source) own = std::move(of_rank);
  }
  own.loss_sums = mean_of(sums);
  own.interval_samples = samples;
  loop_.restore(own);
  seed_rank(loop_.settings.seed, strategy.rank(), state.step);
  page_.drop_parked();
  log::info("going on with {} process(es) from memory: step {}, epoch {}, {} samples into it; no checkpoint is read",
            strategy.world_size(), state.step, state.epoch, state.samples_in_epoch);
  return true;
}

}  // namespace cohort::train
