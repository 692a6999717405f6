#include "rank/page.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/error.h"
#include "rank/stack_signal.h"

namespace cohort::rank {
namespace {

constexpr std::uint32_t kMagic = 0x43524b31;  // "CRK1"
constexpr std::size_t kHead = 8192;           // bytes before the first slot
constexpr auto kPagePoll = std::chrono::milliseconds(1);

/// The clock that all processes of a machine share.
std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1000000000} + now.tv_nsec;
}

}  // namespace

/// All zero is a page that nobody has written to.
struct Page::Layout {
  std::atomic<std::uint32_t> magic, phase, waits, ready, restart, rejoins, generation, offers, broken_below, parks,
      part;
  std::atomic<std::int64_t> step, beat_ns;
  std::atomic<std::uint64_t> beats;
  std::atomic<std::uint64_t> slot_bytes;  ///< room of each of the two slots behind the head
  struct Slot {
    std::atomic<std::int64_t> step_and_one;  ///< 0: nothing whole
    std::atomic<std::uint64_t> bytes;
  } slots[2];
  std::atomic<std::uint64_t> parked_bytes;  ///< behind the slots
  std::atomic<std::uint32_t> note_bytes;
  char note[kNote];
};

Page::Page(int descriptor) : descriptor_(descriptor) {
  static_assert(sizeof(Layout) <= kHead && std::atomic<std::int64_t>::is_always_lock_free);
}

void Page::map() {
  struct stat status {};
  COHORT_THROW_UNLESS(::fstat(descriptor_, &status) == 0 && status.st_size >= static_cast<off_t>(kHead),
                      "descriptor {} is no page of a rank", descriptor_);
  const auto size = static_cast<std::size_t>(status.st_size);
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  COHORT_THROW_UNLESS(memory != MAP_FAILED, "a rank's page cannot be mapped: {}", std::strerror(errno));
  if (layout_) ::munmap(layout_, size_);
  layout_ = static_cast<Layout*>(memory);
  size_ = size;
}

std::unique_ptr<Page> Page::make(bool offers_recovery) {
  const int descriptor = ::memfd_create("cohort-rank", MFD_CLOEXEC);
  COHORT_THROW_UNLESS(descriptor >= 0, "no memory for a rank's page: {}", std::strerror(errno));
  std::unique_ptr<Page> page(new Page(descriptor));
  COHORT_THROW_UNLESS(::ftruncate(descriptor, kHead) == 0, "no memory for a rank's page: {}", std::strerror(errno));
  page->map();
  page->layout().magic = kMagic;
  page->layout().offers = offers_recovery ? 1 : 0;
  return page;
}

std::unique_ptr<Page> Page::adopt(int descriptor) {
  COHORT_THROW_UNLESS(::fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0, "descriptor {} is no page of a rank: {}",
                      descriptor, std::strerror(errno));
  struct stat status {};
  COHORT_THROW_UNLESS(::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode),
                      "descriptor {} is no page of a rank", descriptor);
  std::unique_ptr<Page> page(new Page(descriptor));
  page->map();
  COHORT_THROW_UNLESS(page->layout().magic == kMagic, "descriptor {} is no page of a rank", descriptor);
  return page;
}

Page::~Page() {
  if (layout_) ::munmap(layout_, size_);
  ::close(descriptor_);
}

std::byte* Page::slot(std::size_t index) const {
  return reinterpret_cast<std::byte*>(layout_) + kHead + index * layout().slot_bytes;
}

void Page::beat(Phase phase, std::int64_t step) {
  Layout& l = layout();
  l.phase.store(static_cast<std::uint32_t>(phase), std::memory_order_relaxed);
  l.step.store(step, std::memory_order_relaxed);
  l.beat_ns.store(now_ns(), std::memory_order_relaxed);
  l.beats.fetch_add(1, std::memory_order_release);
}

void Page::set_part(StepPart part) {
  layout().part.store(static_cast<std::uint32_t>(part), std::memory_order_relaxed);
}

void Page::wait_for_others(bool waits) {
  Layout& l = layout();
  l.waits.store(waits ? 1 : 0, std::memory_order_relaxed);
  l.beat_ns.store(now_ns(), std::memory_order_relaxed);
  l.beats.fetch_add(1, std::memory_order_release);
}

void Page::set_ready(bool ready) {
  layout().ready = ready ? 1 : 0;
}

void Page::ask_for_restart() {
  layout().restart = 1;
}

std::optional<std::uint32_t> Page::wait_for_generation() {
  Layout& l = layout();
  const std::uint32_t known = l.generation;
  beat(Phase::kRejoining, step());
  l.rejoins = 1;
  for (;;) {
    const std::uint32_t called = l.generation;
    if (called > known) {
      l.rejoins = 0;
      return called;
    }
    if (!offers_recovery() || park_asked()) {
      l.rejoins = 0;
      return std::nullopt;
    }
    std::this_thread::sleep_for(kPagePoll);
    l.beat_ns.store(now_ns(), std::memory_order_relaxed);
  }
}

void Page::set_note(const std::string& note) {
  COHORT_THROW_UNLESS(note.size() <= kNote, "a text of {} bytes does not fit a rank's page ({})", note.size(), kNote);
  layout().note_bytes = 0;
  std::memcpy(layout().note, note.data(), note.size());
  layout().note_bytes = static_cast<std::uint32_t>(note.size());
}

void Page::keep(std::int64_t step, std::span<const std::byte> bytes) {
  if (bytes.size() > layout().slot_bytes) {
    drop_parked();
    for (auto& s : layout().slots) s.step_and_one = 0;
    const std::size_t room = (bytes.size() + 63) / 64 * 64;
    COHORT_THROW_UNLESS(::ftruncate(descriptor_, static_cast<off_t>(kHead + 2 * room)) == 0,
                        "no memory for {} bytes that are a rank's own: {}", bytes.size(), std::strerror(errno));
    map();
    layout().slot_bytes = room;
  }
  const auto index = static_cast<std::size_t>(step & 1);
  Layout::Slot& s = layout().slots[index];
  s.step_and_one = 0;
  std::memcpy(slot(index), bytes.data(), bytes.size());
  s.bytes = bytes.size();
  s.step_and_one = step + 1;
}

void Page::park(std::span<const std::string_view> pieces) {
  drop_parked();
  std::size_t bytes = 0;
  for (const std::string_view piece : pieces) bytes += piece.size();
  const std::size_t begin = kHead + 2 * layout().slot_bytes;
  // Allocated here: memory that is promised and not there would end the process when it is written to.
  const int error = ::posix_fallocate(descriptor_, 0, static_cast<off_t>(begin + bytes));
  COHORT_THROW_UNLESS(error == 0, "no memory for {} bytes that a rank leaves for the next round: {}", bytes,
                      std::strerror(error));
  map();
  std::byte* at = reinterpret_cast<std::byte*>(layout_) + begin;
  for (const std::string_view piece : pieces) {
    std::memcpy(at, piece.data(), piece.size());
    at += piece.size();
  }
  layout().parked_bytes = bytes;
}

void Page::drop_parked() {
  const std::size_t bytes = layout().parked_bytes, begin = kHead + 2 * layout().slot_bytes;
  layout().parked_bytes = 0;
  // The page lives as long as the job: a whole state of the training would stay in the host's memory.
  if (bytes > 0)
    ::fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
                static_cast<off_t>(bytes));
}

Phase Page::phase() const {
  return static_cast<Phase>(layout().phase.load());
}
StepPart Page::part() const {
  return static_cast<StepPart>(layout().part.load());
}
std::int64_t Page::step() const {
  return layout().step;
}
std::uint64_t Page::beats() const {
  return layout().beats.load(std::memory_order_acquire);
}
std::chrono::nanoseconds Page::silent_for() const {
  const std::int64_t last = layout().beat_ns;
  return std::chrono::nanoseconds(last <= 0 ? 0 : std::max<std::int64_t>(0, now_ns() - last));
}
bool Page::waits_for_others() const {
  return layout().waits != 0;
}
bool Page::ready() const {
  return layout().ready != 0;
}
bool Page::asks_for_restart() const {
  return layout().restart != 0;
}
bool Page::waits_for_generation() const {
  return layout().rejoins != 0;
}
std::string Page::note() const {
  return std::string(layout().note, std::min<std::size_t>(layout().note_bytes, kNote));
}
std::optional<std::string> Page::kept(std::int64_t step) const {
  const auto index = static_cast<std::size_t>(step & 1);
  const Layout::Slot& s = layout().slots[index];
  // Taken once: who wrote them may have gone mad, and may still write.
  const std::size_t room = layout().slot_bytes, bytes = s.bytes;
  if (s.step_and_one != step + 1 || room > size_ || kHead + 2 * room > size_ || bytes > room) return std::nullopt;
  return std::string(reinterpret_cast<const char*>(layout_) + kHead + index * room, bytes);
}
std::uint32_t Page::generation() const {
  return layout().generation;
}
bool Page::offers_recovery() const {
  return layout().offers != 0;
}

std::uint32_t Page::broken_below() const {
  return layout().broken_below;
}
bool Page::park_asked() const {
  return layout().parks != 0;
}
std::optional<std::string_view> Page::parked() const {
  const std::size_t room = layout().slot_bytes, bytes = layout().parked_bytes, begin = kHead + 2 * room;
  if (bytes == 0 || room > size_ || begin > size_ || bytes > size_ - begin) return std::nullopt;
  return std::string_view(reinterpret_cast<const char*>(layout_) + begin, bytes);
}

void Page::call_generation(std::uint32_t generation) {
  layout().rejoins = 0;  // at once, so that nobody calls a second time before the rank has heard of it
  layout().generation = generation;
}
void Page::take_offer_back() {
  layout().offers = 0;
}
void Page::break_groups(std::uint32_t below) {
  layout().broken_below = below;
}
void Page::ask_to_park() {
  layout().parks = 1;
}
void Page::begin_round(bool offers_recovery) {
  clear_for_next();
  Layout& l = layout();
  l.generation = l.broken_below = l.parks = l.note_bytes = 0;
  for (auto& s : l.slots) s.step_and_one = 0;
  l.step = 0;
  l.offers = offers_recovery ? 1 : 0;
}
void Page::clear_for_next() {
  Layout& l = layout();
  l.phase = l.waits = l.ready = l.restart = l.rejoins = l.part = 0;
  l.beat_ns = 0;
}

Page* own_page() {
  static const std::unique_ptr<Page> page = []() -> std::unique_ptr<Page> {
    const char* text = std::getenv("COHORT_RANK_PAGE");
    if (!text || !*text) return nullptr;
    char* end = nullptr;
    const long descriptor = std::strtol(text, &end, 10);
    COHORT_THROW_UNLESS(*end == '\0' && descriptor >= 0 && descriptor < 1 << 20,
                        "COHORT_RANK_PAGE='{}' is no file descriptor", text);
    auto own = Page::adopt(static_cast<int>(descriptor));
    answer_stack_signal();
    return own;
  }();
  return page.get();
}

}  // namespace cohort::rank
