// Hostile messages on either side of the rendezvous: every kind that there is, damaged, of other types, out of range, out
// of order, signed with the job's secret and without. The unit tests make a few thousand of them; COHORT_FUZZ_SECONDS
// asks each for as many as fit into that time.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "core/error.h"
#include "core/json_text.h"
#include "launch/elastic_client.h"
#include "launch/elastic_fuzz_cases.h"
#include "launch/elastic_messages.h"
#include "launch/elastic_rendezvous.h"
#include "launch/elastic_server.h"
#include "rank/page.h"
#include "support/process.h"

namespace cohort::launch {
namespace {

TEST(ElasticFuzz, WhatIsReadFromAMessageFitsOrIsAnError) {
  for_many(4000, [](std::uint64_t number) {
    FuzzDraws draw(number);
    try {
      const FuzzJson told = parse_told(hostile(draw, said_by_servers()));
      for (const auto& [name, value] : told.items()) {
        if (name != "why") continue;
        for (const char c : value.get<std::string>())
          EXPECT_TRUE(static_cast<unsigned char>(c) >= 32 || c == '\n' || c == '\t') << json_text(told);
      }
      if (told["is"] == "round") {
        EXPECT_LT(told["first_rank"].get<int>(), told["world_size"].get<int>());
        EXPECT_LE(told["store_port"].get<int>(), 65535);
      }
    } catch (const Error&) {
    }
  });
}

/// Whatever agents that know the secret say, the server goes on and answers who asks for its state.
TEST(ElasticFuzz, SignedNonsenseInAnyOrderLeavesTheServerSound) {
  constexpr int kMessages = 60, kNodes = 4;
  for_many(25, [](std::uint64_t number) {
    FuzzDraws draw(number);
    const int port = testing::free_port();
    ElasticLimits limits = limits_of(1, kNodes, 1000);
    limits.last_call = 0.1;
    limits.others_may_meet_elsewhere = draw.once_in(2);
    const auto server =
        ElasticServer::host({.host = "127.0.0.1", .port = port}, limits, "job", kJobSecret, 4242, !draw.once_in(4));
    ASSERT_NE(server, nullptr);
    std::vector<std::unique_ptr<RendezvousClient>> clients;
    int last_round = 0;
    for (int i = 0; i < kMessages; ++i) {
      if (clients.size() < kNodes || draw.once_in(10)) {
        if (clients.size() == kNodes) clients.erase(clients.begin());
        clients.push_back(std::make_unique<RendezvousClient>(port));
        clients.back()->open(kJobSecret);
        FuzzJson join = said_by_agents()[draw.below(3)];
        join["node"] = "node" + std::to_string(draw.below(6));
        if (!draw.once_in(5)) clients.back()->say(join);
      }
      draw.of(clients)->say_text(hostile(draw, said_by_agents()));
      if (i % 20 != 19) continue;
      RendezvousClient watcher(port);
      watcher.open(kJobSecret);
      watcher.say({{"do", "state"}});
      const FuzzJson answer = watcher.hear();
      ASSERT_TRUE(answer.is_object()) << "case " << number << ": the server does not answer any more";
      const FuzzJson& state = answer["state"];
      EXPECT_LE(state["nodes"].size(), static_cast<std::size_t>(kNodes));
      EXPECT_GE(state["round"].get<int>(), last_round);
      EXPECT_LE(state["world_size"].get<int>(), kNodes * kMostRanks);
      last_round = state["round"];
    }
  });
}

/// What strangers send, or send again, changes nothing.
TEST(ElasticFuzz, WithoutTheSecretNothingChanges) {
  const int port = testing::free_port();
  ElasticLimits limits = limits_of(2, 3);
  limits.lost_after = limits.patience = 1e6;
  const auto server = ElasticServer::host({.host = "127.0.0.1", .port = port}, limits, "job", kJobSecret, 4242);
  ASSERT_NE(server, nullptr);
  RendezvousClient node(port);
  node.open(kJobSecret);
  node.join("a");
  const auto state = [&] {
    RendezvousClient watcher(port);
    watcher.open(kJobSecret);
    watcher.say({{"do", "state"}});
    FuzzJson answer = watcher.hear();
    for (FuzzJson& entry : answer["state"]["nodes"]) entry.erase("silent_s");
    return answer["state"];
  };
  ASSERT_TRUE(testing::eventually([&] { return state()["nodes"].size() == 1; }));
  const FuzzJson before = state();
  Signer earlier(kJobSecret, "an earlier challengeabcdef", false);
  for_many(200, [&](std::uint64_t number) {
    FuzzDraws draw(number);
    RendezvousClient stranger(port);
    ASSERT_TRUE(stranger.connected()) << "case " << number;
    const std::string text = hostile(draw, said_by_agents());
    std::string bytes;
    switch (draw.below(6)) {
      case 0:  // another secret
        stranger.open("not the secret of this job");
        stranger.say_text(text);
        break;
      case 1:  // replayed from another connection
        bytes = earlier.sign(text);
        break;
      case 2:  // noise
        for (std::size_t n = draw.below(400); n > 0; --n) bytes += static_cast<char>(draw.below(256));
        break;
      case 3:  // a length that nothing has, or one that never comes
        bytes = std::string(draw.once_in(2) ? "\x7f\xff\xff\xff" : "\x00\x00\xff\xff", 4) + std::string(100, 'x');
        break;
      case 4:  // what the server would say
        bytes = Signer(kJobSecret, "abcdef", true).sign(text);
        break;
      default:
        bytes = frame(std::string(64, 'a') + text.substr(0, kMostBytes - 64));
    }
    stranger.send_raw(bytes);
    if (number % 50 == 49) {
      node.say({{"do", "beat"}});
      ASSERT_EQ(state(), before) << "case " << number;
    }
  });
  EXPECT_EQ(state(), before);
}

/// Whatever one that knows the secret says to an agent, it is followed, or is an Error that says why.
TEST(ElasticFuzz, SignedNonsenseOfAServerIsFollowedOrAnError) {
  for_many(60, [](std::uint64_t number) {
    FuzzDraws draw(number);
    HandServer server;
    std::vector<std::string> texts{R"({"is":"joined"})"};
    for (std::size_t i = 1 + draw.below(8); i > 0; --i)
      texts.push_back(draw.once_in(3) ? hostile(draw, said_by_servers()) : json_text(draw.of(said_by_servers())));
    server.serve(kHello, texts);
    const std::string secret_before = std::getenv("COHORT_JOB_SECRET") ? std::getenv("COHORT_JOB_SECRET") : "";
    ::setenv("COHORT_JOB_SECRET", kJobSecret, 1);
    LaunchSettings settings;
    settings.elastic = true;
    settings.nodes = 2;
    settings.ranks = 2;
    settings.run_id = "job";
    settings.node_id = "n";
    settings.rendezvous_host = "127.0.0.1";
    settings.rendezvous_port = server.port;
    try {
      ElasticRendezvous rendezvous(settings);
      for (int attempt = 0;; ++attempt) {
        const Meeting meeting = rendezvous.meet(attempt);
        EXPECT_LT(meeting.first_rank, meeting.world_size);
        EXPECT_LT(meeting.node_rank, meeting.nodes);
        for (Interruption other; other.why.empty(); other = rendezvous.interruption()) {
          while (const auto call = rendezvous.recovery_call()) EXPECT_GE(call->number, 0);
          rendezvous.waits(0);
        }
      }
    } catch (const Error& problem) {
      EXPECT_STRNE(problem.what(), "");
    } catch (const JobEnded& end) {
      EXPECT_LE(end.code, 255);
    }
    ::unsetenv("COHORT_JOB_SECRET");
    if (!secret_before.empty()) ::setenv("COHORT_JOB_SECRET", secret_before.c_str(), 1);
  });
}

/// Before the join is answered nobody has shown that it knows the secret.
TEST(ElasticFuzz, AnyHelloAndAnyFirstAnswerIsALinkOrAReason) {
  for_many(60, [](std::uint64_t number) {
    FuzzDraws draw(number);
    HandServer server;
    FuzzJson hello = parse_json<FuzzJson>(kHello);
    if (draw.once_in(2)) hello[draw.once_in(2) ? "hello" : "challenge"] = hostile_value(draw);
    std::string text = json_text(hello, -1, BadUtf8::kReplaced);
    if (draw.once_in(3)) text[draw.below(text.size())] = static_cast<char>(draw.below(256));
    server.serve(text.substr(0, kMostBytes), {hostile(draw, said_by_servers())});
    ElasticLink::Absence absence;
    try {
      const auto link = ElasticLink::connect({.host = "127.0.0.1", .port = server.port}, kJobSecret,
                                             {{"job", "job"}, {"node", "n"}, {"host", "h"}, {"ranks", 1}}, absence);
      EXPECT_TRUE(link || !absence.reason.empty());
    } catch (const Error& problem) {
      EXPECT_STRNE(problem.what(), "");
    }
  });
}

/// A rank that has gone mad writes over its page: what it kept, parked or said is read as something, or as nothing.
TEST(ElasticFuzz, APageFullOfNoiseIsReadWithinItsBounds) {
  for_many(300, [](std::uint64_t number) {
    FuzzDraws draw(number);
    const auto page = rank::Page::make(true);
    const std::vector<std::byte> own(100 + draw.below(5000), std::byte{7});
    page->keep(static_cast<std::int64_t>(draw.below(4)), own);
    const std::string parked(1 + draw.below(9000), 'p');
    const std::vector<std::string_view> pieces{parked};
    page->park(pieces);
    constexpr std::size_t kHead = 8192;
    auto* words =
        static_cast<std::uint64_t*>(::mmap(nullptr, kHead, PROT_READ | PROT_WRITE, MAP_SHARED, page->descriptor(), 0));
    ASSERT_NE(words, MAP_FAILED);
    static const std::vector<std::uint64_t> kHostile{0,          1,          UINT64_MAX, 1ull << 63,
                                                     1ull << 62, INT64_MAX,  4096,       UINT64_MAX - 8191,
                                                     8192,       UINT32_MAX, 1ull << 33, 0x7ffffffffffff000ull};
    for (std::size_t n = 1 + draw.below(20); n > 0; --n) words[draw.below(kHead / 8 / 2)] = draw.of(kHostile);
    ::munmap(words, kHead);
    std::size_t read = page->note().size();
    for (const std::int64_t step : {0, 1, 2, 3})
      if (const auto kept = page->kept(step)) read += kept->size();
    if (const auto text = page->parked())
      for (const char c : *text) read += static_cast<unsigned char>(c);
    (void)to_string(page->phase());
    (void)to_string(page->part());
    page->clear_for_next();
    page->begin_round(true);
    EXPECT_GE(read, 0u);
    EXPECT_EQ(page->phase(), rank::Phase::kSilent);
  });
}

}  // namespace
}  // namespace cohort::launch
