#include <bit>
#include <protozero/pbf_writer.hpp>

#include "core/files.h"
#include "onnx/message_fields.h"
#include "onnx/model.h"

namespace cohort::onnx {
namespace {

using protozero::pbf_writer;

template <class Numbers>
void add_raw(pbf_writer& to, const Numbers& numbers) {
  static_assert(std::endian::native == std::endian::little, "raw_data is little-endian");
  to.add_bytes(tensor_field::raw_data, reinterpret_cast<const char*>(numbers.data()),
               numbers.size() * sizeof(numbers[0]));
}

void put_tensor(pbf_writer& message, const Tensor& tensor) {
  for (const std::int64_t size : tensor.shape) message.add_int64(tensor_field::dims, size);
  message.add_int32(tensor_field::data_type, tensor.integral ? kInt64 : kFloat);
  if (!tensor.name.empty()) message.add_string(tensor_field::name, tensor.name);
  tensor.integral ? add_raw(message, tensor.ints) : add_raw(message, tensor.floats);
}

void put_attribute(pbf_writer& message, const Attribute& attribute) {
  using Type = Attribute::Type;
  message.add_string(attribute_field::name, attribute.name);
  switch (attribute.type) {
    case Type::kFloat:
      message.add_float(attribute_field::f, attribute.number);
      break;
    case Type::kInt:
      message.add_int64(attribute_field::i, attribute.integer);
      break;
    case Type::kString:
      message.add_bytes(attribute_field::s, attribute.text);
      break;
    case Type::kTensor: {
      pbf_writer tensor(message, attribute_field::t);
      put_tensor(tensor, attribute.tensor);
      break;
    }
    case Type::kFloats:
      for (const float value : attribute.floats) message.add_float(attribute_field::floats, value);
      break;
    case Type::kInts:
      for (const std::int64_t value : attribute.ints) message.add_int64(attribute_field::ints, value);
      break;
    case Type::kStrings:
      for (const std::string& value : attribute.texts) message.add_bytes(attribute_field::strings, value);
      break;
  }
  message.add_int32(attribute_field::type, static_cast<std::int32_t>(attribute.type));
}

void put_node(pbf_writer& message, const Node& node) {
  for (const std::string& input : node.inputs) message.add_string(node_field::input, input);
  for (const std::string& output : node.outputs) message.add_string(node_field::output, output);
  message.add_string(node_field::name, node.name);
  message.add_string(node_field::op_type, node.op);
  for (const Attribute& attribute : node.attributes) {
    pbf_writer part(message, node_field::attribute);
    put_attribute(part, attribute);
  }
  if (!node.domain.empty()) message.add_string(node_field::domain, node.domain);
}

void put_port(pbf_writer& message, const Port& port) {
  message.add_string(port_field::name, port.name);
  pbf_writer type(message, port_field::type);
  pbf_writer tensor(type, type_field::tensor_type);
  tensor.add_int32(tensor_type_field::elem_type, port.integral ? kInt64 : kFloat);
  pbf_writer shape(tensor, tensor_type_field::shape);
  for (const Dim& dim : port.shape) {
    pbf_writer size(shape, shape_field::dim);
    if (dim.size >= 0)
      size.add_int64(dim_field::dim_value, dim.size);
    else
      size.add_string(dim_field::dim_param, dim.name);
  }
}

}  // namespace

std::string serialized(const Model& model) {
  std::string bytes;
  pbf_writer message(bytes);
  message.add_int64(model_field::ir_version, model.ir_version);
  message.add_string(model_field::producer_name, model.producer);
  message.add_string(model_field::producer_version, model.producer_version);
  {
    pbf_writer graph(message, model_field::graph);
    for (const Node& node : model.nodes) {
      pbf_writer part(graph, graph_field::node);
      put_node(part, node);
    }
    graph.add_string(graph_field::name, model.name);
    for (const Tensor& tensor : model.initializers) {
      pbf_writer part(graph, graph_field::initializer);
      put_tensor(part, tensor);
    }
    for (const Port& port : model.inputs) {
      pbf_writer part(graph, graph_field::input);
      put_port(part, port);
    }
    for (const Port& port : model.outputs) {
      pbf_writer part(graph, graph_field::output);
      put_port(part, port);
    }
  }
  {
    pbf_writer opset(message, model_field::opset_import);
    opset.add_string(opset_field::domain, "");
    opset.add_int64(opset_field::version, model.opset);
  }
  for (const auto& [key, value] : model.metadata) {
    pbf_writer entry(message, model_field::metadata_props);
    entry.add_string(entry_field::key, key);
    entry.add_string(entry_field::value, value);
  }
  return bytes;
}

void write_model(const std::filesystem::path& path, const Model& model) {
  write_file_atomically(path, serialized(model));
}

}  // namespace cohort::onnx
