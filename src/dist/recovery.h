/// A rank's part in recovery without the disk (launch/recovery.h): the other ranks keep their process and all that they
/// have in memory when one dies, and a new process takes its place.
///
///   const std::unique_ptr<dist::Recovery> recovery = dist::Recovery::of_this_process(environment);   // may be null
///   ...
///   try {
///     step();
///   } catch (const std::exception&) {
///     if (!recovery || !recovery->offered() || !group->failed()) throw;
///     strategy.leave_group();        // whatever else holds on to the group of ranks
///     if (!recovery->rejoin(*group)) // waits for all; then the same collectives on all ranks
///       ...                          // the job goes on with other ranks: park() the state, and end
///     strategy.join_group();
///   }
///
/// Every beat (say) tells the launcher that this process is alive and what it does; see rank/page.h.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rank/environment.h"
#include "rank/page.h"

namespace cohort::dist {

class Group;

class Recovery {
 public:
  /// Null where `cohort launch` did not start this process.
  static std::unique_ptr<Recovery> of_this_process();

  /// This process takes the place of a rank that died.
  bool replaces() const { return replaces_; }
  /// The launcher replaces ranks that die.
  bool offered() const;

  /// Tells the launcher what this rank does, after so many steps.
  void say(rank::Phase phase, std::int64_t step);
  /// And where in its step it is; some nanoseconds.
  void set_part(rank::StepPart part) { page_.set_part(part); }
  /// From here on, or no longer, this rank has a whole state of the training, and rejoins when its group breaks.
  void set_ready(bool ready);
  /// The job should start again from its last checkpoint: memory cannot help. Throw an Error after it.
  void ask_for_restart();

  /// For a rank that replaces another, before Group::create: waits until all others have left their group, and returns
  /// the environment with which to join. Throws Error when the launcher has changed its mind.
  rank::Environment wait_to_join(rank::Environment environment);
  /// Leaves the broken group, waits until all ranks have, and connects again, as often as it takes. False when the job
  /// goes on with other ranks. Throws Error when the launcher does not offer it any more; its text is that of what broke
  /// the group.
  bool rejoin(Group& group);

  /// This process may be one of a later round of an elastic job, in which ranks may find what others have parked. The
  /// same on all ranks.
  bool may_find_parked() const;
  /// The whole state of the training, in pieces, for the process that takes this one's place in the next round, where
  /// the ranks are others. Throws Error when there is no memory for it.
  void park(std::span<const std::string_view> pieces);
  /// Valid until drop_parked() or keep().
  std::optional<std::string_view> parked() const;
  void drop_parked();

  /// What is this rank's alone after `step` steps: outlives the process, for the one that takes its place.
  void keep(std::int64_t step, const std::string& bytes);
  std::optional<std::string> kept(std::int64_t step) const;
  /// A short text, likewise.
  void set_note(const std::string& note);
  std::string note() const;

 private:
  explicit Recovery(rank::Page& page);
  rank::Page& page_;
  bool replaces_;
};

/// While it lives, the launcher knows that this rank waits for others in a collective. Does nothing where no `cohort
/// launch` watches.
class WaitingForOthers {
 public:
  WaitingForOthers();
  ~WaitingForOthers();
  WaitingForOthers(const WaitingForOthers&) = delete;
  WaitingForOthers& operator=(const WaitingForOthers&) = delete;

 private:
  rank::Page* page_;
};

}  // namespace cohort::dist
