#include "launch/rank_page.h"

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
#include "launch/stack_signal.h"

namespace cohort::launch {
namespace {

constexpr std::uint32_t kMagic = 0x43524b31;  // "CRK1"
constexpr std::size_t kHead = 8192;           // bytes before the first slot
constexpr auto kRankPagePoll = std::chrono::milliseconds(1);

/// The clock that all processes of a machine share.
std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1000000000} + now.tv_nsec;
}

}  // namespace

/// All zero is a page that nobody has written to.
struct RankPage::Layout {
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

const char* to_string(RankPhase phase) {
  switch (phase) {
    case RankPhase::kSilent:
      return "silent";
    case RankPhase::kStart:
      return "start";
    case RankPhase::kTraining:
      return "training";
    case RankPhase::kData:
      return "waiting for data";
    case RankPhase::kValidation:
      return "validation";
    case RankPhase::kCheckpoint:
      return "checkpoint";
    case RankPhase::kRejoining:
      return "waiting for the other ranks";
    case RankPhase::kEnd:
      return "end";
  }
  return "unknown";
}

const char* to_string(StepPart part) {
  switch (part) {
    case StepPart::kBetween:
      return "between steps";
    case StepPart::kForward:
      return "forward";
    case StepPart::kBackward:
      return "backward";
    case StepPart::kReduced:
      return "gradients reduced";
    case StepPart::kOptimizer:
      return "optimizer";
    case StepPart::kAverage:
      return "moving average";
  }
  return "unknown";
}

RankPage::RankPage(int descriptor) : descriptor_(descriptor) {
  static_assert(sizeof(Layout) <= kHead && std::atomic<std::int64_t>::is_always_lock_free);
}

void RankPage::map() {
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

std::unique_ptr<RankPage> RankPage::make(bool offers_recovery) {
  const int descriptor = ::memfd_create("cohort-rank", MFD_CLOEXEC);
  COHORT_THROW_UNLESS(descriptor >= 0, "no memory for a rank's page: {}", std::strerror(errno));
  std::unique_ptr<RankPage> page(new RankPage(descriptor));
  COHORT_THROW_UNLESS(::ftruncate(descriptor, kHead) == 0, "no memory for a rank's page: {}", std::strerror(errno));
  page->map();
  page->layout().magic = kMagic;
  page->layout().offers = offers_recovery ? 1 : 0;
  return page;
}

std::unique_ptr<RankPage> RankPage::adopt(int descriptor) {
  COHORT_THROW_UNLESS(::fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0, "descriptor {} is no page of a rank: {}",
                      descriptor, std::strerror(errno));
  struct stat status {};
  COHORT_THROW_UNLESS(::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode),
                      "descriptor {} is no page of a rank", descriptor);
  std::unique_ptr<RankPage> page(new RankPage(descriptor));
  page->map();
  COHORT_THROW_UNLESS(page->layout().magic == kMagic, "descriptor {} is no page of a rank", descriptor);
  return page;
}

RankPage::~RankPage() {
  if (layout_) ::munmap(layout_, size_);
  ::close(descriptor_);
}

std::byte* RankPage::slot(std::size_t index) const {
  return reinterpret_cast<std::byte*>(layout_) + kHead + index * layout().slot_bytes;
}

void RankPage::beat(RankPhase phase, std::int64_t step) {
  Layout& l = layout();
  l.phase.store(static_cast<std::uint32_t>(phase), std::memory_order_relaxed);
  l.step.store(step, std::memory_order_relaxed);
  l.beat_ns.store(now_ns(), std::memory_order_relaxed);
  l.beats.fetch_add(1, std::memory_order_release);
}

void RankPage::set_part(StepPart part) {
  layout().part.store(static_cast<std::uint32_t>(part), std::memory_order_relaxed);
}

void RankPage::wait_for_others(bool waits) {
  Layout& l = layout();
  l.waits.store(waits ? 1 : 0, std::memory_order_relaxed);
  l.beat_ns.store(now_ns(), std::memory_order_relaxed);
  l.beats.fetch_add(1, std::memory_order_release);
}

void RankPage::set_ready(bool ready) {
  layout().ready = ready ? 1 : 0;
}

void RankPage::ask_for_restart() {
  layout().restart = 1;
}

std::optional<std::uint32_t> RankPage::wait_for_generation() {
  Layout& l = layout();
  const std::uint32_t known = l.generation;
  beat(RankPhase::kRejoining, step());
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
    std::this_thread::sleep_for(kRankPagePoll);
    l.beat_ns.store(now_ns(), std::memory_order_relaxed);
  }
}

void RankPage::set_note(const std::string& note) {
  COHORT_THROW_UNLESS(note.size() <= kNote, "a text of {} bytes does not fit a rank's page ({})", note.size(), kNote);
  layout().note_bytes = 0;
  std::memcpy(layout().note, note.data(), note.size());
  layout().note_bytes = static_cast<std::uint32_t>(note.size());
}

void RankPage::keep(std::int64_t step, std::span<const std::byte> bytes) {
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

void RankPage::park(std::span<const std::string_view> pieces) {
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

void RankPage::drop_parked() {
  const std::size_t bytes = layout().parked_bytes, begin = kHead + 2 * layout().slot_bytes;
  layout().parked_bytes = 0;
  // The page lives as long as the job: a whole state of the training would stay in the host's memory.
  if (bytes > 0)
    ::fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
                static_cast<off_t>(bytes));
}

RankPhase RankPage::phase() const {
  return static_cast<RankPhase>(layout().phase.load());
}
StepPart RankPage::part() const {
  return static_cast<StepPart>(layout().part.load());
}
std::int64_t RankPage::step() const {
  return layout().step;
}
std::uint64_t RankPage::beats() const {
  return layout().beats.load(std::memory_order_acquire);
}
std::chrono::nanoseconds RankPage::silent_for() const {
  const std::int64_t last = layout().beat_ns;
  return std::chrono::nanoseconds(last <= 0 ? 0 : std::max<std::int64_t>(0, now_ns() - last));
}
bool RankPage::waits_for_others() const {
  return layout().waits != 0;
}
bool RankPage::ready() const {
  return layout().ready != 0;
}
bool RankPage::asks_for_restart() const {
  return layout().restart != 0;
}
bool RankPage::waits_for_generation() const {
  return layout().rejoins != 0;
}
std::string RankPage::note() const {
  return std::string(layout().note, std::min<std::size_t>(layout().note_bytes, kNote));
}
std::optional<std::string> RankPage::kept(std::int64_t step) const {
  const auto index = static_cast<std::size_t>(step & 1);
  const Layout::Slot& s = layout().slots[index];
  // Taken once: who wrote them may have gone mad, and may still write.
  const std::size_t room = layout().slot_bytes, bytes = s.bytes;
  if (s.step_and_one != step + 1 || room > size_ || kHead + 2 * room > size_ || bytes > room) return std::nullopt;
  return std::string(reinterpret_cast<const char*>(layout_) + kHead + index * room, bytes);
}
std::uint32_t RankPage::generation() const {
  return layout().generation;
}
bool RankPage::offers_recovery() const {
  return layout().offers != 0;
}

std::uint32_t RankPage::broken_below() const {
  return layout().broken_below;
}
bool RankPage::park_asked() const {
  return layout().parks != 0;
}
std::optional<std::string_view> RankPage::parked() const {
  const std::size_t room = layout().slot_bytes, bytes = layout().parked_bytes, begin = kHead + 2 * room;
  if (bytes == 0 || room > size_ || begin > size_ || bytes > size_ - begin) return std::nullopt;
  return std::string_view(reinterpret_cast<const char*>(layout_) + begin, bytes);
}

void RankPage::call_generation(std::uint32_t generation) {
  layout().rejoins = 0;  // at once, so that nobody calls a second time before the rank has heard of it
  layout().generation = generation;
}
void RankPage::take_offer_back() {
  layout().offers = 0;
}
void RankPage::break_groups(std::uint32_t below) {
  layout().broken_below = below;
}
void RankPage::ask_to_park() {
  layout().parks = 1;
}
void RankPage::begin_round(bool offers_recovery) {
  clear_for_next();
  Layout& l = layout();
  l.generation = l.broken_below = l.parks = l.note_bytes = 0;
  for (auto& s : l.slots) s.step_and_one = 0;
  l.step = 0;
  l.offers = offers_recovery ? 1 : 0;
}
void RankPage::clear_for_next() {
  Layout& l = layout();
  l.phase = l.waits = l.ready = l.restart = l.rejoins = l.part = 0;
  l.beat_ns = 0;
}

RankPage* own_rank_page() {
  static const std::unique_ptr<RankPage> page = []() -> std::unique_ptr<RankPage> {
    const char* text = std::getenv("COHORT_RANK_PAGE");
    if (!text || !*text) return nullptr;
    char* end = nullptr;
    const long descriptor = std::strtol(text, &end, 10);
    COHORT_THROW_UNLESS(*end == '\0' && descriptor >= 0 && descriptor < 1 << 20,
                        "COHORT_RANK_PAGE='{}' is no file descriptor", text);
    auto own = RankPage::adopt(static_cast<int>(descriptor));
    answer_stack_signal();
    return own;
  }();
  return page.get();
}

}  // namespace cohort::launch
