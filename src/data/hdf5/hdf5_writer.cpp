#include "data/hdf5/hdf5_writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <mutex>
#include <utility>

#include <hdf5.h>
#include <unistd.h>

#include "core/error.h"
#include "core/files.h"
#include "data/hdf5/library_lock.h"

namespace cohort::data {
namespace fs = std::filesystem;
namespace {

/// The type as h5py writes it: bools are an enumeration of FALSE and TRUE.
hid_t make_type(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return H5Tcopy(H5T_IEEE_F32LE);
    case ElementType::kFloat64:
      return H5Tcopy(H5T_IEEE_F64LE);
    case ElementType::kInt64:
      return H5Tcopy(H5T_STD_I64LE);
    case ElementType::kInt32:
      return H5Tcopy(H5T_STD_I32LE);
    case ElementType::kUInt8:
      return H5Tcopy(H5T_STD_U8LE);
    case ElementType::kBool: {
      const hid_t boolean = H5Tenum_create(H5T_STD_I8LE);
      signed char value = 0;
      H5Tenum_insert(boolean, "FALSE", &value);
      value = 1;
      H5Tenum_insert(boolean, "TRUE", &value);
      return boolean;
    }
    default:
      throw Error(format("arrays of {} are not written to HDF5", element_name(type)));
  }
}

/// UTF-8 of variable length, as h5py writes texts.
hid_t make_text_type() {
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, H5T_VARIABLE);
  H5Tset_cset(type, H5T_CSET_UTF8);
  return type;
}

/// Writes one element to a new attribute; false where the library refuses it.
bool write_attribute(hid_t object, const std::string& name, hid_t stored, hid_t memory, const void* value) {
  const hid_t space = H5Screate(H5S_SCALAR);
  const hid_t attribute = H5Acreate2(object, name.c_str(), stored, space, H5P_DEFAULT, H5P_DEFAULT);
  const herr_t status = attribute >= 0 ? H5Awrite(attribute, memory, value) : -1;
  if (attribute >= 0) H5Aclose(attribute);
  H5Sclose(space);
  return status >= 0;
}

/// The whole text as a number.
template <class T>
bool parse_number(const std::string& text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::mutex& hdf5_library_lock() {
  static std::mutex* lock = [] {
    // Every file is closed where it ends. At the program's end libhdf5 would write once more what a full disk refused, and
    // crash over it.
    H5dont_atexit();
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    return new std::mutex;
  }();
  return *lock;
}

struct Hdf5Writer::Impl {
  fs::path target, work;
  hid_t file = -1, data = -1, demo = -1;
  std::int64_t demos = 0, total = 0;
  bool finished = false;

  void check(bool good, const std::string& what) const {
    COHORT_THROW_UNLESS(good, "cannot write {} to {}", what, work.string());
  }

  void close_demo() {
    if (demo >= 0) H5Gclose(demo);
    demo = -1;
  }

  void close() {
    close_demo();
    if (data >= 0) H5Gclose(data);
    if (file >= 0) H5Fclose(file);
    data = file = -1;
  }

  void write_number(hid_t object, const char* name, std::int64_t value) const {
    check(write_attribute(object, name, H5T_STD_I64LE, H5T_NATIVE_INT64, &value), std::string("the attribute ") + name);
  }
};

Hdf5Writer::Hdf5Writer(const fs::path& path) : impl_(std::make_unique<Impl>()) {
  COHORT_THROW_UNLESS(!fs::exists(path), "{} exists already; remove it or choose another name", path.string());
  if (path.has_parent_path()) fs::create_directories(path.parent_path());
  impl_->target = path;
  impl_->work = path;
  impl_->work += format(".incomplete{}", ::getpid());
  std::lock_guard lock(hdf5_library_lock());
  impl_->file = H5Fcreate(impl_->work.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  impl_->check(impl_->file >= 0, "anything");
  impl_->data = H5Gcreate2(impl_->file, "data", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  impl_->check(impl_->data >= 0, "the group data");
}

Hdf5Writer::~Hdf5Writer() {
  std::lock_guard lock(hdf5_library_lock());
  impl_->close();
  std::error_code ignored;
  if (!impl_->finished) fs::remove(impl_->work, ignored);
}

void Hdf5Writer::begin_demo(std::int64_t steps) {
  std::lock_guard lock(hdf5_library_lock());
  impl_->close_demo();
  const std::string name = format("demo_{}", impl_->demos++);
  impl_->demo = H5Gcreate2(impl_->data, name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  impl_->check(impl_->demo >= 0, name);
  impl_->write_number(impl_->demo, "num_samples", steps);
  impl_->total += steps;
}

void Hdf5Writer::add(const std::string& name, const ArrayView& values, bool compress, bool is_unsigned) {
  COHORT_CHECK(impl_->demo >= 0 && values.contiguous() && values.rank >= 1,
               "an array is added to a demo that has begun");
  COHORT_CHECK(!is_unsigned || values.type == ElementType::kInt64, "only int64 are the bits of uint64");
  std::lock_guard lock(hdf5_library_lock());
  hsize_t shape[kMaxRank], chunk[kMaxRank];
  for (int d = 0; d < values.rank; ++d) {
    const auto at = static_cast<std::size_t>(d);
    shape[at] = static_cast<hsize_t>(values.shape[at]);
    chunk[at] = d == 0 ? 1 : std::max<hsize_t>(shape[at], 1);
  }
  const hid_t type = is_unsigned ? H5Tcopy(H5T_STD_U64LE) : make_type(values.type);
  const hid_t space = H5Screate_simple(values.rank, shape, nullptr);
  const hid_t links = H5Pcreate(H5P_LINK_CREATE), creation = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_create_intermediate_group(links, 1);
  if (compress) {
    H5Pset_chunk(creation, values.rank, chunk);
    H5Pset_deflate(creation, 4);
  }
  const hid_t set = H5Dcreate2(impl_->demo, name.c_str(), type, space, links, creation, H5P_DEFAULT);
  const herr_t status = set >= 0 ? H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data) : -1;
  if (set >= 0) H5Dclose(set);
  H5Pclose(creation);
  H5Pclose(links);
  H5Sclose(space);
  H5Tclose(type);
  impl_->check(status >= 0, name);
}

void Hdf5Writer::add_texts(const std::string& name, const std::vector<std::string>& texts) {
  COHORT_CHECK(impl_->demo >= 0, "texts are added to a demo that has begun");
  std::vector<const char*> pointers;
  for (const std::string& text : texts) {
    COHORT_THROW_UNLESS(text.find('\0') == std::string::npos,
                        "cannot write {} to {}: a text holds a zero byte, which ends a text in HDF5", name,
                        impl_->target.string());
    pointers.push_back(text.c_str());
  }
  std::lock_guard lock(hdf5_library_lock());
  const hsize_t count = texts.size();
  const hid_t type = make_text_type(), space = H5Screate_simple(1, &count, nullptr);
  const hid_t links = H5Pcreate(H5P_LINK_CREATE);
  H5Pset_create_intermediate_group(links, 1);
  const hid_t set = H5Dcreate2(impl_->demo, name.c_str(), type, space, links, H5P_DEFAULT, H5P_DEFAULT);
  const herr_t status = set >= 0 ? H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, pointers.data()) : -1;
  if (set >= 0) H5Dclose(set);
  H5Pclose(links);
  H5Sclose(space);
  H5Tclose(type);
  impl_->check(status >= 0, name);
}

void Hdf5Writer::attribute(const std::string& name, const std::string& text, const std::string& type) {
  std::lock_guard lock(hdf5_library_lock());
  const hid_t object = impl_->demo >= 0 ? impl_->demo : impl_->data;
  const std::string what = "the attribute " + name;
  COHORT_THROW_UNLESS(H5Aexists(object, name.c_str()) <= 0, "cannot write {} to {}: it is there already", what,
                      impl_->target.string());
  const auto number = [&](bool good) {
    COHORT_THROW_UNLESS(good, "cannot write {} to {}: '{}' is no {}", what, impl_->target.string(), text, type);
  };
  if (type == "string") {
    // An attribute of fixed length lies in the object's header, which has room for 64 KiB; but only there may a text
    // hold zero bytes.
    if (text.find('\0') == std::string::npos) {
      const hid_t variable = make_text_type();
      const char* const pointer = text.c_str();
      const bool good = write_attribute(object, name, variable, variable, &pointer);
      H5Tclose(variable);
      impl_->check(good, what);
      return;
    }
    const hid_t fixed = H5Tcopy(H5T_C_S1);
    H5Tset_size(fixed, text.size());
    H5Tset_cset(fixed, H5T_CSET_UTF8);
    H5Tset_strpad(fixed, H5T_STR_NULLPAD);
    const bool good = write_attribute(object, name, fixed, fixed, text.data());
    H5Tclose(fixed);
    impl_->check(good, what);
  } else if (type == "bool") {
    number(text == "true" || text == "false" || text == "1" || text == "0");
    const signed char value = text == "true" || text == "1" ? 1 : 0;
    const hid_t boolean = make_type(ElementType::kBool);
    const bool good = write_attribute(object, name, boolean, boolean, &value);
    H5Tclose(boolean);
    impl_->check(good, what);
  } else if (type == "float32" || type == "float64") {
    double value = 0;
    number(parse_number(text, value));
    impl_->check(
        write_attribute(object, name, type == "float32" ? H5T_IEEE_F32LE : H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &value),
        what);
  } else if (type == "uint64") {
    std::uint64_t value = 0;
    number(parse_number(text, value));
    impl_->check(write_attribute(object, name, H5T_STD_U64LE, H5T_NATIVE_UINT64, &value), what);
  } else {
    const std::array<std::pair<const char*, hid_t>, 7> integers{{{"int8", H5T_STD_I8LE},
                                                                 {"int16", H5T_STD_I16LE},
                                                                 {"int32", H5T_STD_I32LE},
                                                                 {"int64", H5T_STD_I64LE},
                                                                 {"uint8", H5T_STD_U8LE},
                                                                 {"uint16", H5T_STD_U16LE},
                                                                 {"uint32", H5T_STD_U32LE}}};
    const auto stored =
        std::find_if(integers.begin(), integers.end(), [&](const auto& known) { return type == known.first; });
    COHORT_CHECK(stored != integers.end(), "attributes of {} are not written to HDF5", type);
    std::int64_t value = 0;
    number(parse_number(text, value));
    impl_->check(write_attribute(object, name, stored->second, H5T_NATIVE_INT64, &value), what);
  }
}

void Hdf5Writer::finish() {
  COHORT_THROW_UNLESS(impl_->demos > 0, "no episode was written to {}", impl_->target.string());
  {
    std::lock_guard lock(hdf5_library_lock());
    impl_->write_number(impl_->data, "total", impl_->total);
    impl_->check(H5Fflush(impl_->file, H5F_SCOPE_GLOBAL) >= 0, "the end");
    impl_->close();
  }
  sync_path(impl_->work);
  std::error_code error;
  fs::rename(impl_->work, impl_->target, error);
  COHORT_THROW_UNLESS(!error, "cannot move {} into place: {}", impl_->target.string(), error.message());
  impl_->finished = true;
}

}  // namespace cohort::data
