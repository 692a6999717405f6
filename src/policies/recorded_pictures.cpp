#include "policies/recorded_pictures.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "policies/recorded_fields.h"

namespace cohort::policies {

void describe(config::Fields& fields, RecordedPictures& pictures) {
  fields.add("renderer", pictures.renderer, "that drew the pictures of the data; empty: from the data");
  fields.add("size", pictures.size, "height and width of the pictures in the data; empty: from the data");
}

RecordedPictures recorded_pictures(const data::EpisodeSource& source, const std::string& field) {
  RecordedPictures pictures;
  const data::StepField& images = source.fields()[source.field_index(field)];
  if (images.shape.size() == 3 && images.shape[0] > 0 && images.shape[1] > 0)
    pictures.size = {static_cast<int>(images.shape[0]), static_cast<int>(images.shape[1])};
  if (source.size() == 0) return pictures;
  // As record/episode_record.h writes it, in RLDS and in HDF5.
  const std::vector<std::string>& names = source.metadata_names();
  for (const char* name : {"episode_metadata/renderer", "renderer"})
    if (std::find(names.begin(), names.end(), name) != names.end())
      pictures.renderer = std::string(source.open(0)->metadata(name));
  return pictures;
}

RecordedPictures recorded_pictures(const config::Json& configuration) {
  RecordedPictures pictures;
  if (!configuration.is_object() || !configuration.contains("model")) return pictures;
  const config::Json& model = configuration.at("model");
  if (!model.is_object() || !model.contains("recorded")) return pictures;
  config::Fields fields;
  RecordedFields numbers;  // stand in the same section
  describe(fields, pictures);
  describe(fields, numbers);
  fields.apply_json(model.at("recorded"), "model.recorded");
  return pictures;
}

RecordedPictures common(const RecordedPictures& a, const RecordedPictures& b) {
  RecordedPictures both;
  if (a.renderer == b.renderer) both.renderer = a.renderer;
  if (a.size == b.size) both.size = a.size;
  return both;
}

}  // namespace cohort::policies
