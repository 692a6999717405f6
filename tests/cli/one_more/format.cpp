// A format of robot data that no file of src knows, for the programs that read and write data, which find it when this library
// is loaded before them.
#include "data/lines_format.h"

namespace {

[[maybe_unused]] const bool kRegistered = (cohort::data::register_format(cohort::data::lines_format()), true);

}  // namespace
