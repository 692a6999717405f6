#include "tasks/device_episodes.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "tasks/on_device.h"

namespace cohort::tasks {

using sim::cuda::need;

namespace {

OnDevice& on_device_of(Task& task) {
  OnDevice* const there = task.on_device();
  COHORT_CHECK(there != nullptr, "{} computes its environments on the host", task.spec().name);
  return *there;
}

}  // namespace

DeviceEpisodes::DeviceEpisodes(Task& task)
    : there_(on_device_of(task)), device_(there_.device().index), n_(task.n_envs()), stream_(there_.stream()) {
  const auto n = static_cast<std::size_t>(n_);
  const ArrayView observations = there_.observations(), terms = there_.reward_terms();
  cuda::Episodes& e = episodes_;
  e.n = n_, e.width = static_cast<int>(observations.shape[1]), e.terms = static_cast<int>(terms.shape[1]);
  e.observations = static_cast<const float*>(observations.data);
  e.reward = static_cast<const float*>(there_.reward().data);
  e.reward_terms = static_cast<const float*>(terms.data);
  const auto bytes_at = [](const ArrayView& v) { return static_cast<const unsigned char*>(v.data); };
  e.success = bytes_at(there_.success()), e.terminated = bytes_at(there_.terminated());
  e.truncated = bytes_at(there_.truncated()), e.failed = bytes_at(there_.broken());
  floats_ = zeros(4 * n * sizeof(float));
  auto* const floats = static_cast<float*>(floats_.get());
  e.rewards = floats, e.dones = floats + n, e.cut_off = floats + 2 * n, e.broken = floats + 3 * n;
  final_ = zeros(observations.bytes());
  e.final_observations = static_cast<float*>(final_.get());
  flags_ = zeros(n), reached_ = zeros(n);
  e.flags = static_cast<unsigned char*>(flags_.get()), e.reached = static_cast<unsigned char*>(reached_.get());
  const auto term_count = static_cast<std::size_t>(e.terms);
  const std::vector<MetricSpec>& metrics = task.spec().metrics;
  doubles_ = zeros((3 + term_count + metrics.size()) * n * sizeof(double));
  auto* const doubles = static_cast<double*>(doubles_.get());
  e.returns = doubles, e.without_success = doubles + n, e.with_success = doubles + 2 * n, e.term_sums = doubles + 3 * n;
  e.metric_sums = e.term_sums + term_count * n;
  std::vector<std::uint8_t> at_end;
  for (const MetricSpec& metric : metrics) at_end.push_back(metric.at_end ? 1 : 0);
  at_end_ = zeros(at_end.size()), metric_counts_ = zeros(metrics.size() * n * sizeof(long long));
  up(at_end_.get(), std::span<const std::uint8_t>(at_end));
  e.metrics = static_cast<int>(metrics.size());
  e.metric_values = static_cast<const float*>(there_.metrics().data);
  e.at_end = static_cast<const unsigned char*>(at_end_.get());
  e.metric_counts = static_cast<long long*>(metric_counts_.get());
  integers_ = zeros(6 * n * sizeof(long long));
  auto* const integers = static_cast<long long*>(integers_.get());
  e.steps = integers, e.early = integers + n, e.counts = integers + 2 * n;
  chosen_ = zeros(n * (sizeof(long long) + sizeof(int)));
  flags_here_.resize(n);
}

sim::cuda::DeviceMemory DeviceEpisodes::zeros(std::size_t bytes) const {
  return sim::cuda::make_device_memory(device_, stream_, bytes);
}

ArrayView DeviceEpisodes::view(float* data, std::int64_t width) const {
  const std::int64_t shape[] = {n_, width};
  ArrayView v = make_view(data, ElementType::kFloat32, std::span(shape, width < 0 ? 1 : 2));
  v.device = {DeviceKind::kCuda, device_}, v.stream = stream_;
  return v;
}

template <class T>
void DeviceEpisodes::up(void* to, std::span<const T> from) const {
  need(sim::cuda::upload(device_, stream_, to, from.data(), from.size_bytes()), device_, "episodes cannot be copied");
}
template <class T>
std::vector<T> DeviceEpisodes::down(const void* from, std::size_t count) const {
  std::vector<T> values(count);
  need(sim::cuda::download(device_, stream_, values.data(), from, count * sizeof(T)), device_,
       "episodes cannot be read");
  return values;
}

std::span<const std::uint8_t> DeviceEpisodes::count() {
  need(cuda::count(device_, stream_, episodes_), device_, "episodes cannot be counted");
  need(sim::cuda::download(device_, stream_, flags_here_.data(), flags_.get(), flags_here_.size()), device_,
       "which episodes are over cannot be read");
  return flags_here_;
}

void DeviceEpisodes::hold_ended(std::size_t count) {
  if (!ended_.empty() && ended_.back().count + count <= ended_.back().capacity) return;
  const std::size_t capacity = std::max(count, 4 * flags_here_.size());
  ended_.push_back({.memory = zeros(capacity * 2 * sizeof(double)), .capacity = capacity});
}

void DeviceEpisodes::renew(std::span<const std::int32_t> envs, std::span<const std::int64_t> early) {
  COHORT_CHECK(envs.size() == early.size() && envs.size() <= flags_here_.size(), "{} environments of {}, {} ends",
               envs.size(), n_, early.size());
  hold_ended(envs.size());
  EndedPiece& piece = ended_.back();
  std::vector<std::byte> message(envs.size() * (sizeof(std::int64_t) + sizeof(std::int32_t)));
  std::memcpy(message.data(), early.data(), early.size_bytes());
  std::memcpy(message.data() + early.size_bytes(), envs.data(), envs.size_bytes());
  up(chosen_.get(), std::span<const std::byte>(message));
  const auto* const sent = static_cast<const char*>(chosen_.get());
  need(cuda::renew(device_, stream_, episodes_, reinterpret_cast<const int*>(sent + early.size_bytes()),
                   reinterpret_cast<const long long*>(sent), static_cast<double*>(piece.memory.get()) + 2 * piece.count,
                   static_cast<int>(envs.size())),
       device_, "episodes cannot begin");
  piece.count += envs.size();
}

std::vector<DeviceEpisodes::Ended> DeviceEpisodes::take_ended() {
  std::vector<Ended> ended;
  for (const EndedPiece& piece : ended_) {
    const std::vector<double> rows = down<double>(piece.memory.get(), 2 * piece.count);
    for (std::size_t i = 0; i < piece.count; ++i) ended.push_back({rows[2 * i], rows[2 * i + 1] != 0});
  }
  // The first stays for those that come.
  if (!ended_.empty()) ended_.erase(ended_.begin() + 1, ended_.end()), ended_.front().count = 0;
  return ended;
}

DeviceEpisodes::Sums DeviceEpisodes::take_sums() {
  const auto n = flags_here_.size(), terms = static_cast<std::size_t>(episodes_.terms),
             metrics = static_cast<std::size_t>(episodes_.metrics);
  // Rewards without and with success, terms, metrics: behind each other.
  const std::vector<double> values = down<double>(episodes_.without_success, (2 + terms + metrics) * n);
  const std::vector<std::int64_t> numbers = down<std::int64_t>(episodes_.metric_counts, metrics * n);
  const std::vector<std::int64_t> counts = down<std::int64_t>(episodes_.counts, 4 * n);
  Sums sums;
  sums.terms.resize(terms), sums.metrics.resize(metrics), sums.metric_counts.resize(metrics);
  for (std::size_t e = 0; e < n; ++e) {
    sums.without_success += values[e], sums.with_success += values[n + e];
    for (std::size_t i = 0; i < terms; ++i) sums.terms[i] += values[2 * n + e * terms + i];
    for (std::size_t i = 0; i < metrics; ++i) {
      sums.metrics[i] += values[(2 + terms) * n + e * metrics + i];
      sums.metric_counts[i] += numbers[e * metrics + i];
    }
    sums.without += counts[4 * e + cuda::kWithout], sums.with += counts[4 * e + cuda::kWith];
    sums.ended += counts[4 * e + cuda::kEnded], sums.steps += counts[4 * e + cuda::kSteps];
  }
  need(sim::cuda::zero(device_, stream_, episodes_.without_success, values.size() * sizeof(double)), device_,
       "sums cannot be cleared");
  need(sim::cuda::zero(device_, stream_, episodes_.metric_counts, numbers.size() * sizeof(std::int64_t)), device_,
       "sums cannot be cleared");
  need(sim::cuda::zero(device_, stream_, episodes_.counts, counts.size() * sizeof(std::int64_t)), device_,
       "sums cannot be cleared");
  return sums;
}

ArrayView DeviceEpisodes::normal(std::int64_t width, std::uint64_t seed, std::uint64_t first_id, std::uint64_t step) {
  const std::size_t bytes = flags_here_.size() * static_cast<std::size_t>(width) * sizeof(float);
  if (bytes > noise_bytes_) noise_ = zeros(bytes), noise_bytes_ = bytes;
  auto* const out = static_cast<float*>(noise_.get());
  need(cuda::draw_normal(device_, stream_, out, n_, static_cast<int>(width), seed, first_id, step), device_,
       "random numbers cannot be drawn");
  return view(out, width);
}

std::vector<double> DeviceEpisodes::returns() const {
  return down<double>(episodes_.returns, flags_here_.size());
}
std::vector<std::uint8_t> DeviceEpisodes::reached() const {
  return down<std::uint8_t>(episodes_.reached, flags_here_.size());
}

void DeviceEpisodes::set(std::span<const std::int64_t> steps, std::span<const double> returns,
                         std::span<const std::uint8_t> reached, std::span<const std::int64_t> early) {
  up(episodes_.steps, steps), up(episodes_.returns, returns), up(episodes_.reached, reached);
  up(episodes_.early, early);
}

}  // namespace cohort::tasks
