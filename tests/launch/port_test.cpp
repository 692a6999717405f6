// The port of the job's store, and the rendezvous of nodes that nothing is exchanged between.
#include "launch/port.h"

#include <cstdint>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/error.h"
#include "core/message_of.h"
#include "launch/rendezvous.h"
#include "support/process.h"

namespace cohort::launch {
namespace {
using cohort::testing::contains;

int listen_on(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(fd, 8) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

TEST(Port, AChosenPortIsReservedYetRankZeroMayListenOnIt) {
  const PortReservation port("127.0.0.1", 0);
  ASSERT_GT(port.port(), 0);
  const int rank0 = listen_on(port.port());  // as c10d's store does, by its own socket
  EXPECT_GE(rank0, 0);
  close(rank0);
  const int store = port.bind_store_socket();  // as our rank 0 does, by the inherited one
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ASSERT_EQ(getsockname(store, reinterpret_cast<sockaddr*>(&address), &size), 0);
  EXPECT_EQ(ntohs(address.sin_port), port.port());
  EXPECT_EQ(address.sin_addr.s_addr, htonl(INADDR_LOOPBACK)) << "the store of one node listens on loopback only";
  EXPECT_EQ(listen(store, 8), 0);
  close(store);
}

TEST(Port, NoOtherProcessIsGivenAReservedPort) {
  const PortReservation port("127.0.0.1", 0);
  for (int i = 0; i < 200; ++i) {
    const PortReservation other("127.0.0.1", 0);
    ASSERT_NE(other.port(), port.port());
  }
  const int fd = socket(AF_INET, SOCK_STREAM, 0);  // a careless program without SO_REUSEADDR
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port.port()));
  EXPECT_NE(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  close(fd);
}

TEST(Port, APortInUseIsNamedAndAFreeOneOffered) {
  const PortReservation chosen("127.0.0.1", 0);
  const int listener = listen_on(chosen.port());
  ASSERT_GE(listener, 0);
  const std::string message = message_of([&] { PortReservation("127.0.0.1", chosen.port()); });
  EXPECT_TRUE(contains(message, "port " + std::to_string(chosen.port()) + " is in use")) << message;
  EXPECT_TRUE(contains(message, "pass --master_port=")) << message;
  close(listener);
}

TEST(Port, WithSeveralNodesAFreePortIsOfferedForAllOfThem) {
  const PortReservation chosen("127.0.0.1", 0);
  const int listener = listen_on(chosen.port());
  ASSERT_GE(listener, 0);
  const std::string message = message_of([&] { PortReservation("127.0.0.1", chosen.port(), StoreReach::kAllNodes); });
  EXPECT_TRUE(contains(message, " on all nodes")) << message;
  EXPECT_FALSE(contains(message, "leave the flag out")) << "nobody would tell the other nodes: " << message;
  close(listener);
}

TEST(Port, AnAddressOfThisMachineIsKnownWhateverItsForm) {
  for (const char* own : {"localhost", "127.0.0.1", "127.0.1.1"}) EXPECT_TRUE(is_own_address(own)) << own;
  for (const char* other : {"192.0.2.7", "node.invalid", ""}) EXPECT_FALSE(is_own_address(other)) << other;
}

TEST(Port, TwoAgentsWithTheSamePortAreToldApartEvenBeforeAnyoneListens) {
  const int number = PortReservation("127.0.0.1", 0).port();
  const PortReservation first("127.0.0.1", number);
  EXPECT_TRUE(contains(message_of([&] { PortReservation("127.0.0.1", number); }), "by another cohort launch"));
}

TEST(Port, AnAddressOfAnotherMachineIsRefused) {
  EXPECT_TRUE(contains(message_of([] { PortReservation("192.0.2.7", 0); }), "is not an address of this machine"));
  EXPECT_TRUE(contains(message_of([] { PortReservation("127.0.0.1", 70000); }), "ports go from 1 to 65535"));
}

/// True when somebody listens at this IPv4 address.
bool answers(std::uint32_t address, int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  to.sin_addr.s_addr = htonl(address);
  const bool connected = connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  close(fd);
  return connected;
}

TEST(Port, UnderAnyNameOfThisMachineTheStoreListensOnLoopbackOnly) {
  std::vector<std::string> names = {"127.0.0.1", "localhost", "127.0.0.2", "0.0.0.0"};
  if (cohort::testing::has_ipv6_loopback()) names.insert(names.end(), {"::1", "[::1]"});
  for (const std::string& name : names) {
    const PortReservation port(name, 0);
    const int store = port.bind_store_socket();
    ASSERT_EQ(listen(store, 8), 0) << name;
    EXPECT_TRUE(answers(INADDR_LOOPBACK, port.port())) << name;
    EXPECT_FALSE(answers(INADDR_LOOPBACK + 1, port.port())) << name;
    close(store);
  }
}

// Not under GCC's undefined-behaviour sanitizer: it opens a pipe to see whether an object's memory can be read, and
// takes a pipe that it cannot have for a bad object.
#if !defined(__SANITIZE_ADDRESS__)
TEST(Port, WithoutDescriptorsNoOtherLauncherIsBlamed) {
  const int number = PortReservation("127.0.0.1", 0).port();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const std::string message = message_of([&] { PortReservation("127.0.0.1", number); });
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(contains(message, "Too many open files")) << message;
  EXPECT_FALSE(contains(message, "in use")) << message;
}
#endif

TEST(Rendezvous, OneNodeHasAllRanksAndItsStoreOnLoopback) {
  LaunchSettings settings;
  settings.ranks = 2;
  const auto rendezvous = make_rendezvous(settings);
  const Meeting meeting = rendezvous->meet(0);
  EXPECT_EQ(meeting.nodes, 1);
  EXPECT_EQ(meeting.first_rank, 0);
  EXPECT_EQ(meeting.world_size, 2);
  EXPECT_EQ(rendezvous->meet(1).store_port, meeting.store_port) << "the port is kept over restarts";
}

TEST(Rendezvous, StaticNodesHaveTheRanksOfTheirNumberAndNodeZeroTheStore) {
  LaunchSettings settings;
  settings.ranks = 2;
  settings.nodes = 3;
  settings.master_port = PortReservation("127.0.0.1", 0).port();
  settings.node_rank = 2;
  settings.master_addr = "192.0.2.7";  // another machine's, which only node 0 minds
  const Meeting last = make_rendezvous(settings)->meet(0);
  EXPECT_EQ(last.node_rank, 2);
  EXPECT_EQ(last.first_rank, 4);
  EXPECT_EQ(last.world_size, 6);
  EXPECT_EQ(last.store_address, "192.0.2.7");
  settings.node_rank = 0;
  EXPECT_TRUE(contains(message_of([&] { make_rendezvous(settings); }), "this agent has --node-rank=0"));
  settings.node_rank = 3;
  EXPECT_TRUE(contains(message_of([&] { make_rendezvous(settings); }), "nodes are numbered from 0 to 2"));
  settings.node_rank = 0;
  settings.master_addr = "127.0.0.2";
  const auto node0 = make_rendezvous(settings);
  const int store = node0->bind_store_socket();
  ASSERT_EQ(listen(store, 8), 0);
  EXPECT_TRUE(answers(INADDR_LOOPBACK + 1, settings.master_port)) << "at the address that was given";
  EXPECT_FALSE(answers(INADDR_LOOPBACK, settings.master_port)) << "and at no other";
  close(store);
}

}  // namespace
}  // namespace cohort::launch
