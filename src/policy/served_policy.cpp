#include "policy/served_policy.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace cohort::policy {
namespace {

class TrainedSession final : public serve::Session {
 public:
  TrainedSession(TrainedPolicy policy, const serve::PolicyInfo& info) : policy_(std::move(policy)), info_(info) {}

  void begin(std::uint64_t seed) override {
    policy_.end(episode_);
    episode_ = seed;
    since_ = 0;
    policy_.begin(episode_);
  }

  void see(const serve::Frame& frame, const std::string& prompt) override {
    // One by one come the frames of all control steps, of which the policy looks at every stride-th.
    if (since_++ % info_.stride != 0) return;
    show(frame, prompt, [&](const PolicyFrame& shown) { policy_.see(episode_, shown); });
  }

  std::vector<float> act(std::span<const serve::Frame> frames, const std::string& prompt) override {
    for (const serve::Frame& frame : frames.first(frames.size() - 1))
      show(frame, prompt, [&](const PolicyFrame& shown) { policy_.see(episode_, shown); });
    std::vector<float> decided;
    show(frames.back(), prompt, [&](const PolicyFrame& shown) { decided = policy_.act_ahead(episode_, shown); });
    since_ = 1;
    if (info_.stride == 1) return decided;
    std::vector<float> held;
    for (std::ptrdiff_t at = 0; at < std::ssize(decided); at += info_.action_width)
      for (std::int64_t i = 0; i < info_.stride; ++i)
        held.insert(held.end(), decided.begin() + at, decided.begin() + at + info_.action_width);
    return held;
  }

 private:
  template <class Use>
  void show(const serve::Frame& frame, const std::string& prompt, const Use& use) {
    std::vector<ArrayView> pictures;
    for (const serve::Picture& picture : frame.pictures)
      pictures.push_back(make_view(const_cast<std::uint8_t*>(picture.rgb.data()),
                                   {1, picture.height, picture.width, 3}));  // only read
    PolicyFrame shown{.low_dim = frame.numbers, .images = pictures};
    if (info_.prompt || !prompt.empty()) shown.instructions = {policy_.takes_instructions() ? prompt : std::string()};
    use(shown);
  }

  TrainedPolicy policy_;
  const serve::PolicyInfo& info_;
  std::uint64_t episode_ = 0;
  std::int64_t since_ = 0;  // frames since the last decision, that one included
};

class ServedTrainedPolicy final : public serve::Policy {
 public:
  ServedTrainedPolicy(TrainedPolicy policy, double control_frequency) : policy_(std::move(policy)) {
    if (control_frequency > 0) policy_.act_every(1 / control_frequency);
    COHORT_THROW_UNLESS(policy_.frequencies_to_choose().empty(),
                        "the policy learnt data of {} Hz: say at which of them its actions are executed, "
                        "--control-frequency HZ",
                        policy_.frequencies_to_choose());
    info_.summary = policy_.summary();
    const std::vector<std::string>& names = policy_.low_dim_components();
    const std::vector<std::int64_t> widths = policy_.low_dim_widths();
    for (std::size_t i = 0; i < names.size(); ++i)
      info_.observations.push_back({.name = names[i], .shape = {widths.at(i)}, .picture = false});
    const std::vector<int>& size = policy_.pictures().size;
    for (const std::string& camera : policy_.cameras())
      info_.observations.push_back({.name = camera,
                                    .shape = size.size() == 2 ? std::vector<std::int64_t>{size[0], size[1], 3}
                                                              : std::vector<std::int64_t>{-1, -1, 3},
                                    .picture = true});
    info_.prompt = policy_.takes_instructions() && policy_.own_instruction().empty();
    info_.action_names = policy_.action_components();
    info_.action_width = policy_.action_width();
    info_.stride = policy_.stride();
    info_.frames = policy_.frames();
    info_.chunk = policy_.chunk() * info_.stride;
    info_.control_frequency = control_frequency;
    info_.renderer = policy_.pictures().renderer;
  }

  const serve::PolicyInfo& info() const override { return info_; }
  std::unique_ptr<serve::Session> new_session() override {
    return std::make_unique<TrainedSession>(policy_.another(), info_);
  }

 private:
  TrainedPolicy policy_;
  serve::PolicyInfo info_;
};

}  // namespace

std::unique_ptr<serve::Policy> serve_policy(TrainedPolicy policy, double control_frequency) {
  return std::make_unique<ServedTrainedPolicy>(std::move(policy), control_frequency);
}

}  // namespace cohort::policy
