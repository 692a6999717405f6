/// Expressions of a task: typed vectors of float32 over what is known of an environment, hash-consed, so that what
/// several terms need is computed once; and the flat program that they become (tasks/terms/program.h).
///
///   Graph g;
///   const Expr error = norm(g, subtract(g, target, position));      // shape (1)
///   g.store(rewards, 0, exp(g, negate(g, error)));
///   const Program program = g.compile();
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "tasks/terms/program.h"

namespace cohort::tasks::terms {

/// A value: `rows` rows of `cols` numbers. A plain number is 1 x 1, a vector 1 x n; n links have n rows of 3.
struct Expr {
  int node = -1;
  int rows = 1, cols = 1;
  bool truth = false;  ///< every number is 0 or 1
  int size() const { return rows * cols; }
  bool is_number() const { return size() == 1; }
};

/// "3", "4 x 3", of a message.
std::string shape_text(const Expr& e);

/// What an evaluation needs besides the arrays.
struct Program {
  std::vector<Instruction> code;
  std::vector<float> constants;
  std::vector<int> index;
  int registers = 0;  ///< of a lane type's size
  int memory_rows = 0;
  /// Evaluation of this program; its other members are the caller's.
  Evaluation evaluation() const;
};

/// A part of an environment's memory: rows of the program's memory that have a name in a saved state.
struct MemorySlot {
  std::string name;
  int first = 0, rows = 1;
};

class Graph {
 public:
  Expr constant(float value) { return constant(std::vector<float>{value}); }
  Expr constant(std::vector<float> values);
  /// Values of an array that an evaluation gives (Evaluation::arrays), as rows of `cols`.
  Expr load(int array, std::vector<int> values, int cols = 0);
  /// n numbers in [0, 1), or of a normal distribution, new in every step. name: two of the same name are the same
  /// numbers; who draws twice takes two names.
  Expr uniform(const std::string& name, int n);
  Expr normal(const std::string& name, int n);

  /// Numbers that last from one evaluation to the next: what was kept() of them; in the first evaluation after a reset
  /// they are what the episode before has left, which started() tells. name: unique, of a saved state.
  Expr memory(const std::string& name, int rows, int cols);
  /// What the memory is from the next evaluation on. Each memory is kept once.
  void keep(const Expr& memory, const Expr& value);
  bool is_kept(const Expr& memory) const;
  /// True in the first evaluation after a reset, which `step` (a number) tells by being 0.
  Expr started(const Expr& step) { return compare(Op::kEqual, step, constant(0)); }

  /// Element by element; a number, or a single row, is repeated. Throws Error for other shapes.
  Expr binary(Op op, Expr a, Expr b);
  Expr compare(Op op, Expr a, Expr b);
  Expr unary(Op op, const Expr& a);
  Expr select(Expr condition, Expr a, Expr b);
  /// Of each row: kSum, kSumOfSquares, kSmallest, kLargest.
  Expr reduce(Op op, const Expr& a);
  Expr dot(Expr a, Expr b);
  /// Columns of every row.
  Expr columns(const Expr& a, const std::vector<int>& which);
  /// Numbers behind each other, as one row.
  Expr join(const std::vector<Expr>& parts);
  /// The same numbers in another shape.
  Expr reshape(Expr a, int rows, int cols);
  Expr cross(Expr a, Expr b);
  Expr rotate(Expr quat, Expr vector, bool inverse);
  Expr quat_multiply(Expr a, Expr b);
  Expr quat_inverse(const Expr& q);
  /// m, below each row's point (x, y, ...).
  Expr ground_height(const Expr& points);
  /// All rows behind each other.
  Expr flat(const Expr& a) { return reshape(a, 1, a.size()); }

  Expr add(Expr a, Expr b) { return binary(Op::kAdd, a, b); }
  Expr subtract(Expr a, Expr b) { return binary(Op::kSubtract, a, b); }
  Expr multiply(Expr a, Expr b) { return binary(Op::kMultiply, a, b); }

  /// Writes a value's numbers to an array, from value `first` on.
  void store(int array, int first, const Expr& value);
  /// The same where a condition (a number) holds, after everything was read.
  void store_where(const Expr& condition, int array, int first, const Expr& value);
  /// Keeps a memory although nothing that is stored depends on it.
  void require(const Expr& memory) { required_.push_back(memory.node); }
  /// The value of what does not depend on an environment; empty where it does.
  std::vector<float> constant_value(const Expr& e) const;
  /// What is kept of the memories that what was stored depends on.
  const std::vector<MemorySlot>& memories() const { return slots_; }

  /// Of everything that was stored, and the memories that it depends on. Throws Error for a memory that is read and not
  /// kept.
  Program compile();

 private:
  struct Node {
    Op op = Op::kCopy;
    bool is_constant = false;
    int size = 1, m = 1, a = 0;
    std::vector<int> inputs, index;
    std::vector<float> values;
    auto key() const { return std::tie(op, is_constant, size, m, a, inputs, index, values); }
    friend bool operator<(const Node& x, const Node& y) { return x.key() < y.key(); }
  };
  struct Store {
    int array = 0, first = 0, node = 0;
    int where = -1;  ///< node of the condition
  };
  struct Memory {
    std::string name;
    int node = 0, kept = -1, size = 1;
  };
  int add_node(Node node);
  Expr expand(const Expr& a, int rows, int cols);
  /// Stride of an operand in a result of this size.
  int stride(int node, int size) const { return nodes_[static_cast<std::size_t>(node)].size == 1 && size != 1 ? 0 : 1; }

  std::vector<Node> nodes_;
  std::map<Node, int> known_;
  std::vector<Store> stores_;
  std::vector<int> required_;
  std::vector<Memory> memory_;
  std::vector<MemorySlot> slots_;
};

}  // namespace cohort::tasks::terms
