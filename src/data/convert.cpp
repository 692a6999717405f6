#include "data/convert.h"

#include <numeric>

#include "core/error.h"
#include "data/format.h"

namespace cohort::data {

ConvertReport convert_episodes(const EpisodeSource& source, const std::filesystem::path& out,
                               const ConvertSettings& settings) {
  const DataFormat& to = find_format(settings.to, "data are converted to");
  COHORT_THROW_UNLESS(settings.image_encoding == "png" || settings.image_encoding == "jpeg",
                      "images are encoded as png or jpeg, not '{}'", settings.image_encoding);
  std::vector<std::int64_t> episodes = settings.episodes;
  if (episodes.empty()) {
    episodes.resize(static_cast<std::size_t>(source.size()));
    std::iota(episodes.begin(), episodes.end(), 0);
  }
  for (const std::int64_t episode : episodes)
    COHORT_THROW_UNLESS(episode >= 0 && episode < source.size(), "there is no episode {} among the {} of {}", episode,
                        source.size(), source.name());
  ConvertReport report;
  report.left_out = source.unselected_splits();
  to.write(source, episodes, out, settings, report);
  return report;
}

}  // namespace cohort::data
