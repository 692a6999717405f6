#include "cli/shown_data.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "data/images/codec.h"
#include "data/images/resize.h"
#include "data/inspect.h"
#include "data/transforms/filter.h"

namespace cohort::cli {

namespace {

using nlohmann::json;

constexpr std::int64_t kPageHeight = 240;    ///< px
constexpr std::size_t kPageWidth = 32;       ///< elements of a field whose curves are drawn
constexpr std::int64_t kLivePictures = 240;  ///< of a camera in an episode that a program serves

/// Throws Error where it is damaged; false where there is none.
bool decode(const data::StoredImage& stored, data::Image& image) {
  if (stored.bytes.empty()) return false;
  if (stored.encoding == data::ImageEncoding::kRaw) {
    if (stored.channels != 3) return false;
    image.resize(stored.height, stored.width, 3);
    std::copy(stored.bytes.begin(), stored.bytes.end(), image.pixels.begin());
  } else {
    data::decode_image(stored.bytes, 3, image);
  }
  return true;
}

/// A picture as the page shows it; "" for one that is damaged or absent.
std::string small_picture(const data::Episode& episode, std::size_t field, std::int64_t step, data::Resizer& resizer) {
  data::Image image;
  std::string scratch;
  try {
    if (!decode(episode.image(field, step, scratch), image)) return "";
    if (image.height > kPageHeight) {
      data::Image small;
      small.resize(kPageHeight, std::max<std::int64_t>(1, image.width * kPageHeight / image.height), 3);
      resizer.resize(image, small.height, small.width, data::ResizeMethod::kBilinearAntialias, small.pixels.data());
      std::swap(image, small);
    }
    return data::has_jpeg() ? data::encode_jpeg(image, 80) : data::encode_png(image);
  } catch (const Error& e) {
    log::warning("a picture is left out: {}", e.what());
    return "";
  }
}

bool has_curves(const data::StepField& field) {
  return field.kind == data::StepKind::kNumber && field.elements() >= 1 &&
         static_cast<std::size_t>(field.elements()) <= kPageWidth;
}
bool has_pictures(const data::StepField& field) {
  return field.kind == data::StepKind::kImage && field.fault().empty();
}

std::string instruction_of(const data::EpisodeSource& source, const data::Episode& episode) {
  if (episode.steps() == 0) return "";
  std::string first;
  for (std::size_t f = 0; f < source.fields().size(); ++f) {
    const data::StepField& field = source.fields()[f];
    if (field.kind != data::StepKind::kText || !field.fault().empty()) continue;
    const std::string_view text = episode.text(f, 0);
    if (!text.empty() && source.schema_name(field.name) == "language_instruction") return std::string(text);
    if (first.empty()) first = text;
  }
  return first;
}

std::string title_of(const data::EpisodeSource& source, std::int64_t place, std::int64_t steps) {
  return format("episode {}, {} steps", source.number(place), steps);
}

class SourceSession final : public view::DataSession {
 public:
  SourceSession(const data::EpisodeSource& source, int threads) : source_(source), threads_(threads) {
    for (std::size_t f = 0; f < source.fields().size(); ++f)
      if (has_curves(source.fields()[f]))
        sums_.push_back({f, std::vector<Sum>(static_cast<std::size_t>(source.fields()[f].elements()))});
    std::vector<std::int64_t> steps;
    for (std::int64_t e = 0; e < source.size(); ++e) steps.push_back(source.steps(e));
    if (steps.empty()) return;
    std::ranges::nth_element(steps, steps.begin() + std::ssize(steps) / 2);
    median_steps_ = steps[steps.size() / 2];
  }

  std::string title() const override { return source_.name(); }
  std::int64_t episodes() const override { return source_.size(); }

  json about() override {
    std::vector<std::int64_t> numbers, steps;
    for (std::int64_t e = 0; e < source_.size(); ++e) {
      numbers.push_back(source_.number(e));
      steps.push_back(source_.steps(e));
    }
    std::vector<std::string> problems;
    for (const std::string& fault : source_.skipped()) problems.push_back("left out, since it is damaged: " + fault);
    for (const std::string& other : source_.left_out()) problems.push_back("no field of a step: " + other);
    std::string summary;
    try {
      summary = data::inspect_text(source_);
    } catch (const Error& e) {
      problems.emplace_back(e.what());
    }
    return {{"summary", summary}, {"numbers", numbers}, {"steps", steps}, {"problems", problems}};
  }

  view::DataEpisode episode(std::int64_t which) override { return shown_episode(source_, which, kLivePictures, false); }

  std::vector<view::DataCamera> pictures(std::int64_t which, std::size_t first, std::size_t count) override {
    if (open_ == nullptr || opened_ != which) open_ = source_.open(which), opened_ = which;
    const std::int64_t steps = open_->steps(), all = std::min(kLivePictures, steps);
    std::vector<view::DataCamera> out;
    for (std::size_t f = 0; f < source_.fields().size(); ++f) {
      if (!has_pictures(source_.fields()[f])) continue;
      view::DataCamera& camera = out.emplace_back();
      camera.name = source_.fields()[f].name;
      for (auto i = static_cast<std::int64_t>(first); i < std::min(all, static_cast<std::int64_t>(first + count));
           ++i) {
        camera.steps.push_back(i * steps / all);
        camera.pictures.push_back(small_picture(*open_, f, i * steps / all, resizer_));
      }
    }
    return out;
  }

  std::vector<std::int64_t> filtered(const std::vector<std::string>& rules) override {
    return data::filter_episodes(source_, rules, threads_);
  }

  bool read_on() override {
    if (std::ssize(rows_) == source_.size()) return false;
    const std::int64_t which = std::ssize(rows_);
    Row& row = rows_.emplace_back();
    try {
      read(which, row);
    } catch (const Error& e) {
      row.problems.push_back(format("cannot be read: {}", e.what()));
    }
    return true;
  }

  json found(std::int64_t since) override {
    json rows = json::array(), statistics = json::array();
    for (std::int64_t i = since; i < std::ssize(rows_); ++i) {
      const Row& row = rows_[static_cast<std::size_t>(i)];
      rows.push_back({row.instruction, row.problems});
    }
    for (const auto& [f, sums] : sums_) {
      const data::StepField& field = source_.fields()[f];
      json low = json::array(), high = json::array(), mean = json::array(), std = json::array();
      for (const Sum& s : sums) {
        low.push_back(s.count > 0 ? s.low : 0), high.push_back(s.count > 0 ? s.high : 0);
        mean.push_back(s.mean);
        std.push_back(s.count > 0 ? std::sqrt(s.squares / static_cast<double>(s.count)) : 0);
      }
      statistics.push_back({{"name", field.name},
                            {"elements", source_.element_names(field.name)},
                            {"min", low},
                            {"max", high},
                            {"mean", mean},
                            {"std", std}});
    }
    return {{"read", rows_.size()}, {"rows", rows}, {"statistics", statistics}};
  }

 private:
  /// Of an element: Welford's running mean and sum of squared differences from it.
  struct Sum {
    std::int64_t count = 0;
    double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
    double mean = 0, squares = 0;
    void add(double x) {
      low = std::min(low, x), high = std::max(high, x);
      const double off = x - mean;
      mean += off / static_cast<double>(++count);
      squares += off * (x - mean);
    }
  };
  struct Row {
    std::string instruction;
    std::vector<std::string> problems;
  };

  void read(std::int64_t which, Row& row) {
    const auto episode = source_.open(which);
    const std::int64_t steps = episode->steps();
    row.instruction = instruction_of(source_, *episode);
    if (steps * 4 < median_steps_)
      row.problems.push_back(format("{} steps, where half of the episodes have {} or more", steps, median_steps_));
    std::vector<double> values;
    for (auto& [f, sums] : sums_) {
      const data::StepField& field = source_.fields()[f];
      values.resize(static_cast<std::size_t>(steps) * sums.size());
      episode->read(f, 0, steps, std::span<double>(values));
      std::int64_t wrong = 0;
      bool moves = false;
      for (std::size_t t = 0; t < static_cast<std::size_t>(steps); ++t) {
        bool finite = true;
        for (std::size_t k = 0; k < sums.size(); ++k) {
          const double x = values[t * sums.size() + k];
          finite = finite && std::isfinite(x);
          moves = moves || x != values[k];
          if (std::isfinite(x)) sums[k].add(x);
        }
        wrong += !finite;
      }
      if (wrong > 0)
        row.problems.push_back(format("{} is no finite number in {} of {} steps", field.name, wrong, steps));
      if (!moves && steps > 1 && field.name.find("action") != std::string::npos)
        row.problems.push_back(format("{} is the same in all steps", field.name));
    }
    for (std::size_t f = 0; f < source_.fields().size() && steps > 0; ++f) {
      if (!has_pictures(source_.fields()[f])) continue;
      std::string scratch, fault = "there is none";
      try {
        data::Image image;
        if (decode(episode->image(f, 0, scratch), image)) fault = "";
      } catch (const Error& e) {
        fault = e.what();
      }
      if (!fault.empty()) row.problems.push_back(format("{}, first picture: {}", source_.fields()[f].name, fault));
    }
  }

  const data::EpisodeSource& source_;
  int threads_;
  std::int64_t median_steps_ = 0;
  std::vector<std::pair<std::size_t, std::vector<Sum>>> sums_;  ///< by field
  std::vector<Row> rows_;                                       ///< of the episodes that have been read
  std::shared_ptr<const data::Episode> open_;                   ///< whose pictures were asked for last
  std::int64_t opened_ = -1;
  data::Resizer resizer_;
};

}  // namespace

view::DataEpisode shown_episode(const data::EpisodeSource& source, std::int64_t place, std::int64_t most_pictures,
                                bool with_pictures) {
  const auto episode = source.open(place);
  view::DataEpisode out;
  out.title = title_of(source, place, episode->steps());
  out.steps = episode->steps();
  out.instruction = instruction_of(source, *episode);
  data::Resizer resizer;
  for (std::size_t f = 0; f < source.fields().size(); ++f) {
    const data::StepField& field = source.fields()[f];
    if (has_curves(field)) {
      view::DataCurve curve{.name = field.name,
                            .elements = source.element_names(field.name),
                            .width = static_cast<std::size_t>(field.elements()),
                            .values = {}};
      curve.values.resize(static_cast<std::size_t>(out.steps) * curve.width);
      episode->read(f, 0, out.steps, std::span<float>(curve.values));
      out.curves.push_back(std::move(curve));
    } else if (has_pictures(field)) {
      view::DataCamera camera{.name = field.name, .steps = {}, .pictures = {}};
      const std::int64_t pictures = std::min(most_pictures, out.steps);
      for (std::int64_t i = 0; i < pictures; ++i) {
        const std::int64_t step = i * out.steps / pictures;
        camera.steps.push_back(step);
        if (with_pictures) camera.pictures.push_back(small_picture(*episode, f, step, resizer));
      }
      out.cameras.push_back(std::move(camera));
    }
  }
  return out;
}

std::unique_ptr<view::DataSession> make_data_session(const data::EpisodeSource& source, int threads) {
  return std::make_unique<SourceSession>(source, threads);
}

}  // namespace cohort::cli
