#include "policies/recorded_fields.h"

#include <algorithm>

#include "core/error.h"
#include "data/transforms/call.h"
#include "data/transforms/component.h"

namespace cohort::policies {

void describe(config::Fields& fields, RecordedFields& recorded) {
  fields.add("fields", recorded.names, "of numbers, that the components are of; empty: from the data");
  fields.add("field_widths", recorded.widths, "of these fields; empty: from the data");
  fields.add("field_elements", recorded.elements, "what the numbers of each field are called, a,b; empty: not known");
}

RecordedFields recorded_fields(const data::EpisodeSource& source, const std::vector<std::string>& components) {
  RecordedFields recorded;
  for (const std::string& component : components) {
    const std::string name = data::ComponentText(component).field;
    if (std::find(recorded.names.begin(), recorded.names.end(), name) != recorded.names.end()) continue;
    const data::StepField& field = source.fields()[source.field_index(name)];
    const std::vector<std::string> elements = source.element_names(field.name);
    const bool can_be_listed =
        std::ssize(elements) == field.elements() &&
        std::none_of(elements.begin(), elements.end(), [](const auto& e) { return e.find(',') != std::string::npos; });
    recorded.names.push_back(name);
    recorded.widths.push_back(static_cast<int>(field.elements()));
    recorded.elements.push_back(can_be_listed ? join(elements, ",") : "");
  }
  return recorded;
}

void add_fields(RecordedFields& recorded, const RecordedFields& more) {
  for (std::size_t i = 0; i < more.names.size(); ++i) {
    if (std::find(recorded.names.begin(), recorded.names.end(), more.names[i]) != recorded.names.end()) continue;
    recorded.names.push_back(more.names[i]);
    recorded.widths.push_back(more.widths[i]);
    recorded.elements.push_back(more.elements[i]);
  }
}

std::vector<data::RecordedField> fields_of(const RecordedFields& recorded) {
  COHORT_THROW_UNLESS(
      recorded.names.size() == recorded.widths.size() && recorded.names.size() == recorded.elements.size(),
      "model.recorded: {} fields, {} field_widths and {} field_elements: there must be as many", recorded.names.size(),
      recorded.widths.size(), recorded.elements.size());
  std::vector<data::RecordedField> fields;
  for (std::size_t i = 0; i < recorded.names.size(); ++i) {
    data::RecordedField& field = fields.emplace_back();
    field.name = recorded.names[i];
    field.width = recorded.widths[i];
    if (!recorded.elements[i].empty()) field.elements = data::split_text(recorded.elements[i], ',');
  }
  return fields;
}

}  // namespace cohort::policies
