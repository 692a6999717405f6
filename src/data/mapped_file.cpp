#include "data/mapped_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"

namespace cohort::data {

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path.string()) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  COHORT_THROW_UNLESS(file >= 0, "cannot open {}: {}", path_, std::strerror(errno));
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
    : path_(std::move(other.path_)), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);
}

void MappedFile::release(std::size_t offset, std::size_t length) const {
  const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t begin = (offset + page - 1) / page * page;
  const std::size_t end = (offset + length) / page * page;
  if (data_ == nullptr || begin >= end || end > size_) return;
  ::madvise(const_cast<char*>(data_) + begin, end - begin, MADV_DONTNEED);  // only advice: failure costs nothing
}

}  // namespace cohort::data
