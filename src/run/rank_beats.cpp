#include "run/rank_beats.h"

#include "core/log.h"
#include "monitor/snapshot.h"

namespace cohort::run {
namespace {

constexpr std::chrono::seconds kLeastBetweenBeats{1};

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

RankBeats::RankBeats(std::filesystem::path run, rank::Status who) : run_(std::move(run)), status_(std::move(who)) {
  monitor::identify_process(status_);
}

RankBeats::~RankBeats() {
  if (!status_.ended()) end(rank::Phase::kFailed);
}

rank::BeatObserver RankBeats::observer() {
  return [this](const rank::Beat& beat, const std::function<rank::Totals()>& totals) { observe(beat, totals); };
}

void RankBeats::open() {
  const std::filesystem::path folder = run_ / rank::kRanksFolder;
  if (status_.rank == 0)  // what a job of more ranks has left here
    for (const rank::Status& other : rank::read_statuses(folder))
      if (other.rank >= status_.world_size) {
        std::error_code ignored;
        std::filesystem::remove(folder / format("rank_{}.json", other.rank), ignored);
      }
  file_.emplace(folder, status_.rank);
  if (!file_->error().empty()) log::debug("rank {} is not watched: {}", status_.rank, file_->error());
}

void RankBeats::observe(const rank::Beat& beat, const std::function<rank::Totals()>& totals) {
  // No news to those who watch: how long steps wait for data is a figure of them.
  if (beat.phase == rank::Phase::kData || beat.phase == rank::Phase::kEnd) return;
  const auto now = std::chrono::steady_clock::now();
  const bool first = !file_;
  if (first) first_step_ = beat.step;
  // Nobody knows how long a step takes before the first.
  const bool starts = beat.phase == rank::Phase::kTraining && beat.step == first_step_;
  const rank::Phase phase = starts ? rank::Phase::kStart : beat.phase;
  if (!first && status_.phase == phase && now - written_ < kLeastBetweenBeats) return;
  if (first) open();
  const rank::Totals sums = totals();
  status_.phase = phase;
  status_.step = beat.step;
  status_.total_steps = beat.total_steps;
  status_.batches_per_epoch = beat.batches_per_epoch;
  status_.host_bytes = static_cast<std::uint64_t>(sums.host_bytes);
  status_.device_bytes = static_cast<std::uint64_t>(sums.device_bytes);
  const double steps = static_cast<double>(sums.steps - before_.steps), seconds = sums.seconds - before_.seconds;
  // A change of phase soon after a beat keeps its figures: they would be of a step or two.
  if (steps > 0 && seconds > 0 && (now - written_ >= kLeastBetweenBeats || before_.steps == 0)) {
    status_.steps_per_s = steps / seconds;
    status_.step_s = seconds / steps;
    status_.samples_per_s = static_cast<double>(sums.samples - before_.samples) / seconds;
    status_.data_s = (sums.data_s - before_.data_s) / steps;
    status_.exchange_s = (sums.exchange_s - before_.exchange_s) / steps;
    before_ = sums;
  }
  if (sums.steps > 0)
    status_.seconds_left =
        sums.seconds / static_cast<double>(sums.steps) * static_cast<double>(beat.total_steps - beat.step);
  status_.time = seconds_since_1970();
  file_->write(status_);
  written_ = now;
}

void RankBeats::end(rank::Phase phase) {
  if (!file_) return;
  status_.phase = phase;
  status_.time = seconds_since_1970();
  file_->write(status_);
}

}  // namespace cohort::run
