/// A page of memory that the agent shares with one of its ranks. The rank writes its beat there, and what only it knows
/// of the training; the agent writes when the ranks are to connect again. It belongs to the agent, so that what a rank
/// wrote is there when the rank has been killed, for the one that takes its place.
///
///   // agent                                              // rank
///   const auto page = Page::make(true);               Page* page = own_page();  // null: no agent of ours
///   request.inherited.push_back(page->descriptor());      page->beat(Phase::kTraining, step);
///   if (page->silent_for() > limit) ...                   page->keep(step + 1, bytes);
///
/// Each field has one writer. Reading and writing take no system call and no lock; a beat costs some ten nanoseconds.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rank/phase.h"

namespace cohort::rank {

class Page {
 public:
  /// The agent's. `offers_recovery`: a rank whose group breaks should wait for new ones (offers_recovery()). Throws
  /// Error.
  static std::unique_ptr<Page> make(bool offers_recovery);
  /// The rank's, from the descriptor that it inherited; takes it over. Throws Error when it is no such page.
  static std::unique_ptr<Page> adopt(int descriptor);
  ~Page();
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  int descriptor() const { return descriptor_; }

  // Written by the rank.

  void beat(Phase phase, std::int64_t step);
  void set_part(StepPart part);
  /// The rank waits for others in a collective, until the matching call with false. Also a beat.
  void wait_for_others(bool waits);
  /// It has a whole state of the training, and goes to wait_for_generation() should its group break.
  void set_ready(bool ready);
  /// It cannot go on from memory: the job should start again from its checkpoint.
  void ask_for_restart();
  /// It has left its group and waits for the agent's call, which comes when all ranks wait; returns the generation's
  /// number, or nothing when the agent has taken its offer back or asks it to park.
  std::optional<std::uint32_t> wait_for_generation();
  /// A text of at most kNote bytes for whoever takes its place. Throws Error for a longer one.
  void set_note(const std::string& note);
  /// What is this rank's alone after `step` steps. The last two of different parity are kept; one that is half written
  /// when the rank dies does not count. Throws Error when there is no memory for it.
  void keep(std::int64_t step, std::span<const std::byte> bytes);
  static constexpr std::size_t kNote = 4000;
  /// Leaves the whole state of the training, in pieces, for the process that has this page in the job's next round.
  /// Throws Error when there is no memory for it.
  void park(std::span<const std::string_view> pieces);
  void drop_parked();

  // Read by either side.

  Phase phase() const;
  StepPart part() const;
  std::int64_t step() const;
  std::uint64_t beats() const;
  /// Since the last beat; 0 where there was none.
  std::chrono::nanoseconds silent_for() const;
  bool waits_for_others() const;
  bool ready() const;
  bool asks_for_restart() const;
  bool waits_for_generation() const;
  std::string note() const;
  std::optional<std::string> kept(std::int64_t step) const;
  std::uint32_t generation() const;
  bool offers_recovery() const;
  /// Connections of groups of an earlier generation than this are to be broken, whoever waits in them.
  std::uint32_t broken_below() const;
  bool park_asked() const;
  /// What a rank has parked, until drop_parked() or the next keep(); nothing where it has not.
  std::optional<std::string_view> parked() const;

  // Written by the agent.

  void call_generation(std::uint32_t generation);
  void take_offer_back();
  void break_groups(std::uint32_t below);
  /// The ranks of the job are about to be others: this one should leave its group, park its state and end.
  void ask_to_park();
  /// For the process that has this page in the job's next round: as new, except for what was parked.
  void begin_round(bool offers_recovery);
  /// For the process that takes the rank's place: beats begin anew; the note and what was kept stay.
  void clear_for_next();

 private:
  struct Layout;
  explicit Page(int descriptor);
  void map();
  Layout& layout() const { return *layout_; }
  std::byte* slot(std::size_t index) const;

  int descriptor_;
  Layout* layout_ = nullptr;
  std::size_t size_ = 0;
};

/// This process' page: adopted from COHORT_RANK_PAGE at the first call, null where that is not set. Throws Error when
/// the variable names no page.
Page* own_page();

}  // namespace cohort::rank
