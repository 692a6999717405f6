#include "dist/store_socket.h"

#include <thread>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "core/error.h"

namespace cohort::dist {
namespace {

using namespace std::chrono_literals;

TEST(StoreSocket, PortZeroTakesAFreeOneAndListens) {
  const OwnedSocket socket = open_store_socket(0, true);
  const int port = bound_port(socket.get());
  EXPECT_GT(port, 0);
  wait_for_listener("127.0.0.1", port, 1s, "a test");
  wait_for_listener("localhost", port, 1s, "a test");
}

TEST(StoreSocket, EveryAddressMeansIpv4Too) {
  const OwnedSocket socket = open_store_socket(0, false);
  wait_for_listener("127.0.0.1", bound_port(socket.get()), 1s, "a test");
}

TEST(StoreSocket, PortInUseIsAnErrorWithAnotherThatCanBeBound) {
  const OwnedSocket taken = open_store_socket(0, true);
  const int port = bound_port(taken.get());
  for (const bool loopback_only : {true, false}) {
    try {
      open_store_socket(port, loopback_only, "derived from SLURM_JOB_ID=5");
      FAIL() << "the port was given twice";
    } catch (const Error& problem) {
      const std::string text = problem.what();
      EXPECT_NE(text.find("port " + std::to_string(port) + " (derived from SLURM_JOB_ID=5) is in use"),
                std::string::npos)
          << text;
      const int other = std::stoi(text.substr(text.find("set MASTER_PORT=") + 16));
      EXPECT_NE(other, port);
      const OwnedSocket second = open_store_socket(other, loopback_only);
      EXPECT_EQ(bound_port(second.get()), other);
    }
  }
}

TEST(StoreSocket, PrivilegedPortIsExplained) {
  if (geteuid() == 0) GTEST_SKIP() << "root may bind any port";
  EXPECT_THROW(open_store_socket(80, true), Error);
}

TEST(StoreSocket, ListenerThatComesLaterIsWaitedFor) {
  const int port = free_port(true);
  OwnedSocket socket;
  std::thread later([&] {
    std::this_thread::sleep_for(200ms);
    socket = open_store_socket(port, true);
  });
  EXPECT_NO_THROW(wait_for_listener("127.0.0.1", port, 10s, "a test"));
  later.join();
}

TEST(StoreSocket, NobodyListeningIsAnErrorThatNamesAddressAndTime) {
  const int port = free_port(true);
  try {
    wait_for_listener("127.0.0.1", port, 100ms, "rank 1 of 2");
    FAIL() << "somebody listens";
  } catch (const Error& problem) {
    const std::string text = problem.what();
    EXPECT_NE(text.find("rank 1 of 2 could not reach the store at 127.0.0.1:" + std::to_string(port) + " for 0."),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("Connection refused"), std::string::npos) << text;
  }
}

TEST(StoreSocket, DescriptorThatIsNoBoundSocketIsRefused) {
  EXPECT_THROW(bound_port(-1), Error);
  EXPECT_THROW(bound_port(0), Error);
}

}  // namespace
}  // namespace cohort::dist
