/// The page that shows a scene: one HTML file with its script, style and data, which asks nobody for anything.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace cohort::view {

/// What the page plays; several are for the reader to choose from.
struct PageEpisode {
  std::string title;  ///< plain text
  std::string poses;  ///< PoseTrack::bytes()
};

struct PageContent {
  std::string title;                    ///< plain text
  std::string scene;                    ///< scene_document()
  std::vector<PageEpisode> episodes{};  ///< none: the scene stands still
};

/// The page that plays what is in it. Its policy of contents lets it run this script and fetch nothing.
std::string offline_page(const PageContent& content);
/// Writes it, whole or not at all. Throws Error.
void write_page(const std::filesystem::path& path, const PageContent& content);

/// Likewise of a document that the page's script knows by its format (data_page.h).
std::string offline_data_page(const std::string& title, const std::string& document);

/// The page of a server, which gets its data through a WebSocket at `socket` ("ws://127.0.0.1:8123/socket?token=...") and
/// may talk to nobody else. shows: "scene" or "data". nonce: letters and digits that nobody guesses, for this answer only.
std::string served_page(const std::string& title, const std::string& socket, const std::string& nonce,
                        const std::string& shows);

}  // namespace cohort::view
