/// HDF5, in the layout of robomimic, as a format (data/format.h).
#pragma once
#include "data/format.h"

namespace cohort::data {

DataFormat hdf5_format();

}  // namespace cohort::data
