#include "data/mapped_file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/near_file.h"

namespace cohort::data {

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path.string()) {
  static std::atomic<std::uint64_t> mappings{0};
  id_ = ++mappings;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    const int reason = errno;
    throw Error(format("cannot open {}: {}{}", path_, std::strerror(reason),
                       reason == ENOENT ? near_file(path) : std::string()));
  }
  struct stat status {};
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(file);
    throw Error(format("{} is not a regular file", path_));
  }
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ > 0) {
    void* memory = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file, 0);
    const int reason = errno;
    ::close(file);
    COHORT_THROW_UNLESS(memory != MAP_FAILED, "cannot map {}: {}", path_, std::strerror(reason));
    data_ = static_cast<const char*>(memory);
  } else {
    ::close(file);
  }
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      id_(other.id_),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);
}

void MappedFile::release(std::size_t offset, std::size_t length) const {
  if (data_ == nullptr || length == 0 || offset >= size_) return;
  // Around a page that is read the kernel maps its neighbours, in aligned blocks of 64 KiB unless it was told
  // otherwise.
  constexpr std::uintptr_t kBlock = 64 << 10;
  const auto start = reinterpret_cast<std::uintptr_t>(data_);
  const std::uintptr_t end = start + size_;
  const std::uintptr_t low = std::max(start, (start + offset) / kBlock * kBlock);
  const std::uintptr_t high = std::min(end, (start + offset + length + kBlock - 1) / kBlock * kBlock);
  ::madvise(const_cast<char*>(data_) + (low - start), high - low, MADV_DONTNEED);  // only advice: failure costs nothing
}

}  // namespace cohort::data
