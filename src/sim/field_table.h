/// One line for each Field: from it follow the engines' memory, views, saved states and what the kernels see.
#pragma once
#include "sim/field.h"
#include "sim/host/model_info.h"
#include "sim/kernels/lane/data_view.h"

namespace cohort::sim {

struct FieldTraits {
  const char* name;
  int (*size)(const ModelInfo&);  ///< values of an environment
  /// Where the kernels find it: one of the two, which is also its type.
  float* DataView::*floats = nullptr;
  int* DataView::*ints = nullptr;
};
const FieldTraits& traits(Field field);

}  // namespace cohort::sim
