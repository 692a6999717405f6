/// A task's arithmetic as a flat list of operations on vectors of float32, and what evaluates it for a block of
/// environments: one source for SIMD lanes on a CPU and for threads on a GPU, with the same bits (sim/kernels/lane/lane.h).
/// Truth is 1 and falsehood 0. tasks/terms/graph.h makes programs.
///
/// This header and those it includes must not pull in inline functions of the standard library: see lane.h.
#pragma once

#include "sim/kernels/lane/lane.h"
#include "tasks/terrain/terrain_height.h"

namespace cohort::tasks::terms {

enum class Op : int {
  // Where numbers come from.
  kLoad,     ///< out[i] = array a, value index[b + i]
  kMemory,   ///< out[i] = memory row a + i, as the last evaluation left it
  kUniform,  ///< out[i] in [0, 1), a function of the episode's key, stream a, the step and i only
  kNormal,   ///< likewise, of mean 0 and deviation 1
  // Element by element; operands are repeated where their stride is 0.
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kPower,  ///< a^b for a >= 0
  kMinimum,
  kMaximum,
  kAtan2,  ///< of (a, b)
  kLess,
  kAtMost,
  kEqual,
  kAnd,
  kOr,
  kSelect,  ///< a ? b : c
  kNot,
  kNegate,
  kAbsolute,
  kSquareRoot,
  kExponential,
  kLogarithm,
  kSine,
  kCosine,
  kTangent,
  kArcSine,
  kArcCosine,
  kHyperbolicTangent,
  kFloor,
  kSign,
  kFinite,
  // Of rows of m numbers: out[i] of row i.
  kSum,
  kSumOfSquares,
  kSmallest,
  kLargest,
  kDot,   ///< of rows of a and b
  kCopy,  ///< out[i] = a[i]
  kPick,  ///< out[i] = a[index[b + i]]
  // Of three and four numbers; a quaternion is w x y z.
  kCross,
  kRotate,         ///< vector b by quaternion a
  kRotateInverse,  ///< vector b into the frame of quaternion a
  kQuatMultiply,
  kGroundHeight,  ///< of rows of a, (x, y, ...) of m numbers: m, in the world; 0 without a height field
  // Where numbers go, in the lanes that are active.
  kStore,        ///< array b, value index[c + i], = a[i]
  kStoreWhere,   ///< the same in the lanes in which register m is true
  kStoreMemory,  ///< memory row b + i = a[i]
};

struct Instruction {
  Op op = Op::kCopy;
  int out = 0;        ///< first register of the result
  int n = 0;          ///< numbers of the result, rows for those that reduce
  int a = 0, sa = 1;  ///< first register of an operand and its stride, or as the operation says
  int b = 0, sb = 1;
  int c = 0, sc = 1;
  int m = 1;  ///< numbers of a row
};

enum class ArrayType : int { kFloat, kDouble, kInt32, kInt64, kUInt8 };

/// Numbers of all environments, where they are kept.
struct Array {
  void* data = nullptr;
  ArrayType type = ArrayType::kFloat;
  long long env_stride = 1, value_stride = 1;  ///< elements
};

/// What an evaluation reads and writes.
struct Evaluation {
  const Instruction* code = nullptr;
  int count = 0;
  const float* constants = nullptr;  ///< of the first registers
  int constant_count = 0;
  const int* index = nullptr;
  const Array* arrays = nullptr;
  float* memory = nullptr;                ///< [row][environment]
  const unsigned* keys = nullptr;         ///< [2][environment]: of the episodes
  const long long* steps = nullptr;       ///< control steps since the reset
  const unsigned char* active = nullptr;  ///< 1: the environment is evaluated; padded environments are not
  long long n_pad = 0;                    ///< environments from row to row of memory and keys
  sim::TerrainView ground{};              ///< without heights: level, at 0
};

/// Ten rounds of Philox4x32 (core/philox.h) in every lane; counter (c0, c1, c2, step), key (k0, k1).
template <int kWidth>
COHORT_LANE void philox_lanes(unsigned index, unsigned purpose, unsigned stream, const unsigned* step,
                              const unsigned* key0, const unsigned* key1, unsigned (*out)[kWidth]) {
  unsigned c0[kWidth], c1[kWidth], c2[kWidth], c3[kWidth], k0[kWidth], k1[kWidth];
  for (int l = 0; l < kWidth; ++l)
    c0[l] = index, c1[l] = purpose, c2[l] = stream, c3[l] = step[l], k0[l] = key0[l], k1[l] = key1[l];
  for (int round = 0; round < 10; ++round) {
    for (int l = 0; l < kWidth; ++l) {
      const unsigned long long p0 = 0xD2511F53ull * c0[l], p1 = 0xCD9E8D57ull * c2[l];
      c0[l] = static_cast<unsigned>(p1 >> 32) ^ c1[l] ^ k0[l];
      c1[l] = static_cast<unsigned>(p1);
      c2[l] = static_cast<unsigned>(p0 >> 32) ^ c3[l] ^ k1[l];
      c3[l] = static_cast<unsigned>(p0);
      k0[l] += 0x9E3779B9u;
      k1[l] += 0xBB67AE85u;
    }
  }
  for (int l = 0; l < kWidth; ++l) out[0][l] = c0[l], out[1][l] = c1[l], out[2][l] = c2[l], out[3][l] = c3[l];
}

/// Of one lane type; the functions of lanes are the simulator's.
namespace lanes {
using namespace sim;  // NOLINT: this namespace holds the two of them together, and nothing else

template <class L>
struct ProgramLane {
  using V = typename L::V;
  using M = typename L::M;
  using P = typename L::Ptr;  ///< addresses registers, one behind the other for this lane
  static constexpr int kWidth = L::kWidth;

  COHORT_LANE static V truth(M m) { return select(m, V(1.0f), V(0.0f)); }
  COHORT_LANE static M is_true(V v) { return v != V(0.0f); }
  /// |a| < 2^22.
  COHORT_LANE static V floor_of(V a) {
    const V r = sim::round(a);
    return r - truth(r > a);
  }

  COHORT_LANE static float element(const Array& array, long long at) {
    switch (array.type) {
      case ArrayType::kFloat:
        return static_cast<const float*>(array.data)[at];
      case ArrayType::kDouble:
        return static_cast<float>(static_cast<const double*>(array.data)[at]);
      case ArrayType::kInt32:
        return static_cast<float>(static_cast<const int*>(array.data)[at]);
      case ArrayType::kInt64:
        return static_cast<float>(static_cast<const long long*>(array.data)[at]);
      case ArrayType::kUInt8:
        return static_cast<float>(static_cast<const unsigned char*>(array.data)[at]);
    }
    return 0;
  }
  COHORT_LANE static V load_of(const Array& array, int value, int first) {
    if (array.type == ArrayType::kFloat && array.env_stride == 1)
      return load_anywhere(static_cast<const float*>(array.data) + value * array.value_stride + first,
                           static_cast<V*>(nullptr));
    V v(0.0f);
    for (int l = 0; l < kWidth; ++l)
      set_lane(v, l, element(array, value * array.value_stride + (first + l) * array.env_stride));
    return v;
  }
  /// As load_of, of the lanes of `active` only: others may lie beyond the array's end.
  COHORT_LANE static V load_active(const Array& array, int value, int first, unsigned active) {
    V v(0.0f);
    for (unsigned left = active; left != 0; left &= left - 1) {
      const int l = sim::lowest_bit(left);
      set_lane(v, l, element(array, value * array.value_stride + (first + l) * array.env_stride));
    }
    return v;
  }
  COHORT_LANE static void store_to(const Array& array, int value, int first, unsigned active, V v) {
    for (unsigned left = active; left != 0; left &= left - 1) {
      const int l = sim::lowest_bit(left);
      const long long at = value * array.value_stride + (first + l) * array.env_stride;
      const float x = get_lane(v, l);
      switch (array.type) {
        case ArrayType::kFloat:
          static_cast<float*>(array.data)[at] = x;
          break;
        case ArrayType::kDouble:
          static_cast<double*>(array.data)[at] = static_cast<double>(x);
          break;
        case ArrayType::kInt32:
          static_cast<int*>(array.data)[at] = static_cast<int>(x);
          break;
        case ArrayType::kInt64:
          static_cast<long long*>(array.data)[at] = static_cast<long long>(x);
          break;
        case ArrayType::kUInt8:
          static_cast<unsigned char*>(array.data)[at] = static_cast<unsigned char>(x);
          break;
      }
    }
  }

  /// Four words of 32 random bits for each lane.
  COHORT_LANE static void draw(const Evaluation& e, int first, int stream, int index, unsigned (*words)[kWidth]) {
    constexpr unsigned kPurpose = 6;  // RandomPurpose::kEnvironment
    unsigned step[kWidth], key0[kWidth], key1[kWidth];
    for (int l = 0; l < kWidth; ++l) {
      step[l] = static_cast<unsigned>(e.steps[first + l]);
      key0[l] = e.keys[first + l];
      key1[l] = e.keys[e.n_pad + first + l];
    }
    philox_lanes<kWidth>(static_cast<unsigned>(index), kPurpose, static_cast<unsigned>(stream), step, key0, key1,
                         words);
  }
  COHORT_LANE static V share(const unsigned* words) {
    V v(0.0f);
    for (int l = 0; l < kWidth; ++l) set_lane(v, l, static_cast<float>(words[l] >> 8) * (1.0f / 16777216.0f));
    return v;
  }

  COHORT_KERNEL static void uniform(const Evaluation& e, const Instruction& in, int first, P out) {
    unsigned words[4][kWidth];
    for (int i = 0; i < in.n; ++i) {
      if (i % 4 == 0) draw(e, first, in.a, i / 4, words);
      out[i] = share(words[i % 4]);
    }
  }
  /// Box and Muller, 1958.
  COHORT_KERNEL static void normal(const Evaluation& e, const Instruction& in, int first, P out) {
    unsigned words[4][kWidth];
    for (int i = 0; i < in.n; ++i) {
      if (i % 2 == 0) draw(e, first, in.a, i / 2, words);
      // In (0, 1].
      const V u = share(words[2 * (i % 2)]) + V(1.0f / 16777216.0f), w = share(words[2 * (i % 2) + 1]);
      V s, c;
      sim::sincos(V(6.283185307f) * w, s, c);
      out[i] = sqrt(max(V(0.0f), V(-2.0f) * sim::log(u))) * c;
    }
  }

  template <class F>
  COHORT_LANE static void each(const Instruction& in, P r, F f) {
    const P out = r + in.out, a = r + in.a;
    for (int i = 0; i < in.n; ++i) out[i] = f(a[i]);
  }
  template <class F>
  COHORT_LANE static void each2(const Instruction& in, P r, F f) {
    const P out = r + in.out, a = r + in.a, b = r + in.b;
    for (int i = 0, x = 0, y = 0; i < in.n; ++i, x += in.sa, y += in.sb) out[i] = f(a[x], b[y]);
  }
  template <class F>
  COHORT_LANE static void reduce(const Instruction& in, P r, F f) {
    for (int i = 0; i < in.n; ++i) {
      const P a = r + in.a + i * in.m;
      V sum = a[0];
      for (int j = 1; j < in.m; ++j) sum = f(sum, a[j]);
      r[in.out + i] = sum;
    }
  }
  template <class Out, class A, class B>
  COHORT_LANE static void cross(Out out, A a, B b) {
    const V x = a[1] * b[2] - a[2] * b[1], y = a[2] * b[0] - a[0] * b[2], z = a[0] * b[1] - a[1] * b[0];
    out[0] = x, out[1] = y, out[2] = z;
  }
  /// v + 2 w (u x v) + 2 u x (u x v), u = q's vector part; sign -1: by the inverse.
  COHORT_LANE static void rotate(P out, P q, P v, float sign) {
    const V u[3] = {q[1], q[2], q[3]}, w = V(sign) * q[0];
    V t[3], s[3];
    cross(t, u, v);
    for (V& x : t) x = x + x;
    cross(s, u, t);
    for (int i = 0; i < 3; ++i) out[i] = v[i] + w * t[i] + s[i];
  }
  COHORT_LANE static void quat_multiply(P out, P a, P b) {
    const V w = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3];
    const V x = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2];
    const V y = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1];
    const V z = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0];
    out[0] = w, out[1] = x, out[2] = y, out[3] = z;
  }

  /// The environments from `first` on, in the lanes of `active`. r: as many registers as the program needs.
  COHORT_DEVICE static void run(const Evaluation& e, int first, unsigned active, P r) {
    constexpr unsigned kAll = kWidth >= 32 ? ~0u : (1u << kWidth) - 1;
    for (int i = 0; i < e.constant_count; ++i) r[i] = V(e.constants[i]);
    for (int at = 0; at < e.count; ++at) {
      const Instruction& in = e.code[at];
      // What draws has the number of its stream there, which is no register's.
      const bool draws = in.op == Op::kUniform || in.op == Op::kNormal;
      const P out = r + in.out, a = r + (draws ? 0 : in.a);
      switch (in.op) {
        case Op::kLoad: {
          const Array& array = e.arrays[in.a];
          for (int i = 0; i < in.n; ++i)
            out[i] = active == kAll ? load_of(array, e.index[in.b + i], first)
                                    : load_active(array, e.index[in.b + i], first, active);
          break;
        }
        case Op::kMemory:
          for (int i = 0; i < in.n; ++i)
            out[i] = load_anywhere(e.memory + (in.a + i) * e.n_pad + first, static_cast<V*>(nullptr));
          break;
        case Op::kUniform:
          uniform(e, in, first, out);
          break;
        case Op::kNormal:
          normal(e, in, first, out);
          break;
        case Op::kAdd:
          each2(in, r, [](V x, V y) { return x + y; });
          break;
        case Op::kSubtract:
          each2(in, r, [](V x, V y) { return x - y; });
          break;
        case Op::kMultiply:
          each2(in, r, [](V x, V y) { return x * y; });
          break;
        case Op::kDivide:
          each2(in, r, [](V x, V y) { return x / y; });
          break;
        case Op::kPower:
          each2(in, r, [](V x, V y) {
            const M positive = x > V(1e-30f);
            return select(positive, sim::exp(y * sim::log(select(positive, x, V(1.0f)))), truth(y == V(0.0f)));
          });
          break;
        case Op::kMinimum:
          each2(in, r, [](V x, V y) { return min(x, y); });
          break;
        case Op::kMaximum:
          each2(in, r, [](V x, V y) { return max(x, y); });
          break;
        case Op::kAtan2:
          each2(in, r, [](V y, V x) { return sim::atan2(y, x); });
          break;
        case Op::kLess:
          each2(in, r, [](V x, V y) { return truth(x < y); });
          break;
        case Op::kAtMost:
          each2(in, r, [](V x, V y) { return truth(x <= y); });
          break;
        case Op::kEqual:
          each2(in, r, [](V x, V y) { return truth(x == y); });
          break;
        case Op::kAnd:
          each2(in, r, [](V x, V y) { return truth(is_true(x) & is_true(y)); });
          break;
        case Op::kOr:
          each2(in, r, [](V x, V y) { return truth(is_true(x) | is_true(y)); });
          break;
        case Op::kSelect: {
          const P b = r + in.b, c = r + in.c;
          for (int i = 0, x = 0, y = 0, z = 0; i < in.n; ++i, x += in.sa, y += in.sb, z += in.sc)
            out[i] = select(is_true(a[x]), b[y], c[z]);
          break;
        }
        case Op::kNot:
          each(in, r, [](V x) { return truth(flip(is_true(x))); });
          break;
        case Op::kNegate:
          each(in, r, [](V x) { return -x; });
          break;
        case Op::kAbsolute:
          each(in, r, [](V x) { return abs(x); });
          break;
        case Op::kSquareRoot:
          each(in, r, [](V x) { return sqrt(x); });
          break;
        case Op::kExponential:
          each(in, r, [](V x) { return sim::exp(x); });
          break;
        case Op::kLogarithm:
          each(in, r, [](V x) { return sim::log(x); });
          break;
        case Op::kSine:
          each(in, r, [](V x) {
            V s, c;
            sim::sincos(x, s, c);
            return s;
          });
          break;
        case Op::kCosine:
          each(in, r, [](V x) {
            V s, c;
            sim::sincos(x, s, c);
            return c;
          });
          break;
        case Op::kTangent:
          each(in, r, [](V x) {
            V s, c;
            sim::sincos(x, s, c);
            return s / c;
          });
          break;
        case Op::kArcSine:
          each(in, r, [](V x) {
            x = sim::clip(x, V(-1.0f), V(1.0f));
            return sim::atan2(x, sqrt(V(1.0f) - x * x));
          });
          break;
        case Op::kArcCosine:
          each(in, r, [](V x) {
            x = sim::clip(x, V(-1.0f), V(1.0f));
            return sim::atan2(sqrt(V(1.0f) - x * x), x);
          });
          break;
        case Op::kHyperbolicTangent:
          each(in, r, [](V x) {
            const V size = V(1.0f) - V(2.0f) / (sim::exp(V(2.0f) * abs(x)) + V(1.0f));
            return select(x < V(0.0f), -size, size);
          });
          break;
        case Op::kFloor:
          each(in, r, [](V x) { return floor_of(x); });
          break;
        case Op::kSign:
          each(in, r, [](V x) { return truth(x > V(0.0f)) - truth(x < V(0.0f)); });
          break;
        case Op::kFinite:
          each(in, r, [](V x) { return truth(x - x == V(0.0f)); });
          break;
        case Op::kSum:
          reduce(in, r, [](V x, V y) { return x + y; });
          break;
        case Op::kSumOfSquares:
          for (int i = 0; i < in.n; ++i) {
            V sum(0.0f);
            for (int j = 0; j < in.m; ++j) sum = fma(a[i * in.m + j], a[i * in.m + j], sum);
            out[i] = sum;
          }
          break;
        case Op::kSmallest:
          reduce(in, r, [](V x, V y) { return min(x, y); });
          break;
        case Op::kLargest:
          reduce(in, r, [](V x, V y) { return max(x, y); });
          break;
        case Op::kDot:
          for (int i = 0; i < in.n; ++i) {
            V sum(0.0f);
            for (int j = 0; j < in.m; ++j) sum = fma(a[i * in.m + j], r[in.b + i * in.m + j], sum);
            out[i] = sum;
          }
          break;
        case Op::kCopy:
          for (int i = 0; i < in.n; ++i) out[i] = a[i];
          break;
        case Op::kPick:
          for (int i = 0; i < in.n; ++i) out[i] = a[e.index[in.b + i]];
          break;
        case Op::kCross:
          for (int i = 0; i < in.n; i += 3) cross(out + i, a + i * in.sa, r + in.b + i * in.sb);
          break;
        case Op::kRotate:
          for (int i = 0; i < in.n / 3; ++i) rotate(out + 3 * i, a + 4 * i * in.sa, r + in.b + 3 * i * in.sb, 1.0f);
          break;
        case Op::kRotateInverse:
          for (int i = 0; i < in.n / 3; ++i) rotate(out + 3 * i, a + 4 * i * in.sa, r + in.b + 3 * i * in.sb, -1.0f);
          break;
        case Op::kQuatMultiply:
          for (int i = 0; i < in.n; i += 4) quat_multiply(out + i, a + i * in.sa, r + in.b + i * in.sb);
          break;
        case Op::kGroundHeight:
          for (int i = 0; i < in.n; ++i)
            out[i] =
                e.ground.heights == nullptr ? V(0.0f) : sim::terrain_height(e.ground, a[i * in.m], a[i * in.m + 1]);
          break;
        case Op::kStore:
          for (int i = 0; i < in.n; ++i) store_to(e.arrays[in.b], e.index[in.c + i], first, active, a[i * in.sa]);
          break;
        case Op::kStoreWhere: {
          const unsigned where = active & lane_bits(is_true(r[in.m]));
          for (int i = 0; where != 0 && i < in.n; ++i)
            store_to(e.arrays[in.b], e.index[in.c + i], first, where, a[i * in.sa]);
          break;
        }
        case Op::kStoreMemory:
          for (int i = 0; i < in.n; ++i) {
            float* const row = e.memory + (in.b + i) * e.n_pad + first;
            if (active == kAll) {
              for (int l = 0; l < kWidth; ++l) row[l] = get_lane(a[i * in.sa], l);
            } else {
              for (unsigned left = active; left != 0; left &= left - 1) {
                const int l = sim::lowest_bit(left);
                row[l] = get_lane(a[i * in.sa], l);
              }
            }
          }
          break;
      }
    }
  }

  /// The active ones of [first, last), both multiples of 16.
  static void run_range(const Evaluation& e, int first, int last, void* registers) {
    const P r = static_cast<P>(registers);
    for (int env = first; env < last; env += kWidth) {
      unsigned active = 0;
      for (int l = 0; l < kWidth; ++l) active |= (e.active[env + l] != 0 ? 1u : 0u) << l;
      if (active != 0) run(e, env, active, r);
    }
  }
};

}  // namespace lanes
using lanes::ProgramLane;

/// run_range of a lane width, as a CPU has it.
using RunRange = void (*)(const Evaluation&, int first, int last, void* registers);
RunRange scalar_run_range();
/// nullptr where this build lacks the width (CMake's COHORT_LANES).
RunRange avx2_run_range();
RunRange avx512_run_range();

}  // namespace cohort::tasks::terms
