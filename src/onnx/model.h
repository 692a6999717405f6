/// Models in ONNX's format (https://onnx.ai, onnx.proto of IR version 8), as plain data: read, written, nothing computed.
///
///   Model model = read_model("policy.onnx");
///   model.metadata["joint_names"];                       // "hip,knee"
///   write_model("copy.onnx", model);
///
/// evaluator.h computes one. Of the format there is what networks of policies need: one graph without parts of its own
/// (no loops, no conditions), dense tensors within the file. Anything else is an Error that names it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::onnx {

/// A dense tensor, row-major. Numbers of the file's types float, double and float16 are kept as float; those of int32,
/// int64, uint8 and bool as int64.
struct Tensor {
  std::string name;
  std::vector<std::int64_t> shape;  ///< {}: a single number
  bool integral = false;            ///< which of both holds its numbers
  std::vector<float> floats;
  std::vector<std::int64_t> ints;

  /// Numbers in it by its shape.
  std::int64_t elements() const;
  static Tensor of(std::string name, std::vector<std::int64_t> shape, std::vector<float> numbers);
  static Tensor of_ints(std::string name, std::vector<std::int64_t> shape, std::vector<std::int64_t> numbers);
};

/// "(2, 3)".
std::string shape_text(const std::vector<std::int64_t>& shape);

struct Attribute {
  enum class Type : int { kFloat = 1, kInt = 2, kString = 3, kTensor = 4, kFloats = 6, kInts = 7, kStrings = 8 };
  std::string name;
  Type type = Type::kInt;
  float number = 0;
  std::int64_t integer = 0;
  std::string text;
  Tensor tensor;
  std::vector<float> floats;
  std::vector<std::int64_t> ints;
  std::vector<std::string> texts;

  static Attribute of(std::string name, std::int64_t value);
  static Attribute of(std::string name, float value);
};

struct Node {
  std::string name, op;                      ///< op: "Gemm"
  std::string domain;                        ///< empty: ONNX's own operators
  std::vector<std::string> inputs, outputs;  ///< an input that is left out has an empty name
  std::vector<Attribute> attributes;

  /// For messages: "'/actor/0' (Gemm)", or "that gives 'x' (Gemm)" of a node without a name.
  std::string title() const;
  /// Null: it has no such attribute.
  const Attribute* attribute(std::string_view wanted) const;
  std::int64_t integer(std::string_view wanted, std::int64_t otherwise) const;
  float number(std::string_view wanted, float otherwise) const;
  std::string text(std::string_view wanted, const std::string& otherwise) const;
};

/// A size of an input's or output's shape.
struct Dim {
  std::int64_t size = -1;  ///< -1: any
  std::string name;        ///< of one that is any: "batch"
};
/// An input or output of the model.
struct Port {
  std::string name;
  std::vector<Dim> shape;
  bool integral = false;  ///< of int64, else of float
};

struct Model {
  std::int64_t ir_version = 8, opset = 18;
  std::string producer, producer_version, name;
  std::vector<Port> inputs, outputs;  ///< without the initializers, which old files name among the inputs
  std::vector<Node> nodes;            ///< each behind those whose outputs it takes
  std::vector<Tensor> initializers;
  std::map<std::string, std::string> metadata;
};

/// `where` names the bytes in messages. Throws Error for what is no ONNX model, is cut off, or has what is not read here.
Model parse_model(std::string_view bytes, const std::string& where);
Model read_model(const std::filesystem::path& path);

std::string serialized(const Model& model);
/// The file is whole or as before. Throws Error with path and reason.
void write_model(const std::filesystem::path& path, const Model& model);

}  // namespace cohort::onnx
