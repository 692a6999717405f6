/// Tests that need a pseudo-terminal, which not every container gives out.
#pragma once
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

namespace cohort::test {

inline bool gives_terminals() {
  int master = -1, slave = -1;
  if (::openpty(&master, &slave, nullptr, nullptr, nullptr) != 0) return false;
  ::close(master);
  ::close(slave);
  return true;
}

}  // namespace cohort::test

#define SKIP_WITHOUT_TERMINALS() \
  if (!cohort::test::gives_terminals()) GTEST_SKIP() << "no pseudo-terminal can be opened here: is /dev/pts mounted?"
