#include "onnx/model.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <protozero/pbf_reader.hpp>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/files.h"
#include "onnx/message_fields.h"

namespace cohort::onnx {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr std::int64_t kMostElements = std::int64_t{1} << 32;

/// A repeated number comes packed or one by one: both are the same message.
void add_int64(pbf_reader& message, std::vector<std::int64_t>& to) {
  if (message.wire_type() == pbf_wire_type::length_delimited)
    for (const std::int64_t value : message.get_packed_int64()) to.push_back(value);
  else
    to.push_back(message.get_int64());
}
void add_int32(pbf_reader& message, std::vector<std::int64_t>& to) {
  if (message.wire_type() == pbf_wire_type::length_delimited)
    for (const std::int32_t value : message.get_packed_int32()) to.push_back(value);
  else
    to.push_back(message.get_int32());
}
void add_float(pbf_reader& message, std::vector<float>& to) {
  if (message.wire_type() == pbf_wire_type::length_delimited)
    for (const float value : message.get_packed_float()) to.push_back(value);
  else
    to.push_back(message.get_float());
}
void add_double(pbf_reader& message, std::vector<float>& to) {
  if (message.wire_type() == pbf_wire_type::length_delimited)
    for (const double value : message.get_packed_double()) to.push_back(static_cast<float>(value));
  else
    to.push_back(static_cast<float>(message.get_double()));
}

/// IEEE 754 binary16.
float from_half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const std::uint32_t sign = static_cast<std::uint32_t>(bits >> 15) << 31, fraction = bits & 1023u;
  if (exponent == 0) {
    const float size = static_cast<float>(fraction) * 0x1p-24f;
    return sign == 0 ? size : -size;
  }
  const std::uint32_t wide = exponent == 31 ? 255u : static_cast<std::uint32_t>(exponent + 112);
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

template <class From, class To, class Convert>
void unpack(std::string_view bytes, std::vector<To>& to, const Convert& convert) {
  to.resize(bytes.size() / sizeof(From));
  for (std::size_t i = 0; i < to.size(); ++i) {
    From value;
    std::memcpy(&value, bytes.data() + i * sizeof(From), sizeof(From));
    to[i] = convert(value);
  }
}

/// Puts a tensor's numbers, which are `raw` or lie in floats and ints already, where its element type has them.
void place_numbers(Tensor& tensor, std::int32_t type, std::string_view raw) {
  const auto as_is = [](auto value) { return static_cast<float>(value); };
  const auto as_int = [](auto value) { return static_cast<std::int64_t>(value); };
  switch (type) {
    case kFloat:
      if (!raw.empty()) unpack<float>(raw, tensor.floats, as_is);
      break;
    case kDouble:
      if (!raw.empty()) unpack<double>(raw, tensor.floats, as_is);
      break;
    case kFloat16:
      if (!raw.empty()) {
        unpack<std::uint16_t>(raw, tensor.floats, from_half);
      } else {
        for (const std::int64_t bits : tensor.ints)
          tensor.floats.push_back(from_half(static_cast<std::uint16_t>(bits)));
        tensor.ints.clear();
      }
      break;
    case kInt64:
      tensor.integral = true;
      if (!raw.empty()) unpack<std::int64_t>(raw, tensor.ints, as_int);
      break;
    case kInt32:
      tensor.integral = true;
      if (!raw.empty()) unpack<std::int32_t>(raw, tensor.ints, as_int);
      break;
    case kInt8:
      tensor.integral = true;
      if (!raw.empty()) unpack<std::int8_t>(raw, tensor.ints, as_int);
      break;
    case kUint8:
    case kBool:
      tensor.integral = true;
      if (!raw.empty()) unpack<std::uint8_t>(raw, tensor.ints, as_int);
      break;
    default:
      throw Error(
          format("tensor '{}' is of element type {} (onnx.proto, TensorProto.DataType): float, double, "
                 "float16, int8, int32, int64, uint8 and bool are read",
                 tensor.name, type));
  }
}

Tensor parse_tensor(pbf_reader message) {
  Tensor tensor;
  std::int32_t type = 0;
  std::string_view raw;
  bool external = false;
  while (message.next()) {
    switch (message.tag()) {
      case tensor_field::dims:
        add_int64(message, tensor.shape);
        break;
      case tensor_field::data_type:
        type = message.get_int32();
        break;
      case tensor_field::float_data:
        add_float(message, tensor.floats);
        break;
      case tensor_field::int32_data:
        add_int32(message, tensor.ints);
        break;
      case tensor_field::int64_data:
        add_int64(message, tensor.ints);
        break;
      case tensor_field::double_data:
        add_double(message, tensor.floats);
        break;
      case tensor_field::name:
        tensor.name = message.get_string();
        break;
      case tensor_field::raw_data: {
        const protozero::data_view view = message.get_view();
        raw = {view.data(), view.size()};
        break;
      }
      case tensor_field::external_data:
        external = true;
        message.skip();
        break;
      default:
        message.skip();
    }
  }
  COHORT_THROW_UNLESS(!external,
                      "the numbers of tensor '{}' lie in a file of their own: save the model as one file "
                      "(onnx.save(model, path, save_as_external_data=False))",
                      tensor.name);
  place_numbers(tensor, type, raw);
  std::int64_t elements = 1;
  for (const std::int64_t size : tensor.shape) {
    COHORT_THROW_UNLESS(size >= 0 && (size == 0 || elements <= kMostElements / size), "tensor '{}' has the shape {}",
                        tensor.name, shape_text(tensor.shape));
    elements *= size;
  }
  const std::int64_t there = tensor.integral ? std::ssize(tensor.ints) : std::ssize(tensor.floats);
  COHORT_THROW_UNLESS(elements == there, "tensor '{}' has the shape {} and {} numbers", tensor.name,
                      shape_text(tensor.shape), there);
  return tensor;
}

Attribute parse_attribute(pbf_reader message, const Node& node) {
  Attribute attribute;
  std::int32_t type = 0;
  bool other = false;
  while (message.next()) {
    switch (message.tag()) {
      case attribute_field::name:
        attribute.name = message.get_string();
        break;
      case attribute_field::f:
        attribute.number = message.get_float();
        break;
      case attribute_field::i:
        attribute.integer = message.get_int64();
        break;
      case attribute_field::s:
        attribute.text = message.get_bytes();
        break;
      case attribute_field::t:
        attribute.tensor = parse_tensor(message.get_message());
        break;
      case attribute_field::floats:
        add_float(message, attribute.floats);
        break;
      case attribute_field::ints:
        add_int64(message, attribute.ints);
        break;
      case attribute_field::strings:
        attribute.texts.push_back(message.get_bytes());
        break;
      case attribute_field::type:
        type = message.get_int32();
        break;
      default:
        other = true;
        message.skip();
    }
  }
  // A graph within a graph: the body of a loop or of a condition.
  COHORT_THROW_UNLESS(!(other && (type == 5 || type == 10)), "node {} has a graph of its own, its attribute '{}'",
                      node.title(), attribute.name);
  attribute.type = static_cast<Attribute::Type>(type);
  return attribute;
}

Node parse_node(pbf_reader message) {
  Node node;
  std::vector<protozero::data_view> attributes;
  while (message.next()) {
    switch (message.tag()) {
      case node_field::input:
        node.inputs.push_back(message.get_string());
        break;
      case node_field::output:
        node.outputs.push_back(message.get_string());
        break;
      case node_field::name:
        node.name = message.get_string();
        break;
      case node_field::op_type:
        node.op = message.get_string();
        break;
      case node_field::domain:
        node.domain = message.get_string();
        break;
      case node_field::attribute:
        attributes.push_back(message.get_view());
        break;
      default:
        message.skip();
    }
  }
  for (const protozero::data_view& view : attributes)
    node.attributes.push_back(parse_attribute(pbf_reader(view), node));
  return node;
}

void parse_shape(pbf_reader message, Port& port) {
  while (message.next(shape_field::dim)) {
    Dim dim;
    pbf_reader size = message.get_message();
    while (size.next()) {
      if (size.tag() == dim_field::dim_value)
        dim.size = size.get_int64();
      else if (size.tag() == dim_field::dim_param)
        dim.name = size.get_string();
      else
        size.skip();
    }
    port.shape.push_back(std::move(dim));
  }
}

Port parse_port(pbf_reader message) {
  Port port;
  while (message.next()) {
    if (message.tag() == port_field::name) {
      port.name = message.get_string();
    } else if (message.tag() == port_field::type) {
      pbf_reader type = message.get_message();
      while (type.next()) {
        if (type.tag() != type_field::tensor_type) {
          type.skip();
          continue;
        }
        pbf_reader tensor = type.get_message();
        while (tensor.next()) {
          if (tensor.tag() == tensor_type_field::elem_type) {
            const std::int32_t element = tensor.get_int32();
            port.integral = element != kFloat && element != kDouble && element != kFloat16;
          } else if (tensor.tag() == tensor_type_field::shape) {
            parse_shape(tensor.get_message(), port);
          } else {
            tensor.skip();
          }
        }
      }
    } else {
      message.skip();
    }
  }
  return port;
}

void parse_graph(pbf_reader message, Model& model) {
  while (message.next()) {
    switch (message.tag()) {
      case graph_field::node:
        model.nodes.push_back(parse_node(message.get_message()));
        break;
      case graph_field::name:
        model.name = message.get_string();
        break;
      case graph_field::initializer:
        model.initializers.push_back(parse_tensor(message.get_message()));
        break;
      case graph_field::input:
        model.inputs.push_back(parse_port(message.get_message()));
        break;
      case graph_field::output:
        model.outputs.push_back(parse_port(message.get_message()));
        break;
      case graph_field::sparse_initializer:
        throw Error("the graph has sparse tensors, which are not read here");
      default:
        message.skip();
    }
  }
  std::set<std::string> given;
  for (const Tensor& tensor : model.initializers) given.insert(tensor.name);
  std::erase_if(model.inputs, [&](const Port& port) { return given.contains(port.name); });
}

void parse_opset(pbf_reader message, Model& model) {
  std::string domain;
  std::int64_t version = 0;
  while (message.next()) {
    if (message.tag() == opset_field::domain)
      domain = message.get_string();
    else if (message.tag() == opset_field::version)
      version = message.get_int64();
    else
      message.skip();
  }
  if (domain.empty() || domain == "ai.onnx") model.opset = version;
}

}  // namespace

std::int64_t Tensor::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

Tensor Tensor::of(std::string name, std::vector<std::int64_t> shape, std::vector<float> numbers) {
  Tensor tensor{.name = std::move(name), .shape = std::move(shape), .floats = std::move(numbers), .ints = {}};
  COHORT_CHECK(tensor.elements() == std::ssize(tensor.floats), "{} numbers for the shape {}", tensor.floats.size(),
               shape_text(tensor.shape));
  return tensor;
}

Tensor Tensor::of_ints(std::string name, std::vector<std::int64_t> shape, std::vector<std::int64_t> numbers) {
  Tensor tensor{
      .name = std::move(name), .shape = std::move(shape), .integral = true, .floats = {}, .ints = std::move(numbers)};
  COHORT_CHECK(tensor.elements() == std::ssize(tensor.ints), "{} numbers for the shape {}", tensor.ints.size(),
               shape_text(tensor.shape));
  return tensor;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) text += format("{}{}", i == 0 ? "" : ", ", shape[i]);
  return text + ")";
}

Attribute Attribute::of(std::string name, std::int64_t value) {
  Attribute attribute;
  attribute.name = std::move(name);
  attribute.type = Type::kInt;
  attribute.integer = value;
  return attribute;
}

Attribute Attribute::of(std::string name, float value) {
  Attribute attribute;
  attribute.name = std::move(name);
  attribute.type = Type::kFloat;
  attribute.number = value;
  return attribute;
}

std::string Node::title() const {
  if (!name.empty()) return format("'{}' ({})", name, op);
  return format("that gives '{}' ({})", outputs.empty() ? "" : outputs.front(), op);
}

const Attribute* Node::attribute(std::string_view wanted) const {
  const auto at = std::find_if(attributes.begin(), attributes.end(),
                               [&](const Attribute& attribute) { return attribute.name == wanted; });
  return at == attributes.end() ? nullptr : &*at;
}

std::int64_t Node::integer(std::string_view wanted, std::int64_t otherwise) const {
  const Attribute* const found = attribute(wanted);
  return found ? found->integer : otherwise;
}

float Node::number(std::string_view wanted, float otherwise) const {
  const Attribute* const found = attribute(wanted);
  return found ? found->number : otherwise;
}

std::string Node::text(std::string_view wanted, const std::string& otherwise) const {
  const Attribute* const found = attribute(wanted);
  return found ? found->text : otherwise;
}

Model parse_model(std::string_view bytes, const std::string& where) {
  Model model;
  model.ir_version = 0;
  bool has_graph = false;
  try {
    pbf_reader message(bytes.data(), bytes.size());
    while (message.next()) {
      switch (message.tag()) {
        case model_field::ir_version:
          model.ir_version = message.get_int64();
          break;
        case model_field::producer_name:
          model.producer = message.get_string();
          break;
        case model_field::producer_version:
          model.producer_version = message.get_string();
          break;
        case model_field::graph:
          parse_graph(message.get_message(), model);
          has_graph = true;
          break;
        case model_field::opset_import:
          parse_opset(message.get_message(), model);
          break;
        case model_field::metadata_props: {
          pbf_reader entry = message.get_message();
          std::string key, value;
          while (entry.next()) {
            if (entry.tag() == entry_field::key)
              key = entry.get_string();
            else if (entry.tag() == entry_field::value)
              value = entry.get_string();
            else
              entry.skip();
          }
          model.metadata[key] = value;
          break;
        }
        default:
          message.skip();
      }
    }
  } catch (const Error& e) {
    throw Error(format("{}: {}", where, e.what()));
  } catch (const std::exception& e) {  // protozero's own
    throw Error(format("{}: no ONNX model, or one that is cut off: {}", where, e.what()));
  }
  COHORT_THROW_UNLESS(has_graph && model.ir_version > 0 && !model.outputs.empty(),
                      "{}: no ONNX model: it has no graph with outputs", where);
  return model;
}

Model read_model(const std::filesystem::path& path) {
  return parse_model(read_file(path), path.string());
}

}  // namespace cohort::onnx
