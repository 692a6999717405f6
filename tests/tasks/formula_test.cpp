#include "tasks/terms/formula.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/philox.h"
#include "sim/backends/cpu/engine.h"
#include "sim/options.h"

namespace cohort::tasks::terms {
namespace {

constexpr int kEnvs = 48;  // whole registers of every lane type

/// Names for formulas: x, y and z of an environment, and v, a vector of three.
class TestNames final : public Names {
 public:
  explicit TestNames(Graph& graph) : g_(graph) {}
  bool find(const std::string& name, const std::vector<Argument>& arguments, Expr& value) override {
    static const std::map<std::string, std::vector<int>> kColumns{
        {"x", {0}}, {"y", {1}}, {"z", {2}}, {"v", {0, 1, 2}}, {"base.speed", {1}}};
    if (name == "rows") return value = g_.load(0, {0, 1, 2, 2, 1, 0}, 3), true;
    if (name == "quat") return value = g_.load(0, {3, 4, 5, 6}), true;
    const auto known = kColumns.find(name);
    if (known == kColumns.end()) return false;
    if (!arguments.empty()) throw Error(name + " takes nothing in brackets");
    value = g_.load(0, known->second);
    return true;
  }
  std::vector<std::string> all() const override { return {"x", "y", "z", "v", "base.speed", "rows", "quat"}; }
  Expr step() override { return g_.load(1, {0}); }
  double control_period() const override { return 0.5; }
  std::string place() const override { return "here"; }

 private:
  Graph& g_;
};

/// What formulas give for the environments, step by step.
class Played {
 public:
  explicit Played(const std::string& formula, RunRange run = scalar_run_range()) : run_(run) {
    TestNames names(graph_);
    value_ = read_formula(formula, graph_, names);
    graph_.store(2, 0, value_);
    program_ = graph_.compile();
    width_ = static_cast<std::size_t>(value_.size());
    memory_.resize(static_cast<std::size_t>(program_.memory_rows) * kEnvs);
    registers_.resize(static_cast<std::size_t>(program_.registers) * 64 + 64);
    out_.resize(width_ * kEnvs);
    keys_.resize(2 * kEnvs), steps_.resize(kEnvs), active_.assign(kEnvs, 1);
    for (std::size_t e = 0; e < kEnvs; ++e) keys_[e] = static_cast<unsigned>(77 * e), keys_[kEnvs + e] = 5;
  }

  /// inputs: 7 numbers of each environment, [value][environment].
  void step(std::vector<float>& inputs) {
    const Array arrays[] = {{inputs.data(), ArrayType::kFloat, 1, kEnvs},
                            {steps_.data(), ArrayType::kInt64, 1, 1},
                            {out_.data(), ArrayType::kFloat, static_cast<long long>(width_), 1}};
    Evaluation e = program_.evaluation();
    e.arrays = arrays;
    e.memory = memory_.data();
    e.keys = keys_.data();
    e.steps = steps_.data();
    e.active = active_.data();
    e.n_pad = kEnvs;
    void* at = registers_.data();
    std::size_t space = registers_.size();
    std::align(64, 1, at, space);
    run_(e, 0, kEnvs, at);
    for (std::size_t i = 0; i < kEnvs; ++i) steps_[i] += active_[i];
  }
  std::vector<float> of(std::size_t env) const {
    return {out_.begin() + static_cast<std::ptrdiff_t>(env * width_),
            out_.begin() + static_cast<std::ptrdiff_t>((env + 1) * width_)};
  }
  std::vector<float>& all() { return out_; }
  std::vector<unsigned char>& active() { return active_; }
  std::vector<long long>& steps() { return steps_; }
  const Expr& value() const { return value_; }

 private:
  RunRange run_;
  Graph graph_;
  Expr value_;
  Program program_;
  std::size_t width_ = 1;
  std::vector<float> memory_, out_;
  std::vector<std::byte> registers_;
  std::vector<unsigned> keys_;
  std::vector<long long> steps_;
  std::vector<unsigned char> active_;
};

std::vector<float> inputs_of(std::uint64_t step) {
  std::vector<float> inputs(7 * kEnvs);
  const RandomStream random(3, RandomPurpose::kTest, 0, step);
  for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = 4 * random.uniform(i) - 2;
  for (std::size_t e = 0; e < kEnvs; ++e) {  // a unit quaternion
    double norm = 0;
    for (std::size_t k = 3; k < 7; ++k) norm += std::pow(inputs[k * kEnvs + e], 2);
    for (std::size_t k = 3; k < 7; ++k) inputs[k * kEnvs + e] /= static_cast<float>(std::sqrt(norm));
  }
  return inputs;
}

/// The value of a formula where x, y and z are these.
std::vector<float> value_of(const std::string& formula, float x = 0, float y = 0, float z = 0) {
  Played played(formula);
  std::vector<float> inputs(7 * kEnvs);
  inputs[0] = x, inputs[kEnvs] = y, inputs[2 * kEnvs] = z, inputs[3 * kEnvs] = 1;
  played.step(inputs);
  return played.of(0);
}

std::string complaint_of(const std::string& formula) {
  try {
    Played played(formula);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Formula, HasTheRulesOfArithmetic) {
  const struct {
    const char* formula;
    double value;
  } kCases[] = {
      {"1 + 2 * 3", 7},
      {"(1 + 2) * 3", 9},
      {"-2^2", -4},
      {"2^-1", 0.5},
      {"2**3**1", 8},
      {"x - y - z", 3 - 2 - 0.5},
      {"x / y / z", 3},
      {"1 - -1", 2},
      {"x > y", 1},
      {"not x > y", 0},
      {"x < y or y > z and z > 0", 1},
      {"where(x == 3, 10, 20)", 10},
      {"clip(x, -1, 1) + min(y, z) + max(y, z)", 3.5},
      {"norm([x, 4])", 5},
      {"norm2([x, 4])", 25},
      {"sum([x, y, z])", 5.5},
      {"mean([x, y, z])", 5.5 / 3},
      {"smallest(v) + largest(v)", 3.5},
      {"dot(v, [1, 0, 2])", 4},
      {"v[0] + v[-1] + sum(v[1:]) + v[:1][0]", 9},
      {"sum(cross([1, 0, 0], [0, 1, 0]) * [0, 0, 1])", 1},
      {"wrap(3 * pi)", -3.14159265},
      {"square(x) + sqrt(4) + abs(-z) + sign(-x) + floor(2.7)", 9 + 2 + 0.5 - 1 + 2},
      {"any(v > 2.5) and all(v > 0)", 1},
      {"base.speed", 2},
      {"sum(norm2(rows))", 2 * 13.25},
      {"rows[1:][0][0]", 2},
      {".5 + 1e1", 10.5},
  };
  for (const auto& [formula, value] : kCases) EXPECT_NEAR(value_of(formula, 3, 2, 0.5).at(0), value, 1e-5) << formula;
}

TEST(Formula, FunctionsAreThoseOfTheCLibrary) {
  for (const double x : {-1.7, -0.6, -0.1, 0.05, 0.7, 1.9}) {
    const auto at = [&](const char* formula) { return value_of(formula, static_cast<float>(x), 0.3f).at(0); };
    EXPECT_NEAR(at("exp(x)"), std::exp(x), 2e-6);
    EXPECT_NEAR(at("log(abs(x))"), std::log(std::abs(x)), 2e-6);
    EXPECT_NEAR(at("sin(x)"), std::sin(x), 1e-6);
    EXPECT_NEAR(at("cos(x)"), std::cos(x), 1e-6);
    EXPECT_NEAR(at("tan(x)"), std::tan(x), 1e-4);
    EXPECT_NEAR(at("tanh(x)"), std::tanh(x), 1e-6);
    EXPECT_NEAR(at("atan2(x, y)"), std::atan2(x, 0.3), 1e-6);
    EXPECT_NEAR(at("asin(clip(x, -1, 1))"), std::asin(std::clamp(x, -1.0, 1.0)), 2e-6);
    EXPECT_NEAR(at("acos(x)"), std::acos(std::clamp(x, -1.0, 1.0)), 2e-6);
    EXPECT_NEAR(at("abs(x)^1.5"), std::pow(std::abs(x), 1.5), 3e-6);
  }
}

TEST(Formula, AQuaternionTurnsAndTurnsBack) {
  std::vector<float> inputs = inputs_of(0);
  Played played("norm(rotate_inverse(quat, rotate(quat, v)) - v) + abs(norm(rotate(quat, v)) - norm(v))");
  played.step(inputs);
  for (std::size_t e = 0; e < kEnvs; ++e) EXPECT_LT(played.of(e)[0], 1e-5);
  Played error("quat_error(quat, quat_multiply(quat, [cos(0.2), sin(0.2), 0, 0]))");
  error.step(inputs);
  for (std::size_t e = 0; e < kEnvs; ++e) EXPECT_NEAR(error.of(e)[0], 0.4, 1e-5);
}

TEST(Formula, MemoryBeginsWithTheEpisodeAndIsOfItsEnvironment) {
  Played played("[previous(x), held(x > 0), total(x), at_reset(x), peak(x, x > 5), rising(x > 0), history(x, 3)]");
  const float xs[] = {1, 2, -1, 3, 4, 6, 2};
  const std::vector<float> kExpected[] = {// previous, held, total, at_reset, peak, rising, history
                                          {1, 0, 0, 1, 1, 0, 1, 1, 1},  {1, 0.5f, 2, 1, 2, 0, 1, 1, 2},
                                          {2, 0, 1, 1, 2, 0, 1, 2, -1}, {-1, 0.5f, 4, 1, 3, 1, 2, -1, 3},
                                          {3, 1, 8, 1, 4, 0, -1, 3, 4}, {4, 1.5f, 14, 1, 6, 0, 3, 4, 6},
                                          {6, 2, 16, 1, 2, 0, 4, 6, 2}};
  for (std::size_t i = 0; i < std::size(xs); ++i) {
    std::vector<float> inputs(7 * kEnvs, -9.0f);
    inputs[3] = xs[i];
    played.step(inputs);
    EXPECT_EQ(played.of(3), kExpected[i]) << "step " << i;
  }
  // A new episode of this environment, and of no other.
  played.steps()[3] = 0;
  std::vector<float> inputs(7 * kEnvs, -9.0f);
  inputs[3] = 7;
  played.step(inputs);
  EXPECT_EQ(played.of(3), (std::vector<float>{7, 0, 0, 7, 7, 0, 7, 7, 7}));
  EXPECT_EQ(played.of(4)[2], -9.0f * 7);
}

TEST(Formula, WhatIsNotActiveStaysAsItIs) {
  Played played("[total(x), history(x, 2)]");
  std::vector<float> inputs(7 * kEnvs, 1.0f);
  played.step(inputs);
  played.step(inputs);
  const std::vector<float> before = played.of(5);
  std::fill(played.active().begin(), played.active().end(), 0);
  played.active()[6] = 1;
  inputs.assign(inputs.size(), 2.0f);
  played.step(inputs);
  EXPECT_EQ(played.of(5), before);
  EXPECT_EQ(played.of(6), (std::vector<float>{3, 1, 2}));
  std::fill(played.active().begin(), played.active().end(), 1);
  played.step(inputs);
  EXPECT_EQ(played.of(5), (std::vector<float>{3, 1, 2})) << "its memory was touched while it rested";
}

TEST(Formula, EveryLaneWidthHasTheSameBits) {
  const char* kAll =
      "join(exp(v), log(abs(v)), sin(v), cos(v), tan(v), tanh(v), asin(v), acos(v), atan2(v, x), v^1.3, floor(v), "
      "sign(v),"
      "sqrt(abs(v)), v / y, where(v > x, v, y), norm(rows), dot(rows, v), cross(v, [1, 2, 3]), rotate(quat, v),"
      "rotate_inverse(quat, v), quat_multiply(quat, quat), previous(v), held(v > 0), history(v, 3), total(v),"
      "uniform(-1, 1, 7), normal(0, 1, 5), wrap(3 * v), finite(v), min(v, y), max(v, y), v[1:], mean(rows))";
  std::vector<RunRange> widths;
  for (const sim::LaneWidth width : {sim::LaneWidth::kScalar, sim::LaneWidth::kAvx2, sim::LaneWidth::kAvx512})
    if (sim::runs_lanes(width))
      widths.push_back(sim::of_lanes(width, scalar_run_range(), avx2_run_range(), avx512_run_range()));
  std::vector<std::vector<std::uint32_t>> bits;
  for (const RunRange run : widths) {
    Played played(kAll, run);
    std::vector<std::uint32_t>& of = bits.emplace_back();
    for (std::uint64_t step = 0; step < 4; ++step) {
      std::vector<float> inputs = inputs_of(step);
      played.step(inputs);
      for (const float x : played.all()) of.push_back(std::bit_cast<std::uint32_t>(x));
    }
  }
  for (std::size_t w = 1; w < bits.size(); ++w) EXPECT_EQ(bits[w], bits[0]);
}

TEST(Formula, RandomNumbersAreOfTheEpisodeAndTheStep) {
  Played played("join(uniform(2, 4, 3), normal(1, 0.5, 3))"), again("join(uniform(2, 4, 3), normal(1, 0.5, 3))");
  std::vector<float> inputs(7 * kEnvs);
  double sum = 0, squares = 0, normals = 0;
  int count = 0;
  std::vector<float> before;
  for (int step = 0; step < 400; ++step) {
    played.step(inputs), again.step(inputs);
    EXPECT_EQ(played.all(), again.all());
    EXPECT_NE(played.all(), before);
    EXPECT_NE(played.of(0), played.of(1));
    before = played.all();
    for (std::size_t e = 0; e < kEnvs; ++e) {
      const std::vector<float> v = played.of(e);
      for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_TRUE(v[i] >= 2 && v[i] < 4);
        sum += v[i], normals += v[3 + i], squares += std::pow(v[3 + i] - 1, 2), ++count;
      }
    }
  }
  EXPECT_NEAR(sum / count, 3, 0.02);
  EXPECT_NEAR(normals / count, 1, 0.02);
  EXPECT_NEAR(std::sqrt(squares / count), 0.5, 0.02);
}

TEST(Formula, WhatIsWrittenTwiceIsComputedOnce) {
  Graph g;
  TestNames names(g);
  const Expr a = read_formula("exp(x + y) * 2", g, names), b = read_formula("2 + exp(x + y)", g, names);
  g.store(2, 0, a), g.store(2, 1, b);
  int exponentials = 0;
  for (const Instruction& in : g.compile().code) exponentials += in.op == Op::kExponential;
  EXPECT_EQ(exponentials, 1);
}

TEST(Formula, MessagesNameTheColumnAndWhatIsMeant) {
  const struct {
    const char* formula;
    const char* says;
  } kCases[] = {
      {"x + base.sped",
       "at column 5 of `x + base.sped`: there is no quantity or function 'base.sped', did you mean "
       "'base.speed'?"},
      {"exq(x)", "did you mean 'exp'?"},
      {"x +", "at column 4 of `x +`: a value is missing: the formula ends"},
      {"(x", "')' is expected, and the formula ends"},
      {"x y", "at column 3 of `x y`: 'y' is not expected here"},
      {"2x", "write `*` between them"},
      {"v + [1, 2]", "at column 3 of `v + [1, 2]`: values of 3 and of 2 numbers do not go together"},
      {"v[3]", "there are 3 numbers, which count from 0"},
      {"v[2:1]", "the range 2 to 1 of 3 numbers"},
      {"clip(x, 1)", "clip is given 2 values: clip(x, low, high)"},
      {"where(x, 1, 2)", "a condition is needed here"},
      {"x and y", "a condition is needed here"},
      {"sin", "sin is a function: sin(x)"},
      {"cross(x, v)", "of vectors of 3 numbers"},
      {"x $ y", "'$' is no part of a formula"},
      {"x(1)", "x takes nothing in brackets"},
      {"norm(\"x\")", "norm takes values, not texts"},
      {"history(x, y)", "n of history(x, n) is a number that stands in the formula"},
      {"'open", "a text begins here and does not end"},
      {"", "a value is missing: the formula ends"},
  };
  for (const auto& [formula, says] : kCases) {
    const std::string complaint = complaint_of(formula);
    EXPECT_NE(complaint.find(says), std::string::npos) << formula << " says: " << complaint;
    EXPECT_TRUE(complaint.starts_with("at column ")) << complaint;
  }
}

}  // namespace
}  // namespace cohort::tasks::terms
