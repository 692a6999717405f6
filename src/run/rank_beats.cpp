#include "run/rank_beats.h"

#include "core/log.h"

namespace cohort::run {
namespace {

constexpr std::chrono::seconds kLeastBetweenBeats{1};

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

RankBeats::RankBeats(std::filesystem::path run, monitor::RankStatus who)
    : run_(std::move(run)), status_(std::move(who)) {
  monitor::identify_process(status_);
}

RankBeats::~RankBeats() {
  if (!status_.ended()) end("failed");
}

BeatObserver RankBeats::observer() {
  return [this](const Beat& beat, const std::function<RankTotals()>& totals) { observe(beat, totals); };
}

void RankBeats::open() {
  const std::filesystem::path folder = run_ / monitor::kRanksFolder;
  if (status_.rank == 0)  // what a job of more ranks has left here
    for (const monitor::RankStatus& other : monitor::read_rank_statuses(folder))
      if (other.rank >= status_.world_size) {
        std::error_code ignored;
        std::filesystem::remove(folder / format("rank_{}.json", other.rank), ignored);
      }
  file_.emplace(folder, status_.rank);
  if (!file_->error().empty()) log::debug("rank {} is not watched: {}", status_.rank, file_->error());
}

void RankBeats::observe(const Beat& beat, const std::function<RankTotals()>& totals) {
  const auto now = std::chrono::steady_clock::now();
  const bool first = !file_;
  if (!first && status_.state == beat.state && now - written_ < kLeastBetweenBeats) return;
  if (first) open();
  const RankTotals sums = totals();
  status_.state = beat.state;
  status_.step = beat.step;
  status_.total_steps = beat.total_steps;
  status_.batches_per_epoch = beat.batches_per_epoch;
  status_.host_bytes = static_cast<std::uint64_t>(sums.host_bytes);
  status_.device_bytes = static_cast<std::uint64_t>(sums.device_bytes);
  const double steps = static_cast<double>(sums.steps - before_.steps), seconds = sums.seconds - before_.seconds;
  // A change of state soon after a beat keeps its figures: they would be of a step or two.
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

void RankBeats::end(const char* state) {
  if (!file_) return;
  status_.state = state;
  status_.time = seconds_since_1970();
  file_->write(status_);
}

}  // namespace cohort::run
