#include "data/hdf5/metadata.h"

#include <atomic>

#include "core/error.h"
#include "data/hdf5/metadata_process.h"
#include "data/hdf5/metadata_wire.h"

namespace cohort::data {

bool has_hdf5() {
  return true;
}

struct Hdf5Metadata::Impl {
  std::string path;
  std::uint64_t number = 0;  // the file's name in the process of libhdf5

  ByteReader ask(Hdf5Question question, const std::string& object = "") const {
    return Hdf5Process::instance().ask(question, number, path, object);
  }
  ~Impl() {
    try {
      ask(Hdf5Question::kClose);
    } catch (const Error&) {  // there is nothing left to close
    }
  }
};

Hdf5Metadata::Hdf5Metadata(const std::filesystem::path& path) : impl_(std::make_unique<Impl>()) {
  static std::atomic<std::uint64_t> numbers{0};
  impl_->path = path.string();
  impl_->number = ++numbers;
  impl_->ask(Hdf5Question::kOpen);
}

Hdf5Metadata::~Hdf5Metadata() = default;
Hdf5Metadata::Hdf5Metadata(Hdf5Metadata&&) noexcept = default;
Hdf5Metadata& Hdf5Metadata::operator=(Hdf5Metadata&&) noexcept = default;

bool Hdf5Metadata::has(const std::string& object) const {
  return take<bool>(impl_->ask(Hdf5Question::kHas, object));
}
std::vector<std::string> Hdf5Metadata::groups(const std::string& group) const {
  return take<std::vector<std::string>>(impl_->ask(Hdf5Question::kGroups, group));
}
std::vector<std::string> Hdf5Metadata::data_sets(const std::string& group) const {
  return take<std::vector<std::string>>(impl_->ask(Hdf5Question::kDataSets, group));
}
Hdf5Attributes Hdf5Metadata::attributes(const std::string& object) const {
  return take<Hdf5Attributes>(impl_->ask(Hdf5Question::kAttributes, object));
}
std::vector<std::pair<std::string, std::string>> Hdf5Metadata::attribute_types(const std::string& object) const {
  return take<std::vector<std::pair<std::string, std::string>>>(impl_->ask(Hdf5Question::kAttributeTypes, object));
}
std::vector<std::pair<std::string, Hdf5Array>> Hdf5Metadata::arrays(const std::string& group) const {
  return take<std::vector<std::pair<std::string, Hdf5Array>>>(impl_->ask(Hdf5Question::kArrays, group));
}
Hdf5Array Hdf5Metadata::array(const std::string& data_set) const {
  return take<Hdf5Array>(impl_->ask(Hdf5Question::kArray, data_set));
}
std::vector<std::pair<std::string, std::vector<std::int64_t>>> Hdf5Metadata::shapes(const std::string& group) const {
  return take<std::vector<std::pair<std::string, std::vector<std::int64_t>>>>(impl_->ask(Hdf5Question::kShapes, group));
}
std::vector<std::string> Hdf5Metadata::texts(const std::string& data_set) const {
  return take<std::vector<std::string>>(impl_->ask(Hdf5Question::kTexts, data_set));
}

}  // namespace cohort::data
