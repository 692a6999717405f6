// Signatures and frames of the messages between agents, and the secret behind them.
#include "launch/signed_message.h"

#include <random>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/error.h"
#include "core/files.h"
#include "launch/elastic_client.h"

namespace cohort::launch {
namespace {

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
  Signer client(kJobSecret, "session", false), server(kJobSecret, "session", true);
  EXPECT_EQ(received(client, server), R"({"do":"beat"})");
  EXPECT_EQ(received(server, client), R"({"do":"beat"})");
  Signer stranger("another secret, also long", "session", false);
  EXPECT_THROW(received(stranger, server), Error);
  Signer replayed(kJobSecret, "other session", false);
  EXPECT_THROW(received(replayed, server), Error);
  Signer mirrored(kJobSecret, "session", true);
  EXPECT_THROW(received(mirrored, server), Error);
  Signer skipping(kJobSecret, "session", false);
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
  const cohort::TemporaryFolder folder("cohort-secret", "");
  const std::string path = (folder.path() / "secret").string();
  write_file_atomically(path, std::string("  ") + kJobSecret + "\n");
  ::chmod(path.c_str(), 0644);
  EXPECT_THROW(read_job_secret(path), Error);
  ::chmod(path.c_str(), 0600);
  EXPECT_EQ(read_job_secret(path), kJobSecret);
  EXPECT_THROW(read_job_secret((folder.path() / "none").string()), Error);
  ::unsetenv("COHORT_JOB_SECRET");
  EXPECT_THROW(read_job_secret(""), Error);
  ::setenv("COHORT_JOB_SECRET", "short", 1);
  EXPECT_THROW(read_job_secret(""), Error);
  ::setenv("COHORT_JOB_SECRET", kJobSecret, 1);
  EXPECT_EQ(read_job_secret(""), kJobSecret);
  ::unsetenv("COHORT_JOB_SECRET");
}

}  // namespace
}  // namespace cohort::launch
