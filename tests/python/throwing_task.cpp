/// A task of a library (COHORT_TASKS) whose second step of all throws, and every one after it.
#include <vector>

#include "core/error.h"
#include "tasks/registry.h"

namespace {

using namespace cohort;

class Throwing final : public tasks::Task {
 public:
  explicit Throwing(int n) : numbers_(static_cast<std::size_t>(n)), flags_(static_cast<std::size_t>(n)) {
    spec_ = {.name = "throws-in-step",
             .summary = "a step that fails",
             .observations = {{.name = "number", .shape = {1}, .unit = "1"}},
             .action = {.names = {"push"}, .low = {-1}, .high = {1}},
             .control_period = 0.1,
             .horizon = 10};
  }
  const tasks::TaskSpec& spec() const override { return spec_; }
  int n_envs() const override { return static_cast<int>(numbers_.size()); }
  ArrayView observation(std::size_t) override { return make_view(numbers_.data(), {n_envs(), 1}); }
  void reset(std::span<const std::int32_t>, std::span<const std::uint64_t>) override {}
  void step(ArrayView) override { COHORT_THROW_UNLESS(++steps_ < 2, "the second step fails"); }
  ArrayView reward() override { return make_view(numbers_.data(), {n_envs()}); }
  ArrayView reward_terms() override { return make_view(numbers_.data(), {n_envs(), 0}); }
  ArrayView success() override { return flags(); }
  ArrayView terminated() override { return flags(); }
  ArrayView truncated() override { return flags(); }
  ArrayView broken() override { return flags(); }

 protected:
  void visit_state(tasks::StateVisitor&) override {}

 private:
  ArrayView flags() { return make_view(flags_.data(), {n_envs()}); }
  tasks::TaskSpec spec_;
  std::vector<float> numbers_;
  std::vector<std::uint8_t> flags_;
  int steps_ = 0;
};

}  // namespace

extern "C" void cohort_register_tasks() {
  tasks::register_task({.name = "throws-in-step",
                        .summary = "a step that fails",
                        .make = [](const tasks::TaskSettings& s) { return std::make_unique<Throwing>(s.n_envs); }});
}
