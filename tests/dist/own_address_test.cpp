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

}  // namespace
}  // namespace cohort::dist
