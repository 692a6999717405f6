/// Pictures as they lie in the files, looked at without decoding them: whether there is one, whether its head and its end are
/// sound, what size it has.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/episodes.h"

namespace cohort::data {

/// Why a picture cannot be decoded, as far as its head and its end say it: it is neither JPEG nor PNG, or was cut. Empty where
/// it seems sound, and where there is none.
std::string picture_fault(const StoredImage& picture);

/// "; copy the file again, or ..." where picture_fault() says something; else empty.
std::string picture_remedy(const StoredImage& picture);

/// Throws Error naming episode, field and step where picture_fault() says something.
void check_stored_picture(const Episode& episode, const StepField& field, std::size_t index, std::int64_t step);

/// Likewise for all steps of all fields of pictures, of which a step has one.
void check_stored_pictures(const Episode& episode, const std::vector<StepField>& fields);

/// Looks at the first pictures of up to 32 of the episodes, spread evenly, so that what is wrong with a whole set, or with a
/// part of it, is known before the first step. Throws Error for one that cannot be read, is damaged or missing (missing ones
/// are taken where `may_be_missing`). One of another size than the data say, or than the first one, is a line of the log: it is
/// resized.
void check_first_pictures(const EpisodeSource& source, const std::vector<std::int64_t>& episodes,
                          std::span<const std::size_t> fields, bool may_be_missing, int threads);

}  // namespace cohort::data
