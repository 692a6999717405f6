#include "doctor/disk_speed.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "core/error.h"

namespace cohort::doctor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPieceBytes = 8 << 20;
constexpr std::uint64_t kMostDiskBytes = 256ull << 20;
constexpr int kCopies = 16;

double seconds_from(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Bytes that a compressing disk cannot make fewer.
std::vector<char> noise() {
  std::vector<char> bytes(kPieceBytes);
  std::uint64_t state = 0x9e3779b97f4a7c15ull;
  for (std::size_t i = 0; i + sizeof state <= bytes.size(); i += sizeof state) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;  // xorshift64 (Marsaglia 2003)
    std::memcpy(bytes.data() + i, &state, sizeof state);
  }
  return bytes;
}

/// Gone from its folder as soon as it is open.
class NamelessFile {
 public:
  explicit NamelessFile(const std::filesystem::path& folder) {
    std::string name = (folder / ".cohort-doctor-XXXXXX").string();
    file_ = ::mkstemp(name.data());
    COHORT_THROW_UNLESS(file_ >= 0, "{} cannot be written: {}", folder.string(), std::strerror(errno));
    ::unlink(name.c_str());
  }
  ~NamelessFile() { ::close(file_); }
  NamelessFile(const NamelessFile&) = delete;
  NamelessFile& operator=(const NamelessFile&) = delete;
  int descriptor() const { return file_; }

 private:
  int file_ = -1;
};

}  // namespace

MachineSpeed measure_machine(const std::filesystem::path& folder) {
  MachineSpeed speed;
  std::error_code error;
  speed.disk_folder = std::filesystem::absolute(folder, error);
  const std::vector<char> piece = noise();
  const auto space = std::filesystem::space(folder, error);
  const std::uint64_t bytes = error ? kPieceBytes : std::min<std::uint64_t>(kMostDiskBytes, space.available / 4);
  {
    const NamelessFile file(folder);
    const auto begin = Clock::now();
    std::uint64_t written = 0;
    while (written < bytes) {
      const ssize_t n = ::write(file.descriptor(), piece.data(), piece.size());
      if (n < 0 && errno == EINTR) continue;
      COHORT_THROW_UNLESS(n > 0, "{} cannot be written: {}", folder.string(), std::strerror(errno));
      written += static_cast<std::uint64_t>(n);
    }
    COHORT_THROW_UNLESS(::fsync(file.descriptor()) == 0, "{} cannot be written: {}", folder.string(),
                        std::strerror(errno));
    speed.disk_write = static_cast<double>(written) / std::max(1e-9, seconds_from(begin));
  }
  // Larger than the processor's caches.
  std::vector<char> from(kCopies * kPieceBytes, 1), to(kCopies * kPieceBytes, 2);
  const auto begin = Clock::now();
  for (int i = 0; i < 4; ++i) {
    std::memcpy(to.data(), from.data(), to.size());
    from[static_cast<std::size_t>(i)] = to[to.size() - 1 - static_cast<std::size_t>(i)];  // keeps every copy
  }
  speed.memory_copy = 4.0 * static_cast<double>(to.size()) / std::max(1e-9, seconds_from(begin));
  return speed;
}

}  // namespace cohort::doctor
