#include "tables/csv_source.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/near_file.h"
#include "core/placeholder_file.h"
#include "data/local_path.h"

namespace cohort::tables {

CsvSource CsvSource::open(const std::filesystem::path& path) {
  CsvSource source;
  source.name_ = path.string();
  COHORT_THROW_UNLESS(!path.empty(), "no CSV file was named; set data.path");
  data::refuse_address(path);
  source.file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (source.file_ < 0) {
    const int reason = errno;
    const std::string hint = data::hub_hint(path);
    throw Error(format("cannot open {}: {}{}", source.name_, std::strerror(reason),
                       !hint.empty() || reason != ENOENT ? hint : near_file(path)));
  }
  struct stat status {};
  COHORT_THROW_UNLESS(::fstat(source.file_, &status) == 0, "cannot read {}: {}", source.name_, std::strerror(errno));
  COHORT_THROW_UNLESS(!S_ISDIR(status.st_mode), "{} is a folder; name a CSV file in it", source.name_);
  if (S_ISREG(status.st_mode)) {
    source.size_ = static_cast<std::int64_t>(status.st_size);
    refuse_placeholder(path);
    return source;
  }
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(source.file_, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    COHORT_THROW_UNLESS(n >= 0, "cannot read {}: {}", source.name_, std::strerror(errno));
    if (n == 0) break;
    source.piped_.append(buffer, static_cast<std::size_t>(n));
  }
  ::close(std::exchange(source.file_, -1));
  source.size_ = static_cast<std::int64_t>(source.piped_.size());
  COHORT_THROW_UNLESS(source.size_ > 0, "{} is empty (0 bytes)", source.name_);
  return source;
}

CsvSource CsvSource::memory(std::string_view text, std::string name) {
  CsvSource source;
  source.name_ = std::move(name);
  source.memory_ = text;
  source.size_ = static_cast<std::int64_t>(text.size());
  COHORT_THROW_UNLESS(source.size_ > 0, "{} is empty (0 bytes)", source.name_);
  return source;
}

CsvSource::CsvSource(CsvSource&& other) noexcept
    : name_(std::move(other.name_)),
      file_(std::exchange(other.file_, -1)),
      piped_(std::move(other.piped_)),
      memory_(other.memory_),
      size_(other.size_) {}

CsvSource::~CsvSource() {
  if (file_ >= 0) ::close(file_);
}

void CsvSource::read(std::int64_t offset, std::int64_t length, char* out) const {
  COHORT_CHECK(offset >= 0 && length >= 0 && offset + length <= size_, "bytes {} to {} of {}", offset, offset + length,
               size_);
  if (file_ < 0) {
    const std::string_view bytes = piped_.empty() ? memory_ : std::string_view(piped_);
    std::memcpy(out, bytes.data() + offset, static_cast<std::size_t>(length));
    return;
  }
  while (length > 0) {
    const ssize_t n = ::pread(file_, out, static_cast<std::size_t>(length), offset);
    if (n < 0 && errno == EINTR) continue;
    COHORT_THROW_UNLESS(n >= 0, "cannot read {}: {}", name_, std::strerror(errno));
    COHORT_THROW_UNLESS(n > 0, "{} became shorter while it was read: it had {} bytes, now {}", name_, size_, offset);
    out += n;
    offset += n;
    length -= n;
  }
}

}  // namespace cohort::tables
