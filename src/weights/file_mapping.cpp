#include "weights/file_mapping.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/placeholder_file.h"

namespace cohort::weights {

FileMapping::FileMapping(const std::filesystem::path& path) {
  const std::string fault = placeholder_fault(path);
  // Of empty ones the formats speak.
  COHORT_THROW_UNLESS(fault.empty() || fault.starts_with("is empty"), "{} {}", path.string(), fault);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  COHORT_THROW_UNLESS(fd >= 0, "cannot open {}: {}", path.string(), std::strerror(errno));
  struct stat status {};
  const bool stat_ok = ::fstat(fd, &status) == 0;
  const bool is_file = stat_ok && S_ISREG(status.st_mode);
  if (is_file) size_ = static_cast<std::uint64_t>(status.st_size);
  if (size_ > 0) {
    data_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (data_ == MAP_FAILED) data_ = nullptr;
  }
  const int reason = errno;
  ::close(fd);
  COHORT_THROW_UNLESS(is_file, "{} is no file", path.string());
  COHORT_THROW_UNLESS(size_ == 0 || data_, "cannot map {} into memory: {}", path.string(), std::strerror(reason));
}

FileMapping::~FileMapping() {
  if (data_) ::munmap(data_, size_);
}

void page_out(const void* data, std::size_t bytes) {
#ifdef MADV_PAGEOUT
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  // Whole pages only: the neighbours' may be in use.
  const auto begin = (reinterpret_cast<std::uintptr_t>(data) + page - 1) / page * page;         // NOLINT
  const auto end = (reinterpret_cast<std::uintptr_t>(data) + bytes) / page * page;              // NOLINT
  if (begin < end) (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_PAGEOUT);  // NOLINT
#else
  (void)data;
  (void)bytes;
#endif
}

}  // namespace cohort::weights
