/// Names that are written out in the code of a task, and the list that they are looked up in. A name is compared letter
/// by letter once; afterwards it is known by where it lies.
#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::tasks {

/// A literal, "cube_pos": it lies where it is as long as the program runs.
class Name {
 public:
  consteval Name(const char* text) : text_(text) {}
  const char* text() const { return text_; }

 private:
  const char* text_;
};

class NameTable {
 public:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  void assign(std::vector<std::string> names) {
    names_ = std::move(names);
    literals_ = std::make_unique<std::atomic<const char*>[]>(names_.size());
  }
  const std::vector<std::string>& names() const { return names_; }

  /// The name's index, or kNone. next: the index that is likely, since a task names its fields in one order; afterwards
  /// the one behind. From any thread.
  std::size_t find(Name name, std::size_t& next) const {
    const auto is = [&](std::size_t i) { return literals_[i].load(std::memory_order_relaxed) == name.text(); };
    if (next < names_.size() && is(next)) return next++;
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (is(i)) return next = i + 1, i;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (names_[i] != std::string_view(name.text())) continue;
      literals_[i].store(name.text(), std::memory_order_relaxed);
      return next = i + 1, i;
    }
    return kNone;
  }

 private:
  std::vector<std::string> names_;
  std::unique_ptr<std::atomic<const char*>[]> literals_;  // by which each was asked for last; null: not yet
};

}  // namespace cohort::tasks
