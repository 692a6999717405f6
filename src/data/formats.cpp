#include <utility>

#include "core/error.h"
#include "data/format.h"

namespace cohort::data {

std::vector<DataFormat> built_in_formats();  // written by CMake from data_formats

namespace {

std::vector<DataFormat>& known_formats() {
  static std::vector<DataFormat> all = built_in_formats();
  return all;
}

}  // namespace

const std::vector<DataFormat>& formats() {
  return known_formats();
}

void register_format(DataFormat added) {
  for (const DataFormat& known : formats())
    COHORT_THROW_UNLESS(known.name != added.name, "there is a format '{}' already", added.name);
  known_formats().push_back(std::move(added));
}

const DataFormat& find_format(std::string_view name, std::string_view what) {
  for (const DataFormat& known : formats())
    if (known.name == name) return known;
  throw Error(format("{} {}, not '{}'", what, format_names(), name));
}

const DataFormat& format_of(const EpisodeSource& source) {
  for (const DataFormat& known : formats())
    if (known.name == source.format_name()) return known;
  throw Error(format("{} lies in no file of a known format: {}", source.name(), format_names()));
}

const DataFormat& editable_format() {
  for (const DataFormat& known : formats())
    if (known.edit) return known;
  throw Error("no format of robot data is edited in place");
}

std::string format_names() {
  std::string names;
  for (std::size_t i = 0; i < formats().size(); ++i)
    names += (i == 0 ? "" : i + 1 < formats().size() ? ", " : " or ") + formats()[i].name;
  return names;
}

}  // namespace cohort::data
