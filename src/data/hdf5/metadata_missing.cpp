#include "core/error.h"
#include "data/hdf5/hdf5_writer.h"
#include "data/hdf5/metadata.h"

namespace cohort::data {

struct Hdf5Metadata::Impl {};

bool has_hdf5() {
  return false;
}
Hdf5Metadata::Hdf5Metadata(const std::filesystem::path& path) {
  throw Error(format("{}: this build reads no HDF5: install libhdf5-dev, configure and build again", path.string()));
}
Hdf5Metadata::~Hdf5Metadata() = default;
Hdf5Metadata::Hdf5Metadata(Hdf5Metadata&&) noexcept = default;
Hdf5Metadata& Hdf5Metadata::operator=(Hdf5Metadata&&) noexcept = default;
bool Hdf5Metadata::has(const std::string&) const {
  return false;
}
std::vector<std::string> Hdf5Metadata::groups(const std::string&) const {
  return {};
}
std::vector<std::string> Hdf5Metadata::data_sets(const std::string&) const {
  return {};
}
Hdf5Attributes Hdf5Metadata::attributes(const std::string&) const {
  return {};
}
std::vector<std::pair<std::string, std::string>> Hdf5Metadata::attribute_types(const std::string&) const {
  return {};
}
std::vector<std::pair<std::string, Hdf5Array>> Hdf5Metadata::arrays(const std::string&) const {
  return {};
}
Hdf5Array Hdf5Metadata::array(const std::string&) const {
  return {};
}
std::vector<std::pair<std::string, std::vector<std::int64_t>>> Hdf5Metadata::shapes(const std::string&) const {
  return {};
}
std::vector<std::string> Hdf5Metadata::texts(const std::string&) const {
  return {};
}

struct Hdf5Writer::Impl {};
Hdf5Writer::Hdf5Writer(const std::filesystem::path& path) {
  throw Error(format("{}: this build writes no HDF5: install libhdf5-dev, configure and build again", path.string()));
}
Hdf5Writer::~Hdf5Writer() = default;
void Hdf5Writer::begin_demo(std::int64_t) {}
void Hdf5Writer::add(const std::string&, const ArrayView&, bool, bool) {}
void Hdf5Writer::add_texts(const std::string&, const std::vector<std::string>&) {}
void Hdf5Writer::attribute(const std::string&, const std::string&, const std::string&) {}
void Hdf5Writer::finish() {}

}  // namespace cohort::data
