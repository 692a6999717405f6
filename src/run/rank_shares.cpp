#include "run/rank_shares.h"

#include <algorithm>
#include <cmath>

#include "core/format.h"

namespace cohort::run {
namespace {

constexpr std::size_t kMostRanksShown = 16;

double ms_per_step(double seconds, const rank::Totals& rank) {
  return 1e3 * seconds / static_cast<double>(std::max<std::int64_t>(1, rank.steps));
}

double told_data(const rank::Totals& rank) {
  return std::isfinite(rank.data_s) ? rank.data_s : 0.0;
}

double compute_of(const rank::Totals& rank) {
  return std::max(0.0, rank.seconds - told_data(rank) - rank.exchange_s - rank.checkpoint_s);
}

std::string text_of_rank(const rank::Totals& rank, const std::string& step) {
  std::string text =
      format("{} samples; {} computes {:.1f} ms", rank.samples, step, ms_per_step(compute_of(rank), rank));
  if (std::isfinite(rank.data_s)) text += format(", waits {:.1f} ms for data", ms_per_step(rank.data_s, rank));
  return text + format(", exchanges {:.1f} ms; {}", ms_per_step(rank.exchange_s, rank),
                       format_bytes(std::max(rank.host_bytes, rank.device_bytes)));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> rank_shares(const std::vector<rank::Totals>& ranks,
                                                             const std::string& step) {
  std::vector<std::pair<std::string, std::string>> rows;
  rank::Totals sum;
  double compute = 0;
  bool tells_data = true;
  for (const rank::Totals& rank : ranks) {
    sum.steps += rank.steps;
    sum.seconds += rank.seconds;
    sum.data_s += told_data(rank);
    sum.exchange_s += rank.exchange_s;
    sum.checkpoint_s += rank.checkpoint_s;
    compute += compute_of(rank);
    tells_data = tells_data && std::isfinite(rank.data_s);
  }
  if (sum.steps == 0 || sum.seconds <= 0) return rows;
  const auto percent = [&](double part) { return 100 * part / sum.seconds; };
  rows.emplace_back(step, format("{:.1f} ms: compute {:.0f} %, {}communication {:.0f} %, checkpoints {:.0f} %",
                                 ms_per_step(sum.seconds, sum), percent(compute),
                                 tells_data ? format("data {:.0f} %, ", percent(sum.data_s)) : std::string(),
                                 percent(sum.exchange_s), percent(sum.checkpoint_s)));
  if (ranks.size() < 2) return rows;
  for (std::size_t i = 0; i < ranks.size() && i < kMostRanksShown; ++i)
    rows.emplace_back(format("rank {}", i), text_of_rank(ranks[i], step));
  const auto [least, most] =
      std::minmax_element(ranks.begin(), ranks.end(),
                          [](const rank::Totals& a, const rank::Totals& b) { return compute_of(a) < compute_of(b); });
  if (compute_of(*least) > 0)
    rows.emplace_back("balance", format("rank {} computes longest, {:.0f} % longer than rank {}", most - ranks.begin(),
                                        100 * (compute_of(*most) / compute_of(*least) - 1), least - ranks.begin()));
  return rows;
}

std::vector<double> to_numbers(const rank::Totals& t) {
  return {static_cast<double>(t.steps),
          static_cast<double>(t.samples),
          t.seconds,
          t.data_s,
          t.exchange_s,
          t.checkpoint_s,
          t.host_bytes,
          t.device_bytes};
}

rank::Totals totals_from(const double* v) {
  return {.steps = static_cast<std::int64_t>(v[0]),
          .samples = static_cast<std::int64_t>(v[1]),
          .seconds = v[2],
          .data_s = v[3],
          .exchange_s = v[4],
          .checkpoint_s = v[5],
          .host_bytes = v[6],
          .device_bytes = v[7]};
}

}  // namespace cohort::run
