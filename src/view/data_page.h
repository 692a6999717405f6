/// A page that shows recorded episodes: pictures of their cameras and curves of their numbers side by side over time.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace cohort::view {

struct DataCurve {
  std::string name;                   ///< of the field
  std::vector<std::string> elements;  ///< names of its elements; empty: none are known
  std::size_t width = 1;
  std::vector<float> values;  ///< (steps, width)
};
struct DataCamera {
  std::string name;
  std::vector<std::int64_t> steps;    ///< of the pictures, rising
  std::vector<std::string> pictures;  ///< JPEG or PNG; "": damaged
};
struct DataEpisode {
  std::string title;        ///< "episode 3"
  std::string instruction;  ///< what was to be done; may be empty
  std::int64_t steps = 0;
  std::vector<DataCurve> curves;
  std::vector<DataCamera> cameras;
};

class BinaryDocument;
/// As the page's script takes them; pictures and values are put into `doc`.
nlohmann::json episode_json(const DataEpisode& episode, BinaryDocument& doc);
nlohmann::json cameras_json(const std::vector<DataCamera>& cameras, BinaryDocument& doc);

/// The page, as offline_page() gives one. summary: lines about the whole set, its problems among them.
std::string data_page(const std::string& title, const std::string& summary, const std::vector<DataEpisode>& episodes);

}  // namespace cohort::view
