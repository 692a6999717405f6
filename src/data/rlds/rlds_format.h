/// RLDS as a format (data/format.h).
#pragma once
#include "data/format.h"

namespace cohort::data {

DataFormat rlds_format();

}  // namespace cohort::data
