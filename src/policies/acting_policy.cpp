#include "policies/acting_policy.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.h"
#include "dist/usable_devices.h"
#include "policy/registry.h"

namespace cohort::policies {
namespace {

class TrainedSession final : public policy::Session {
 public:
  explicit TrainedSession(TrainedPolicy policy) : policy_(std::move(policy)) {}

  /// The policy's environments are called by the seeds of their episodes.
  void begin(std::span<const std::int32_t> environments, std::span<const std::uint64_t> seeds,
             const std::string& instruction) override {
    for (const std::int32_t environment : environments) {
      const auto at = static_cast<std::size_t>(environment);
      if (at >= seeds_.size()) seeds_.resize(at + 1);
      if (seeds_[at]) policy_.end(*seeds_[at]);
    }
    for (std::size_t i = 0; i < environments.size(); ++i) {
      seeds_[static_cast<std::size_t>(environments[i])] = seeds[i];
      policy_.begin(seeds[i], policy_.takes_instructions() ? instruction : "");
    }
  }

  void see(std::span<const std::int32_t> environments, const policy::Frame& frame) override {
    policy_.see(seeds_of(environments), understood(frame));
  }

  std::vector<std::vector<float>> act(std::span<const std::int32_t> environments, const policy::Frame& frame) override {
    const std::vector<float> decided = policy_.act_ahead(seeds_of(environments), understood(frame));
    const std::size_t width = static_cast<std::size_t>(policy_.action_width()),
                      rows = decided.size() / width / environments.size();
    std::vector<std::vector<float>> chunks(environments.size());
    auto row = decided.begin();
    for (std::vector<float>& chunk : chunks)
      for (std::size_t r = 0; r < rows; ++r, row += static_cast<std::ptrdiff_t>(width))
        for (int held = 0; held < policy_.stride(); ++held)
          chunk.insert(chunk.end(), row, row + static_cast<std::ptrdiff_t>(width));
    return chunks;
  }

 private:
  std::vector<std::uint64_t> seeds_of(std::span<const std::int32_t> environments) const {
    std::vector<std::uint64_t> seeds;
    for (const std::int32_t environment : environments)
      seeds.push_back(seeds_.at(static_cast<std::size_t>(environment)).value());
    return seeds;
  }
  policy::Frame understood(policy::Frame frame) const {
    if (!policy_.takes_instructions()) frame.instructions.clear();
    return frame;
  }

  TrainedPolicy policy_;
  std::vector<std::optional<std::uint64_t>> seeds_;  ///< of the episodes, by environment
};

class ActingPolicy final : public policy::Policy {
 public:
  ActingPolicy(TrainedPolicy policy, const std::string& settings) : policy_(std::move(policy)) {
    spec_.summary = policy_.summary();
    spec_.identity = settings.empty() ? spec_.summary : format("{}, {}", spec_.summary, settings);
    for (const data::RecordedField& field : policy_.low_dim_fields())
      spec_.observations.push_back(
          {.name = field.name, .shape = {field.width}, .picture = false, .elements = field.elements});
    const std::vector<int>& size = policy_.pictures().size;
    for (const std::string& camera : policy_.cameras())
      spec_.observations.push_back({.name = camera,
                                    .shape = size.size() == 2 ? std::vector<std::int64_t>{size[0], size[1], 3}
                                                              : std::vector<std::int64_t>{-1, -1, 3},
                                    .picture = true});
    spec_.instructed = policy_.takes_instructions() && policy_.own_instruction().empty();
    for (const data::RecordedField& field : policy_.action_fields()) spec_.action_fields.push_back(field.name);
    spec_.one_way_actions = policy_.one_way_actions();
    spec_.action_width = policy_.action_width();
    spec_.stride = policy_.stride();
    spec_.frames = policy_.frames();
    spec_.remembers = policy_.remembers();
    spec_.chunk = policy_.chunk() * spec_.stride;
    spec_.renderer = policy_.pictures().renderer;
    spec_.exact = policy_.exact();
  }

  const policy::Spec& spec() const override { return spec_; }
  std::unique_ptr<policy::Session> session(const policy::SessionSettings& settings) override {
    TrainedPolicy another = policy_.another();
    if (settings.control_period > 0) another.act_every(settings.control_period);
    COHORT_THROW_UNLESS(another.frequencies_to_choose().empty(),
                        "the policy learnt data of {} Hz: say at which of them its actions are executed, "
                        "--control-frequency HZ",
                        another.frequencies_to_choose());
    return std::make_unique<TrainedSession>(std::move(another));
  }

 private:
  TrainedPolicy policy_;
  policy::Spec spec_;
};

std::unique_ptr<policy::Policy> load(const std::string& path, const policy::LoadSettings& settings) {
  std::string text = format("seed {}", settings.seed);
  for (const std::string& one : settings.overrides) text += ", " + one;
  if (!settings.data_set.empty()) text += ", statistics of " + settings.data_set;
  dist::check_device(parse_device(settings.device));
  return acting_policy(TrainedPolicy(path, settings), text);
}

}  // namespace

std::unique_ptr<policy::Policy> acting_policy(TrainedPolicy policy, const std::string& settings) {
  return std::make_unique<ActingPolicy>(std::move(policy), settings);
}

void register_trained_policies() {
  policy::register_kind({.name = "a run or checkpoint of a policy",
                         .claims = [](const std::string& where) { return where.find("://") == std::string::npos; },
                         .load = load});
}

}  // namespace cohort::policies
