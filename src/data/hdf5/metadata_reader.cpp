#include "data/hdf5/metadata_reader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include <hdf5.h>

#include "core/error.h"
#include "core/placeholder_file.h"
#include "data/hdf5/episode_layout.h"
#include "data/hdf5/metadata.h"
#include "data/hdf5/metadata_wire.h"

namespace cohort::data {
namespace {

constexpr std::size_t kMaxTextBytes = std::size_t{64} << 20;
constexpr std::int64_t kMaxChunks = std::int64_t{1} << 22;
constexpr std::int64_t kMaxInlineBytes = 1 << 20;  // the format allows 64 KiB
constexpr int kMaxNesting = 32;
constexpr int kMaxGroups = 1 << 16;  // below one episode

/// Owns an identifier.
class Id {
 public:
  Id(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Id(Id&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Id& operator=(Id&&) = delete;
  ~Id() {
    if (id_ >= 0) close_(id_);
  }
  bool good() const { return id_ >= 0; }
  operator hid_t() const { return id_; }  // NOLINT: used wherever libhdf5 takes an identifier

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

std::string last_error() {
  std::string text;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
        auto& message = *static_cast<std::string*>(out);
        if (message.empty() && error->desc) message = error->desc;
        return 0;
      },
      &text);
  H5Eclear2(H5E_DEFAULT);
  return text.empty() ? "unknown error" : text;
}

/// Calls back for every entry directly below a group, in ascending order of names.
void for_each_entry(hid_t group, const std::function<void(const std::string&)>& body) {
  std::vector<std::string> names;
  hsize_t at = 0;
  H5Literate(
      group, H5_INDEX_NAME, H5_ITER_INC, &at,
      [](hid_t, const char* name, const H5L_info_t*, void* out) -> herr_t {
        static_cast<std::vector<std::string>*>(out)->emplace_back(name);
        return 0;
      },
      &names);
  for (const std::string& name : names) body(name);
}

/// Group, data set or anything else; a link that leads nowhere is H5I_BADID. Throws Error for what is there and cannot be
/// opened: it would be missed without a word.
H5I_type_t type_of(hid_t group, const std::string& name) {
  const Id object(H5Oopen(group, name.c_str(), H5P_DEFAULT), H5Oclose);
  if (object.good()) return H5Iget_type(object);
  const std::string why = last_error();
  H5L_info_t link;
  if (H5Lget_info(group, name.c_str(), &link, H5P_DEFAULT) < 0 || link.type != H5L_TYPE_HARD) return H5I_BADID;
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  throw Error(format(
      "{} is there, but HDF5 {}.{}.{} cannot open it ({}): it is damaged, or was written for a later HDF5 (h5py with "
      "libver='latest'): write it again with libver='earliest'",
      name, major, minor, release, why));
}

/// Which object it is, whatever link led to it.
struct Identity {
  unsigned long file = 0;  // libhdf5's number of an open file
  std::array<unsigned char, 16> place{};
  bool operator==(const Identity&) const = default;
};

Identity identity_of(hid_t object) {
  Identity identity;
#if H5_VERSION_GE(1, 12, 0)
  H5O_info2_t info;
  COHORT_THROW_UNLESS(H5Oget_info3(object, &info, H5O_INFO_BASIC) >= 0, "an object cannot be read: {}", last_error());
  static_assert(sizeof info.token == sizeof identity.place);
  std::memcpy(identity.place.data(), &info.token, sizeof info.token);
#else
  H5O_info_t info;
  COHORT_THROW_UNLESS(H5Oget_info2(object, &info, H5O_INFO_BASIC) >= 0, "an object cannot be read: {}", last_error());
  static_assert(sizeof info.addr <= sizeof identity.place);
  std::memcpy(identity.place.data(), &info.addr, sizeof info.addr);
#endif
  identity.file = info.fileno;
  return identity;
}

std::string file_name_of(hid_t object) {
  const ssize_t size = H5Fget_name(object, nullptr, 0);
  if (size <= 0) return "another file";
  std::string name(static_cast<std::size_t>(size) + 1, '\0');
  H5Fget_name(object, name.data(), name.size());
  name.pop_back();
  return name;
}

/// Walks over the data sets below a group. A link that leads back to a group on the way to it is not followed.
class DataSetWalk {
 public:
  using Body = std::function<void(const std::string&, hid_t)>;

  DataSetWalk(hid_t group, const Body& body) : body_(body) { enter(group, ""); }

 private:
  void enter(hid_t group, const std::string& prefix) {
    const Identity identity = identity_of(group);
    if (way_.size() > kMaxNesting || std::find(way_.begin(), way_.end(), identity) != way_.end()) return;
    COHORT_THROW_UNLESS(++groups_ <= kMaxGroups, "has more than {} groups below one another: do links lead in circles?",
                        kMaxGroups);
    way_.push_back(identity);
    for_each_entry(group, [&](const std::string& name) {
      const std::string path = prefix.empty() ? name : prefix + "/" + name;
      const H5I_type_t type = type_of(group, name);
      if (type == H5I_GROUP) {
        const Id child(H5Gopen2(group, name.c_str(), H5P_DEFAULT), H5Gclose);
        if (child.good()) enter(child, path);
      } else if (type == H5I_DATASET) {
        const Id set(H5Dopen2(group, name.c_str(), H5P_DEFAULT), H5Dclose);
        COHORT_THROW_UNLESS(set.good(), "the data set {} cannot be opened: {}", path, last_error());
        body_(path, set);
      }
    });
    way_.pop_back();
  }

  const Body& body_;
  std::vector<Identity> way_;  // the groups from the first to the present one
  int groups_ = 0;
};

std::vector<std::int64_t> extents_of(hid_t set) {
  const Id space(H5Dget_space(set), H5Sclose);
  std::vector<std::int64_t> shape;
  if (!space.good() || H5Sget_simple_extent_type(space) == H5S_NULL) return shape;
  const int rank = H5Sget_simple_extent_ndims(space);
  if (rank <= 0) return shape;
  std::vector<hsize_t> extents(static_cast<std::size_t>(rank));
  H5Sget_simple_extent_dims(space, extents.data(), nullptr);
  for (const hsize_t extent : extents) shape.push_back(static_cast<std::int64_t>(extent));
  return shape;
}

/// False where the data set holds no numbers.
bool element_of(hid_t type, Hdf5Element& element) {
  const H5T_class_t type_class = H5Tget_class(type);
  if (type_class == H5T_ENUM) {
    const Id base(H5Tget_super(type), H5Tclose);
    if (!base.good() || !element_of(base, element)) return false;
    // h5py writes bools as an enumeration of FALSE and TRUE.
    if (element.bytes == 1 && H5Tget_nmembers(type) == 2) element.kind = Hdf5Element::Kind::kBool;
    return true;
  }
  if (type_class != H5T_INTEGER && type_class != H5T_FLOAT) return false;
  const std::size_t bytes = H5Tget_size(type);
  if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) return false;
  if (type_class == H5T_FLOAT && bytes == 1) return false;
  element.bytes = static_cast<int>(bytes);
  element.big_endian = H5Tget_order(type) == H5T_ORDER_BE;
  element.kind = type_class == H5T_FLOAT             ? Hdf5Element::Kind::kFloat
                 : H5Tget_sign(type) == H5T_SGN_NONE ? Hdf5Element::Kind::kUnsigned
                                                     : Hdf5Element::Kind::kSigned;
  return true;
}

void read_filters(hid_t properties, Hdf5Array& array) {
  const int count = H5Pget_nfilters(properties);
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0, configuration = 0;
    std::size_t parameters = 0;
    char name[64] = "";
    const int id = H5Pget_filter2(properties, static_cast<unsigned>(i), &flags, &parameters, nullptr, sizeof name, name,
                                  &configuration);
    const bool known = id == H5Z_FILTER_DEFLATE || id == H5Z_FILTER_SHUFFLE || id == H5Z_FILTER_FLETCHER32 ||
                       id == static_cast<int>(Hdf5Filter::kLzf);
    COHORT_THROW_UNLESS(known,
                        "{} is packed with the filter {} ({}); only gzip, lzf, shuffle and fletcher32 are read: repack "
                        "the file with h5repack -f GZIP=4",
                        array.path, id, name);
    array.filters.push_back(static_cast<Hdf5Filter>(id));
  }
}

void read_chunks(hid_t set, hid_t properties, Hdf5Array& array) {
  const std::size_t rank = array.shape.size();
  std::vector<hsize_t> extents(rank), corner(rank);
  COHORT_THROW_UNLESS(H5Pget_chunk(properties, static_cast<int>(rank), extents.data()) == static_cast<int>(rank),
                      "{}: its chunks cannot be read: {}", array.path, last_error());
  std::int64_t count = 1;
  for (std::size_t d = 0; d < rank; ++d) {
    array.chunk_shape.push_back(static_cast<std::int64_t>(extents[d]));
    COHORT_THROW_UNLESS(array.chunk_shape[d] > 0, "{}: a chunk is empty", array.path);
    count *= (array.shape[d] + array.chunk_shape[d] - 1) / array.chunk_shape[d];
    COHORT_THROW_UNLESS(count <= kMaxChunks, "{}: has more than {} chunks", array.path, kMaxChunks);
  }
  array.chunks.resize(static_cast<std::size_t>(count));
  for (std::int64_t c = 0; c < count; ++c) {
    std::int64_t rest = c;
    for (std::size_t d = rank; d-- > 0;) {
      const std::int64_t grid = (array.shape[d] + array.chunk_shape[d] - 1) / array.chunk_shape[d];
      corner[d] = static_cast<hsize_t>(rest % grid * array.chunk_shape[d]);
      rest /= grid;
    }
    haddr_t address = HADDR_UNDEF;
    hsize_t bytes = 0;
    unsigned mask = 0;
    COHORT_THROW_UNLESS(H5Dget_chunk_info_by_coord(set, corner.data(), &mask, &address, &bytes) >= 0,
                        "{}: its chunks cannot be found: {}", array.path, last_error());
    if (address != HADDR_UNDEF && bytes > 0) array.chunks[static_cast<std::size_t>(c)] = {address, bytes, mask};
  }
}

/// Bytes of each text of a data set of texts of one length, where they are compressed pictures (episode_layout.h); else
/// 0.
std::int64_t picture_bytes(const std::string& path, hid_t type) {
  if (!is_below_images(path) || H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0) return 0;
  return static_cast<std::int64_t>(H5Tget_size(type));
}

/// Pictures that stand as texts of one length are an array of bytes with one dimension more.
bool describe_pictures(hid_t set, const std::string& path, std::int64_t bytes, Hdf5Array& array) {
  array.element = {.kind = Hdf5Element::Kind::kUnsigned, .bytes = 1};
  array.shape = extents_of(set);
  const Id properties(H5Dget_create_plist(set), H5Pclose);
  if (array.shape.size() != 1 || array.shape[0] < 0 || !properties.good()) return false;
  array.fill.assign(1, '\0');
  const H5D_layout_t layout = H5Pget_layout(properties);
  if (layout == H5D_CHUNKED) {
    array.layout = Hdf5Layout::kChunked;
    read_filters(properties, array);
    for (const Hdf5Filter filter : array.filters)
      COHORT_THROW_UNLESS(
          filter != Hdf5Filter::kShuffle,
          "{}: its pictures are stored with the filter shuffle, which is not read: repack the file with "
          "h5repack -f {}:GZIP=4",
          path, path);
    read_chunks(set, properties, array);
    array.chunk_shape.push_back(bytes);
  } else if (layout == H5D_CONTIGUOUS && H5Pget_external_count(properties) == 0) {
    const haddr_t offset = H5Dget_offset(set);
    array.layout = offset == HADDR_UNDEF ? Hdf5Layout::kUnwritten : Hdf5Layout::kContiguous;
    array.offset = offset == HADDR_UNDEF ? 0 : offset;
  } else {
    return false;
  }
  array.shape.push_back(bytes);
  return true;
}

bool describe_array(hid_t set, const std::string& path, Hdf5Array& array) {
  array.path = path;
  const Id type(H5Dget_type(set), H5Tclose);
  if (!type.good()) return false;
  if (const std::int64_t bytes = picture_bytes(path, type)) return describe_pictures(set, path, bytes, array);
  if (!element_of(type, array.element)) return false;
  array.shape = extents_of(set);
  if (array.shape.empty() || array.shape.size() > kMaxRank - 2) return false;
  std::int64_t elements = 1;
  for (const std::int64_t extent : array.shape) {
    COHORT_THROW_UNLESS(extent >= 0 && extent < (std::int64_t{1} << 40) && elements < (std::int64_t{1} << 48),
                        "{}: its shape is out of all bounds", path);
    elements *= std::max<std::int64_t>(extent, 1);
  }
  const Id properties(H5Dget_create_plist(set), H5Pclose);
  COHORT_THROW_UNLESS(properties.good(), "{}: its layout cannot be read: {}", path, last_error());
  array.fill.assign(static_cast<std::size_t>(array.element.bytes), '\0');
  H5D_fill_value_t fill = H5D_FILL_VALUE_UNDEFINED;
  if (H5Pfill_value_defined(properties, &fill) >= 0 && fill == H5D_FILL_VALUE_USER_DEFINED)
    H5Pget_fill_value(properties, type, array.fill.data());
  switch (H5Pget_layout(properties)) {
    case H5D_CONTIGUOUS: {
      COHORT_THROW_UNLESS(H5Pget_external_count(properties) == 0, "{}: its data lie in external files", path);
      const haddr_t offset = H5Dget_offset(set);
      array.layout = offset == HADDR_UNDEF ? Hdf5Layout::kUnwritten : Hdf5Layout::kContiguous;
      array.offset = offset == HADDR_UNDEF ? 0 : offset;
      return true;
    }
    case H5D_CHUNKED:
      array.layout = Hdf5Layout::kChunked;
      read_filters(properties, array);
      read_chunks(set, properties, array);
      return true;
    case H5D_COMPACT:
      array.layout = Hdf5Layout::kInline;
      COHORT_THROW_UNLESS(elements * array.element.bytes <= kMaxInlineBytes, "{}: {} bytes lie inline", path,
                          elements * array.element.bytes);
      array.inline_bytes.resize(static_cast<std::size_t>(array.shape[0] * array.row_bytes()));
      COHORT_THROW_UNLESS(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, array.inline_bytes.data()) >= 0,
                          "{}: cannot be read: {}", path, last_error());
      return true;
    default:
      throw Error(format("{}: a virtual data set is not read; copy it into a plain one", path));
  }
}

/// Texts of an attribute or data set of strings; empty where it holds something else.
std::vector<std::string> read_texts(hid_t type, hid_t space,
                                    const std::function<herr_t(hid_t memory_type, void* out)>& read) {
  std::vector<std::string> texts;
  if (H5Tget_class(type) != H5T_STRING) return texts;
  const hssize_t count = H5Sget_simple_extent_npoints(space);
  if (count <= 0 || static_cast<std::size_t>(count) > kMaxTextBytes / sizeof(char*)) return texts;
  if (H5Tis_variable_str(type) > 0) {
    std::vector<char*> pointers(static_cast<std::size_t>(count), nullptr);
    const Id memory(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(memory, H5T_VARIABLE);
    H5Tset_cset(memory, H5Tget_cset(type));
    if (read(memory, pointers.data()) < 0) return texts;
    for (char* text : pointers) texts.emplace_back(text ? text : "");
    H5Dvlen_reclaim(memory, space, H5P_DEFAULT, pointers.data());
    return texts;
  }
  const std::size_t size = H5Tget_size(type);
  if (size == 0 || size > kMaxTextBytes / static_cast<std::size_t>(count)) return texts;
  std::string bytes(size * static_cast<std::size_t>(count), '\0');
  if (read(type, bytes.data()) < 0) return texts;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    std::string text = bytes.substr(i * size, size);
    text.resize(std::min(text.size(), text.find('\0')));
    while (H5Tget_strpad(type) == H5T_STR_SPACEPAD && text.ends_with(' ')) text.pop_back();
    texts.push_back(std::move(text));
  }
  return texts;
}

/// Nothing where the attribute is neither a text nor one number.
std::optional<std::string> attribute_text(hid_t attribute) {
  const Id type(H5Aget_type(attribute), H5Tclose);
  const Id space(H5Aget_space(attribute), H5Sclose);
  if (!type.good() || !space.good() || H5Sget_simple_extent_npoints(space) != 1) return std::nullopt;
  if (H5Tget_class(type) == H5T_STRING) {
    std::vector<std::string> texts =
        read_texts(type, space, [&](hid_t memory, void* out) { return H5Aread(attribute, memory, out); });
    if (texts.size() != 1) return std::nullopt;
    return std::move(texts.front());
  }
  Hdf5Element element;
  if (!element_of(type, element)) return std::nullopt;
  char bytes[8] = {};
  if (H5Aread(attribute, type, bytes) < 0) return std::nullopt;
  if (element.kind == Hdf5Element::Kind::kFloat) {
    double value = 0;
    convert_elements(element, bytes, std::span(&value, 1));
    return element.bytes == 4 ? format("{}", static_cast<float>(value)) : format("{}", value);
  }
  std::int64_t value = 0;
  convert_elements(element, bytes, std::span(&value, 1));
  if (element.kind == Hdf5Element::Kind::kBool) return value != 0 ? "true" : "false";
  if (element.kind == Hdf5Element::Kind::kUnsigned) return std::to_string(static_cast<std::uint64_t>(value));
  return std::to_string(value);
}

/// The type of an attribute that attribute_text() reads; empty for any other.
std::string attribute_type(hid_t attribute) {
  const Id type(H5Aget_type(attribute), H5Tclose);
  const Id space(H5Aget_space(attribute), H5Sclose);
  if (!type.good() || !space.good() || H5Sget_simple_extent_npoints(space) != 1) return "";
  if (H5Tget_class(type) == H5T_STRING) return "string";
  Hdf5Element element;
  if (!element_of(type, element)) return "";
  if (element.kind == Hdf5Element::Kind::kBool) return "bool";
  return format("{}{}",
                element.kind == Hdf5Element::Kind::kFloat      ? "float"
                : element.kind == Hdf5Element::Kind::kUnsigned ? "uint"
                                                               : "int",
                8 * element.bytes);
}

std::vector<std::string> attribute_names(hid_t object) {
  std::vector<std::string> names;
  hsize_t at = 0;
  H5Aiterate2(
      object, H5_INDEX_NAME, H5_ITER_INC, &at,
      [](hid_t, const char* name, const H5A_info_t*, void* out) -> herr_t {
        static_cast<std::vector<std::string>*>(out)->emplace_back(name);
        return 0;
      },
      &names);
  return names;
}

}  // namespace

struct Hdf5MetadataReader::Impl {
  std::string path;  // for messages
  hid_t file = -1;
  ~Impl() {
    if (file >= 0) H5Fclose(file);
  }
  Id open_group(const std::string& name) const {
    Id group(H5Gopen2(file, name.c_str(), H5P_DEFAULT), H5Gclose);
    COHORT_THROW_UNLESS(group.good(), "{}: has no group {}, or a link that leads nowhere", path, name);
    return group;
  }
  /// Where the bytes of a data set lie is looked up in this file: one that a link takes from another is refused.
  void check_file(hid_t set, const std::string& name) const {
    if (identity_of(set).file == identity_of(file).file) return;
    throw Error(format(
        "{} lies in another file, {}, to which a link leads: copy what is linked to into one file, with h5copy -f ext "
        "-i {} -o COPY.hdf5 -s /data -d /data, or name the files that hold the data by a folder or a manifest",
        name, file_name_of(set), path));
  }
  /// Adds the file's name to what `body` throws.
  template <class Body>
  auto naming(const Body& body) const {
    try {
      return body();
    } catch (const Error& e) {
      const std::string what = e.what();
      throw Error(what.starts_with(path) ? what : path + ": " + what);
    }
  }

  // The functions of Hdf5Metadata, with the same errors.

  bool has(const std::string& object) const {
    // Every part of the path must exist before the next is asked for.
    for (std::size_t slash = object.find('/', 1);; slash = object.find('/', slash + 1)) {
      const std::string part = object.substr(0, slash);
      if (part != "/" && H5Lexists(file, part.c_str(), H5P_DEFAULT) <= 0) return false;
      if (slash == std::string::npos) return true;
    }
  }

  std::vector<std::string> groups(const std::string& group) const {
    return naming([&] {
      const Id id = open_group(group);
      std::vector<std::string> names;
      for_each_entry(id, [&](const std::string& name) {
        const H5I_type_t type = type_of(id, name);
        if (type == H5I_GROUP || type == H5I_BADID) names.push_back(name);
      });
      return names;
    });
  }

  std::vector<std::string> data_sets(const std::string& group) const {
    return naming([&] {
      const Id id = open_group(group);
      std::vector<std::string> names;
      for_each_entry(id, [&](const std::string& name) {
        if (type_of(id, name) == H5I_DATASET) names.push_back(name);
      });
      return names;
    });
  }

  Hdf5Attributes attributes(const std::string& object) const {
    return naming([&] {
      const Id id(H5Oopen(file, object.c_str(), H5P_DEFAULT), H5Oclose);
      COHORT_THROW_UNLESS(id.good(), "has no object {}", object);
      Hdf5Attributes attributes;
      for (const std::string& name : attribute_names(id)) {
        const Id attribute(H5Aopen(id, name.c_str(), H5P_DEFAULT), H5Aclose);
        if (!attribute.good()) continue;
        if (std::optional<std::string> text = attribute_text(attribute))
          attributes.emplace_back(name, *std::move(text));
      }
      return attributes;
    });
  }

  std::vector<std::pair<std::string, std::string>> attribute_types(const std::string& object) const {
    return naming([&] {
      const Id id(H5Oopen(file, object.c_str(), H5P_DEFAULT), H5Oclose);
      COHORT_THROW_UNLESS(id.good(), "has no object {}", object);
      std::vector<std::pair<std::string, std::string>> types;
      for (const std::string& name : attribute_names(id)) {
        const Id attribute(H5Aopen(id, name.c_str(), H5P_DEFAULT), H5Aclose);
        types.emplace_back(name, attribute.good() ? attribute_type(attribute) : "");
      }
      return types;
    });
  }

  std::vector<std::pair<std::string, Hdf5Array>> arrays(const std::string& group) const {
    return naming([&] {
      const Id id = open_group(group);
      std::vector<std::pair<std::string, Hdf5Array>> arrays;
      DataSetWalk(id, [&](const std::string& name, hid_t set) {
        const std::string whole = (group == "/" ? "/" : group + "/") + name;
        check_file(set, whole);
        Hdf5Array array;
        if (describe_array(set, whole, array)) arrays.emplace_back(name, std::move(array));
      });
      return arrays;
    });
  }

  Hdf5Array array(const std::string& data_set) const {
    return naming([&] {
      const Id set(H5Dopen2(file, data_set.c_str(), H5P_DEFAULT), H5Dclose);
      COHORT_THROW_UNLESS(set.good(), "the data set {} cannot be opened: {}", data_set, last_error());
      check_file(set, data_set);
      Hdf5Array array;
      COHORT_THROW_UNLESS(describe_array(set, data_set, array), "{} is no array of numbers", data_set);
      return array;
    });
  }

  std::vector<std::pair<std::string, std::vector<std::int64_t>>> shapes(const std::string& group) const {
    return naming([&] {
      const Id id = open_group(group);
      std::vector<std::pair<std::string, std::vector<std::int64_t>>> shapes;
      DataSetWalk(id, [&](const std::string& name, hid_t set) {
        const std::string whole = (group == "/" ? "/" : group + "/") + name;
        check_file(set, whole);
        std::vector<std::int64_t> shape = extents_of(set);
        const Id type(H5Dget_type(set), H5Tclose);
        Hdf5Element element;
        if (const std::int64_t bytes = type.good() ? picture_bytes(whole, type) : 0; bytes > 0 && shape.size() == 1)
          shapes.emplace_back(name, std::vector<std::int64_t>{shape[0], bytes});
        else if (!shape.empty() && type.good() && element_of(type, element))
          shapes.emplace_back(name, std::move(shape));
      });
      return shapes;
    });
  }

  std::vector<std::string> texts(const std::string& data_set) const {
    return naming([&] {
      const Id set(H5Dopen2(file, data_set.c_str(), H5P_DEFAULT), H5Dclose);
      COHORT_THROW_UNLESS(set.good(), "has no data set {}", data_set);
      const Id type(H5Dget_type(set), H5Tclose);
      const Id space(H5Dget_space(set), H5Sclose);
      COHORT_THROW_UNLESS(type.good() && H5Tget_class(type) == H5T_STRING, "{} holds no texts", data_set);
      return read_texts(type, space, [&](hid_t memory, void* out) {
        return H5Dread(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, out);
      });
    });
  }
};

Hdf5MetadataReader::Hdf5MetadataReader(const std::filesystem::path& path, std::string name)
    : impl_(std::make_unique<Impl>()) {
  impl_->path = std::move(name);
  std::error_code error;
  COHORT_THROW_UNLESS(std::filesystem::is_regular_file(path, error), "there is no file {}", impl_->path);
  const std::string fault = placeholder_fault(path);
  COHORT_THROW_UNLESS(fault.empty(), "{} {}", impl_->path, fault);
  impl_->file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const std::string reason = impl_->file < 0 ? last_error() : "";
  hsize_t user_block = 0;
  if (impl_->file >= 0) {
    const Id properties(H5Fget_create_plist(impl_->file), H5Pclose);
    H5Pget_userblock(properties, &user_block);
  }
  const auto says = [&reason](const char* words) { return reason.find(words) != std::string::npos; };
  COHORT_THROW_UNLESS(impl_->file >= 0, "{} cannot be opened as HDF5: {}{}", impl_->path, reason,
                      says("truncated file")             ? ": it was cut or is still being written; copy it again"
                      : says("file signature not found") ? ": it is another kind of file (`file " + impl_->path +
                                                               "` says which); unpack an archive first"
                                                         : std::string());
  COHORT_THROW_UNLESS(user_block == 0, "{} begins with a user block; remove it with h5unjam", impl_->path);
}

Hdf5MetadataReader::~Hdf5MetadataReader() = default;
Hdf5MetadataReader::Hdf5MetadataReader(Hdf5MetadataReader&&) noexcept = default;
Hdf5MetadataReader& Hdf5MetadataReader::operator=(Hdf5MetadataReader&&) noexcept = default;

void Hdf5MetadataReader::answer(Hdf5Question question, const std::string& object, ByteWriter& out) const {
  switch (question) {
    case Hdf5Question::kOpen:
    case Hdf5Question::kClose:
      break;
    case Hdf5Question::kHas:
      put(out, impl_->has(object));
      break;
    case Hdf5Question::kGroups:
      put(out, impl_->groups(object));
      break;
    case Hdf5Question::kDataSets:
      put(out, impl_->data_sets(object));
      break;
    case Hdf5Question::kAttributes:
      put(out, impl_->attributes(object));
      break;
    case Hdf5Question::kAttributeTypes:
      put(out, impl_->attribute_types(object));
      break;
    case Hdf5Question::kArrays:
      put(out, impl_->arrays(object));
      break;
    case Hdf5Question::kArray:
      put(out, impl_->array(object));
      break;
    case Hdf5Question::kShapes:
      put(out, impl_->shapes(object));
      break;
    case Hdf5Question::kTexts:
      put(out, impl_->texts(object));
      break;
  }
}

}  // namespace cohort::data
