#include "rl/served_ppo.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/error.h"
#include "rl/ppo_actor.h"

namespace cohort::rl {
namespace {

/// A task whose observations are what somebody has sent.
class SentTask final : public tasks::Task {
 public:
  explicit SentTask(const tasks::TaskSpec& spec) : spec_(spec) {
    for (const tasks::FieldSpec& field : spec_.observations)
      rows_.emplace_back(static_cast<std::size_t>(field.elements()));
  }
  const tasks::TaskSpec& spec() const override { return spec_; }
  int n_envs() const override { return 1; }
  ArrayView observation(std::size_t field) override {
    return make_view(rows_.at(field).data(), {1, std::ssize(rows_[field])});
  }
  std::vector<float>& row(std::size_t field) { return rows_.at(field); }

  void reset(std::span<const std::int32_t>, std::span<const std::uint64_t>) override { cannot(); }
  void step(ArrayView) override { cannot(); }
  ArrayView reward() override { cannot(); }
  ArrayView success() override { cannot(); }
  ArrayView terminated() override { cannot(); }
  ArrayView truncated() override { cannot(); }
  ArrayView broken() override { cannot(); }

 protected:
  void visit_state(tasks::StateVisitor&) override { cannot(); }

 private:
  [[noreturn]] void cannot() const {
    throw_check_failed("a simulated task", __FILE__, __LINE__, "what is sent is only observed");
  }
  tasks::TaskSpec spec_;
  std::vector<std::vector<float>> rows_;
};

bool is_unseen(const PpoActor& actor, const std::string& name) {
  return std::find(actor.unseen().begin(), actor.unseen().end(), name) != actor.unseen().end();
}

class PpoSession final : public serve::Session {
 public:
  PpoSession(PpoActor actor, const tasks::TaskSpec& spec) : actor_(std::move(actor)), task_(spec) {}

  void begin(std::uint64_t seed) override {
    const std::int32_t env = 0;
    actor_.begin(std::span(&env, 1), std::span(&seed, 1), "");
  }
  void see(const serve::Frame& frame, const std::string&) override { decide(frame); }
  std::vector<float> act_each(std::span<const serve::Frame> robots, const std::string&) override {
    std::vector<float> actions;
    for (const serve::Frame& robot : robots) {
      const std::vector<float> one = decide(robot);
      actions.insert(actions.end(), one.begin(), one.end());
    }
    return actions;
  }
  std::vector<float> act(std::span<const serve::Frame> frames, const std::string&) override {
    std::vector<float> action;
    for (const serve::Frame& frame : frames) action = decide(frame);
    return action;
  }

 private:
  std::vector<float> decide(const serve::Frame& frame) {
    auto next = frame.numbers.begin();
    for (std::size_t i = 0; i < task_.spec().observations.size(); ++i) {
      if (is_unseen(actor_, task_.spec().observations[i].name)) continue;
      std::vector<float>& row = task_.row(i);
      std::copy_n(next, row.size(), row.begin());
      next += std::ssize(row);
    }
    std::vector<float> action(static_cast<std::size_t>(task_.spec().action.width()));
    const std::int32_t env = 0;
    actor_.act(task_, std::span(&env, 1), make_view(action.data(), {1, std::ssize(action)}));
    return action;
  }

  PpoActor actor_;
  SentTask task_;
};

class ServedPpo final : public serve::Policy {
 public:
  ServedPpo(const std::filesystem::path& path, const tasks::Task& task, bool averaged)
      : actor_(path, task, averaged), spec_(task.spec()) {
    info_.summary = actor_.summary();
    for (const tasks::FieldSpec& field : spec_.observations)
      if (!is_unseen(actor_, field.name))
        info_.observations.push_back({.name = field.name, .shape = {field.elements()}, .picture = false});
    info_.action_names = spec_.action.names;
    info_.action_width = spec_.action.width();
    info_.remembers = actor_.remembers();
    info_.control_frequency = spec_.control_period > 0 ? 1 / spec_.control_period : 0;
  }
  const serve::PolicyInfo& info() const override { return info_; }
  std::unique_ptr<serve::Session> new_session() override {
    return std::make_unique<PpoSession>(actor_.another(), spec_);
  }

 private:
  PpoActor actor_;
  tasks::TaskSpec spec_;
  serve::PolicyInfo info_;
};

}  // namespace

std::unique_ptr<serve::Policy> serve_ppo(const std::filesystem::path& path, const tasks::Task& task, bool averaged) {
  return std::make_unique<ServedPpo>(path, task, averaged);
}

}  // namespace cohort::rl
