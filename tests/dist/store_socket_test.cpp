#include "dist/store_socket.h"

#include <csignal>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "core/error.h"
#include "core/message_of.h"

namespace cohort::dist {
namespace {

using namespace std::chrono_literals;

TEST(StoreSocket, PortZeroTakesAFreeOneAndListens) {
  const OwnedSocket socket = open_store_socket(0, true);
  const int port = bound_port(socket.get());
  EXPECT_GT(port, 0);
  EXPECT_NO_THROW(wait_for_listener("127.0.0.1", port, 60s, "a test"));
  EXPECT_NO_THROW(wait_for_listener("localhost", port, 60s, "a test"));
}

TEST(StoreSocket, EveryAddressMeansIpv4Too) {
  const OwnedSocket socket = open_store_socket(0, false);
  EXPECT_NO_THROW(wait_for_listener("127.0.0.1", bound_port(socket.get()), 60s, "a test"));
}

TEST(StoreSocket, PortInUseIsAnErrorWithAnotherThatCanBeBound) {
  const OwnedSocket taken = open_store_socket(0, true);
  const int port = bound_port(taken.get());
  for (const bool loopback_only : {true, false}) {
    const std::string text = message_of([&] { open_store_socket(port, loopback_only, "derived from SLURM_JOB_ID=5"); });
    ASSERT_NE(text.find("port " + std::to_string(port) + " (derived from SLURM_JOB_ID=5) is in use"), std::string::npos)
        << text;
    const int other = std::stoi(text.substr(text.find("set MASTER_PORT=") + 16));
    EXPECT_NE(other, port);
    const OwnedSocket second = open_store_socket(other, loopback_only);
    EXPECT_EQ(bound_port(second.get()), other);
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
  EXPECT_NO_THROW(wait_for_listener("127.0.0.1", port, 60s, "a test"));
  later.join();
}

TEST(StoreSocket, NobodyListeningIsAnErrorThatNamesAddressAndTime) {
  const int port = free_port(true);
  const std::string text = message_of([&] { wait_for_listener("127.0.0.1", port, 100ms, "rank 1 of 2"); });
  EXPECT_NE(text.find("rank 1 of 2 could not reach the store at 127.0.0.1:" + std::to_string(port) + " for "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("Connection refused"), std::string::npos) << text;
}

TEST(StoreSocket, ASignalDuringTheWaitIsNoConnection) {
  // A listener whose queue is full answers nobody: whoever knocks waits.
  const OwnedSocket listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  const int port = bound_port(listener.get());
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  std::vector<OwnedSocket> queue;
  for (int i = 0; i < 4; ++i) {
    queue.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    ::connect(queue.back().get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGALRM, &action, &before), 0);
  const itimerval often{{0, 20000}, {0, 20000}};  // s, us
  const itimerval never{};
  ASSERT_EQ(::setitimer(ITIMER_REAL, &often, nullptr), 0);
  const std::string text = message_of([&] { wait_for_listener("127.0.0.1", port, 300ms, "a test"); });
  ::setitimer(ITIMER_REAL, &never, nullptr);
  ::sigaction(SIGALRM, &before, nullptr);
  EXPECT_NE(text.find("no answer"), std::string::npos) << (text.empty() ? "it took itself for connected" : text);
}

TEST(StoreSocket, DescriptorThatIsNoBoundSocketIsRefused) {
  EXPECT_THROW(bound_port(-1), Error);
  EXPECT_THROW(bound_port(0), Error);
}

}  // namespace
}  // namespace cohort::dist
