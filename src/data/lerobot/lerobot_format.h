/// LeRobot as a format (data/format.h).
#pragma once
#include "data/format.h"

namespace cohort::data {

DataFormat lerobot_format();

}  // namespace cohort::data
