#include "rank/phase.h"

#include <array>

namespace cohort::rank {
namespace {

constexpr std::array kPhases = {"silent",
                                "starting",
                                "training",
                                "waiting for data",
                                "validating",
                                "saving",
                                "waiting for the other ranks",
                                "ending",
                                "finished",
                                "stopped",
                                "failed"};
constexpr std::array kParts = {"between steps",     "forward",   "backward",
                               "gradients reduced", "optimizer", "moving average"};
static_assert(kPhases.size() == static_cast<std::size_t>(Phase::kFailed) + 1);
static_assert(kParts.size() == static_cast<std::size_t>(StepPart::kAverage) + 1);

/// A page is memory that another process writes.
template <std::size_t kCount>
const char* name_of(const std::array<const char*, kCount>& names, std::uint32_t number) {
  return number < kCount ? names[number] : "unknown";
}

}  // namespace

const char* to_string(Phase phase) {
  return name_of(kPhases, static_cast<std::uint32_t>(phase));
}

std::optional<Phase> parse_phase(std::string_view text) {
  for (std::size_t i = 0; i < kPhases.size(); ++i)
    if (text == kPhases[i]) return static_cast<Phase>(i);
  return std::nullopt;
}

const char* to_string(StepPart part) {
  return name_of(kParts, static_cast<std::uint32_t>(part));
}

}  // namespace cohort::rank
