#include "dist/own_address.h"

#include <gtest/gtest.h>

namespace cohort::dist {
namespace {

TEST(OwnAddress, LoopbackIsThisMachine) {
  EXPECT_EQ(owner_of("127.0.0.1"), AddressOwner::kThisMachine);
  EXPECT_EQ(owner_of("localhost"), AddressOwner::kThisMachine);
}

TEST(OwnAddress, AnAddressThatNobodyHasIsAnothers) {
  EXPECT_EQ(owner_of("192.0.2.1"), AddressOwner::kAnother) << "RFC 5737: for documentation only";
}

TEST(OwnAddress, ANameThatCannotBeResolvedIsUnknown) {
  EXPECT_EQ(owner_of("no-such-host.invalid"), AddressOwner::kUnknown) << "RFC 2606: never registered";
}

TEST(OwnAddress, TheWayToAnotherMachineHasAnAddressOfThisOneAndTheWayToItselfNone) {
  EXPECT_EQ(own_address_towards("127.0.0.1"), "") << "only this machine reaches it";
  EXPECT_EQ(own_address_towards("no-such-host.invalid"), "");
  const std::string own = own_address_towards("192.0.2.1");
  if (own.empty()) GTEST_SKIP() << "needs a network interface beside loopback";
  EXPECT_EQ(owner_of(own), AddressOwner::kThisMachine) << own;
}

}  // namespace
}  // namespace cohort::dist
