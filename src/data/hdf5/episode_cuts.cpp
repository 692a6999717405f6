#include "data/hdf5/episode_cuts.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "data/hdf5/array.h"

namespace cohort::data {
namespace {

constexpr std::array kNumbersOfEpisodes{"episode_index", "episode_id", "episode_ids",  "traj_id",
                                        "traj_ids",      "traj_index", "trajectory_id"};
constexpr std::array kEndFlags{"terminals",    "timeouts",    "dones",       "done",       "terminated", "truncated",
                               "terminations", "truncations", "terminateds", "truncateds", "is_last",    "next.done"};
constexpr std::array kStartFlags{"is_first", "episode_starts"};

class Cutting {
 public:
  Cutting(const Hdf5Metadata& file, const MappedFile& mapping, const Hdf5Shapes& shapes, std::string group,
          std::int64_t steps)
      : file_(file), mapping_(mapping), shapes_(shapes), group_(std::move(group)), steps_(steps) {}

  Hdf5Cuts find() const {
    if (auto cuts = by_places("episode_ends", 0)) return *std::move(cuts);
    if (auto cuts = by_places("episode_starts", 1)) return *std::move(cuts);
    if (auto cuts = by_numbers()) return *std::move(cuts);
    return by_flags();
  }

 private:
  std::string below(const std::string& group, const std::string& name) const {
    return (group == "/" ? "/" : group + "/") + name;
  }

  /// A column of numbers: (n) or (n, 1).
  std::optional<Hdf5Array> column(const std::string& path) const {
    for (const auto& [name, shape] : shapes_)
      if (path.substr(1) == name && shape[0] > 0 &&
          std::all_of(shape.begin() + 1, shape.end(), [](std::int64_t extent) { return extent == 1; }))
        return file_.array(path);
    return std::nullopt;
  }

  std::vector<double> values(const Hdf5Array& array) const {
    std::string stored(static_cast<std::size_t>(array.shape[0] * array.row_bytes()), '\0'), scratch;
    read_rows(mapping_, array, 0, array.shape[0], stored.data(), scratch);
    std::vector<double> values(static_cast<std::size_t>(array.shape[0]));
    convert_elements(array.element, stored.data(), std::span(values));
    return values;
  }

  /// A row per step; an array of flags or numbers may have one more, which is not looked at.
  std::vector<double> per_step(const char* name) const {
    const auto array = column(below(group_, name));
    if (!array || (array->shape[0] != steps_ && array->shape[0] != steps_ + 1)) return {};
    std::vector<double> all = values(*array);
    all.resize(static_cast<std::size_t>(steps_));
    return all;
  }

  /// `first`: 1 where the list names first steps.
  std::optional<Hdf5Cuts> by_places(const char* name, std::size_t first) const {
    for (const std::string& path : {below(group_, name), below("/", name), below("/meta", name)}) {
      const auto array = column(path);
      if (!array || array->element.kind == Hdf5Element::Kind::kBool ||
          (first == 1 && array->shape[0] == steps_ && array->shape[0] > 1))
        continue;  // flags
      std::vector<double> places = values(*array);
      if (first == 1) {
        COHORT_THROW_UNLESS(places.front() == 0, "{}: {} begins with {:g}: the first episode begins with step 0",
                            mapping_.path(), path, places.front());
        places.erase(places.begin());
        places.push_back(static_cast<double>(steps_));
      }
      Hdf5Cuts cuts{.how = format("cut by {}", path), .lists = {path}};
      std::int64_t before = 0;
      for (const double place : places) {
        COHORT_THROW_UNLESS(
            place > static_cast<double>(before) && place <= static_cast<double>(steps_),
            "{}: {} has {:g} behind {}, but it names, in their order, {} of the {} steps: write it again",
            mapping_.path(), path, place, before,
            first == 1 ? "the first step of each episode" : "the step behind each episode's last", steps_);
        before = static_cast<std::int64_t>(place);
        cuts.ends.push_back(before);
      }
      COHORT_THROW_UNLESS(
          before == steps_,
          "{}: {} ends with {}, but there are {} steps: it names the step behind each episode's last, so "
          "its last number is that of all steps; write it again, or remove the steps behind",
          mapping_.path(), path, before, steps_);
      return cuts;
    }
    return std::nullopt;
  }

  std::optional<Hdf5Cuts> by_numbers() const {
    for (const char* name : kNumbersOfEpisodes) {
      const std::vector<double> numbers = per_step(name);
      if (numbers.empty()) continue;
      Hdf5Cuts cuts{.how = format("cut where {} changes", name)};
      for (std::size_t t = 1; t < numbers.size(); ++t)
        if (numbers[t] != numbers[t - 1]) cuts.ends.push_back(static_cast<std::int64_t>(t));
      cuts.ends.push_back(steps_);
      return cuts;
    }
    return std::nullopt;
  }

  Hdf5Cuts by_flags() const {
    std::vector<bool> ends(static_cast<std::size_t>(steps_) + 1, false);  // behind how many steps an episode ends
    std::vector<std::string> enders, starters;
    for (const char* name : kEndFlags) {
      const std::vector<double> flags = per_step(name);
      if (flags.empty()) continue;
      enders.emplace_back(name);
      for (std::size_t t = 0; t < flags.size(); ++t)
        if (flags[t] != 0) ends[t + 1] = true;
    }
    const auto first_end = std::find(ends.begin(), ends.end(), true);
    if (std::find(first_end, ends.end(), false) == ends.end()) std::fill(ends.begin(), ends.end(), false);
    for (const char* name : kStartFlags) {
      const std::vector<double> flags = per_step(name);
      if (flags.empty()) continue;
      starters.emplace_back(name);
      for (std::size_t t = 0; t < flags.size(); ++t)
        if (flags[t] != 0) ends[t] = true;
    }
    Hdf5Cuts cuts;
    for (std::size_t t = 1; t < static_cast<std::size_t>(steps_); ++t)
      if (ends[t]) cuts.ends.push_back(static_cast<std::int64_t>(t));
    if (enders.empty() && starters.empty()) {
      cuts.how =
          "nothing says where episodes end: no terminals, timeouts, dones, is_last, episode_index or episode_ends";
    } else {
      if (!enders.empty()) cuts.how = format("behind steps in which {} is true", join(enders, " or "));
      if (!starters.empty())
        cuts.how += format("{}before steps in which {} is true", enders.empty() ? "" : " and ", join(starters, " or "));
      cuts.how.insert(0, cuts.ends.empty() ? "none ends before the last steps: one would end " : "cut ");
    }
    cuts.ends.push_back(steps_);
    return cuts;
  }

  const Hdf5Metadata& file_;
  const MappedFile& mapping_;
  const Hdf5Shapes& shapes_;
  const std::string group_;
  const std::int64_t steps_;
};

}  // namespace

Hdf5Cuts find_cuts(const Hdf5Metadata& file, const MappedFile& mapping, const Hdf5Shapes& shapes,
                   const std::string& group, std::int64_t steps) {
  return Cutting(file, mapping, shapes, group, steps).find();
}

}  // namespace cohort::data
