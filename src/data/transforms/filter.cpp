#include "data/transforms/filter.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/error.h"
#include "core/threads.h"
#include "data/episode_notes.h"
#include "data/transforms/call.h"

namespace cohort::data {
namespace {

using Rule = std::function<bool(std::int64_t episode)>;

std::vector<double> all_values(const EpisodeSource& source, std::int64_t episode, std::size_t field) {
  const auto opened = source.open(episode);
  std::vector<double> values(static_cast<std::size_t>(opened->steps() * source.fields()[field].elements()));
  opened->read(field, 0, opened->steps(), std::span(values));
  return values;
}

Rule make_rule(const EpisodeSource& source, const std::string& text) {
  const Call call = parse_call(text);
  if (call.name == "metadata_contains" || call.name == "metadata_lacks") {
    call.expect_arguments(2);
    const std::string name = call.arguments[0], part = call.arguments[1];
    const auto& names = source.metadata_names();
    std::string all;
    for (const std::string& known : names) all += (all.empty() ? "" : ", ") + known;
    COHORT_THROW_UNLESS(std::find(names.begin(), names.end(), name) != names.end(),
                        "filter '{}': the data set {} has no metadata '{}'; it has {}", text, source.name(), name,
                        all.empty() ? "none" : all);
    const bool wanted = call.name == "metadata_contains";
    return [&source, name, part, wanted](std::int64_t e) {
      return (source.open(e)->metadata(name).find(part) != std::string_view::npos) == wanted;
    };
  }
  if (call.name == "labeled") {
    call.expect_arguments(1);
    const std::size_t field = source.field_index(call.arguments[0]);
    COHORT_THROW_UNLESS(source.fields()[field].kind == StepKind::kText, "filter '{}': {} holds no texts", text,
                        call.arguments[0]);
    const std::string fault = source.fields()[field].fault();
    COHORT_THROW_UNLESS(fault.empty(), "filter '{}': {} {}, not one text", text, call.arguments[0], fault);
    return [&source, field](std::int64_t e) {
      const auto episode = source.open(e);
      for (std::int64_t t = 0; t < episode->steps(); ++t)
        if (!episode->text(field, t).empty()) return true;
      return false;
    };
  }
  if (call.name == "min_steps" || call.name == "max_steps") {
    call.expect_arguments(1);
    const double limit = call.number(0);
    const bool least = call.name == "min_steps";
    return [&source, limit, least](std::int64_t e) {
      const auto steps = static_cast<double>(source.steps(e));
      return least ? steps >= limit : steps <= limit;
    };
  }
  if (call.name == "finite" || call.name == "max_abs" || call.name == "moves") {
    call.expect_arguments(call.name == "finite" ? 1 : 2);
    const std::size_t field = source.field_index(call.arguments[0]);
    COHORT_THROW_UNLESS(source.fields()[field].kind == StepKind::kNumber && source.fields()[field].elements() > 0,
                        "filter '{}': {} is no array of numbers", text, call.arguments[0]);
    if (call.name == "finite")
      return [&source, field](std::int64_t e) {
        const auto values = all_values(source, e, field);
        return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
      };
    const double limit = call.number(1);
    if (call.name == "max_abs")
      return [&source, field, limit](std::int64_t e) {
        const auto values = all_values(source, e, field);
        return std::all_of(values.begin(), values.end(), [limit](double v) { return std::abs(v) <= limit; });
      };
    return [&source, field, limit](std::int64_t e) {
      const auto values = all_values(source, e, field);
      const auto width = static_cast<std::size_t>(source.fields()[field].elements());
      double widest = 0;
      for (std::size_t d = 0; d < width; ++d) {
        double low = values[d], high = values[d];
        for (std::size_t i = d; i < values.size(); i += width) {
          low = std::min(low, values[i]);
          high = std::max(high, values[i]);
        }
        widest = std::max(widest, high - low);
      }
      return widest > limit;
    };
  }
  throw Error(format(
      "unknown filter '{}'; known are metadata_contains, metadata_lacks, labeled, min_steps, max_steps, finite, "
      "max_abs, moves; they keep or drop whole episodes: data.step_filter (cohort data: --step-filter) leaves out "
      "single steps",
      text));
}

}  // namespace

std::vector<std::int64_t> filter_episodes(const EpisodeSource& source, const std::vector<std::string>& rules,
                                          int threads, const EpisodeNotes* notes) {
  std::vector<std::int64_t> kept(static_cast<std::size_t>(source.size()));
  std::iota(kept.begin(), kept.end(), 0);
  if (rules.empty()) return kept;
  std::vector<Rule> made;
  std::string all;
  bool opens = false;
  for (const std::string& rule : rules) {
    made.push_back(make_rule(source, rule));
    all += (all.empty() ? "" : ", ") + rule;
    const std::string name = parse_call(rule).name;
    opens = opens || (name != "min_steps" && name != "max_steps");
  }
  const auto apply = [&] {
    std::vector<char> good(kept.size(), 1);
    parallel_for(source.size(), threads, [&](std::int64_t e) {
      for (const Rule& rule : made)
        if (!rule(e)) {
          good[static_cast<std::size_t>(e)] = 0;
          return;
        }
    });
    std::erase_if(kept, [&](std::int64_t e) { return good[static_cast<std::size_t>(e)] == 0; });
    return kept;
  };
  if (notes && opens) {
    const auto sound = [&](const nlohmann::json& answer) {
      std::int64_t last = -1;
      for (const nlohmann::json& e : answer) {
        if (!e.is_number_integer() || e.get<std::int64_t>() <= last || e.get<std::int64_t>() >= source.size())
          return false;
        last = e.get<std::int64_t>();
      }
      return answer.is_array();
    };
    kept = notes->answer("episodes that pass " + all, sound, apply).get<std::vector<std::int64_t>>();
  } else {
    apply();
  }
  COHORT_THROW_UNLESS(!kept.empty(), "no episode of the {} in {} passes the filters {}", source.size(), source.name(),
                      all);
  return kept;
}

}  // namespace cohort::data
