// The state machine of an elastic job's rendezvous.
#include "launch/elastic_state.h"

#include <nlohmann/json.hpp>
#include <random>

#include <gtest/gtest.h>

#include "core/json_text.h"
#include "launch/elastic_client.h"

namespace cohort::launch {
namespace {

TEST(ElasticState, AllNodesOrEnoughOfThemAfterTheLastCallBeginARound) {
  ElasticState state(limits_of(1, 2));
  EXPECT_EQ(state.join("a", "host-a", 2, 0), "");
  EXPECT_EQ(state.phase(), ElasticPhase::kGathering);
  state.heard("a", 4);
  state.time_passes(4.9);
  EXPECT_EQ(state.phase(), ElasticPhase::kGathering) << "the last call";
  state.time_passes(5.1);
  EXPECT_EQ(state.phase(), ElasticPhase::kRunning);
  EXPECT_EQ(state.round(), 0);
  EXPECT_EQ(state.world_size(), 2);

  EXPECT_EQ(state.join("b", "host-b", 3, 6), "");
  EXPECT_EQ(state.phase(), ElasticPhase::kGathering) << "the ranks of a have to end first";
  EXPECT_EQ(state.round(), 1);
  state.ready("a", 7);
  EXPECT_EQ(state.phase(), ElasticPhase::kRunning) << "all are there: nobody is waited for";
  EXPECT_EQ(state.first_rank("a"), 0);
  EXPECT_EQ(state.first_rank("b"), 2);
  EXPECT_EQ(state.world_size(), 5);
  EXPECT_NE(state.join("c", "host-c", 1, 8), "") << "the job has all of its nodes";
  EXPECT_NE(state.join("b", "host-b", 1, 8), "");
}

TEST(ElasticState, ALostNodeLeavesAndTheOthersGoOn) {
  ElasticState state(limits_of(1, 2));
  state.join("a", "host-a", 1, 0);
  state.join("b", "host-b", 1, 0);
  ASSERT_EQ(state.phase(), ElasticPhase::kRunning);
  state.heard("a", 4);
  state.time_passes(5.5);
  EXPECT_EQ(state.phase(), ElasticPhase::kGathering);
  EXPECT_EQ(state.number_of("b"), -1);
  EXPECT_NE(state.why().find("node b on host-b is lost"), std::string::npos) << state.why();
  state.ready("a", 6);
  state.heard("a", 10);
  state.time_passes(10.6);
  EXPECT_EQ(state.phase(), ElasticPhase::kRunning);
  EXPECT_EQ(state.round(), 1);
  EXPECT_EQ(state.world_size(), 1);
}

TEST(ElasticState, RestartsAreCountedForTheJobAndNodesThatComeAndGoCostNone) {
  ElasticState state(limits_of(2, 2, 1));
  state.join("a", "host-a", 1, 0);
  state.join("b", "host-b", 1, 0);
  state.failed("a", 0, 3, "exit code 3", 1);
  EXPECT_EQ(state.phase(), ElasticPhase::kGathering);
  state.failed("b", 0, 9, "follows from it", 1.1);
  state.ready("a", 2);
  state.ready("b", 2);
  ASSERT_EQ(state.phase(), ElasticPhase::kRunning);
  EXPECT_EQ(state.round(), 1);
  state.failed("b", 0, 9, "of a round that is over", 2.1);
  EXPECT_EQ(state.phase(), ElasticPhase::kRunning);
  state.failed("b", 1, 7, "exit code 7", 3);
  EXPECT_EQ(state.phase(), ElasticPhase::kEnded);
  EXPECT_EQ(state.code(), 7);
  EXPECT_NE(state.join("c", "host-c", 1, 4), "");
}

TEST(ElasticState, AFailureThatWouldComeAgainEndsTheJobWhateverRestartsAreLeft) {
  ElasticState state(limits_of(1, 1, 5));
  state.join("a", "host-a", 1, 0);
  state.failed("a", 0, 3, "before its first step", 1, /*again=*/false);
  EXPECT_EQ(state.phase(), ElasticPhase::kEnded);
  EXPECT_EQ(state.code(), 3);
}

TEST(ElasticState, TheJobEndsWellWhenAllNodesHaveFinishedAndBadlyWithoutEnough) {
  ElasticState well(limits_of(1, 2));
  well.join("a", "host-a", 1, 0);
  well.join("b", "host-b", 1, 0);
  well.finished("a", 0, 1);
  well.leave("a", "has left", 1.5);
  EXPECT_EQ(well.phase(), ElasticPhase::kRunning) << "it had done its part";
  well.finished("b", 0, 2);
  EXPECT_EQ(well.phase(), ElasticPhase::kEnded);
  EXPECT_EQ(well.code(), 0);

  ElasticState few(limits_of(2, 3));
  few.join("a", "host-a", 1, 0);
  for (double now = 1; now < 62; ++now) {
    few.heard("a", now);
    few.time_passes(now);
  }
  EXPECT_EQ(few.phase(), ElasticPhase::kEnded);
  EXPECT_EQ(few.code(), 1);
  EXPECT_NE(few.why().find("only 1 of at least 2 nodes"), std::string::npos) << few.why();
}

TEST(ElasticState, TheHostOfTheStoreIsNodeZeroWhoeverComesFirst) {
  ElasticLimits limits = limits_of(1, 3);
  limits.first = "host";
  ElasticState state(limits);
  state.join("a", "x", 2, 0);
  state.heard("a", 9);
  state.time_passes(9);
  EXPECT_EQ(state.phase(), ElasticPhase::kGathering) << "no round without it";
  state.join("host", "y", 1, 9);
  state.heard("a", 14);
  state.heard("host", 14);
  state.time_passes(14.5);
  EXPECT_EQ(state.phase(), ElasticPhase::kRunning);
  EXPECT_EQ(state.number_of("host"), 0);
  EXPECT_EQ(state.first_rank("a"), 1);
  const nlohmann::json json = parse_json<nlohmann::json>(state.to_json(15));
  EXPECT_EQ(json["phase"], "running");
  EXPECT_EQ(json["nodes"][0]["id"], "host");
}

TEST(ElasticState, TimesCountFromTheFirstEventWhateverTheClockSays) {
  ElasticState state(limits_of(1, 1));
  state.time_passes(1e6);
  state.time_passes(1e6 + 59);
  EXPECT_EQ(state.phase(), ElasticPhase::kGathering);
  EXPECT_EQ(state.join("a", "host-a", 1, 1e6 + 59), "");
  EXPECT_EQ(state.phase(), ElasticPhase::kRunning);
}

/// Two nodes in their first round.
ElasticState running_pair(int restarts) {
  ElasticState state(limits_of(1, 2, restarts));
  state.join("a", "host-a", 2, 0);
  state.join("b", "host-b", 2, 0);
  return state;
}

TEST(ElasticState, ARankIsReplacedWithinTheRoundOnceAllNodesWait) {
  ElasticState state = running_pair(2);
  state.lost("b", 0, 137, "SIGKILL", 1);
  EXPECT_EQ(state.phase(), ElasticPhase::kRunning);
  EXPECT_TRUE(state.recovering());
  EXPECT_EQ(state.recovery(), 1);
  state.waits("a", 0, 1, 1.1);
  EXPECT_TRUE(state.recovering()) << "b has to wait, too";
  state.lost("b", 0, 137, "its other rank", 1.2);
  EXPECT_EQ(state.recovery(), 1) << "nobody has been called yet";
  EXPECT_EQ(state.restarts(), 2);
  state.waits("b", 0, 0, 1.3);
  EXPECT_TRUE(state.recovering()) << "that was for an earlier one";
  state.waits("b", 0, 1, 1.4);
  EXPECT_FALSE(state.recovering());
  EXPECT_EQ(state.round(), 0);

  state.lost("a", 0, 7, "exit code 7", 2);
  EXPECT_EQ(state.phase(), ElasticPhase::kEnded) << "no restart is left";
  EXPECT_EQ(state.code(), 7);
}

TEST(ElasticState, RanksThatEndByThemselvesAtOneStepAreOneFailureOfTheJob) {
  ElasticState state = running_pair(1);
  state.lost("b", 0, 1, "a loss that is no number", 1, /*own_step=*/7);
  state.lost("a", 0, 1, "a loss that is no number", 1.1, 7);
  EXPECT_EQ(state.phase(), ElasticPhase::kRunning);
  EXPECT_EQ(state.restarts(), 1);
  state.waits("a", 0, 1, 1.2);
  state.waits("b", 0, 1, 1.3);
  EXPECT_FALSE(state.recovering());
  state.lost("a", 0, 1, "again", 2, 7);
  EXPECT_EQ(state.phase(), ElasticPhase::kEnded) << "after the recovery it is another failure";

  ElasticState of_two = running_pair(1);
  of_two.lost("b", 0, 1, "a loss that is no number", 1, 7);
  of_two.lost("a", 0, 1, "something else", 1.1, 8);
  EXPECT_EQ(of_two.phase(), ElasticPhase::kEnded) << "at another step it is another failure";
}

TEST(ElasticState, ADeathAfterTheCallBeginsAnotherRecoveryAndOneThatCannotIsARound) {
  ElasticState state = running_pair(9);
  state.lost("b", 0, 137, "SIGKILL", 1);
  state.waits("a", 0, 1, 1.1);
  state.waits("b", 0, 1, 1.2);
  ASSERT_FALSE(state.recovering());
  state.lost("a", 0, 137, "SIGKILL", 1.3);
  EXPECT_EQ(state.recovery(), 2);
  state.waits("b", 0, 1, 1.4);
  EXPECT_TRUE(state.recovering());
  state.cannot("b", 0, "a rank is not in its training steps", 1.5);
  EXPECT_EQ(state.phase(), ElasticPhase::kGathering);
  EXPECT_FALSE(state.recovering());
}

TEST(ElasticState, RanksThatWaitWithoutAReasonAreCalledAfterTheTimeInWhichOneWouldBeKnown) {
  ElasticState state = running_pair(1);
  state.waits("a", 0, 0, 1);
  state.heard("b", 4);
  state.heard("a", 4);
  state.time_passes(5.9);
  EXPECT_FALSE(state.recovering()) << "a node may be about to be lost";
  state.time_passes(6.1);
  EXPECT_TRUE(state.recovering());
  EXPECT_EQ(state.restarts(), 1);
  EXPECT_NE(state.why_recovering().find("node a on host-a have lost the others"), std::string::npos);
}

TEST(ElasticState, AfterASilentHostMoreThanHalfOfTheNodesHaveToComeAndAfterADeadOneAny) {
  const ElasticState::Past past{.round = 4, .nodes = 4, .restarts = 1, .recovery = 3, .certain = false};
  ElasticState silent(limits_of(1, 4, 2));
  silent.go_on_from(past, 0);
  for (const char* id : {"b", "c"}) silent.join(id, "h", 1, 0);
  for (double now = 1; now < 10; ++now) {
    for (const char* id : {"b", "c"}) silent.heard(id, now);
    silent.time_passes(now);
    EXPECT_EQ(silent.phase(), ElasticPhase::kGathering) << "two of four may be the ones who are cut off";
  }
  silent.heard("b", 11);
  silent.heard("c", 11);
  ElasticState enough = silent;
  silent.time_passes(11);
  EXPECT_EQ(silent.phase(), ElasticPhase::kEnded);
  EXPECT_EQ(silent.code(), 1);
  enough.join("d", "h", 1, 11);
  EXPECT_EQ(enough.phase(), ElasticPhase::kRunning) << "all but the host";
  EXPECT_EQ(enough.round(), 5);
  EXPECT_EQ(enough.recovery(), 3);
  EXPECT_EQ(enough.restarts(), 1);

  ElasticState certain(limits_of(1, 2));
  certain.go_on_from({.round = 0, .nodes = 2, .restarts = 0, .recovery = 0, .certain = true}, 0);
  certain.join("b", "h", 1, 0);
  EXPECT_EQ(certain.phase(), ElasticPhase::kRunning);
  EXPECT_EQ(certain.round(), 1);
}

TEST(ElasticState, WhereOthersMayMeetElsewhereALessThanHalfEnds) {
  ElasticLimits limits = limits_of(1, 3);
  limits.others_may_meet_elsewhere = true;
  ElasticState state(limits);
  for (const char* id : {"a", "b", "c"}) state.join(id, "h", 1, 0);
  ASSERT_EQ(state.phase(), ElasticPhase::kRunning);
  state.heard("a", 5);
  state.time_passes(5.5);
  EXPECT_EQ(state.phase(), ElasticPhase::kEnded);
  EXPECT_NE(state.why().find("with 1 of 3 nodes"), std::string::npos) << state.why();
}

TEST(ElasticState, NumberedNodesStandInTheirOrderAndOneThatIsLostIsWaitedFor) {
  ElasticState state(limits_of(3, 3));
  state.join("2", "c", 1, 0, 2);
  state.join("0", "a", 1, 0, 0);
  state.join("1", "b", 1, 0, 1);
  ASSERT_EQ(state.phase(), ElasticPhase::kRunning);
  EXPECT_EQ(state.first_rank("0"), 0);
  EXPECT_EQ(state.first_rank("1"), 1);
  EXPECT_EQ(state.first_rank("2"), 2);
  EXPECT_NE(state.join("1", "z", 1, 1, 1).find("there is a node '1' already, on b"), std::string::npos);
  state.leave("1", "has left", 2, false);
  EXPECT_EQ(state.phase(), ElasticPhase::kGathering);
  EXPECT_NE(state.why().find("start the same command there again"), std::string::npos) << state.why();
  state.ready("0", 3);
  state.ready("2", 3);
  state.time_passes(6);
  EXPECT_EQ(state.phase(), ElasticPhase::kGathering);
  EXPECT_EQ(state.join("1", "b2", 1, 7, 1), "");
  EXPECT_EQ(state.phase(), ElasticPhase::kRunning);
  EXPECT_EQ(state.first_rank("1"), 1);
}

/// Three nodes, of which `silent` are not heard; the job goes on with the others if the claim says so.
ElasticState cut(int silent, std::string answer, int& asked) {
  ElasticLimits limits = limits_of(1, 3);
  limits.others_may_meet_elsewhere = true;
  limits.claim = [answer = std::move(answer), &asked] {
    ++asked;
    return answer;
  };
  ElasticState state(limits);
  const std::vector<std::string> ids{"a", "b", "c"};
  for (const std::string& id : ids) state.join(id, "h", 1, 0);
  for (double now = 4; now < 6; ++now) {
    for (std::size_t i = 0; i < ids.size() - static_cast<std::size_t>(silent); ++i) state.heard(ids[i], now);
    state.time_passes(now + 0.5);
  }
  state.ready("a", 6);
  state.ready("b", 6);
  return state;
}

TEST(ElasticState, WithAClaimMoreThanHalfGoOnAtOnceAndFewerAfterTheOthersHadTime) {
  int asked = 0;
  const ElasticState most = cut(1, "", asked);
  EXPECT_EQ(most.phase(), ElasticPhase::kRunning);
  EXPECT_EQ(asked, 1);

  ElasticState few = cut(2, "", asked);
  EXPECT_EQ(few.phase(), ElasticPhase::kGathering);
  few.heard("a", 14);
  few.time_passes(14);
  EXPECT_EQ(asked, 1) << "two others may have gone on";
  few.time_passes(15.6);
  EXPECT_EQ(few.phase(), ElasticPhase::kRunning);
  EXPECT_EQ(asked, 2);
}

TEST(ElasticState, WhoseClaimIsRefusedEnds) {
  int asked = 0;
  const ElasticState state = cut(1, "the others go on elsewhere", asked);
  EXPECT_EQ(state.phase(), ElasticPhase::kEnded);
  EXPECT_EQ(state.code(), 1);
  EXPECT_NE(state.why().find("go on elsewhere"), std::string::npos) << state.why();
}

TEST(ElasticState, OneThatStoodStillDoesNotTakeItsNodesForDeadWhenTheyHaveMovedOn) {
  ElasticLimits limits = limits_of(1, 3);
  limits.others_may_meet_elsewhere = true;
  ElasticState awake(limits);
  for (const char* id : {"a", "b", "c"}) awake.join(id, "h", 1, 0);
  awake.time_passes(1);
  ElasticState stood_still = awake;
  const auto both_go = [](ElasticState& state, double now) {
    for (const char* id : {"a", "b", "c"}) state.heard(id, now);
    state.time_passes(now);
    for (const char* id : {"b", "c"}) state.leave(id, "has closed its connection", now, false);
    state.ready("a", now);
  };
  both_go(awake, 1.2);
  EXPECT_EQ(awake.phase(), ElasticPhase::kRunning) << "they have died";
  both_go(stood_still, 20);
  EXPECT_EQ(stood_still.phase(), ElasticPhase::kEnded) << "they may have waited, and met elsewhere";
}

/// Whatever happens in whatever order, what holds always holds.
TEST(ElasticState, RandomEventsKeepItSound) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    ElasticLimits limits = limits_of(2, 4, 3);
    limits.others_may_meet_elsewhere = trial % 3 != 0;
    if (trial % 3 == 1) limits.claim = [&random] { return random() % 8 == 0 ? "others have it" : ""; };
    ElasticState state(limits);
    double now = 0;
    int last_round = 0;
    for (int event = 0; event < 200; ++event) {
      now += static_cast<double>(random() % 100) * 0.02;
      const std::string id(1, static_cast<char>('a' + random() % 6));
      switch (random() % 10) {
        case 0:
          if (random() % 8 == 0)
            state.go_on_from({.round = state.round(), .nodes = 1 + static_cast<int>(random() % 4)}, now);
          state.join(id, "h", 1 + static_cast<int>(random() % 3), now);
          break;
        case 1:
          if (random() % 4 == 0) state.leave(id, "leaves", now, random() % 2 == 0);
          break;
        case 2:
          state.ready(id, now);
          break;
        case 3:
          if (random() % 8 == 0) state.failed(id, state.round(), 3, "fails", now);
          break;
        case 4:
          if (random() % 8 == 0) state.finished(id, state.round(), now);
          break;
        case 5:
          state.waits(id, state.round(), state.recovery(), now);
          break;
        case 6:
          if (random() % 8 == 0) state.lost(id, state.round(), 3, "dies", now);
          break;
        case 7:
          if (random() % 32 == 0) state.cannot(id, state.round(), "cannot", now);
          break;
        case 8:
          for (const char* all : {"a", "b", "c", "d", "e", "f"}) state.heard(all, now);
          break;
        default:
          state.time_passes(now);
      }
      EXPECT_LE(state.nodes().size(), 4u);
      EXPECT_GE(state.round(), last_round);
      last_round = state.round();
      EXPECT_TRUE(state.phase() != ElasticPhase::kRunning || !state.nodes().empty());
      EXPECT_TRUE(!state.recovering() || state.phase() == ElasticPhase::kRunning);
      EXPECT_LE(state.restarts(), 3);
      if (event % 20 == 0) EXPECT_FALSE(parse_json<nlohmann::json>(state.to_json(now)).empty());
    }
  }
}

}  // namespace
}  // namespace cohort::launch
