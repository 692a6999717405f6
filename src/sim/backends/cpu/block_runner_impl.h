/// The body of a lane width's build. Included once by each of block_runner_*.cpp, which are compiled with the
/// instructions of their width; includes nothing of the standard library (see kernels/lane/lane.h).
#pragma once
#include "sim/backends/cpu/block_order.h"
#include "sim/backends/cpu/block_runner.h"
#include "sim/kernels/smooth/inverse_weights.h"
#include "sim/kernels/step.h"

namespace cohort::sim {

template <class L>
struct RunnerOf {
  using V = typename L::V;
  static unsigned long long round_up(unsigned long long n) { return (n + 63) / 64 * 64; }

  static unsigned long long bytes_of(int values) {
    return round_up(static_cast<unsigned long long>(values) * sizeof(V));
  }
  static unsigned long long workspace_bytes(const ModelView& m) {
    BlockSpace<L> b;
    const ConstraintCapacity most = constraint_capacity(m, L::kWidth);
    const IntegerSizes n = integer_sizes(m, most);
    return bytes_of(lay_out<L>(m, most, typename L::Ptr{}, b)) +
           round_up(sizeof(Group) * static_cast<unsigned long long>(n.groups)) +
           round_up(sizeof(int) * static_cast<unsigned long long>(n.cols + n.start)) +
           round_up(sizeof(unsigned long long) * static_cast<unsigned long long>(n.bits));
  }

  static void prepare(const ModelView& m, void* workspace, BlockSpace<L>& b) {
    // A look at every pair, which every call takes: once.
    const ConstraintCapacity most = constraint_capacity(m, L::kWidth);
    const IntegerSizes n = integer_sizes(m, most);
    char* at = static_cast<char*>(workspace);
    at += bytes_of(lay_out<L>(m, most, reinterpret_cast<V*>(at), b));
    b.c.group = reinterpret_cast<Group*>(at);
    at += round_up(sizeof(Group) * static_cast<unsigned long long>(n.groups));
    b.s.cols = reinterpret_cast<int*>(at), b.s.start = b.s.cols + n.cols;
    at += round_up(sizeof(int) * static_cast<unsigned long long>(n.cols + n.start));
    b.s.bits = reinterpret_cast<unsigned long long*>(at);
  }

  /// BlockOrder::sort's, as measured: a contact's work, and that of each value that is gathered. A step of RK4 computes
  /// four times what it reads once.
  static int price_of_order(const ModelView& m, const DataView& d) {
    const int applied = (d.applied != nullptr ? m.nv : 0) + (d.link_force != nullptr ? 6 * m.nlink : 0);
    const int values = m.nq + 3 * m.nv + m.na + m.nu + applied;
    return (64 + values) / (m.option.integrator == kRk4 ? 4 : 1);
  }
  /// Steps that environments keep their places for.
  static constexpr int kStepsInOrder = 8;
  static void step(const ModelView& m, const DataView& d, int first, int last, int steps, void* workspace) {
    BlockSpace<L> b;
    prepare(m, workspace, b);
    BlockOrder order;
    const int price = price_of_order(m, d);
    for (int begin = first; begin < last; begin += BlockOrder::kMost) {
      const int count = last - begin < BlockOrder::kMost ? last - begin : BlockOrder::kMost;
      for (int done = 0; done < steps; done += kStepsInOrder) {
        const int now = steps - done < kStepsInOrder ? steps - done : kStepsInOrder;
        const int* const envs = L::kWidth > 1 ? order.sort(d.contact_count, begin, count, L::kWidth, price) : nullptr;
        for (int i = 0; i < count; i += L::kWidth) {
          for (int s = 0; s < now; ++s) {
            step_block<L>(m, d, {begin + i, envs != nullptr ? envs + i : nullptr}, b, done + s + 1 == steps);
          }
        }
      }
    }
  }
  static void inverse_weights(const ModelView& m, const DataView& d, int env, void* workspace, float* inverse,
                              float* out) {
    BlockSpace<L> b;
    prepare(m, workspace, b);
    Workspace<L>& w = b.w;
    if (m.varies) load_parameters<L>(m, d, {env, nullptr}, w);
    for (int i = 0; i < 3 * m.nmocap; ++i) w.mocap_pos[i] = V(0.0f);
    for (int i = 0; i < 4 * m.nmocap; ++i) w.mocap_quat[i] = V(i % 4 == 0 ? 1.0f : 0.0f);
    sim::inverse_weights<L>(m, w, inverse, out);
  }
  static void forward(const ModelView& m, const DataView& d, int first, int last, void* workspace) {
    BlockSpace<L> b;
    prepare(m, workspace, b);
    for (int env = first; env < last; env += L::kWidth) forward_block<L>(m, d, env, b);
  }
};

}  // namespace cohort::sim
