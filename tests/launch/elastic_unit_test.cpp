// The rendezvous of an elastic job: its state machine, its signatures, and strangers at its port.
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <thread>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/files.h"
#include "launch/elastic_server.h"
#include "launch/elastic_state.h"
#include "launch/signed_message.h"
#include "support/process.h"

namespace cohort::launch {
namespace {

using Json = nlohmann::json;

constexpr const char* kSecret = "0123456789abcdef-secret";

ElasticLimits limits_of(int least, int most, int restarts = 0) {
  return {.least = least, .most = most, .max_restarts = restarts, .last_call = 5, .patience = 60, .lost_after = 5};
}

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
  const Json json = Json::parse(state.to_json(15));
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

/// Whatever happens in whatever order, what holds always holds.
TEST(ElasticState, RandomEventsKeepItSound) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    ElasticState state(limits_of(2, 4, 3));
    double now = 0;
    int last_round = 0;
    for (int event = 0; event < 200; ++event) {
      now += static_cast<double>(random() % 100) * 0.02;
      const std::string id(1, static_cast<char>('a' + random() % 6));
      switch (random() % 10) {
        case 0:
          state.join(id, "h", 1 + static_cast<int>(random() % 3), now);
          break;
        case 1:
          if (random() % 4 == 0) state.leave(id, "leaves", now);
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
      EXPECT_FALSE(Json::parse(state.to_json(now)).empty());
    }
  }
}

TEST(SignedMessage, TheSignatureIsThatOfRfc4231) {
  // Test case 2.
  EXPECT_EQ(hmac_sha256("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(SignedMessage, AnotherSecretSessionDirectionOrPlaceIsRefused) {
  const auto received = [](Signer& from, Signer& to, int times = 1) {
    std::string text;
    for (int i = 0; i < times; ++i) text = from.sign(R"({"do":"beat"})");
    return to.verify(text.substr(4));
  };
  Signer client(kSecret, "session", false), server(kSecret, "session", true);
  EXPECT_EQ(received(client, server), R"({"do":"beat"})");
  EXPECT_EQ(received(server, client), R"({"do":"beat"})");
  Signer stranger("another secret, also long", "session", false);
  EXPECT_THROW(received(stranger, server), Error);
  Signer replayed(kSecret, "other session", false);
  EXPECT_THROW(received(replayed, server), Error);
  Signer mirrored(kSecret, "session", true);
  EXPECT_THROW(received(mirrored, server), Error);
  Signer skipping(kSecret, "session", false);
  EXPECT_THROW(received(skipping, server, 3), Error) << "this is the third, the second was expected";
  EXPECT_THROW(server.verify("short"), Error);
}

TEST(SignedMessage, FramesOfAnyCutAreReadAndOversizedOnesRefused) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 200; ++trial) {
    std::string stream;
    std::vector<std::string> sent;
    for (int i = 0; i < 5; ++i) {
      sent.push_back(std::string(random() % 3000, static_cast<char>(random())));
      stream += frame(sent.back());
    }
    FrameReader reader;
    std::vector<std::string> got;
    for (std::size_t at = 0; at < stream.size();) {
      const std::size_t count = std::min<std::size_t>(1 + random() % 700, stream.size() - at);
      reader.add(stream.data() + at, count);
      at += count;
      while (auto payload = reader.next()) got.push_back(*payload);
    }
    EXPECT_EQ(got, sent);
  }
  FrameReader reader;
  reader.add("\xff\xff\xff\xff", 4);
  EXPECT_THROW(reader.next(), Error);
}

TEST(SignedMessage, TheSecretComesFromAFileThatOthersCannotReadOrTheEnvironment) {
  const TemporaryFolder folder("cohort-secret", "");
  const std::string path = (folder.path() / "secret").string();
  write_file_atomically(path, std::string("  ") + kSecret + "\n");
  ::chmod(path.c_str(), 0644);
  EXPECT_THROW(read_job_secret(path), Error);
  ::chmod(path.c_str(), 0600);
  EXPECT_EQ(read_job_secret(path), kSecret);
  EXPECT_THROW(read_job_secret((folder.path() / "none").string()), Error);
  ::unsetenv("COHORT_JOB_SECRET");
  EXPECT_THROW(read_job_secret(""), Error);
  ::setenv("COHORT_JOB_SECRET", "short", 1);
  EXPECT_THROW(read_job_secret(""), Error);
  ::setenv("COHORT_JOB_SECRET", kSecret, 1);
  EXPECT_EQ(read_job_secret(""), kSecret);
  ::unsetenv("COHORT_JOB_SECRET");
}

/// One agent's end of a conversation, by hand.
class Client {
 public:
  explicit Client(int port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    const timeval patience{.tv_sec = 30, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~Client() { ::close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// "" when the server has closed the connection.
  std::string frame_text() {
    for (;;) {
      if (auto payload = frames_.next()) return *payload;
      char bytes[4096];
      const ssize_t count = ::recv(fd_, bytes, sizeof bytes, 0);
      if (count <= 0) return "";
      frames_.add(bytes, static_cast<std::size_t>(count));
    }
  }
  void send_raw(const std::string& bytes) { (void)!::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  void open(const std::string& secret) {
    const Json hello = Json::parse(frame_text());
    signer_ = std::make_unique<Signer>(secret, hello.at("challenge").get<std::string>() + "abcdef", false);
  }
  void say(Json message) {
    message["nonce"] = "abcdef";
    send_raw(signer_->sign(message.dump()));
  }
  Json hear() {
    for (;;) {
      const std::string payload = frame_text();
      if (payload.empty()) return Json();
      Json message = Json::parse(signer_->verify(payload));
      if (message["is"] != "beat") return message;
    }
  }
  void join(const std::string& node, const std::string& job = "job", const Json& past = Json()) {
    Json message{{"do", "join"}, {"job", job}, {"node", node}, {"host", "h"}, {"ranks", 1}};
    if (!past.is_null()) message["past"] = past;
    say(message);
  }
  bool connected() const { return connected_; }

 private:
  int fd_;
  bool connected_ = false;
  FrameReader frames_;
  std::unique_ptr<Signer> signer_;
};

TEST(ElasticServer, NodesWithTheSecretGetTheirRoundAndOthersAreTurnedAway) {
  const int port = testing::free_port();
  const auto server = ElasticServer::host({.host = "127.0.0.1", .port = port}, limits_of(2, 2), "job", kSecret, 4242);
  ASSERT_NE(server, nullptr);
  EXPECT_EQ(ElasticServer::host({.host = "127.0.0.1", .port = port}, limits_of(2, 2), "job", kSecret, 4242), nullptr)
      << "another agent has it";

  Client stranger(port);
  stranger.open("not the secret of this job");
  stranger.join("evil");
  EXPECT_TRUE(stranger.hear().is_null()) << "it is told nothing";

  Client other(port);
  other.open(kSecret);
  other.join("x", "another job");
  const Json refused = other.hear();
  EXPECT_EQ(refused["is"], "refused");

  Client a(port), b(port), watcher(port);
  a.open(kSecret);
  a.join("a");
  watcher.open(kSecret);
  watcher.say({{"do", "state"}});
  EXPECT_EQ(watcher.hear()["state"]["phase"], "gathering");
  b.open(kSecret);
  b.join("b");
  const Json of_a = a.hear(), of_b = b.hear();
  EXPECT_EQ(of_a["is"], "round");
  EXPECT_EQ(of_a["world_size"], 2);
  EXPECT_EQ(of_a["store_port"], 4242);
  EXPECT_NE(of_a["first_rank"], of_b["first_rank"]);
  a.say({{"do", "failed"}, {"round", 0}, {"code", 5}, {"what", "exit code 5"}});
  const Json end = b.hear();
  EXPECT_EQ(end["is"], "end");
  EXPECT_EQ(end["code"], 5);
}

TEST(ElasticServer, GarbageAndOversizedMessagesDisturbNobody) {
  const int port = testing::free_port();
  const auto server = ElasticServer::host({.host = "127.0.0.1", .port = port}, limits_of(1, 2), "job", kSecret, 4242);
  ASSERT_NE(server, nullptr);
  Client node(port);
  node.open(kSecret);
  node.join("a");
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    Client stranger(port);
    ASSERT_TRUE(stranger.connected());
    const std::string valid_start = frame(std::string(64, '0') + R"({"do":"join","nonce":"abc","job":"job"})");
    std::string bytes;
    switch (i % 4) {
      case 0:  // noise
        for (std::size_t n = random() % 400; n > 0; --n) bytes += static_cast<char>(random());
        break;
      case 1:  // a length that nothing has
        bytes = std::string("\x7f\xff\xff\xff", 4) + std::string(100, 'x');
        break;
      case 2:  // a message that is nearly one
        bytes = valid_start;
        bytes[random() % bytes.size()] = static_cast<char>(random());
        break;
      default:  // JSON that is deep, or of another type
        bytes = frame(std::string(64, 'a') + std::string(2000, '['));
    }
    stranger.send_raw(bytes);
  }
  // And with the secret, but nonsense inside.
  for (const Json& nonsense :
       std::vector<Json>{{{"do", 7}},
                         {{"do", "ready"}},
                         {{"do", "join"}, {"job", "job"}, {"node", 3}},
                         {{"do", "join"}, {"job", "job"}, {"node", "n"}, {"host", "h"}, {"ranks", -1}},
                         {{"do", std::string(1000, 'x')}}}) {
    Client confused(port);
    confused.open(kSecret);
    confused.say(nonsense);
    EXPECT_TRUE(confused.hear().is_null()) << nonsense.dump();
  }
  Client second(port);
  second.open(kSecret);
  second.join("b");
  EXPECT_EQ(second.hear()["is"], "round") << "the rendezvous works as before";
  EXPECT_EQ(node.hear()["is"], "round");
}

TEST(ElasticServer, NodesRecoverTogetherAndAreCalledByOneNumber) {
  const int port = testing::free_port();
  const auto server =
      ElasticServer::host({.host = "127.0.0.1", .port = port}, limits_of(2, 2, 3), "job", kSecret, 4242);
  Client a(port), b(port);
  for (Client* client : {&a, &b}) client->open(kSecret);
  a.join("a");
  b.join("b");
  ASSERT_EQ(a.hear()["is"], "round");
  ASSERT_EQ(b.hear()["is"], "round");
  a.say({{"do", "lost"}, {"round", 0}, {"code", 137}, {"what", "SIGKILL"}});
  EXPECT_EQ(a.hear()["is"], "recover");
  const Json of_b = b.hear();
  EXPECT_EQ(of_b["is"], "recover");
  EXPECT_EQ(of_b["number"], 1);
  EXPECT_EQ(of_b["restarts"], 1);
  a.say({{"do", "waits"}, {"round", 0}, {"recovery", 1}});
  b.say({{"do", "waits"}, {"round", 0}, {"recovery", 1}});
  EXPECT_EQ(a.hear(), Json({{"is", "go"}, {"number", 1}}));
  EXPECT_EQ(b.hear(), Json({{"is", "go"}, {"number", 1}}));
}

TEST(ElasticServer, OneOnStandbyTurnsNodesAwayUntilTheOtherHostIsLost) {
  const int port = testing::free_port();
  const auto server = ElasticServer::host({.host = "127.0.0.1", .port = port}, limits_of(1, 2), "job", kSecret, 4242,
                                          /*active=*/false);
  Client early(port), moved(port), late(port);
  early.open(kSecret);
  early.join("new");
  EXPECT_EQ(early.hear()["is"], "standby");
  EXPECT_TRUE(early.hear().is_null()) << "and closed";
  moved.open(kSecret);
  moved.join("a", "job", {{"round", 2}, {"nodes", 2}, {"restarts", 0}, {"recovery", 0}, {"certain", true}});
  const Json round = moved.hear();
  EXPECT_EQ(round["is"], "round");
  EXPECT_EQ(round["round"], 3);
  late.open(kSecret);
  late.join("b");
  EXPECT_EQ(moved.hear()["is"], "gather") << "the job meets here now";
}

TEST(ElasticServer, AThousandAgentsMeetAtOnce) {
  constexpr int kAgents = 1000;
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_cur < 2 * kAgents + 100) GTEST_SKIP() << "needs 2,100 open files: ulimit -n allows fewer";
  const int port = testing::free_port();
  const auto server =
      ElasticServer::host({.host = "127.0.0.1", .port = port}, limits_of(kAgents, kAgents), "job", kSecret, 4242);
  ASSERT_NE(server, nullptr);
  std::mutex mutex;
  std::set<int> ranks;
  std::vector<std::thread> agents;
  for (int i = 0; i < kAgents; ++i)
    agents.emplace_back([&, i] {
      Client agent(port);
      agent.open(kSecret);
      agent.join("node" + std::to_string(i));
      const Json round = agent.hear();
      const std::scoped_lock lock(mutex);
      if (!round.is_null() && round["is"] == "round" && round["world_size"] == kAgents)
        ranks.insert(round["first_rank"].get<int>());
    });
  for (std::thread& agent : agents) agent.join();
  EXPECT_EQ(ranks.size(), static_cast<std::size_t>(kAgents));
}

}  // namespace
}  // namespace cohort::launch
