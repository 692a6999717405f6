#include "view/data_page.h"

#include <nlohmann/json.hpp>
#include <span>

#include "view/binary_document.h"
#include "view/page.h"

namespace cohort::view {

using nlohmann::json;

json cameras_json(const std::vector<DataCamera>& cameras, BinaryDocument& doc) {
  json out = json::array();
  for (const DataCamera& c : cameras) {
    json pictures = json::array();
    for (const std::string& p : c.pictures)
      pictures.push_back(doc.add(std::span(reinterpret_cast<const std::uint8_t*>(p.data()), p.size())));
    out.push_back({{"name", c.name}, {"steps", c.steps}, {"pictures", pictures}});
  }
  return out;
}

json episode_json(const DataEpisode& episode, BinaryDocument& doc) {
  json curves = json::array();
  for (const DataCurve& c : episode.curves)
    curves.push_back({{"name", c.name},
                      {"elements", c.elements},
                      {"width", c.width},
                      {"values", doc.add(std::span<const float>(c.values))}});
  return {{"title", episode.title},
          {"instruction", episode.instruction},
          {"steps", episode.steps},
          {"curves", curves},
          {"cameras", cameras_json(episode.cameras, doc)}};
}

std::string data_page(const std::string& title, const std::string& summary, const std::vector<DataEpisode>& episodes) {
  BinaryDocument doc;
  doc.text["format"] = "cohort data 1";
  doc.text["title"] = title, doc.text["summary"] = summary;
  json all = json::array();
  for (const DataEpisode& e : episodes) all.push_back(episode_json(e, doc));
  doc.text["episodes"] = std::move(all);
  return offline_data_page(title, doc.bytes());
}

}  // namespace cohort::view
