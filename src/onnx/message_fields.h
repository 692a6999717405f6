/// Field numbers of ONNX's messages, named as in onnx.proto, for what reads and writes them (model.h).
#pragma once
#include <cstdint>
#include <protozero/types.hpp>

namespace cohort::onnx {

namespace model_field {
enum : protozero::pbf_tag_type {
  ir_version = 1,
  producer_name = 2,
  producer_version = 3,
  graph = 7,
  opset_import = 8,
  metadata_props = 14
};
}
namespace opset_field {
enum : protozero::pbf_tag_type { domain = 1, version = 2 };
}
namespace entry_field {
enum : protozero::pbf_tag_type { key = 1, value = 2 };
}
namespace graph_field {
enum : protozero::pbf_tag_type {
  node = 1,
  name = 2,
  initializer = 5,
  input = 11,
  output = 12,
  sparse_initializer = 15
};
}
namespace node_field {
enum : protozero::pbf_tag_type { input = 1, output = 2, name = 3, op_type = 4, attribute = 5, domain = 7 };
}
namespace attribute_field {
enum : protozero::pbf_tag_type { name = 1, f = 2, i = 3, s = 4, t = 5, floats = 7, ints = 8, strings = 9, type = 20 };
}
namespace tensor_field {
enum : protozero::pbf_tag_type {
  dims = 1,
  data_type = 2,
  float_data = 4,
  int32_data = 5,
  int64_data = 7,
  name = 8,
  raw_data = 9,
  double_data = 10,
  external_data = 13
};
}
namespace port_field {
enum : protozero::pbf_tag_type { name = 1, type = 2 };
}
namespace type_field {
enum : protozero::pbf_tag_type { tensor_type = 1 };
}
namespace tensor_type_field {
enum : protozero::pbf_tag_type { elem_type = 1, shape = 2 };
}
namespace shape_field {
enum : protozero::pbf_tag_type { dim = 1 };
}
namespace dim_field {
enum : protozero::pbf_tag_type { dim_value = 1, dim_param = 2 };
}

/// TensorProto.DataType.
enum DataType : std::int32_t {
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kInt32 = 6,
  kInt64 = 7,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11
};

}  // namespace cohort::onnx
