/// What a set of robot data looks like: as text, and as a picture of frames and curves.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/episodes.h"
#include "data/images/codec.h"

namespace cohort::data {

/// Name, episodes, steps and their spread, every field with type and shape, metadata with an example, damaged episodes.
/// `episodes`: those that are counted and of which the first is the example; empty: all.
std::string inspect_text(const EpisodeSource& source, const std::vector<std::int64_t>& episodes = {});

struct ContactSheetSettings {
  std::int64_t episodes = 4;       ///< spread evenly over the set
  std::int64_t frames = 8;         ///< per episode and camera, spread evenly over its steps
  std::int64_t frame_height = 96;  ///< pixels
  /// Number fields that are drawn as curves over the steps; empty: every field with "action" in its name.
  std::vector<std::string> curves;
  std::vector<std::int64_t> among = {};    ///< episodes of the source to choose from; empty: all
  std::vector<std::int64_t> numbers = {};  ///< by which `among` are known to users, in titles; empty: their places
};

/// One block per episode: a row of frames per camera, then the curves, each element in a colour of its own. Damaged
/// images are crossed out.
Image contact_sheet(const EpisodeSource& source, const ContactSheetSettings& settings = {});

}  // namespace cohort::data
