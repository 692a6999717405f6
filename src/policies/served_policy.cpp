#include "policies/served_policy.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/fnv.h"

namespace cohort::policies {
namespace {

class TrainedSession final : public serve::Session {
 public:
  TrainedSession(TrainedPolicy policy, const serve::PolicyInfo& info) : policy_(std::move(policy)), info_(info) {}

  void begin(std::uint64_t seed) override {
    policy_.end(episode_);
    for (const std::uint64_t robot : others_) policy_.end(robot);
    others_.clear();
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

  std::vector<float> act_each(std::span<const serve::Frame> robots, const std::string& prompt) override {
    // Each under a number of its own, so that what is drawn at random differs; the first is who asks alone.
    std::vector<std::uint64_t> places;
    PolicyFrame shown;
    std::vector<float> numbers;
    for (std::size_t i = 0; i < robots.size(); ++i) {
      places.push_back(i == 0 ? episode_ : mixed(episode_, i));
      if (i > others_.size()) others_.push_back(places.back());
      numbers.insert(numbers.end(), robots[i].numbers.begin(), robots[i].numbers.end());
      if (info_.prompt || !prompt.empty())
        shown.instructions.push_back(policy_.takes_instructions() ? prompt : std::string());
    }
    shown.low_dim = numbers;
    std::vector<std::vector<std::uint8_t>> pixels(robots.front().pictures.size());
    std::vector<ArrayView> pictures;
    for (std::size_t camera = 0; camera < pixels.size(); ++camera) {
      const serve::Picture& first = robots.front().pictures[camera];
      for (const serve::Frame& robot : robots)
        pixels[camera].insert(pixels[camera].end(), robot.pictures[camera].rgb.begin(),
                              robot.pictures[camera].rgb.end());
      pictures.push_back(make_view(pixels[camera].data(), {std::ssize(robots), first.height, first.width, 3}));
    }
    shown.images = pictures;
    std::vector<float> decided = policy_.act_ahead(places, shown);
    if (info_.stride == 1) return decided;
    std::vector<float> held;
    for (std::ptrdiff_t at = 0; at < std::ssize(decided); at += info_.action_width)
      for (std::int64_t i = 0; i < info_.stride; ++i)
        held.insert(held.end(), decided.begin() + at, decided.begin() + at + info_.action_width);
    return held;
  }

 private:
  /// A number of robot `i` that no episode of a client is likely to have.
  static std::uint64_t mixed(std::uint64_t episode, std::size_t i) {
    return fnv1a_of(static_cast<std::uint64_t>(i), fnv1a_of(episode, kFnvBegin));
  }

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
  std::vector<std::uint64_t> others_;  // numbers of the robots behind the first one, where several are answered
  std::int64_t since_ = 0;             // frames since the last decision, that one included
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
    for (const data::RecordedField& field : policy_.low_dim_fields())
      info_.observations.push_back(
          {.name = field.name, .shape = {field.width}, .picture = false, .elements = field.elements});
    const std::vector<int>& size = policy_.pictures().size;
    for (const std::string& camera : policy_.cameras())
      info_.observations.push_back({.name = camera,
                                    .shape = size.size() == 2 ? std::vector<std::int64_t>{size[0], size[1], 3}
                                                              : std::vector<std::int64_t>{-1, -1, 3},
                                    .picture = true});
    info_.prompt = policy_.takes_instructions() && policy_.own_instruction().empty();
    for (const data::RecordedField& field : policy_.action_fields()) info_.action_names.push_back(field.name);
    info_.action_width = policy_.action_width();
    info_.stride = policy_.stride();
    info_.frames = policy_.frames();
    info_.remembers = policy_.remembers();
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

}  // namespace cohort::policies
