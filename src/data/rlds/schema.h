/// features.json: the schema of a data set as tensorflow-datasets writes it (core/proto/feature.proto in JSON form).
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/array_view.h"

namespace cohort::data {

enum class FeatureKind : std::uint8_t {
  kDict,      ///< named children
  kSequence,  ///< one child, repeated: Sequence, Dataset, Video
  kTensor,    ///< numbers, bools or strings of a shape; scalars, class labels and boxes too
  kText,
  kImage,
};

/// How the numbers of a tensor or the pixels of an image lie in the record.
enum class FeatureEncoding : std::uint8_t { kNone, kBytes, kZlib, kJpeg, kPng, kAnyImage };

/// A node of the schema.
struct Feature {
  FeatureKind kind = FeatureKind::kDict;
  std::string python_class;         ///< e.g. tensorflow_datasets.core.features.tensor_feature.Tensor
  std::string dtype;                ///< tensors and images, as NumPy names it: "float64", "bool", "string", "uint8"
  std::vector<std::int64_t> shape;  ///< tensors; images: height, width, channels; -1 where it varies
  FeatureEncoding encoding = FeatureEncoding::kNone;
  std::int64_t length = -1;                               ///< sequences: -1 where it varies
  std::vector<std::pair<std::string, Feature>> children;  ///< dicts: by name; sequences: one, with an empty name

  /// The child of a dict, or nullptr.
  const Feature* child(std::string_view name) const;
};

/// Reads features.json. Throws Error naming `source`, the feature's path, and what is wrong: an unknown feature type
/// is named with its Python class.
Feature parse_features(std::string_view json, const std::string& source);
/// The JSON that tensorflow-datasets reads back to the same schema.
std::string write_features(const Feature& root);

Feature make_dict(std::vector<std::pair<std::string, Feature>> children);
/// A Dataset feature (RLDS's `steps`) of dicts.
Feature make_steps(Feature step);
Feature make_tensor(std::string dtype, std::vector<std::int64_t> shape);
Feature make_text();
Feature make_image(std::int64_t height, std::int64_t width, std::int64_t channels, FeatureEncoding encoding);

/// A value of the schema that is no dict: one key of a record, with the sequences around it.
struct FeatureLeaf {
  std::string key;  ///< "steps/observation/image"
  FeatureKind kind = FeatureKind::kTensor;
  std::string dtype;
  std::vector<std::int64_t> shape;  ///< of one element, without the sequences
  FeatureEncoding encoding = FeatureEncoding::kNone;
  std::vector<std::int64_t> sequences;  ///< their lengths, outermost first; -1 where it varies
  bool dynamic_shape() const;           ///< more than one unknown dimension: the shape lies beside the value
};

/// All leaves, depth first in the order of the file.
std::vector<FeatureLeaf> list_leaves(const Feature& root);

/// The element type that holds the dtype: integers that have none of their own become int64. Throws Error on texts and
/// unknown names.
ElementType element_type_for(const std::string& dtype);

}  // namespace cohort::data
