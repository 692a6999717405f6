#include "weights/torch_zip_writer.h"

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <zlib.h>

#include <torch/types.h>

#include "core/error.h"
#include "core/files.h"

namespace cohort::weights {
namespace {

constexpr std::size_t kRecordAlignment = 64;  // torch.save()'s own

void put(std::string& bytes, std::uint64_t value, int count) {
  for (int i = 0; i < count; ++i) bytes.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

/// Opcodes of protocol 2.
class PickleText {
 public:
  PickleText() { text_ = "\x80\x02"; }
  void op(char code) { text_.push_back(code); }
  void global(const char* module, const char* name) { text_ += std::string("c") + module + "\n" + name + "\n"; }
  void text(const std::string& value) {
    op('X');
    put(text_, value.size(), 4);
    text_ += value;
  }
  void number(std::int64_t value) {
    op('\x8a');  // LONG1
    put(text_, 8, 1);
    put(text_, static_cast<std::uint64_t>(value), 8);
  }
  std::string finished() && {
    op('.');
    return std::move(text_);
  }

 private:
  std::string text_;
};

const char* storage_name(at::ScalarType type, const std::string& name) {
  if (type == at::kFloat) return "FloatStorage";
  if (type == at::kDouble) return "DoubleStorage";
  if (type == at::kHalf) return "HalfStorage";
  if (type == at::kBFloat16) return "BFloat16Storage";
  if (type == at::kLong) return "LongStorage";
  throw Error(format("tensor {} has the element type {}, which is not written to .pt", name, c10::toString(type)));
}

void add_tensor(PickleText& p, const at::Tensor& tensor, const std::string& name, std::size_t record) {
  p.global("torch._utils", "_rebuild_tensor_v2");
  p.op('(');
  p.op('(');
  p.text("storage");
  p.global("torch", storage_name(tensor.scalar_type(), name));
  p.text(std::to_string(record));
  p.text("cpu");
  p.number(tensor.numel());
  p.op('t');
  p.op('Q');    // the storage, by what the tuple names
  p.number(0);  // its first element
  for (const at::IntArrayRef list : {tensor.sizes(), tensor.strides()}) {
    p.op('(');
    for (const std::int64_t value : list) p.number(value);
    p.op('t');
  }
  p.op('\x89');  // requires_grad: False
  p.global("collections", "OrderedDict");
  p.op(')');
  p.op('R');
  p.op('t');
  p.op('R');
}

/// A zip archive of stored records.
class ZipText {
 public:
  void add(const std::string& name, std::string_view content) {
    COHORT_THROW_UNLESS(bytes_.size() + content.size() < std::numeric_limits<std::uint32_t>::max(),
                        "4 GiB and more are not written to one .pt file");
    const auto crc = static_cast<std::uint64_t>(
        crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size()));  // NOLINT
    const std::uint64_t begin = bytes_.size();
    // An extra field fills up to where the content may be mapped.
    constexpr std::size_t kHeader = 30, kExtra = 4;
    const std::size_t before = bytes_.size() + kHeader + name.size() + kExtra;
    const std::size_t padding = (kRecordAlignment - before % kRecordAlignment) % kRecordAlignment;
    std::string common;
    put(common, 0, 2);  // flags
    put(common, 0, 2);  // stored
    put(common, 0, 4);  // time and date
    put(common, crc, 4);
    put(common, content.size(), 4);
    put(common, content.size(), 4);
    put(common, name.size(), 2);
    bytes_ += "PK\x03\x04";
    put(bytes_, 20, 2);
    bytes_ += common;
    put(bytes_, kExtra + padding, 2);
    bytes_ += name + "FB";
    put(bytes_, padding, 2);
    bytes_.append(padding, 'Z');
    bytes_ += content;
    directory_ += "PK\x01\x02";
    put(directory_, 20, 2);
    put(directory_, 20, 2);
    directory_ += common;
    put(directory_, 0, 2);  // extra
    put(directory_, 0, 2);  // comment
    put(directory_, 0, 2);  // disk
    put(directory_, 0, 2);  // attributes
    put(directory_, 0, 4);
    put(directory_, begin, 4);
    directory_ += name;
    ++records_;
  }
  std::string finished() && {
    const std::uint64_t begin = bytes_.size();
    bytes_ += directory_;
    bytes_ += "PK\x05\x06";
    put(bytes_, 0, 4);
    put(bytes_, records_, 2);
    put(bytes_, records_, 2);
    put(bytes_, directory_.size(), 4);
    put(bytes_, begin, 4);
    put(bytes_, 0, 2);
    return std::move(bytes_);
  }

 private:
  std::string bytes_, directory_;
  std::uint64_t records_ = 0;
};

}  // namespace

void write_torch_file(const std::filesystem::path& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& texts) {
  COHORT_CHECK(!tensors.empty(), "no tensor is to be written");
  const bool alone = texts.empty() && tensors.size() == 1 && tensors.front().first.empty();
  PickleText pickle;
  if (!alone) {
    pickle.op('}');
    pickle.op('(');
    for (const auto& [key, text] : texts) {
      pickle.text(key);
      pickle.text(text);
    }
  }
  std::vector<at::Tensor> records;
  for (const auto& [name, tensor] : tensors) {
    if (!alone) pickle.text(name);
    records.push_back(tensor.to(at::kCPU).contiguous());
    add_tensor(pickle, records.back(), name, records.size() - 1);
  }
  if (!alone) pickle.op('u');
  ZipText zip;
  zip.add("archive/data.pkl", std::move(pickle).finished());
  zip.add("archive/byteorder", "little");
  for (std::size_t i = 0; i < records.size(); ++i)
    zip.add("archive/data/" + std::to_string(i),
            {static_cast<const char*>(records[i].const_data_ptr()), static_cast<std::size_t>(records[i].nbytes())});
  zip.add("archive/version", "3\n");
  write_file_atomically(path, std::move(zip).finished());
}

}  // namespace cohort::weights
