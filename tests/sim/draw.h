/// Random attributes of XML elements as tables: a value is described once and drawn whenever it is needed.
#pragma once
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "core/philox.h"
#include "xml_tree.h"

namespace cohort::sim::test {

/// Random numbers one after the other; the same for the same seed everywhere.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed, RandomPurpose::kTest, 0, 0) {}

  /// In [low, high).
  double uniform(double low, double high) { return low + (high - low) * static_cast<double>(random_.uniform(next_++)); }
  bool chance(double probability) { return uniform(0, 1) < probability; }
  /// In [0, n).
  int below(int n) { return static_cast<int>(random_.below(next_++, static_cast<std::uint32_t>(n))); }
  template <class T>
  const T& any(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(below(static_cast<int>(list.size())))];
  }
  /// One of two at least that is not `other`.
  const std::string& any_but(const std::vector<std::string>& list, const std::string& other);
  template <class T>
  T pick(std::initializer_list<T> list) {
    return list.begin()[below(static_cast<int>(list.size()))];
  }

 private:
  RandomStream random_;
  std::uint64_t next_ = 0;
};

/// The text of an attribute, drawn anew by every call.
using Value = std::function<std::string(Draw&)>;

struct Interval {
  double low, high;
};

Value fixed(const std::string& text);
/// A number of four digits in [low, high), or several, separated by spaces.
Value number(double low, double high);
Value numbers(int count, double low, double high);
/// A number of each interval.
Value tuple(std::vector<Interval> intervals);
Value one_of(std::vector<std::string> texts);
/// `first` with this probability, else `second`.
Value either(double probability, Value first, Value second);

/// A constraint's solref, in either of its two forms.
Value solref();
Value solimp();

/// An attribute that is there with a probability.
struct Attribute {
  double probability;
  const char* name;
  Value value;
};
using Attributes = std::vector<Attribute>;

void draw_attributes(Draw& draw, const Attributes& table, Element& element);

}  // namespace cohort::sim::test
