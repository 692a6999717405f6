/// Our block of one float, filled from MuJoCo's state, everything else poisoned.
#pragma once
#include <algorithm>

#include "oracle.h"
#include "sim/kernels/step.h"

namespace cohort::sim::test {

/// Memory for our block of one float.
class Block {
 public:
  explicit Block(const ModelView& m) {
    const IntegerSizes n = integer_sizes(m);
    values_.assign(static_cast<std::size_t>(lay_out<ScalarLane>(m, nullptr, space)),
                   std::numeric_limits<float>::infinity());
    lay_out<ScalarLane>(m, values_.data(), space);
    groups_.resize(static_cast<std::size_t>(n.groups) + 1);
    cols_.resize(static_cast<std::size_t>(n.cols) + 1);
    start_.resize(static_cast<std::size_t>(n.start));
    bits_.resize(static_cast<std::size_t>(n.bits) + 1);
    space.c.group = groups_.data();
    space.s.cols = cols_.data();
    space.s.start = start_.data();
    space.s.bits = bits_.data();
  }
  void load(const ModelView& m, const mjData& d) {
    std::fill(values_.begin(), values_.end(), std::numeric_limits<float>::infinity());
    const auto copy = [](float* to, const double* from, int n) {
      for (int i = 0; i < n; ++i) to[i] = static_cast<float>(from[i]);
    };
    copy(space.w.q, d.qpos, m.nq);
    copy(space.w.v, d.qvel, m.nv);
    copy(space.w.act, d.act, m.na);
    copy(space.w.ctrl, d.ctrl, m.nu);
    copy(space.w.applied, d.qfrc_applied, m.nv);
    copy(space.w.link_force, d.xfrc_applied, 6 * m.nlink);
    copy(space.w.mocap_pos, d.mocap_pos, 3 * m.nmocap);
    copy(space.w.mocap_quat, d.mocap_quat, 4 * m.nmocap);
    copy(space.w.warm, d.qacc_warmstart, m.nv);
  }
  BlockSpace<ScalarLane> space;

 private:
  std::vector<float> values_;
  std::vector<Group> groups_;
  std::vector<int> cols_, start_;
  std::vector<unsigned long long> bits_;
};

}  // namespace cohort::sim::test
