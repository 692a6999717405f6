#include "dist/recovery.h"

#include <chrono>

#include "core/error.h"
#include "core/log.h"
#include "core/without_stack.h"
#include "dist/group.h"

namespace cohort::dist {
namespace {

/// All ranks wait for the call, so that they connect within a fraction of a second. One that died meanwhile makes the
/// others wait this long, and then begin again.
constexpr auto kConnect = std::chrono::seconds(20);

}  // namespace

Recovery::Recovery(rank::Page& page) : page_(page), replaces_(rank::process_variable("COHORT_RECOVERY").has_value()) {}

std::unique_ptr<Recovery> Recovery::of_this_process() {
  rank::Page* const page = rank::own_page();
  return page ? std::unique_ptr<Recovery>(new Recovery(*page)) : nullptr;
}

bool Recovery::offered() const {
  return page_.offers_recovery();
}
void Recovery::say(rank::Phase phase, std::int64_t step) {
  page_.beat(phase, step);
}
void Recovery::set_ready(bool ready) {
  page_.set_ready(ready);
}
void Recovery::ask_for_restart() {
  page_.ask_for_restart();
}
void Recovery::keep(std::int64_t step, const std::string& bytes) {
  page_.keep(step, std::as_bytes(std::span(bytes)));
}
std::optional<std::string> Recovery::kept(std::int64_t step) const {
  return page_.kept(step);
}
void Recovery::set_note(const std::string& note) {
  page_.set_note(note);
}
std::string Recovery::note() const {
  return page_.note();
}

rank::Environment Recovery::wait_to_join(rank::Environment environment) {
  const std::optional<std::uint32_t> generation = page_.wait_for_generation();
  COHORT_THROW_UNLESS(generation, "rank {} was to take a dead rank's place, but the launcher ends the job",
                      environment.rank);
  environment.generation = static_cast<int>(*generation);
  environment.store_fd.reset();
  return environment;
}

bool Recovery::rejoin(Group& group) {
  std::string cause = group.failure();
  for (;;) {
    group.leave();
    const std::optional<std::uint32_t> generation = page_.wait_for_generation();
    if (!generation && page_.park_asked()) return false;
    if (!generation) throw Error(cause);
    try {
      group.rejoin(static_cast<int>(*generation), kConnect);
      return true;
    } catch (const std::exception& problem) {
      cause = without_stack(problem.what());
      log::warning("the ranks could not connect again: {}", cause);
    }
  }
}

bool Recovery::may_find_parked() const {
  const auto round = rank::process_variable("TORCHELASTIC_RESTART_COUNT");
  return rank::process_variable("COHORT_FULL_WORLD_SIZE").has_value() && round && *round != "0";
}
void Recovery::park(std::span<const std::string_view> pieces) {
  page_.park(pieces);
}
std::optional<std::string_view> Recovery::parked() const {
  return page_.parked();
}
void Recovery::drop_parked() {
  page_.drop_parked();
}

WaitingForOthers::WaitingForOthers() : page_(rank::own_page()) {
  if (page_) page_->wait_for_others(true);
}
WaitingForOthers::~WaitingForOthers() {
  if (page_) page_->wait_for_others(false);
}

}  // namespace cohort::dist
