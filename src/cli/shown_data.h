/// Recorded episodes as pages show them (view/data_page.h, view/data_server.h).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/episodes.h"
#include "view/data_page.h"
#include "view/data_server.h"

namespace cohort::cli {

/// Pictures of a camera in an episode of a page that is one file: as many as a few megabytes hold.
inline constexpr std::int64_t kPagePictures = 60;

/// Curves of an episode's number fields and its cameras, spread over its steps; a picture is at most 240 px high, "" where
/// it is damaged. with_pictures: false: their steps alone. Throws Error where the episode cannot be read.
view::DataEpisode shown_episode(const data::EpisodeSource& source, std::int64_t place, std::int64_t most_pictures,
                                bool with_pictures = true);

/// All episodes of a source, which must outlive it. threads: of filters.
std::unique_ptr<view::DataSession> make_data_session(const data::EpisodeSource& source, int threads);

}  // namespace cohort::cli
