/// A lane policy of one float that counts what is done with it: the kernels' own source tells its operations and its
/// accesses to the workspace. The results have the scalar lane's bits.
#pragma once
#include <vector>

// As a GPU's thread computes them, and as one lane has to.
#define COHORT_SEARCHES_IN_PLACE
#include "sim/kernels/lane/lane.h"

namespace cohort::sim {

/// What a stage did.
struct Work {
  long long arithmetic = 0;         ///< +, -, *, fma, an exponent's or a mantissa's bits
  long long choices = 0;            ///< comparisons, selections, minima and maxima
  long long divisions = 0;          ///< and square roots
  long long loads = 0, stores = 0;  ///< of the workspace

  /// As one number: a division for four.
  double units() const { return static_cast<double>(arithmetic + choices + 4 * divisions + loads + stores); }
  Work& operator+=(const Work& other) {
    arithmetic += other.arithmetic, choices += other.choices, divisions += other.divisions;
    loads += other.loads, stores += other.stores;
    return *this;
  }
};

/// Where operations are counted, and which memory is the workspace. One program, one thread.
struct Counter {
  Work outside;                                 ///< of any stage
  Work* now = &outside;                         ///< of the present stage
  const char *begin = nullptr, *end = nullptr;  ///< the workspace
  std::vector<char>* touched = nullptr;         ///< by value of the workspace: was read or written

  bool holds(const void* at) const {
    const char* const p = static_cast<const char*>(at);
    return p >= begin && p < end;
  }
};
inline Counter counter;

/// A float. One in the workspace is reached through CountedPointer, which counts a load; an assignment makes a store of
/// it, and one that also reads (+=) counts both.
struct Counted {
  float value;

  Counted() = default;
  Counted(float v) : value(v) {}
  Counted(const Counted& other) = default;
  Counted& operator=(const Counted& other) {
    value = other.value;
    if (counter.holds(this)) ++counter.now->stores, --counter.now->loads;
    return *this;
  }
  explicit operator int() const { return static_cast<int>(value); }
  Counted& operator+=(Counted b) { return change(value + b.value); }
  Counted& operator-=(Counted b) { return change(value - b.value); }
  Counted& operator*=(Counted b) { return change(value * b.value); }

 private:
  Counted& change(float to) {
    ++counter.now->arithmetic;
    value = to;
    if (counter.holds(this)) ++counter.now->stores;
    return *this;
  }
};
static_assert(sizeof(Counted) == sizeof(float));

inline Counted calculated(float x) {
  ++counter.now->arithmetic;
  return x;
}
inline bool chosen(bool x) {
  ++counter.now->choices;
  return x;
}
inline Counted divided(float x) {
  ++counter.now->divisions;
  return x;
}
inline Counted operator+(Counted a, Counted b) {
  return calculated(a.value + b.value);
}
inline Counted operator-(Counted a, Counted b) {
  return calculated(a.value - b.value);
}
inline Counted operator*(Counted a, Counted b) {
  return calculated(a.value * b.value);
}
inline Counted operator/(Counted a, Counted b) {
  return divided(a.value / b.value);
}
inline Counted operator-(Counted a) {
  return -a.value;
}
inline bool operator<(Counted a, Counted b) {
  return chosen(a.value < b.value);
}
inline bool operator>(Counted a, Counted b) {
  return chosen(a.value > b.value);
}
inline bool operator<=(Counted a, Counted b) {
  return chosen(a.value <= b.value);
}
inline bool operator>=(Counted a, Counted b) {
  return chosen(a.value >= b.value);
}
inline bool operator==(Counted a, Counted b) {
  return chosen(a.value == b.value);
}
inline bool operator!=(Counted a, Counted b) {
  return chosen(a.value != b.value);
}
inline Counted fma(Counted a, Counted b, Counted c) {
  return calculated(fma(a.value, b.value, c.value));
}
inline Counted sqrt(Counted a) {
  return divided(sqrt(a.value));
}
inline Counted abs(Counted a) {
  return abs(a.value);
}
inline Counted select(bool m, Counted a, Counted b) {
  return chosen(m) ? a : b;
}
inline Counted min(Counted a, Counted b) {
  ++counter.now->choices;
  return min(a.value, b.value);
}
inline Counted max(Counted a, Counted b) {
  ++counter.now->choices;
  return max(a.value, b.value);
}
inline Counted scale_exponent(Counted x, Counted n) {
  return calculated(scale_exponent(x.value, n.value));
}
inline Counted split_exponent(Counted x, Counted& mantissa) {
  counter.now->arithmetic += 2;
  return split_exponent(x.value, mantissa.value);
}
inline Counted load(const float* p, Counted*) {
  return *p;
}
inline Counted load_anywhere(const float* p, Counted*) {
  return *p;
}
inline void store(float* p, Counted a) {
  *p = a.value;
}
inline Counted gather(const float* p, const int* from, Counted*) {
  return p[*from];
}
inline void scatter(float* p, const int* to, Counted a) {
  p[*to] = a.value;
}
inline float get_lane(const Counted& a, int) {
  return a.value;
}
inline float largest_lane(Counted a) {
  return a.value;
}
inline void set_lane(Counted& a, int, float x) {
  a = Counted(x);
}
inline void add_to_lane(Counted& a, int, float x) {
  a += Counted(x);
}

/// Addresses the workspace.
struct CountedPointer {
  Counted* at = nullptr;

  CountedPointer() = default;
  CountedPointer(Counted* p) : at(p) {}
  Counted& operator[](int i) const {
    ++counter.now->loads;
    if (counter.touched != nullptr && counter.holds(at + i)) {
      (*counter
            .touched)[static_cast<std::size_t>(reinterpret_cast<const char*>(at + i) - counter.begin) / sizeof(float)] =
          1;
    }
    return at[i];
  }
};
inline CountedPointer operator+(CountedPointer p, int n) {
  return {p.at + n};
}

struct CountingLane {
  using V = Counted;
  using M = bool;
  using Ptr = CountedPointer;
  static constexpr int kWidth = 1;
};

}  // namespace cohort::sim
