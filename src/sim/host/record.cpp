#include "sim/host/record.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/files.h"
#include "core/real_at.h"
#include "formats/zip_archive.h"

namespace cohort::sim {

/// A format: takes frames one after the other.
class StateRecorder::Output {
 public:
  virtual ~Output() = default;
  virtual void add(std::int64_t frame, Scene& scene) = 0;
  virtual void save(std::int64_t frames) = 0;
  /// After an error: puts in place what whole frames there are; how many.
  virtual std::int64_t keep() { return 0; }
};

namespace {

/// Writes go to the system in pieces of about this many bytes.
constexpr std::size_t kPiece = std::size_t{1} << 20;

struct Recorded {
  const char* name;
  Field field;
  const char* type;  ///< NumPy's
};
constexpr Recorded kRecorded[] = {{"time", Field::kTime, "<f4"},
                                  {"qpos", Field::kQpos, "<f4"},
                                  {"qvel", Field::kQvel, "<f4"},
                                  {"ctrl", Field::kCtrl, "<f4"},
                                  {"status", Field::kStatus, "<i4"}};

float float_at(const ArrayView& view, std::int64_t row, std::int64_t column) {
  return static_cast<float>(real_at(view, row, column));
}
std::int32_t int_at(const ArrayView& view, std::int64_t row) {
  return static_cast<const std::int32_t*>(view.data)[row * view.strides[0]];
}

/// Throws Error when the disk has not so many bytes left. What else is written there meanwhile is found by add().
void need_room(const AtomicFile& file, const std::filesystem::path& path, double bytes, const Scene& scene,
               std::int64_t frames) {
  constexpr double kLargestFile = 9e18;  // offsets are signed
  const double room = std::min(static_cast<double>(file.room()), kLargestFile);
  COHORT_THROW_UNLESS(
      bytes <= room,
      "{}: recording {} frames of {} environments takes {}; the disk has {} left: record fewer steps or "
      "environments, or to another disk",
      path.string(), frames, scene.n_envs(), format_bytes(bytes), format_bytes(room));
}

/// A row per frame and environment.
class CsvOutput final : public StateRecorder::Output {
 public:
  CsvOutput(const Scene& scene, const std::filesystem::path& path, std::int64_t frames) : file_(path) {
    const ModelInfo& m = scene.info();
    // At least: a digit and what parts it from the next.
    need_room(file_, path, 2.0 * (4 + m.nq + m.nv + m.nu) * scene.n_envs() * static_cast<double>(frames), scene,
              frames);
    text_ = "frame,env,time,status";
    for (int i = 0; i < m.nq; ++i) text_ += format(",qpos{}", i);
    for (int i = 0; i < m.nv; ++i) text_ += format(",qvel{}", i);
    for (int i = 0; i < m.nu; ++i) text_ += format(",ctrl{}", i);
    text_ += '\n';
  }

  void add(std::int64_t frame, Scene& scene) override {
    const ArrayView time = scene.host_view(Field::kTime), status = scene.host_view(Field::kStatus);
    const ArrayView numbers[] = {scene.host_view(Field::kQpos), scene.host_view(Field::kQvel),
                                 scene.host_view(Field::kCtrl)};
    for (int e = 0; e < scene.n_envs(); ++e) {
      text_ +=
          format("{},{},{:.9g},{}", frame, scene.global_environment_id(e), float_at(time, e, 0), int_at(status, e));
      for (const ArrayView& view : numbers) {
        for (std::int64_t i = 0; i < view.shape[1]; ++i) text_ += format(",{:.9g}", float_at(view, e, i));
      }
      text_ += '\n';
      if (text_.size() >= kPiece) flush();
    }
    ends_.push_back({frame + 1, written_ + text_.size()});
  }

  void save(std::int64_t) override {
    flush();
    saved_ = true;
    file_.commit();
  }

  std::int64_t keep() override {
    if (saved_) return 0;  // what the disk made of it is not known
    const std::uint64_t size = file_.size();
    while (!ends_.empty() && ends_.back().bytes > size) ends_.pop_back();
    if (ends_.empty()) return 0;
    file_.resize(ends_.back().bytes);
    file_.commit();
    return ends_.back().frames;
  }

 private:
  struct End {
    std::int64_t frames;  ///< so many
    std::uint64_t bytes;  ///< end here
  };

  void flush() {
    file_.write(written_, text_);
    written_ += text_.size();
    text_.clear();
    if (ends_.size() > 1) ends_.erase(ends_.begin(), ends_.end() - 1);
  }

  AtomicFile file_;
  std::string text_;
  std::uint64_t written_ = 0;
  std::vector<End> ends_;  ///< of the last frame that is written whole, and of those that wait
  bool saved_ = false;
};

/// What stands before an array's numbers in NumPy's format 1.0 (numpy.lib.format).
std::string npy_header(const char* type, const std::vector<std::int64_t>& shape) {
  std::string dims;
  for (const std::int64_t d : shape) dims += format("{}, ", d);
  std::string text = format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, dims);
  text.append(63 - (10 + text.size()) % 64, ' ');
  text += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(text.size() & 255);
  out += static_cast<char>(text.size() >> 8);
  return out + text;
}

/// An archive of arrays. Each has its place from the beginning, for as many frames as were announced; with fewer in the
/// end, the arrays move together.
class NpzOutput final : public StateRecorder::Output {
 public:
  NpzOutput(const Scene& scene, const std::filesystem::path& path, std::int64_t frames)
      : file_(path), planned_(frames), n_(scene.n_envs()) {
    const ModelInfo& m = scene.info();
    double bytes = 8.0 * static_cast<double>(n_);
    for (const Recorded& r : kRecorded) {
      Array a{.recorded = r, .width = field_size(m, r.field)};
      bytes += 4.0 * static_cast<double>(a.width) * static_cast<double>(n_) * static_cast<double>(frames);
      arrays_.push_back(std::move(a));
    }
    // Before the sizes are computed as integers, which they then fit.
    need_room(file_, path, bytes, scene, frames);
    for (std::int64_t e = 0; e < n_; ++e) {
      const std::int64_t id = scene.global_environment_id(static_cast<int>(e));
      ids_.append(reinterpret_cast<const char*>(&id), sizeof id);
    }
    lay_out(frames);
    for (Array& a : arrays_) a.entry.crc = zip_crc(0, a.header);
    // An archive without its last array is none: a disk that others fill meanwhile must not cost the recording.
    file_.reserve(end_);
  }

  void add(std::int64_t, Scene& scene) override {
    for (Array& a : arrays_) {
      const ArrayView view = scene.host_view(a.recorded.field);
      for (std::int64_t e = 0; e < n_; ++e) {
        for (std::int64_t i = 0; i < a.width; ++i) {
          char bytes[4];
          if (a.recorded.field == Field::kStatus) {
            const std::int32_t value = int_at(view, e);
            std::memcpy(bytes, &value, sizeof bytes);
          } else {
            const float value = float_at(view, e, i);
            std::memcpy(bytes, &value, sizeof bytes);
          }
          a.waiting.append(bytes, sizeof bytes);
        }
        if (a.waiting.size() >= kPiece) flush(a);
      }
    }
  }

  void save(std::int64_t frames) override {
    for (Array& a : arrays_) flush(a);
    if (frames != planned_) move_together(frames);
    std::vector<ZipEntry> entries;
    for (const Array& a : arrays_) {
      file_.write(a.entry.offset, zip_local_header(a.entry) + a.header);
      entries.push_back(a.entry);
    }
    const std::string ids = npy_header("<i8", {n_}) + ids_;
    entries.push_back({"env.npy", ids.size(), end_, zip_crc(0, ids)});
    const std::string last = zip_local_header(entries.back()) + ids;
    const std::string directory = zip_directory(entries, end_ + last.size());
    file_.write(end_, last + directory);
    file_.resize(end_ + last.size() + directory.size());
    file_.commit();
  }

 private:
  struct Array {
    Recorded recorded;
    std::int64_t width;       ///< values per environment
    std::string header{};     ///< NumPy's
    ZipEntry entry{};         ///< header and numbers
    std::uint64_t data = 0;   ///< offset of the numbers
    std::uint64_t bytes = 0;  ///< of them that are written
    std::string waiting{};    ///< to be written behind those
  };

  /// Sets headers, entries (all but their checksums) and offsets.
  void lay_out(std::int64_t frames) {
    end_ = 0;
    for (Array& a : arrays_) {
      std::vector<std::int64_t> shape{frames, n_};
      const bool one = a.recorded.field == Field::kTime || a.recorded.field == Field::kStatus;
      if (!one) shape.push_back(a.width);
      a.header = npy_header(a.recorded.type, shape);
      a.entry.name = format("{}.npy", a.recorded.name);
      a.entry.size = a.header.size() + static_cast<std::uint64_t>(frames * n_ * a.width) * 4;
      a.entry.offset = end_;
      a.data = end_ + zip_local_header(a.entry).size() + a.header.size();
      end_ = a.data + a.entry.size - a.header.size();
    }
  }

  void flush(Array& a) {
    file_.write(a.data + a.bytes, a.waiting);
    a.entry.crc = zip_crc(a.entry.crc, a.waiting);
    a.bytes += a.waiting.size();
    a.waiting.clear();
  }

  /// No array begins later in the shorter layout, so that moving them in their order loses nothing.
  void move_together(std::int64_t frames) {
    std::vector<std::uint64_t> before;
    for (const Array& a : arrays_) before.push_back(a.data);
    lay_out(frames);
    std::string piece;
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      Array& a = arrays_[i];
      a.entry.crc = zip_crc(0, a.header);
      for (std::uint64_t done = 0; done < a.bytes; done += piece.size()) {
        piece.resize(std::min<std::uint64_t>(kPiece, a.bytes - done));
        file_.read(before[i] + done, piece);
        file_.write(a.data + done, piece);
        a.entry.crc = zip_crc(a.entry.crc, piece);
      }
    }
  }

  AtomicFile file_;
  std::int64_t planned_, n_;
  std::string ids_;
  std::vector<Array> arrays_;
  std::uint64_t end_ = 0;  ///< behind the arrays
};

}  // namespace

StateRecorder::StateRecorder(Scene& scene, std::filesystem::path path, std::int64_t frames)
    : scene_(scene), path_(std::move(path)), most_frames_(frames) {
  const std::string ending = path_.extension().string();
  COHORT_THROW_UNLESS(ending == ".npz" || ending == ".csv", "{}: a recording ends in .npz or .csv", path_.string());
  if (ending == ".npz") {
    output_ = std::make_unique<NpzOutput>(scene, path_, frames);
  } else {
    output_ = std::make_unique<CsvOutput>(scene, path_, frames);
  }
}

StateRecorder::~StateRecorder() = default;

void StateRecorder::add() {
  COHORT_CHECK(frames_ < most_frames_, "a frame more than the {} that were announced", most_frames_);
  or_keep(frames_ + 1, [&] { output_->add(frames_, scene_); });
  ++frames_;
}

void StateRecorder::save() {
  or_keep(frames_, [&] { output_->save(frames_); });
}

template <class Write>
void StateRecorder::or_keep(std::int64_t frames, Write write) {
  try {
    write();
  } catch (const Error& error) {
    std::int64_t kept = 0;
    try {
      kept = output_->keep();
    } catch (const Error&) {  // the first error is the one to tell
    }
    throw Error(format("{}; {}", error.what(),
                       kept > 0 ? format("{} holds the first {} of {} frames", path_.string(), kept, frames)
                                : "nothing of the recording is kept"));
  }
}

}  // namespace cohort::sim
