/// The state of a task's environments as named arrays, and who copies it: a task names each array once, for saving and
/// for loading alike.
///
///   void visit_state(StateVisitor& state) override {
///     state.add("goal", goals_);               // std::vector<Vec3>, an element for each environment
///     state.add("level", walks_, &Walk::level);  // a member of a std::vector<Walk>
///   }
///
/// The first dimension of every array counts environments, and what a row holds is its environment's alone: rows may be
/// taken apart and put together over processes.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/array_view.h"

namespace cohort::tasks {

/// An array of a state, away from the task, row-major.
struct StateArray {
  std::string name;
  ElementType type = ElementType::kFloat32;
  std::vector<std::int64_t> shape;  ///< (n_envs, ...)
  std::vector<std::uint8_t> bytes;
};
using TaskState = std::vector<StateArray>;

class StateVisitor {
 public:
  /// Copies what is added to the end of `state`.
  static StateVisitor saver(TaskState& state, int n_envs) { return {nullptr, &state, n_envs, ""}; }
  /// Copies the arrays of `state` to where what is added lies. source: for messages.
  static StateVisitor loader(const TaskState& state, int n_envs, std::string source) {
    return {&state, nullptr, n_envs, std::move(source)};
  }

  bool loads() const { return from_ != nullptr; }
  /// Whether a state that is loaded has this array.
  bool has(const std::string& name) const;

  /// rows: (n_envs, ...) in host memory, with any strides; one without numbers is left out. Throws Error where a state
  /// that is loaded lacks the array, or holds one of another type or shape; and for a name that was added before.
  void add(const std::string& name, const ArrayView& rows);

  /// An element for each environment, or as many of them: numbers, bools as std::uint8_t, std::array of them.
  template <class T>
  void add(const std::string& name, std::vector<T>& of_all) {
    const std::int64_t width = n_envs_ > 0 ? std::ssize(of_all) / n_envs_ * kCount<T> : 0;
    add(name, rows_at(of_all.data(), kType<Scalar<T>>, width, width));
  }
  /// A part of a struct that every environment has: a pointer to a member, or a function from Struct& to a member's.
  template <class Struct, class Part>
  void add(const std::string& name, std::vector<Struct>& of_all, Part part) {
    using Member = std::remove_reference_t<std::invoke_result_t<Part, Struct&>>;
    static_assert(sizeof(Struct) % sizeof(Scalar<Member>) == 0);
    add(name, rows_at(&std::invoke(part, of_all.front()), kType<Scalar<Member>>, kCount<Member>,
                      static_cast<std::int64_t>(sizeof(Struct) / sizeof(Scalar<Member>))));
  }

  /// Throws Error naming the first array of a state that was loaded that nobody has asked for.
  void require_all_used() const;

 private:
  template <class T>
  struct ScalarOf {
    using type = T;
  };
  template <class T, std::size_t n>
  struct ScalarOf<std::array<T, n>> {
    using type = typename ScalarOf<T>::type;
  };
  template <class T, std::size_t n>
  struct ScalarOf<T[n]> {
    using type = typename ScalarOf<T>::type;
  };
  template <class T>
  using Scalar = typename ScalarOf<T>::type;
  template <class T>
  static constexpr std::int64_t kCount = static_cast<std::int64_t>(sizeof(T) / sizeof(Scalar<T>));
  /// Unsigned numbers of 32 and 64 bits are kept as the signed ones of the same bits.
  template <class T>
  static constexpr ElementType kType = [] {
    static_assert(std::is_arithmetic_v<T>, "a state holds numbers, and std::array of them");
    if constexpr (std::is_same_v<T, float>)
      return ElementType::kFloat32;
    else if constexpr (std::is_same_v<T, double>)
      return ElementType::kFloat64;
    else if constexpr (sizeof(T) == 8)
      return ElementType::kInt64;
    else if constexpr (sizeof(T) == 4)
      return ElementType::kInt32;
    else
      return ElementType::kUInt8;
  }();

  StateVisitor(const TaskState* from, TaskState* to, int n_envs, std::string source)
      : from_(from), to_(to), n_envs_(n_envs), source_(std::move(source)) {}
  /// (n_envs, width), `stride` elements from row to row.
  ArrayView rows_at(void* data, ElementType type, std::int64_t width, std::int64_t stride) const;

  const TaskState* from_;
  TaskState* to_;
  int n_envs_;
  std::string source_;
  std::vector<std::string> used_;
};

}  // namespace cohort::tasks
