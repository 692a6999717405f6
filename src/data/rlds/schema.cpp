#include "data/rlds/schema.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json_text.h"
#include "core/settings_file.h"
#include "data/rlds/json_values.h"

namespace cohort::data {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::string_view kClassPrefix = "tensorflow_datasets.core.features.";
constexpr std::int64_t kMaxElements = std::int64_t{1} << 31;  // of one tensor or image
constexpr int kMaxDepth = 64;  // of nested features: deeper is no data set but an attack on the stack

struct Where {
  const std::string& source;
  std::string path;
  int depth = 0;
  Where inside(const std::string& name) const {
    COHORT_THROW_UNLESS(depth < kMaxDepth, "{}: features are nested more than {} deep at {}", source, kMaxDepth, path);
    return {source, path.empty() ? name : path + "/" + name, depth + 1};
  }
  std::string text() const {
    return path.empty() ? format("{}: the top feature", source) : format("{}: feature {}", source, path);
  }
};

std::vector<std::int64_t> shape_of(const Json& object, const Where& where) {
  std::vector<std::int64_t> shape;
  const auto found = object.find("shape");
  if (found == object.end() || !found->is_object() || !found->contains("dimensions")) return shape;
  const Json& dimensions = (*found)["dimensions"];
  COHORT_THROW_UNLESS(dimensions.is_array() && dimensions.size() <= kMaxRank - 2, "{}: shape is {}", where.text(),
                      json_text(*found));
  std::int64_t elements = 1;
  for (const Json& dimension : dimensions) {
    const std::int64_t extent = whole_number(dimension, where.text(), "a dimension");
    COHORT_THROW_UNLESS(extent >= -1 && extent <= kMaxElements, "{}: a dimension is {}", where.text(), extent);
    elements *= std::max<std::int64_t>(extent, 1);
    COHORT_THROW_UNLESS(elements <= kMaxElements, "{}: a value has more than {} elements", where.text(), kMaxElements);
    shape.push_back(extent);
  }
  return shape;
}

FeatureEncoding tensor_encoding(const std::string& text, const Where& where) {
  if (text.empty() || text == "none") return FeatureEncoding::kNone;
  if (text == "bytes") return FeatureEncoding::kBytes;
  if (text == "zlib") return FeatureEncoding::kZlib;
  throw Error(format("{}: the tensor's encoding is '{}'; known are none, bytes, zlib", where.text(), text));
}

FeatureEncoding image_encoding(const std::string& text, const Where& where) {
  if (text.empty()) return FeatureEncoding::kAnyImage;
  if (text == "jpeg") return FeatureEncoding::kJpeg;
  if (text == "png") return FeatureEncoding::kPng;
  throw Error(format("{}: the image's encoding is '{}'; known are jpeg, png", where.text(), text));
}

Feature parse(const Json& json, const Where& where);

Feature parse_image(const Json& body, const Where& where) {
  Feature feature{.kind = FeatureKind::kImage};
  feature.shape = shape_of(body, where);
  if (feature.shape.empty()) feature.shape = {-1, -1, 3};
  COHORT_THROW_UNLESS(feature.shape.size() == 3, "{}: an image has {} dimensions, not height, width, channels",
                      where.text(), feature.shape.size());
  feature.dtype = text_of(body, "dtype", where.text(), "uint8");
  feature.encoding = image_encoding(text_of(body, "encodingFormat", where.text(), ""), where);
  return feature;
}

Feature parse_body(const Json& json, const Where& where, const std::string& python_class) {
  const auto body = [&](const char* name) -> const Json* {
    const auto found = json.find(name);
    if (found == json.end()) return nullptr;
    COHORT_THROW_UNLESS(found->is_object(), "{}: {} is no object", where.text(), name);
    return &*found;
  };
  Feature feature;
  if (const Json* dict = body("featuresDict")) {
    feature.kind = FeatureKind::kDict;
    const auto features = dict->find("features");
    if (features == dict->end()) return feature;
    COHORT_THROW_UNLESS(features->is_object(), "{}: features is no object", where.text());
    for (const auto& [name, child] : features->items())
      feature.children.emplace_back(name, parse(child, where.inside(name)));
    return feature;
  }
  if (const Json* sequence = body("sequence")) {
    feature.kind = FeatureKind::kSequence;
    const auto child = sequence->find("feature");
    COHORT_THROW_UNLESS(child != sequence->end(), "{}: a sequence without a feature", where.text());
    if (sequence->contains("length"))
      feature.length = whole_number((*sequence)["length"], where.text(), "the sequence's length");
    if (feature.length <= 0) feature.length = -1;
    feature.children.emplace_back("", parse(*child, {where.source, where.path, where.inside("").depth}));
    return feature;
  }
  if (const Json* tensor = body("tensor")) {
    feature.kind = FeatureKind::kTensor;
    feature.shape = shape_of(*tensor, where);
    feature.dtype = text_of(*tensor, "dtype", where.text(), "");
    feature.encoding = tensor_encoding(text_of(*tensor, "encoding", where.text(), ""), where);
    if (feature.dtype == "object" || feature.dtype == "str") feature.dtype = "string";
    if (feature.dtype != "string") element_type_for(feature.dtype);
    return feature;
  }
  if (body("text")) return Feature{.kind = FeatureKind::kText, .dtype = "string"};
  if (const Json* image = body("image")) return parse_image(*image, where);
  if (const Json* video = body("video")) {
    Feature frames{.kind = FeatureKind::kSequence};
    Json frame = *video;
    if (frame.contains("shape") && frame["shape"].contains("dimensions") && frame["shape"]["dimensions"].is_array() &&
        !frame["shape"]["dimensions"].empty())
      frame["shape"]["dimensions"].erase(0);  // the number of frames
    frames.children.emplace_back("", parse_image(frame, where));
    return frames;
  }
  if (body("classLabel")) return Feature{.kind = FeatureKind::kTensor, .dtype = "int64"};
  if (body("boundingBox")) return Feature{.kind = FeatureKind::kTensor, .dtype = "float32", .shape = {4}};
  throw Error(format(
      "{}: unknown feature type {}; known are dicts, sequences and data sets, tensors and scalars, texts, images, "
      "videos, class labels and boxes",
      where.text(), python_class.empty() ? json_text(json).substr(0, 80) : python_class));
}

Feature parse(const Json& json, const Where& where) {
  COHORT_THROW_UNLESS(json.is_object(), "{}: is no object", where.text());
  const std::string python_class = text_of(json, "pythonClassName", where.text(), "");
  Feature feature;
  try {
    feature = parse_body(json, where, python_class);
  } catch (const Error& e) {
    const std::string message = e.what();
    if (message.starts_with(where.source)) throw;
    throw Error(format("{}: {}", where.text(), message));
  }
  feature.python_class = python_class;
  return feature;
}

Json shape_json(const std::vector<std::int64_t>& shape) {
  Json json = Json::object();
  for (const std::int64_t n : shape) json["dimensions"].push_back(std::to_string(n));
  return json;
}

Json to_json(const Feature& feature) {
  Json json;
  json["pythonClassName"] = feature.python_class;
  switch (feature.kind) {
    case FeatureKind::kDict:
      json["featuresDict"]["features"] = Json::object();
      for (const auto& [name, child] : feature.children) json["featuresDict"]["features"][name] = to_json(child);
      break;
    case FeatureKind::kSequence:
      json["sequence"] = {{"feature", to_json(feature.children.front().second)},
                          {"length", std::to_string(feature.length)}};
      break;
    case FeatureKind::kTensor: {
      static constexpr std::array kNames{"none", "bytes", "zlib"};
      json["tensor"] = {{"dtype", feature.dtype},
                        {"encoding", kNames[static_cast<std::size_t>(feature.encoding)]},
                        {"shape", shape_json(feature.shape)}};
      break;
    }
    case FeatureKind::kText:
      json["text"] = Json::object();
      break;
    case FeatureKind::kImage:
      json["image"] = {{"dtype", feature.dtype}, {"shape", shape_json(feature.shape)}};
      if (feature.encoding != FeatureEncoding::kAnyImage)
        json["image"]["encodingFormat"] = feature.encoding == FeatureEncoding::kJpeg ? "jpeg" : "png";
      break;
  }
  return json;
}

void collect(const Feature& feature, const std::string& key, std::vector<std::int64_t>& sequences,
             std::vector<FeatureLeaf>& out) {
  switch (feature.kind) {
    case FeatureKind::kDict:
      for (const auto& [name, child] : feature.children)
        collect(child, key.empty() ? name : key + "/" + name, sequences, out);
      return;
    case FeatureKind::kSequence:
      sequences.push_back(feature.length);
      collect(feature.children.front().second, key, sequences, out);
      sequences.pop_back();
      return;
    default:
      out.push_back({key, feature.kind, feature.dtype, feature.shape, feature.encoding, sequences});
  }
}

std::string class_name(std::string_view tail) {
  return std::string(kClassPrefix) + std::string(tail);
}

}  // namespace

const Feature* Feature::child(std::string_view name) const {
  for (const auto& [child_name, feature] : children)
    if (child_name == name) return &feature;
  return nullptr;
}

bool FeatureLeaf::dynamic_shape() const {
  return kind == FeatureKind::kTensor && std::count(shape.begin(), shape.end(), -1) > 1;
}

Feature parse_features(std::string_view json, const std::string& source) {
  // The parser recurses over nested values; bound them before it runs.
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (quoted) {
      if (json[i] == '\\')
        ++i;
      else if (json[i] == '"')
        quoted = false;
    } else if (json[i] == '"') {
      quoted = true;
    } else if (json[i] == '{' || json[i] == '[') {
      COHORT_THROW_UNLESS(++depth <= 6 * kMaxDepth, "{}: values are nested more than {} deep", source, 6 * kMaxDepth);
    } else if (json[i] == '}' || json[i] == ']') {
      --depth;
    }
  }
  const Json root = read_json_text(std::string(json), source);
  try {
    return parse(root, {source, "", 0});
  } catch (const Json::exception& e) {  // dump() of a text that is no UTF-8, say
    throw Error(format("{}: {}", source, e.what()));
  }
}

std::string write_features(const Feature& root) {
  return json_text(to_json(root), 4, BadUtf8::kReplaced);
}

Feature make_dict(std::vector<std::pair<std::string, Feature>> children) {
  return {.kind = FeatureKind::kDict,
          .python_class = class_name("features_dict.FeaturesDict"),
          .children = std::move(children)};
}

Feature make_steps(Feature step) {
  Feature steps{.kind = FeatureKind::kSequence, .python_class = class_name("dataset_feature.Dataset")};
  steps.children.emplace_back("", std::move(step));
  return steps;
}

Feature make_tensor(std::string dtype, std::vector<std::int64_t> shape) {
  const char* name = shape.empty() ? "scalar.Scalar" : "tensor_feature.Tensor";
  return {.kind = FeatureKind::kTensor,
          .python_class = class_name(name),
          .dtype = std::move(dtype),
          .shape = std::move(shape)};
}

Feature make_text() {
  return {.kind = FeatureKind::kText, .python_class = class_name("text_feature.Text"), .dtype = "string"};
}

Feature make_image(std::int64_t height, std::int64_t width, std::int64_t channels, FeatureEncoding encoding) {
  return {.kind = FeatureKind::kImage,
          .python_class = class_name("image_feature.Image"),
          .dtype = "uint8",
          .shape = {height, width, channels},
          .encoding = encoding};
}

std::vector<FeatureLeaf> list_leaves(const Feature& root) {
  std::vector<FeatureLeaf> leaves;
  std::vector<std::int64_t> sequences;
  collect(root, "", sequences, leaves);
  return leaves;
}

ElementType element_type_for(const std::string& dtype) {
  if (dtype == "float32") return ElementType::kFloat32;
  if (dtype == "float64") return ElementType::kFloat64;
  if (dtype == "float16") return ElementType::kFloat16;
  if (dtype == "bfloat16") return ElementType::kBFloat16;
  if (dtype == "bool") return ElementType::kBool;
  if (dtype == "uint8") return ElementType::kUInt8;
  if (dtype == "int32") return ElementType::kInt32;
  if (dtype == "int16") return ElementType::kInt16;
  for (const char* wide : {"int64", "int8", "uint16", "uint32", "uint64"})
    if (dtype == wide) return ElementType::kInt64;
  throw Error(
      format("unknown element type '{}'; known are bool, (u)int8 to 64, bfloat16, float16, float32, float64", dtype));
}

}  // namespace cohort::data
