/// Which arrays of a demo are fields of its steps: those with a row per step. What comes close without being one is
/// remembered, so that a message can say so instead of denying it.
///
///   Hdf5RowCounts counts;                                   // of a set
///   const std::int64_t steps = steps_of_demo(shapes, attributes);
///   counts.add(shapes, steps, "lift.hdf5: /data/demo_0");   // every demo
///   counts.fits_everywhere("obs/tip");                      // in all demos that have it
///   counts.why_not("obs/wrench");                           // "it has 7 rows in lift.hdf5: /data/demo_0, …"
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "data/episodes.h"
#include "data/hdf5/metadata.h"

namespace cohort::data {

/// Names and extents of a demo's arrays of numbers.
using Hdf5Shapes = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;

/// Whether an array of an episode is called action or actions, or lies in a group of that name or action_dict.
bool is_action(const std::string& name);

/// Steps of a demo: the attribute num_samples; without it the rows of what is called action or actions, or lies in a
/// group of that name or action_dict; without those what most arrays have as their first extent. 0 where there is none.
std::int64_t steps_of_demo(const Hdf5Shapes& shapes, const Hdf5Attributes& attributes);

/// Whether an array has a row per step; or one more, the observation after the last action, which is not used.
inline bool has_row_per_step(std::int64_t rows, std::int64_t steps) {
  return rows == steps || rows == steps + 1;
}

/// Pictures of uint8 as (steps, 1 or 3, height, width); a camera has at least 8 x 8 pixels. The usual order is (steps,
/// height, width, 1 or 3).
bool is_channels_first(const Hdf5Array& array);

/// Whether an array lies below a group called images, as ALOHA's and RDT's cameras do (observations/images/cam_high).
bool is_below_images(const std::string& path);
/// Compressed pictures below such a group, each a JPEG or PNG of bytes (steps, most bytes), behind which the row is
/// filled up: texts of one length, or uint8.
bool is_packed_pictures(const std::string& path, const Hdf5Array& array);

/// The field that an array is: an image has the shape (height, width, channels), however it is stored.
StepField make_step_field(const std::string& name, const Hdf5Array& array);

/// Names and shapes of what has a row per step: the same text for demos that are alike.
std::string text_of_layout(const Hdf5Shapes& shapes, std::int64_t steps);

class Hdf5RowCounts {
 public:
  /// Counts the rows of a demo's arrays. `location` names the demo in messages.
  void add(const Hdf5Shapes& shapes, std::int64_t steps, const std::string& location);
  /// Whether every demo that has the array has a row per step in it.
  bool fits_everywhere(const std::string& name) const;
  /// "obs/block, obs/tip: the last row of 3 of 3 demos, …, is not used" of those among `names` of which that holds;
  /// else empty.
  std::string rows_not_used(const std::vector<std::string>& names) const;
  /// Why an array of this name is no field: "it has 13 rows in …, which has 12 steps"; empty where there is none.
  std::string why_not(const std::string& name) const;
  /// All that were counted, by name.
  std::vector<std::string> names() const;

 private:
  struct Rows {
    std::int64_t demos = 0, fitting = 0, one_more = 0;
    std::int64_t rows = 0, steps = 0;  // of the first demo where they do not fit
    std::string location;
  };
  std::map<std::string, Rows> counts_;
  std::int64_t demos_ = 0;
};

}  // namespace cohort::data
