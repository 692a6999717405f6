#include "serve/msgpack.h"

#include <bit>
#include <cstring>

#include "core/error.h"

namespace cohort::serve {
namespace {

class MsgpackReader {
 public:
  explicit MsgpackReader(std::string_view bytes) : bytes_(bytes) {}

  Value read_message() {
    Value value = read(0);
    COHORT_THROW_UNLESS(at_ == bytes_.size(), "the message goes on behind its end, at byte {} of {}", at_,
                        bytes_.size());
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(format("no msgpack message of observations: byte {} of {}: {}", at_, bytes_.size(), what));
  }

  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) fail(format("{} bytes are announced, {} follow", count, bytes_.size() - at_));
    const std::string_view part = bytes_.substr(at_, static_cast<std::size_t>(count));
    at_ += part.size();
    return part;
  }

  /// A big-endian number of so many bytes.
  std::uint64_t number(std::size_t size) {
    std::uint64_t n = 0;
    for (const char c : take(size)) n = n << 8 | static_cast<std::uint8_t>(c);
    return n;
  }

  Value read(int depth) {
    if (depth > kMaxDepth) fail(format("more than {} levels of maps and lists", kMaxDepth));
    if (++values_ > kMaxValues)
      fail(format("more than {} values: send numbers as NumPy arrays, not as lists", kMaxValues));
    const auto head = static_cast<std::uint8_t>(take(1)[0]);
    if (head < 0x80) return {static_cast<std::int64_t>(head)};
    if (head >= 0xe0) return {static_cast<std::int64_t>(static_cast<std::int8_t>(head))};
    if (head < 0x90) return map(head & 15, depth);
    if (head < 0xa0) return list(head & 15, depth);
    if (head < 0xc0) return {std::string(take(head & 31))};
    switch (head) {
      case 0xc0:
        return {};
      case 0xc2:
        return {false};
      case 0xc3:
        return {true};
      case 0xc4:
        return {Bytes{std::string(take(number(1)))}};
      case 0xc5:
        return {Bytes{std::string(take(number(2)))}};
      case 0xc6:
        return {Bytes{std::string(take(number(4)))}};
      case 0xca:
        return {static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(number(4))))};
      case 0xcb:
        return {std::bit_cast<double>(number(8))};
      case 0xcc:
        return {static_cast<std::int64_t>(number(1))};
      case 0xcd:
        return {static_cast<std::int64_t>(number(2))};
      case 0xce:
        return {static_cast<std::int64_t>(number(4))};
      case 0xcf:
        return whole(number(8));
      case 0xd0:
        return {static_cast<std::int64_t>(static_cast<std::int8_t>(number(1)))};
      case 0xd1:
        return {static_cast<std::int64_t>(static_cast<std::int16_t>(number(2)))};
      case 0xd2:
        return {static_cast<std::int64_t>(static_cast<std::int32_t>(number(4)))};
      case 0xd3:
        return {static_cast<std::int64_t>(number(8))};
      case 0xd9:
        return {std::string(take(number(1)))};
      case 0xda:
        return {std::string(take(number(2)))};
      case 0xdb:
        return {std::string(take(number(4)))};
      case 0xdc:
        return list(number(2), depth);
      case 0xdd:
        return list(number(4), depth);
      case 0xde:
        return map(number(2), depth);
      case 0xdf:
        return map(number(4), depth);
      default:
        --at_;
        fail(format("type 0x{:02x} is not taken", head));
    }
  }

  static Value whole(std::uint64_t n) {
    if (n <= static_cast<std::uint64_t>(INT64_MAX)) return {static_cast<std::int64_t>(n)};
    return {n};
  }

  // Counts are not trusted: nothing is reserved by them, and every item takes a byte of the message.
  Value list(std::uint64_t count, int depth) {
    List items;
    for (std::uint64_t i = 0; i < count; ++i) items.push_back(read(depth + 1));
    return {std::move(items)};
  }

  Value map(std::uint64_t count, int depth) {
    Map entries;
    for (std::uint64_t i = 0; i < count; ++i) {
      Value key = read(depth + 1);
      std::string* text = std::get_if<std::string>(&key.of);
      if (Bytes* bytes = std::get_if<Bytes>(&key.of)) text = &bytes->data;
      if (text == nullptr) fail(format("a key of a map is {}, but must be a text", describe(key)));
      entries.push_back({std::move(*text), read(depth + 1)});
    }
    for (const char* mark : {"__ndarray__", "__torch__"})
      if (find(entries, mark) != nullptr) return {array(entries)};
    if (find(entries, "__npgeneric__") != nullptr) {
      const Value* data = find(entries, "data");
      if (data == nullptr) fail("a NumPy number (__npgeneric__) without data");
      return *data;
    }
    return {std::move(entries)};
  }

  NumpyArray array(const Map& entries) const {
    const Value *data = find(entries, "data"), *dtype = find(entries, "dtype"), *shape = find(entries, "shape");
    if (data == nullptr || dtype == nullptr || shape == nullptr)
      fail("an array (__ndarray__) without data, dtype or shape");
    NumpyArray read;
    if (const std::string* text = std::get_if<std::string>(&dtype->of)) read.dtype = *text;
    if (const Bytes* text = std::get_if<Bytes>(&dtype->of)) read.dtype = text->data;
    const List* sizes = std::get_if<List>(&shape->of);
    if (sizes == nullptr) fail(format("the shape of an array is {}, but must be a list", describe(*shape)));
    if (sizes->size() > 8) fail(format("an array of {} dimensions: at most 8 are taken", sizes->size()));
    const Bytes* bytes = std::get_if<Bytes>(&data->of);
    if (bytes == nullptr) fail(format("the data of an array are {}, but must be bytes", describe(*data)));
    const auto have = static_cast<std::int64_t>(bytes->data.size());
    std::int64_t elements = 1;
    read.data = bytes->data;
    for (const Value& size : *sizes) {
      const std::int64_t* n = std::get_if<std::int64_t>(&size.of);
      if (n == nullptr || *n < 0) fail("the shape of an array holds something else than sizes");
      read.shape.push_back(*n);
      if (!is_number(read.dtype)) continue;  // texts and the like: whoever looks at it says that they are none
      if (*n > 0 && elements > have / *n) fail(format("an array {} with {} bytes", shape_text(read.shape), have));
      elements *= *n;
    }
    if (!is_number(read.dtype)) return read;
    const ElementKind kind = element_kind(read.dtype);
    if (elements > have || elements * kind.size != have)
      fail(format("an array {} {} with {} bytes", kind.name(), shape_text(read.shape), have));
    return read;
  }

  std::string_view bytes_;
  std::size_t at_ = 0, values_ = 0;
};

class MsgpackWriter {
 public:
  explicit MsgpackWriter(ArrayKeys keys) : keys_(keys) {}
  std::string out;

  void write(const Value& value) {
    std::visit([this](const auto& v) { put(v); }, value.of);
  }

 private:
  void byte(unsigned n) { out.push_back(static_cast<char>(n)); }
  void number(std::uint64_t n, int size) {
    for (int i = size - 1; i >= 0; --i) byte(static_cast<unsigned>(n >> (8 * i) & 255));
  }
  /// The head of something of `count` parts: `fixed` + count below `limit`, else the types for 1 (0: none), 2, 4 bytes.
  void head(std::size_t count, unsigned fixed, std::size_t limit, unsigned one, unsigned two, unsigned four) {
    COHORT_CHECK(count <= UINT32_MAX, "a part of a message has {} bytes", count);
    if (count < limit) return byte(fixed + static_cast<unsigned>(count));
    const int size = count < 256 && one != 0 ? 1 : count < 65536 ? 2 : 4;
    byte(size == 1 ? one : size == 2 ? two : four);
    number(count, size);
  }
  void bytes(std::string_view data) {
    head(data.size(), 0, 0, 0xc4, 0xc5, 0xc6);
    out += data;
  }

  void put(std::monostate) { byte(0xc0); }
  void put(bool v) { byte(v ? 0xc3 : 0xc2); }
  void put(std::int64_t v) {
    if (v >= 0) return put(static_cast<std::uint64_t>(v));
    if (v >= -32) return byte(static_cast<unsigned>(v) & 255);
    byte(0xd3);
    number(static_cast<std::uint64_t>(v), 8);
  }
  void put(std::uint64_t v) {
    if (v < 128) return byte(static_cast<unsigned>(v));
    byte(0xcf);
    number(v, 8);
  }
  void put(double v) {
    byte(0xcb);
    number(std::bit_cast<std::uint64_t>(v), 8);
  }
  void put(const std::string& v) {
    head(v.size(), 0xa0, 32, 0xd9, 0xda, 0xdb);
    out += v;
  }
  void put(const Bytes& v) { bytes(v.data); }
  void array_key(const std::string& name) { keys_ == ArrayKeys::kTexts ? put(name) : bytes(name); }
  void put(const NumpyArray& v) {
    head(4, 0x80, 16, 0, 0xde, 0xdf);
    array_key("__ndarray__");
    put(true);
    array_key("data");
    bytes(v.data);
    array_key("dtype");
    put(v.dtype);
    array_key("shape");
    head(v.shape.size(), 0x90, 16, 0, 0xdc, 0xdd);
    for (const std::int64_t n : v.shape) put(n);
  }
  void put(const List& v) {
    head(v.size(), 0x90, 16, 0, 0xdc, 0xdd);
    for (const Value& item : v) write(item);
  }
  void put(const Map& v) {
    head(v.size(), 0x80, 16, 0, 0xde, 0xdf);
    for (const Entry& entry : v) {
      put(entry.key);
      write(entry.value);
    }
  }

  ArrayKeys keys_;
};

}  // namespace

Value unpack(std::string_view bytes) {
  return MsgpackReader(bytes).read_message();
}

std::string pack(const Value& value, ArrayKeys keys) {
  MsgpackWriter writer(keys);
  writer.write(value);
  return std::move(writer.out);
}

}  // namespace cohort::serve
