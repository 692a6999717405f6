#include "data/kept_steps.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/threads.h"
#include "data/transforms/call.h"

namespace cohort::data {
namespace {

constexpr double kStill = 1e-4;  // OpenVLA's threshold

struct IdleRule {
  std::size_t field = 0;
  double eps = kStill;
  bool gripper = true;
};

IdleRule idle_rule(const EpisodeSource& source, const std::string& text) {
  const Call call = parse_call(text);
  COHORT_THROW_UNLESS(call.name == "idle", "unknown filter of steps '{}'; known is idle(ACTION, EPS, GRIPPER)", text);
  COHORT_THROW_UNLESS(!call.arguments.empty() && call.arguments.size() <= 3,
                      "filter of steps '{}': write idle(ACTION), idle(ACTION, EPS) or idle(ACTION, EPS, none)", text);
  IdleRule rule{.field = source.field_index(call.arguments[0])};
  const StepField& field = source.fields()[rule.field];
  COHORT_THROW_UNLESS(field.kind == StepKind::kNumber && field.elements() > 0,
                      "filter of steps '{}': {} is no array of numbers", text, field.name);
  if (call.arguments.size() > 1) rule.eps = call.number(1);
  COHORT_THROW_UNLESS(rule.eps > 0, "filter of steps '{}': the norm is never below {}", text, rule.eps);
  if (call.arguments.size() > 2) {
    COHORT_THROW_UNLESS(call.arguments[2] == "none" || call.arguments[2] == "last",
                        "filter of steps '{}': the gripper is the last element (last) or there is none (none)", text);
    rule.gripper = call.arguments[2] == "last";
  }
  COHORT_THROW_UNLESS(!rule.gripper || field.elements() > 1,
                      "filter of steps '{}': {} has one element, which would be the gripper; write idle({}, {}, none)",
                      text, field.name, field.name, rule.eps);
  return rule;
}

std::vector<std::int64_t> moving_steps(const EpisodeSource& source, std::int64_t e, const IdleRule& rule) {
  const auto episode = source.open(e);
  const std::int64_t width = source.fields()[rule.field].elements(), arm = width - (rule.gripper ? 1 : 0);
  std::vector<double> values(static_cast<std::size_t>(episode->steps() * width));
  episode->read(rule.field, 0, episode->steps(), std::span(values));
  std::vector<std::int64_t> kept;
  for (std::int64_t t = 0; t < episode->steps(); ++t) {
    const double* row = values.data() + t * width;
    double squares = 0;
    for (std::int64_t d = 0; d < arm; ++d) squares += row[d] * row[d];
    const bool held =
        !rule.gripper || kept.empty() || row[arm] == values[static_cast<std::size_t>(kept.back() * width + arm)];
    if (!(std::sqrt(squares) < rule.eps && held)) kept.push_back(t);
  }
  if (kept.empty()) kept.push_back(0);
  return kept;
}

/// The kept steps of an episode.
class KeptEpisode final : public Episode {
 public:
  KeptEpisode(const EpisodeSource& source, std::shared_ptr<const Episode> whole, const std::vector<std::int64_t>& kept)
      : source_(source), whole_(std::move(whole)), kept_(kept) {}

  std::int64_t steps() const override { return static_cast<std::int64_t>(kept_.size()); }
  void read(std::size_t field, std::int64_t begin, std::int64_t count, std::span<float> out) const override {
    read_runs(field, begin, count, out);
  }
  void read(std::size_t field, std::int64_t begin, std::int64_t count, std::span<double> out) const override {
    read_runs(field, begin, count, out);
  }
  void read(std::size_t field, std::int64_t begin, std::int64_t count, std::span<std::int64_t> out) const override {
    read_runs(field, begin, count, out);
  }
  std::string_view text(std::size_t field, std::int64_t step) const override { return whole_->text(field, at(step)); }
  StoredImage image(std::size_t field, std::int64_t step, std::string& scratch) const override {
    return whole_->image(field, at(step), scratch);
  }
  std::string_view metadata(std::string_view name) const override { return whole_->metadata(name); }
  std::string location() const override { return whole_->location(); }

 private:
  std::int64_t at(std::int64_t step) const {
    COHORT_CHECK(step >= 0 && step < steps(), "step {} of an episode of {}", step, steps());
    return kept_[static_cast<std::size_t>(step)];
  }
  /// Steps that follow one another are read together.
  template <class T>
  void read_runs(std::size_t field, std::int64_t begin, std::int64_t count, std::span<T> out) const {
    COHORT_CHECK(begin >= 0 && count >= 0 && begin + count <= steps(), "steps [{}, {}) of an episode of {}", begin,
                 begin + count, steps());
    const std::int64_t elements = source_.fields()[field].elements();
    if (count == 0 || elements < 0) return whole_->read(field, 0, count, out);  // says what is wrong
    for (std::int64_t first = begin, end; first < begin + count; first = end) {
      for (end = first + 1; end < begin + count && at(end) == at(end - 1) + 1;) ++end;
      whole_->read(field, at(first), end - first,
                   out.subspan(static_cast<std::size_t>((first - begin) * elements),
                               static_cast<std::size_t>((end - first) * elements)));
    }
  }

  const EpisodeSource& source_;
  const std::shared_ptr<const Episode> whole_;
  const std::vector<std::int64_t>& kept_;
};

class KeptSteps final : public EpisodeSource {
 public:
  KeptSteps(std::unique_ptr<EpisodeSource> source, std::string rule, int threads)
      : source_(std::move(source)), rule_(std::move(rule)), kept_(static_cast<std::size_t>(source_->size())) {
    const IdleRule idle = idle_rule(*source_, rule_);
    parallel_for(source_->size(), threads,
                 [&](std::int64_t e) { kept_[static_cast<std::size_t>(e)] = moving_steps(*source_, e, idle); });
    for (std::int64_t e = 0; e < source_->size(); ++e) {
      all_ += source_->steps(e);
      left_ += static_cast<std::int64_t>(kept_[static_cast<std::size_t>(e)].size());
    }
  }

  const std::string& name() const override { return source_->name(); }
  std::int64_t size() const override { return source_->size(); }
  const std::vector<StepField>& fields() const override { return source_->fields(); }
  const std::vector<std::string>& metadata_names() const override { return source_->metadata_names(); }
  std::int64_t steps(std::int64_t e) const override {
    return static_cast<std::int64_t>(kept_[static_cast<std::size_t>(e)].size());
  }
  std::shared_ptr<const Episode> open(std::int64_t e) const override {
    return std::make_shared<const KeptEpisode>(*source_, source_->open(e), kept_[static_cast<std::size_t>(e)]);
  }
  std::int64_t bytes_when_open(std::int64_t e, std::span<const std::size_t> read) const override {
    return source_->bytes_when_open(e, read);
  }
  std::uint64_t content_hash() const override {
    ContentHash hash;
    hash.add(source_->content_hash());
    hash.add(rule_);
    return hash.value();
  }
  std::int64_t bytes_held() const override {
    return source_->bytes_held() + left_ * static_cast<std::int64_t>(sizeof(std::int64_t));
  }
  std::int64_t stored_bytes() const override { return source_->stored_bytes(); }
  std::pair<std::filesystem::path, std::string> place(std::int64_t e) const override { return source_->place(e); }
  std::string selection() const override {
    const std::string of_source = source_->selection();
    return format("{}{}{}: {} of {} steps are left out; what is behind them follows what is before", of_source,
                  of_source.empty() ? "" : "; ", rule_, all_ - left_, all_);
  }
  const std::vector<std::string>& skipped() const override { return source_->skipped(); }
  std::int64_t skipped_count() const override { return source_->skipped_count(); }
  std::vector<std::string> left_out() const override { return source_->left_out(); }
  std::string_view format_name() const override { return source_->format_name(); }
  std::int64_t number(std::int64_t e) const override { return source_->number(e); }
  std::string schema_name(const std::string& field) const override { return source_->schema_name(field); }
  std::vector<MetadataType> metadata_types(std::int64_t e, std::vector<std::string>& left_out) const override {
    return source_->metadata_types(e, left_out);
  }
  bool states_colours() const override { return source_->states_colours(); }
  std::string why_no_field(const std::string& field) const override { return source_->why_no_field(field); }
  std::vector<std::string> element_names(const std::string& field) const override {
    return source_->element_names(field);
  }

 private:
  const std::unique_ptr<EpisodeSource> source_;
  const std::string rule_;
  std::vector<std::vector<std::int64_t>> kept_;  // by episode
  std::int64_t all_ = 0, left_ = 0;              // steps
};

}  // namespace

std::unique_ptr<EpisodeSource> keep_steps(std::unique_ptr<EpisodeSource> source, const std::string& rule, int threads) {
  if (rule.empty()) return source;
  return std::make_unique<KeptSteps>(std::move(source), rule, threads);
}

}  // namespace cohort::data
