/// The fields of numbers that a policy learnt from and gives: names, widths and, where the data say it, what their
/// elements are called. The policy's configuration and so its checkpoints keep them, so that whoever acts with it speaks
/// in the data's own numbers, without the data at hand.
#pragma once
#include <string>
#include <vector>

#include "core/config.h"
#include "data/episodes.h"
#include "data/transforms/field_vector.h"

namespace cohort::policies {

struct RecordedFields {
  std::vector<std::string> names;     ///< as data.proprio and data.actions call them, without slices and transforms
  std::vector<int> widths;            ///< of one step
  std::vector<std::string> elements;  ///< of each field, "eef_pos.0,eef_pos.1"; "": not known
};

/// Binds them in the current section (by convention "recorded").
void describe(config::Fields& fields, RecordedFields& recorded);

/// Of the fields that these components (data/transforms/component.h) are of.
RecordedFields recorded_fields(const data::EpisodeSource& source, const std::vector<std::string>& components);

/// Those of `more` that are not known by their names.
void add_fields(RecordedFields& recorded, const RecordedFields& more);

std::vector<data::RecordedField> fields_of(const RecordedFields& recorded);

}  // namespace cohort::policies
