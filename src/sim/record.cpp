#include "sim/record.h"

#include <array>
#include <cstring>

#include <unistd.h>

#include "core/error.h"
#include "core/files.h"
#include "sim/host_memory.h"

namespace cohort::sim {

namespace {

void append_rows(std::vector<float>& to, const ArrayView& view) {
  for (std::int64_t e = 0; e < view.shape[0]; ++e) {
    for (std::int64_t i = 0; i < view.shape[1]; ++i) {
      const std::int64_t at = e * view.strides[0] + i * view.strides[1];
      to.push_back(view.type == ElementType::kFloat64 ? static_cast<float>(static_cast<const double*>(view.data)[at])
                                                      : static_cast<const float*>(view.data)[at]);
    }
  }
}

/// CRC-32 of ISO 3309, which the zip format uses.
std::uint32_t crc32(const std::string& data) {
  static const std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> t{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t c = i;
      for (int k = 0; k < 8; ++k) c = c & 1 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
      t[i] = c;
    }
    return t;
  }();
  std::uint32_t crc = 0xFFFFFFFFu;
  for (unsigned char byte : data) crc = table[(crc ^ byte) & 255] ^ (crc >> 8);
  return crc ^ 0xFFFFFFFFu;
}

void put(std::string& to, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to += static_cast<char>(value >> (8 * i) & 255);
}

/// One array in NumPy's format 1.0 (numpy.lib.format).
std::string npy(const char* type, const std::vector<std::int64_t>& shape, const void* data, std::size_t bytes) {
  std::string dims;
  for (std::int64_t d : shape) dims += format("{}, ", d);
  std::string header = format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, dims);
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  put(out, header.size(), 2);
  out += header;
  out.append(static_cast<const char*>(data), bytes);
  return out;
}

/// An archive of stored (uncompressed) files (PKWARE APPNOTE 6.3.10, sections 4.3.7, 4.3.12, 4.3.16).
class Zip {
 public:
  void add(const std::string& name, const std::string& content) {
    COHORT_THROW_UNLESS(out_.size() + content.size() < 0xFFFFFFFFull,
                        "the recording is larger than 4 GiB: record fewer steps or environments");
    std::string entry;
    put(entry, 20, 2), put(entry, 0, 2), put(entry, 0, 2), put(entry, 0, 2), put(entry, 0x21, 2);
    put(entry, crc32(content), 4), put(entry, content.size(), 4), put(entry, content.size(), 4);
    put(entry, name.size(), 2), put(entry, 0, 2);
    put(directory_, 0x02014b50, 4), put(directory_, 20, 2);
    directory_ += entry;
    put(directory_, 0, 2), put(directory_, 0, 2), put(directory_, 0, 2), put(directory_, 0, 4),
        put(directory_, out_.size(), 4);
    directory_ += name;
    put(out_, 0x04034b50, 4);
    out_ += entry + name + content;
    ++count_;
  }
  std::string finish() && {
    const std::size_t start = out_.size();
    out_ += directory_;
    put(out_, 0x06054b50, 4), put(out_, 0, 2), put(out_, 0, 2), put(out_, count_, 2), put(out_, count_, 2);
    put(out_, directory_.size(), 4), put(out_, start, 4), put(out_, 0, 2);
    return std::move(out_);
  }

 private:
  std::string out_, directory_;
  std::uint64_t count_ = 0;
};

}  // namespace

StateRecorder::StateRecorder(Scene& scene, std::filesystem::path path, std::int64_t frames)
    : scene_(scene), path_(std::move(path)) {
  const std::string ending = path_.extension().string();
  COHORT_THROW_UNLESS(ending == ".npz" || ending == ".csv", "{}: a recording ends in .npz or .csv", path_.string());
  // Found out now, not after the last step.
  std::error_code code;
  const std::filesystem::path folder = path_.has_parent_path() ? path_.parent_path() : std::filesystem::path(".");
  std::filesystem::create_directories(folder, code);
  COHORT_THROW_UNLESS(!code && access(folder.c_str(), W_OK) == 0, "{}: the folder {} cannot be written", path_.string(),
                      folder.string());
  COHORT_THROW_UNLESS(!std::filesystem::is_directory(path_, code), "{} is a folder", path_.string());
  const ModelInfo& m = scene.info();
  const std::size_t rows = static_cast<std::size_t>(frames) * static_cast<std::size_t>(scene.n_envs());
  const double bytes = static_cast<double>(rows) * 4.0 * (2 + m.nq + m.nv + m.nu);
  const double memory = available_host_memory();
  COHORT_THROW_UNLESS(bytes < memory / 2,
                      "recording {} frames of {} environments takes {}; this process can get {}: record fewer steps or "
                      "environments",
                      frames, scene.n_envs(), format_bytes(bytes), format_bytes(memory));
  time_.reserve(rows);
  qpos_.reserve(rows * static_cast<std::size_t>(m.nq));
  qvel_.reserve(rows * static_cast<std::size_t>(m.nv));
  ctrl_.reserve(rows * static_cast<std::size_t>(m.nu));
  status_.reserve(rows);
}

void StateRecorder::add() {
  append_rows(time_, scene_.host_view(Field::kTime));
  append_rows(qpos_, scene_.host_view(Field::kQpos));
  append_rows(qvel_, scene_.host_view(Field::kQvel));
  append_rows(ctrl_, scene_.host_view(Field::kCtrl));
  const auto status = scene_.host_view(Field::kStatus).span<std::int32_t>();
  status_.insert(status_.end(), status.begin(), status.end());
  ++frames_;
}

void StateRecorder::save() const {
  write_file_atomically(path_, path_.extension() == ".npz" ? npz() : csv());
}

std::string StateRecorder::npz() const {
  const ModelInfo& m = scene_.info();
  const std::int64_t n = scene_.n_envs();
  std::vector<std::int64_t> ids;
  for (int e = 0; e < n; ++e) ids.push_back(scene_.global_environment_id(e));
  Zip zip;
  zip.add("time.npy", npy("<f4", {frames_, n}, time_.data(), time_.size() * 4));
  zip.add("qpos.npy", npy("<f4", {frames_, n, m.nq}, qpos_.data(), qpos_.size() * 4));
  zip.add("qvel.npy", npy("<f4", {frames_, n, m.nv}, qvel_.data(), qvel_.size() * 4));
  zip.add("ctrl.npy", npy("<f4", {frames_, n, m.nu}, ctrl_.data(), ctrl_.size() * 4));
  zip.add("status.npy", npy("<i4", {frames_, n}, status_.data(), status_.size() * 4));
  zip.add("env.npy", npy("<i8", {n}, ids.data(), ids.size() * 8));
  return std::move(zip).finish();
}

std::string StateRecorder::csv() const {
  const ModelInfo& m = scene_.info();
  std::string text = "frame,env,time,status";
  for (int i = 0; i < m.nq; ++i) text += format(",qpos{}", i);
  for (int i = 0; i < m.nv; ++i) text += format(",qvel{}", i);
  for (int i = 0; i < m.nu; ++i) text += format(",ctrl{}", i);
  text += '\n';
  const std::size_t n = static_cast<std::size_t>(scene_.n_envs());
  const auto numbers = [&](const std::vector<float>& from, std::size_t row, int width) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(width); ++i) {
      text += format(",{:.9g}", from[row * static_cast<std::size_t>(width) + i]);
    }
  };
  for (std::size_t row = 0; row < time_.size(); ++row) {
    text += format("{},{},{:.9g},{}", row / n, scene_.global_environment_id(static_cast<int>(row % n)), time_[row],
                   status_[row]);
    numbers(qpos_, row, m.nq);
    numbers(qvel_, row, m.nv);
    numbers(ctrl_, row, m.nu);
    text += '\n';
  }
  return text;
}

}  // namespace cohort::sim
