#include "view/data_page.h"

#include <nlohmann/json.hpp>
#include <span>

#include "view/binary_document.h"
#include "view/page.h"

namespace cohort::view {

std::string data_page(const std::string& title, const std::string& summary, const std::vector<DataEpisode>& episodes) {
  using nlohmann::json;
  BinaryDocument doc;
  doc.text["format"] = "cohort data 1";
  doc.text["title"] = title, doc.text["summary"] = summary;
  json all = json::array();
  for (const DataEpisode& e : episodes) {
    json curves = json::array(), cameras = json::array();
    for (const DataCurve& c : e.curves)
      curves.push_back({{"name", c.name},
                        {"elements", c.elements},
                        {"width", c.width},
                        {"values", doc.add(std::span<const float>(c.values))}});
    for (const DataCamera& c : e.cameras) {
      json pictures = json::array();
      for (const std::string& p : c.pictures)
        pictures.push_back(doc.add(std::span(reinterpret_cast<const std::uint8_t*>(p.data()), p.size())));
      cameras.push_back({{"name", c.name}, {"steps", c.steps}, {"pictures", pictures}});
    }
    all.push_back({{"title", e.title},
                   {"instruction", e.instruction},
                   {"steps", e.steps},
                   {"curves", curves},
                   {"cameras", cameras}});
  }
  doc.text["episodes"] = std::move(all);
  return offline_data_page(title, doc.bytes());
}

}  // namespace cohort::view
