#include "weights/safetensors.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <torch/types.h>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "formats/crc32c.h"
#include "weights/file_mapping.h"

namespace cohort::weights {
namespace fs = std::filesystem;
namespace {

// The package refuses larger headers, too: a length is read from the file, and must not make us allocate at will.
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kAlignment = 8;

struct ElementKind {
  const char* name;
  at::ScalarType type;
};
/// In the order by which the package sorts (rising); see Dtype in its source.
constexpr ElementKind kElementKinds[] = {
    {"BOOL", at::kBool},
    {"U8", at::kByte},
    {"I8", at::kChar},
    {"F8_E5M2", at::kFloat8_e5m2},
    {"F8_E4M3", at::kFloat8_e4m3fn},
    {"I16", at::kShort},
    {"U16", at::kUInt16},
    {"F16", at::kHalf},
    {"BF16", at::kBFloat16},
    {"I32", at::kInt},
    {"U32", at::kUInt32},
    {"F32", at::kFloat},
    {"C64", at::kComplexFloat},
    {"F64", at::kDouble},
    {"I64", at::kLong},
    {"U64", at::kUInt64},
};

int kind_order(at::ScalarType type, const std::string& name) {
  for (int i = 0; i < static_cast<int>(std::size(kElementKinds)); ++i) {
    if (kElementKinds[i].type == type) return i;
  }
  throw Error(format("tensor {} has the element type {}, which safetensors cannot hold", name, c10::toString(type)));
}

/// What a file of another format most likely is, to tell the user what to do.
std::string guess_format(const unsigned char* bytes, std::uint64_t size) {
  const auto starts = [&](const void* magic, std::size_t n) { return size >= n && std::memcmp(bytes, magic, n) == 0; };
  if (starts("PK\x03\x04", 4)) {
    return " It looks like a PyTorch archive (.pt, .pth, .bin), which holds Python code; save it with "
           "safetensors.torch.save_file.";
  }
  if (starts("\x80\x02", 2) || starts("\x80\x04", 2)) return " It looks like a Python pickle, which can run code.";
  if (starts("\x89HDF\r\n\x1a\n", 8)) return " It looks like an HDF5 file.";
  return "";
}

struct Entry {
  std::string name;
  at::ScalarType type;
  std::vector<std::int64_t> shape;
  std::uint64_t begin, end;  // bytes from the end of the header
};

nlohmann::json parse_header(const fs::path& path, const char* begin, const char* end) {
  std::unordered_set<std::string> names;
  const auto check = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    COHORT_THROW_UNLESS(depth <= 4, "{}: the header is nested more deeply than a safetensors header", path.string());
    if (event == nlohmann::json::parse_event_t::key && depth == 1) {
      const auto& name = value.get_ref<const std::string&>();
      COHORT_THROW_UNLESS(names.insert(name).second, "{}: the header names '{}' twice", path.string(), name);
    }
    return true;
  };
  try {
    return nlohmann::json::parse(begin, end, check);
  } catch (const nlohmann::json::exception& e) {
    throw Error(format("{}: the header is no valid JSON ({}); the file is damaged or of another format", path.string(),
                       e.what()));
  }
}

Entry parse_entry(const fs::path& path, const std::string& name, const nlohmann::json& value,
                  std::uint64_t data_bytes) {
  const auto fail = [&](const std::string& what) {
    return Error(format("{}: tensor '{}': {}", path.string(), name, what));
  };
  if (!value.is_object() || !value.contains("dtype") || !value.contains("shape") || !value.contains("data_offsets")) {
    throw fail("its header entry lacks dtype, shape or data_offsets");
  }
  Entry entry;
  entry.name = name;
  const auto& dtype = value["dtype"];
  const auto kind = std::find_if(std::begin(kElementKinds), std::end(kElementKinds),
                                 [&](const ElementKind& k) { return dtype.is_string() && dtype == k.name; });
  if (kind == std::end(kElementKinds)) throw fail(format("element type {} is not supported", json_text(dtype)));
  entry.type = kind->type;
  if (!value["shape"].is_array()) throw fail("its shape is no list");
  std::uint64_t bytes = c10::elementSize(entry.type);
  std::int64_t reach = static_cast<std::int64_t>(bytes);  // of the strides: as if no extent were 0
  bool overflow = false;
  for (const auto& extent : value["shape"]) {
    if (!extent.is_number_unsigned()) throw fail("its shape holds something else than sizes");
    const auto n = extent.get<std::uint64_t>();
    overflow |= __builtin_mul_overflow(reach, std::max<std::uint64_t>(n, 1), &reach);
    bytes *= n;
    entry.shape.push_back(static_cast<std::int64_t>(n));
  }
  // A shape such as [0, 2^62, 2^62] has no bytes, but no tensor either.
  if (overflow) throw fail(format("its shape {} overflows", json_text(value["shape"])));
  const auto& offsets = value["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    throw fail("its data_offsets are no pair of positions");
  }
  entry.begin = offsets[0].get<std::uint64_t>();
  entry.end = offsets[1].get<std::uint64_t>();
  if (entry.begin > entry.end) throw fail(format("its bytes end ({}) before they begin ({})", entry.end, entry.begin));
  if (entry.end > data_bytes) {
    throw fail(format("its bytes end at {}, but the file holds {} bytes of data: the file is truncated", entry.end,
                      data_bytes));
  }
  if (entry.end - entry.begin != bytes) {
    throw fail(format("its shape {} of {} takes {} bytes, but the header gives it {}", json_text(value["shape"]),
                      kind->name, bytes, entry.end - entry.begin));
  }
  return entry;
}

at::Tensor view_of(const Entry& entry, unsigned char* data, const std::shared_ptr<FileMapping>& mapping) {
  const auto options = at::TensorOptions().dtype(entry.type);
  const std::size_t bytes = entry.end - entry.begin;
  if (bytes == 0) return at::empty(entry.shape, options);
  unsigned char* first = data + entry.begin;
  if (reinterpret_cast<std::uintptr_t>(first) % c10::elementSize(entry.type) != 0) {
    at::Tensor copy = at::empty(entry.shape, options);
    std::memcpy(copy.mutable_data_ptr(), first, bytes);
    return copy;
  }
  return at::from_blob(
      first, entry.shape, [mapping](void*) {}, options);
}

void write_all(int fd, const char* data, std::size_t size, const fs::path& path) {
  while (size > 0) {
    const ssize_t n = ::write(fd, data, std::min(size, std::size_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    COHORT_THROW_UNLESS(n >= 0, "cannot write {}: {}", path.string(), std::strerror(errno));
    data += n;
    size -= static_cast<std::size_t>(n);
  }
}

}  // namespace

SafetensorsFile read_safetensors(const fs::path& path) {
  const auto mapping = std::make_shared<FileMapping>(path);
  const std::uint64_t size = mapping->size();
  COHORT_THROW_UNLESS(size >= kLengthBytes, "{}: {} bytes are too few for a safetensors file: it is empty or truncated",
                      path.string(), size);
  std::uint64_t header_bytes = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) header_bytes = header_bytes << 8 | mapping->data()[i];
  COHORT_THROW_UNLESS(header_bytes <= kMaxHeaderBytes && header_bytes > 0,
                      "{} is no safetensors file: its header would take {} bytes (at most {}).{}", path.string(),
                      header_bytes, kMaxHeaderBytes, guess_format(mapping->data(), size));
  COHORT_THROW_UNLESS(
      header_bytes <= size - kLengthBytes,
      "{}: the header takes {} bytes, but only {} follow: the file is truncated or no safetensors file.{}",
      path.string(), header_bytes, size - kLengthBytes, guess_format(mapping->data(), size));
  const char* header = reinterpret_cast<const char*>(mapping->data() + kLengthBytes);
  COHORT_THROW_UNLESS(header[0] == '{', "{} is no safetensors file: its header does not begin with '{{'.{}",
                      path.string(), guess_format(mapping->data(), size));
  const auto json = parse_header(path, header, header + header_bytes);
  const std::uint64_t data_bytes = size - kLengthBytes - header_bytes;

  SafetensorsFile file;
  std::vector<Entry> entries;
  for (const auto& [name, value] : json.items()) {
    if (name == "__metadata__") {
      COHORT_THROW_UNLESS(value.is_object(), "{}: its metadata is no table of texts", path.string());
      for (const auto& [key, text] : value.items()) {
        COHORT_THROW_UNLESS(text.is_string(), "{}: its metadata '{}' is no text", path.string(), key);
        file.metadata[key] = text.get<std::string>();
      }
      continue;
    }
    entries.push_back(parse_entry(path, name, value, data_bytes));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::uint64_t covered = 0;
  for (const auto& entry : entries) {
    COHORT_THROW_UNLESS(entry.begin >= covered, "{}: tensor '{}' begins at byte {}, inside another tensor (until {})",
                        path.string(), entry.name, entry.begin, covered);
    COHORT_THROW_UNLESS(entry.begin == covered, "{}: the bytes from {} to {}, before tensor '{}', belong to no tensor",
                        path.string(), covered, entry.begin, entry.name);
    covered = entry.end;
  }
  COHORT_THROW_UNLESS(covered == data_bytes, "{}: {} bytes follow the last tensor: the file is damaged", path.string(),
                      data_bytes - covered);
  unsigned char* data = mapping->data() + kLengthBytes + header_bytes;
  file.tensors.reserve(entries.size());
  for (auto& entry : entries) file.tensors.emplace_back(entry.name, view_of(entry, data, mapping));
  return file;
}

std::uint32_t write_safetensors_in_place(const fs::path& path, const NamedTensors& tensors,
                                         const std::map<std::string, std::string>& metadata) {
  struct Item {
    const std::string* name;
    at::Tensor tensor;
    int order;
  };
  std::vector<Item> items;
  std::unordered_set<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    COHORT_CHECK(name != "__metadata__" && names.insert(name).second, "two tensors are named '{}'", name);
    items.push_back({&name, tensor.detach().cpu().contiguous(), kind_order(tensor.scalar_type(), name)});
  }
  std::sort(items.begin(), items.end(),
            [](const Item& a, const Item& b) { return a.order != b.order ? a.order > b.order : *a.name < *b.name; });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t position = 0;
  for (const auto& item : items) {
    const std::uint64_t end = position + item.tensor.nbytes();
    header[*item.name] = {{"dtype", kElementKinds[item.order].name},
                          {"shape", std::vector<std::int64_t>(item.tensor.sizes().begin(), item.tensor.sizes().end())},
                          {"data_offsets", {position, end}}};
    position = end;
  }
  std::string text;
  try {
    text = json_text(header);
  } catch (const nlohmann::json::exception& e) {
    throw Error(format("cannot write {}: a name or its metadata is no UTF-8 text ({})", path.string(), e.what()));
  }
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  COHORT_THROW_UNLESS(text.size() <= kMaxHeaderBytes, "cannot write {}: its header would take {} bytes (at most {})",
                      path.string(), text.size(), kMaxHeaderBytes);
  char length[kLengthBytes];
  for (std::size_t i = 0; i < kLengthBytes; ++i) length[i] = static_cast<char>(text.size() >> (8 * i) & 0xff);
  text.insert(0, length, kLengthBytes);

  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  COHORT_THROW_UNLESS(fd >= 0, "cannot create {}: {}", path.string(), std::strerror(errno));
  int to_close = fd;
  std::uint32_t checksum = 0;
  const auto write = [&](const char* data, std::size_t bytes) {
    write_all(fd, data, bytes, path);
    checksum = crc32c(data, bytes, checksum);
  };
  try {
    write(text.data(), text.size());
    for (const auto& item : items) write(static_cast<const char*>(item.tensor.const_data_ptr()), item.tensor.nbytes());
    COHORT_THROW_UNLESS(::fsync(fd) == 0 || errno == EINVAL, "cannot sync {}: {}", path.string(), std::strerror(errno));
    to_close = -1;
    COHORT_THROW_UNLESS(::close(fd) == 0, "cannot write {}: {}", path.string(), std::strerror(errno));
  } catch (...) {
    if (to_close >= 0) ::close(to_close);
    // What is no regular file (a device, a pipe) is not ours to remove.
    std::error_code ignored;
    if (fs::is_regular_file(path, ignored)) fs::remove(path, ignored);
    throw;
  }
  return checksum;
}

void write_safetensors(const fs::path& path, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata) {
  if (path.has_parent_path()) {
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    COHORT_THROW_UNLESS(!error, "cannot create the folder {}: {}", path.parent_path().string(), error.message());
  }
  fs::path aside = path;
  aside += format(".tmp{}", ::getpid());
  write_safetensors_in_place(aside, tensors, metadata);
  std::error_code error;
  fs::rename(aside, path, error);
  if (error) {
    std::error_code ignored;
    fs::remove(aside, ignored);
    throw Error(format("cannot move {} into place: {}", path.string(), error.message()));
  }
  sync_path(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

}  // namespace cohort::weights
