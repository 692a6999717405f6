#include "tasks/terms/graph.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "core/error.h"
#include "core/fnv.h"
#include "core/format.h"

namespace cohort::tasks::terms {

std::string shape_text(const Expr& e) {
  return e.rows == 1 ? format("{}", e.cols) : format("{} x {}", e.rows, e.cols);
}

Evaluation Program::evaluation() const {
  Evaluation e;
  e.code = code.data(), e.count = static_cast<int>(code.size());
  e.constants = constants.data(), e.constant_count = static_cast<int>(constants.size());
  e.index = index.data();
  return e;
}

int Graph::add_node(Node node) {
  const auto [at, is_new] = known_.try_emplace(node, static_cast<int>(nodes_.size()));
  if (is_new) nodes_.push_back(std::move(node));
  return at->second;
}

Expr Graph::constant(std::vector<float> values) {
  Node node;
  node.is_constant = true;
  node.size = static_cast<int>(values.size());
  const bool truth = std::ranges::all_of(values, [](float x) { return x == 0 || x == 1; });
  node.values = std::move(values);
  const int size = node.size;
  return {add_node(std::move(node)), 1, size, truth};
}

Expr Graph::load(int array, std::vector<int> values, int cols) {
  Node node;
  node.op = Op::kLoad;
  node.a = array;
  node.size = static_cast<int>(values.size());
  node.index = std::move(values);
  const int size = node.size;
  if (cols == 0) cols = size;
  return {add_node(std::move(node)), size / cols, cols};
}

namespace {

/// A stream's number: of its name, so that other terms of the file do not change what this one draws.
int stream_of(const std::string& name) {
  return static_cast<int>(fnv1a(name) & 0x7fffffff);
}

}  // namespace

Expr Graph::uniform(const std::string& name, int n) {
  Node node;
  node.op = Op::kUniform;
  node.a = stream_of(name), node.size = n;
  return {add_node(std::move(node)), 1, n};
}

Expr Graph::normal(const std::string& name, int n) {
  Node node;
  node.op = Op::kNormal;
  node.a = stream_of(name), node.size = n;
  return {add_node(std::move(node)), 1, n};
}

Expr Graph::memory(const std::string& name, int rows, int cols) {
  const auto same = std::ranges::find(memory_, name, &Memory::name);
  if (same != memory_.end()) {
    COHORT_CHECK(same->size == rows * cols, "the memory '{}' has {} numbers, and {} x {} are asked for", name,
                 same->size, rows, cols);
    return {same->node, rows, cols};
  }
  Node node;
  node.op = Op::kMemory;
  node.a = static_cast<int>(memory_.size());
  node.size = rows * cols;
  const int id = add_node(std::move(node));
  memory_.push_back({.name = name, .node = id, .size = rows * cols});
  return {id, rows, cols};
}

void Graph::keep(const Expr& memory, const Expr& value) {
  const auto slot = std::ranges::find(memory_, memory.node, &Memory::node);
  COHORT_CHECK(slot != memory_.end() && slot->kept < 0, "a memory is kept twice, or what is kept is no memory");
  const Expr whole = expand(value, memory.rows, memory.cols);
  slot->kept = whole.node;
}

bool Graph::is_kept(const Expr& memory) const {
  const auto slot = std::ranges::find(memory_, memory.node, &Memory::node);
  return slot != memory_.end() && slot->kept >= 0;
}

Expr Graph::expand(const Expr& a, int rows, int cols) {
  if (a.rows == rows && a.cols == cols) return a;
  // A number, a row for every row, or a number for every row.
  const bool fits = a.size() == 1 || (a.rows == 1 && a.cols == cols) || (a.rows == 1 && a.cols == rows && cols == 1);
  COHORT_THROW_UNLESS(fits, "a value of {} numbers stands where {} are needed", shape_text(a),
                      shape_text({0, rows, cols}));
  Node node;
  node.op = Op::kPick;
  node.size = rows * cols;
  node.inputs = {a.node};
  for (int i = 0; i < rows * cols; ++i) node.index.push_back(a.size() == 1 ? 0 : cols == 1 ? i : i % cols);
  return {add_node(std::move(node)), rows, cols, a.truth};
}

Expr Graph::binary(Op op, Expr a, Expr b) {
  if (!a.is_number() && !b.is_number() && (a.rows != b.rows || a.cols != b.cols)) {
    COHORT_THROW_UNLESS(a.cols == b.cols && (a.rows == 1 || b.rows == 1),
                        "values of {} and of {} numbers do not go together: equal shapes, or a single number",
                        shape_text(a), shape_text(b));
    const int rows = std::max(a.rows, b.rows);
    a = expand(a, rows, a.cols), b = expand(b, rows, b.cols);
  }
  // Of constants at once.
  const std::vector<float> x = constant_value(a), y = constant_value(b);
  const Expr& shape = a.is_number() ? b : a;
  if (!x.empty() && !y.empty() && op <= Op::kDivide && op >= Op::kAdd) {
    std::vector<float> values(static_cast<std::size_t>(shape.size()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float p = x[x.size() == 1 ? 0 : i], q = y[y.size() == 1 ? 0 : i];
      values[i] = op == Op::kAdd ? p + q : op == Op::kSubtract ? p - q : op == Op::kMultiply ? p * q : p / q;
    }
    const Expr folded = constant(std::move(values));
    return {folded.node, shape.rows, shape.cols, false};
  }
  if (op == Op::kPower && y.size() == 1) {
    if (y[0] == 2.0f) return binary(Op::kMultiply, a, a);
    if (y[0] == 3.0f) return binary(Op::kMultiply, binary(Op::kMultiply, a, a), a);
    if (y[0] == 4.0f) {
      const Expr square = binary(Op::kMultiply, a, a);
      return binary(Op::kMultiply, square, square);
    }
    if (y[0] == 1.0f) return a;
    if (y[0] == 0.5f) return unary(Op::kSquareRoot, a);
  }
  Node node;
  node.op = op;
  node.size = shape.size();
  node.inputs = {a.node, b.node};
  return {add_node(std::move(node)), shape.rows, shape.cols, op == Op::kAnd || op == Op::kOr};
}

Expr Graph::compare(Op op, Expr a, Expr b) {
  Expr result = binary(op, a, b);
  result.truth = true;
  return result;
}

Expr Graph::unary(Op op, const Expr& a) {
  if (op == Op::kNegate) {
    if (std::vector<float> x = constant_value(a); !x.empty()) {
      for (float& v : x) v = -v;
      const Expr folded = constant(std::move(x));
      return {folded.node, a.rows, a.cols, false};
    }
  }
  Node node;
  node.op = op;
  node.size = a.size();
  node.inputs = {a.node};
  return {add_node(std::move(node)), a.rows, a.cols, op == Op::kNot || op == Op::kFinite};
}

Expr Graph::select(Expr condition, Expr a, Expr b) {
  int rows = 1, cols = 1;
  for (const Expr* e : {&condition, &a, &b})
    if (e->size() > rows * cols) rows = e->rows, cols = e->cols;
  for (Expr* e : {&condition, &a, &b})
    if (!e->is_number()) *e = expand(*e, rows, cols);
  Node node;
  node.op = Op::kSelect;
  node.size = rows * cols;
  node.inputs = {condition.node, a.node, b.node};
  return {add_node(std::move(node)), rows, cols, a.truth && b.truth};
}

Expr Graph::reduce(Op op, const Expr& a) {
  Node node;
  node.op = op;
  node.size = a.rows, node.m = a.cols;
  node.inputs = {a.node};
  return {add_node(std::move(node)), 1, a.rows, a.truth && op != Op::kSum};
}

Expr Graph::dot(Expr a, Expr b) {
  const int rows = std::max(a.rows, b.rows), cols = std::max(a.cols, b.cols);
  a = expand(a, rows, cols), b = expand(b, rows, cols);
  Node node;
  node.op = Op::kDot;
  node.size = rows, node.m = cols;
  node.inputs = {a.node, b.node};
  return {add_node(std::move(node)), 1, rows};
}

Expr Graph::columns(const Expr& a, const std::vector<int>& which) {
  if (const std::vector<float> values = constant_value(a); !values.empty() && a.rows == 1) {
    std::vector<float> chosen;
    for (const int column : which) chosen.push_back(values.at(static_cast<std::size_t>(column)));
    return constant(std::move(chosen));
  }
  Node node;
  node.op = Op::kPick;
  node.inputs = {a.node};
  for (int row = 0; row < a.rows; ++row)
    for (const int column : which) {
      COHORT_CHECK(column >= 0 && column < a.cols, "column {} of {}", column, a.cols);
      node.index.push_back(row * a.cols + column);
    }
  node.size = static_cast<int>(node.index.size());
  return {add_node(std::move(node)), a.rows, static_cast<int>(which.size()), a.truth};
}

Expr Graph::join(const std::vector<Expr>& parts) {
  COHORT_CHECK(!parts.empty(), "nothing to join");
  if (parts.size() == 1) return reshape(parts[0], 1, parts[0].size());
  Node node;
  node.op = Op::kCopy;
  node.size = 0;
  bool truth = true;
  for (const Expr& part : parts) {
    node.inputs.push_back(part.node);
    node.size += part.size();
    truth = truth && part.truth;
  }
  const int size = node.size;
  return {add_node(std::move(node)), 1, size, truth};
}

Expr Graph::reshape(Expr a, int rows, int cols) {
  COHORT_CHECK(a.size() == rows * cols, "{} numbers as {} x {}", a.size(), rows, cols);
  a.rows = rows, a.cols = cols;
  return a;
}

Expr Graph::cross(Expr a, Expr b) {
  COHORT_THROW_UNLESS(a.cols == 3 && b.cols == 3, "cross() is of vectors of 3 numbers, and has {} and {}",
                      shape_text(a), shape_text(b));
  const int rows = std::max(a.rows, b.rows);
  a = expand(a, rows, 3), b = expand(b, rows, 3);
  Node node;
  node.op = Op::kCross;
  node.size = 3 * rows;
  node.inputs = {a.node, b.node};
  return {add_node(std::move(node)), rows, 3};
}

Expr Graph::rotate(Expr quat, Expr vector, bool inverse) {
  COHORT_THROW_UNLESS(quat.cols == 4 && vector.cols == 3,
                      "a quaternion of 4 numbers and a vector of 3 are needed, and {} and {} are given",
                      shape_text(quat), shape_text(vector));
  const int rows = std::max(quat.rows, vector.rows);
  quat = expand(quat, rows, 4), vector = expand(vector, rows, 3);
  Node node;
  node.op = inverse ? Op::kRotateInverse : Op::kRotate;
  node.size = 3 * rows;
  node.inputs = {quat.node, vector.node};
  return {add_node(std::move(node)), rows, 3};
}

Expr Graph::quat_multiply(Expr a, Expr b) {
  COHORT_THROW_UNLESS(a.cols == 4 && b.cols == 4, "quaternions of 4 numbers are needed, and {} and {} are given",
                      shape_text(a), shape_text(b));
  const int rows = std::max(a.rows, b.rows);
  a = expand(a, rows, 4), b = expand(b, rows, 4);
  Node node;
  node.op = Op::kQuatMultiply;
  node.size = 4 * rows;
  node.inputs = {a.node, b.node};
  return {add_node(std::move(node)), rows, 4};
}

Expr Graph::quat_inverse(const Expr& q) {
  COHORT_THROW_UNLESS(q.cols == 4, "a quaternion of 4 numbers is needed, and {} are given", shape_text(q));
  return binary(Op::kMultiply, q, constant({1, -1, -1, -1}));
}

Expr Graph::ground_height(const Expr& points) {
  COHORT_THROW_UNLESS(points.cols >= 2, "a point has x and y, and {} are given", shape_text(points));
  Node node;
  node.op = Op::kGroundHeight;
  node.size = points.rows, node.m = points.cols;
  node.inputs = {points.node};
  return {add_node(std::move(node)), 1, points.rows};
}

void Graph::store(int array, int first, const Expr& value) {
  stores_.push_back({array, first, value.node});
}

void Graph::store_where(const Expr& condition, int array, int first, const Expr& value) {
  COHORT_CHECK(condition.is_number(), "a condition of {} numbers", shape_text(condition));
  stores_.push_back({array, first, value.node, condition.node});
}

std::vector<float> Graph::constant_value(const Expr& e) const {
  const Node& node = nodes_[static_cast<std::size_t>(e.node)];
  return node.is_constant ? node.values : std::vector<float>();
}

Program Graph::compile() {
  const auto as_size = [](int i) { return static_cast<std::size_t>(i); };
  // What is needed, from the stores backwards; what a needed memory keeps is needed too.
  std::vector<bool> needed(nodes_.size());
  std::vector<int> open;
  const auto need = [&](int node) {
    if (!needed[as_size(node)]) needed[as_size(node)] = true, open.push_back(node);
  };
  for (const Store& store : stores_) {
    need(store.node);
    if (store.where >= 0) need(store.where);
  }
  for (const int memory : required_) need(memory);
  while (!open.empty()) {
    const Node& node = nodes_[as_size(open.back())];
    open.pop_back();
    for (const int input : node.inputs) need(input);
    if (node.op != Op::kMemory || node.is_constant) continue;
    const Memory& memory = memory_[as_size(node.a)];
    COHORT_CHECK(memory.kept >= 0, "the memory '{}' is read and not kept", memory.name);
    need(memory.kept);
  }

  Program program;
  slots_.clear();
  std::vector<int> memory_row(memory_.size(), -1);
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    if (!needed[as_size(memory_[i].node)]) continue;
    memory_row[i] = program.memory_rows;
    slots_.push_back({memory_[i].name, program.memory_rows, memory_[i].size});
    program.memory_rows += memory_[i].size;
  }

  // Where each is needed last; what memories keep is needed until the end.
  const int end = static_cast<int>(nodes_.size());
  std::vector<int> last(nodes_.size(), -1);
  for (int i = 0; i < end; ++i)
    if (needed[as_size(i)])
      for (const int input : nodes_[as_size(i)].inputs) last[as_size(input)] = i;
  for (std::size_t i = 0; i < memory_.size(); ++i)
    if (memory_row[i] >= 0) last[as_size(memory_[i].kept)] = end;
  for (const Store& store : stores_)
    if (store.where >= 0) last[as_size(store.node)] = last[as_size(store.where)] = end;

  std::vector<int> at(nodes_.size(), -1);  // first register
  for (int i = 0; i < end; ++i) {
    const Node& node = nodes_[as_size(i)];
    if (!needed[as_size(i)] || !node.is_constant) continue;
    at[as_size(i)] = program.registers;
    program.constants.insert(program.constants.end(), node.values.begin(), node.values.end());
    program.registers += node.size;
  }
  std::map<int, std::vector<int>> free;  // registers by size
  const auto index_of = [&](const std::vector<int>& values) {
    const auto same = std::search(program.index.begin(), program.index.end(), values.begin(), values.end());
    const auto first = static_cast<int>(same - program.index.begin());
    if (same == program.index.end()) program.index.insert(program.index.end(), values.begin(), values.end());
    return first;
  };
  const auto store_all = [&](int i, bool late) {
    for (const Store& store : stores_) {
      if (store.node != i || (store.where >= 0) != late) continue;
      const int size = nodes_[as_size(i)].size;
      std::vector<int> columns(as_size(size));
      std::iota(columns.begin(), columns.end(), store.first);
      program.code.push_back({.op = late ? Op::kStoreWhere : Op::kStore,
                              .n = size,
                              .a = at[as_size(i)],
                              .b = store.array,
                              .c = index_of(columns),
                              .m = late ? at[as_size(store.where)] : 1});
    }
  };
  for (int i = 0; i < end; ++i) {
    const Node& node = nodes_[as_size(i)];
    if (!needed[as_size(i)]) continue;
    if (!node.is_constant) {
      std::vector<int>& spare = free[node.size];
      if (spare.empty()) {
        at[as_size(i)] = program.registers;
        program.registers += node.size;
      } else {
        at[as_size(i)] = spare.back();
        spare.pop_back();
      }
      Instruction in{.op = node.op, .out = at[as_size(i)], .n = node.size, .a = node.a, .m = node.m};
      const auto input = [&](std::size_t k) { return node.inputs[k]; };
      if (node.op == Op::kMemory) in.a = memory_row[as_size(node.a)];
      if (node.op == Op::kLoad) in.b = index_of(node.index);
      if (node.op == Op::kCopy) {
        // Parts behind each other.
        for (std::size_t k = 0; k < node.inputs.size(); ++k) {
          const int size = nodes_[as_size(input(k))].size;
          program.code.push_back({.op = Op::kCopy, .out = in.out, .n = size, .a = at[as_size(input(k))]});
          in.out += size;
        }
      } else {
        if (!node.inputs.empty()) in.a = at[as_size(input(0))], in.sa = stride(input(0), node.size);
        if (node.inputs.size() > 1) in.b = at[as_size(input(1))], in.sb = stride(input(1), node.size);
        if (node.inputs.size() > 2) in.c = at[as_size(input(2))], in.sc = stride(input(2), node.size);
        if (node.op == Op::kPick) in.b = index_of(node.index);
        program.code.push_back(in);
      }
    }
    store_all(i, false);
    // What is not needed behind this. An operand's registers must not be the result's, so they are free only now.
    std::vector<int> inputs = node.inputs;
    std::ranges::sort(inputs);
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    inputs.push_back(i);
    for (const int k : inputs) {
      const Node& done = nodes_[as_size(k)];
      if (done.is_constant || last[as_size(k)] > i) continue;
      if (k == i && last[as_size(k)] >= 0) continue;
      free[done.size].push_back(at[as_size(k)]);
    }
  }
  for (int i = 0; i < end; ++i)
    if (needed[as_size(i)]) store_all(i, true);
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    if (memory_row[i] < 0) continue;
    const int kept = memory_[i].kept;
    program.code.push_back({.op = Op::kStoreMemory,
                            .n = memory_[i].size,
                            .a = at[as_size(kept)],
                            .sa = stride(kept, memory_[i].size),
                            .b = memory_row[i]});
  }
  return program;
}

}  // namespace cohort::tasks::terms
