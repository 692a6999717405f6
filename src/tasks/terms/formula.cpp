#include "tasks/terms/formula.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <numbers>

#include "core/config.h"
#include "core/error.h"
#include "core/format.h"

namespace cohort::tasks::terms {

namespace {

/// Of a function with memory: the same value asked for twice is the same memory.
std::string memory_name(const char* what, const Expr& of, const Expr& also = {}) {
  return also.node < 0 ? format("{}.{}", what, of.node) : format("{}.{}.{}", what, of.node, also.node);
}

}  // namespace

Expr previous(Graph& g, const Expr& step, const Expr& value) {
  const Expr memory = g.memory(memory_name("previous", value), value.rows, value.cols);
  Expr result = g.select(g.started(step), value, memory);
  result.truth = value.truth;
  if (!g.is_kept(memory)) g.keep(memory, value);
  return result;
}

Expr held(Graph& g, const Expr& step, double period, const Expr& condition) {
  const Expr memory = g.memory(memory_name("held", condition), condition.rows, condition.cols);
  const Expr longer = g.select(condition, g.add(memory, g.constant(static_cast<float>(period))), g.constant(0));
  const Expr now = g.select(g.started(step), g.constant(0), longer);
  if (!g.is_kept(memory)) g.keep(memory, now);
  return now;
}

Expr total(Graph& g, const Expr& step, const Expr& value) {
  const Expr memory = g.memory(memory_name("total", value), value.rows, value.cols);
  const Expr now = g.select(g.started(step), g.constant(0), g.add(memory, value));
  if (!g.is_kept(memory)) g.keep(memory, now);
  return now;
}

Expr history(Graph& g, const Expr& step, const Expr& value, int n) {
  const int width = value.size();
  if (n <= 1) return g.reshape(value, 1, width);
  const Expr row = g.reshape(value, 1, width);
  const Expr memory = g.memory(format("history.{}.{}", value.node, n), 1, width * n);
  std::vector<int> younger;
  for (int i = width; i < width * n; ++i) younger.push_back(i);
  const Expr first = g.join(std::vector<Expr>(static_cast<std::size_t>(n), row));
  const Expr now = g.select(g.started(step), first, g.join({g.columns(memory, younger), row}));
  if (!g.is_kept(memory)) g.keep(memory, now);
  return now;
}

Expr delayed(Graph& g, const Expr& step, const Expr& value, const Expr& steps, int longest) {
  if (longest <= 0) return value;
  const int width = value.size();
  const Expr all = history(g, step, value, longest + 1);
  Expr result;
  for (int ago = longest; ago >= 0; --ago) {
    std::vector<int> which;
    for (int i = 0; i < width; ++i) which.push_back((longest - ago) * width + i);
    const Expr then = g.reshape(g.columns(all, which), value.rows, value.cols);
    result = ago == longest
                 ? then
                 : g.select(g.compare(Op::kAtMost, steps, g.constant(static_cast<float>(ago) + 0.5f)), then, result);
  }
  return result;
}

Expr peak(Graph& g, const Expr& step, const Expr& value, const Expr& restart) {
  const Expr memory = g.memory(memory_name("peak", value, restart), value.rows, value.cols);
  const Expr zero = g.constant(0);
  const Expr now = g.binary(Op::kMaximum, g.select(g.started(step), zero, memory), value);
  if (!g.is_kept(memory)) g.keep(memory, g.select(restart, zero, now));
  return now;
}

Expr at_reset(Graph& g, const Expr& step, const Expr& value) {
  const Expr memory = g.memory(memory_name("at_reset", value), value.rows, value.cols);
  const Expr now = g.select(g.started(step), value, memory);
  if (!g.is_kept(memory)) g.keep(memory, now);
  return now;
}

namespace {

constexpr FunctionEntry kFunctions[] = {
    {"abs", "abs(x)", "without its sign"},
    {"sign", "sign(x)", "-1, 0 or 1"},
    {"sqrt", "sqrt(x)", "square root"},
    {"square", "square(x)", "x * x"},
    {"exp", "exp(x)", "e to the power of x"},
    {"log", "log(x)", "natural logarithm"},
    {"sin", "sin(x)", "of rad"},
    {"cos", "cos(x)", "of rad"},
    {"tan", "tan(x)", "of rad"},
    {"asin", "asin(x)", "rad, of x clipped to -1 ... 1"},
    {"acos", "acos(x)", "rad, of x clipped to -1 ... 1"},
    {"atan2", "atan2(y, x)", "rad, of the point (x, y)"},
    {"tanh", "tanh(x)", "hyperbolic tangent"},
    {"floor", "floor(x)", "the next whole number below"},
    {"min", "min(x, y)", "the smaller"},
    {"max", "max(x, y)", "the larger"},
    {"clip", "clip(x, low, high)", "x within bounds"},
    {"wrap", "wrap(x)", "an angle (rad) within -pi ... pi"},
    {"where", "where(condition, x, y)", "x where the condition holds, else y"},
    {"norm", "norm(x)", "length of each vector"},
    {"norm2", "norm2(x)", "its square"},
    {"norm1", "norm1(x)", "sum of the sizes of its numbers"},
    {"sum", "sum(x)", "of the numbers of each vector"},
    {"mean", "mean(x)", "of the numbers of each vector"},
    {"smallest", "smallest(x)", "number of each vector"},
    {"largest", "largest(x)", "number of each vector"},
    {"any", "any(x)", "whether one of the numbers is true"},
    {"all", "all(x)", "whether all of the numbers are true"},
    {"dot", "dot(x, y)", "product of two vectors"},
    {"cross", "cross(x, y)", "cross product of two vectors of 3"},
    {"rotate", "rotate(q, v)", "vector v turned by quaternion q (w x y z)"},
    {"rotate_inverse", "rotate_inverse(q, v)", "vector v in the frame of quaternion q"},
    {"quat_multiply", "quat_multiply(p, q)", "product of two quaternions"},
    {"quat_inverse", "quat_inverse(q)", "of a unit quaternion"},
    {"quat_error", "quat_error(p, q)", "rad, the angle between two orientations"},
    {"yaw", "yaw(q)", "rad, of a quaternion"},
    {"join", "join(x, y, ...)", "numbers behind each other, as one vector"},
    {"flat", "flat(x)", "rows behind each other, as one vector"},
    {"finite", "finite(x)", "1 where x is a number"},
    {"previous", "previous(x)", "x a control step ago; at the reset x"},
    {"rising", "rising(c)", "1 in the step in which a condition becomes true"},
    {"held", "held(c)", "s for which a condition has held"},
    {"total", "total(x)", "sum over the episode's steps so far"},
    {"history", "history(x, n)", "x of the last n control steps, oldest first"},
    {"peak", "peak(x, restart)", "largest x since the condition `restart` held last"},
    {"at_reset", "at_reset(x)", "x at the episode's beginning"},
    {"uniform", "uniform(low, high)", "a random number, new in every step; uniform(low, high, n): a vector"},
    {"normal", "normal(mean, deviation)", "likewise, of a normal distribution"},
};

/// A token of a formula.
struct Token {
  enum Kind { kNumber, kName, kText, kSign, kEnd } kind = kEnd;
  std::string text;
  double number = 0;
  std::size_t at = 0;
};

class Reader {
 public:
  Reader(std::string_view text, Graph& graph, Names& names) : text_(text), g_(graph), names_(names) { next(); }

  Expr read() {
    const Expr value = whole();
    if (token_.kind != Token::kEnd) fail(token_.at, format("'{}' is not expected here", token_.text));
    return value;
  }

 private:
  [[noreturn]] void fail(std::size_t at, const std::string& why) const {
    throw Error(format("at column {} of `{}`: {}", at + 1, text_, why));
  }

  void next() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    token_ = {.at = at_};
    if (at_ >= text_.size()) return;
    const auto letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    const char c = text_[at_];
    if (std::isdigit(static_cast<unsigned char>(c)) ||
        (c == '.' && at_ + 1 < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_ + 1])))) {
      const char* const begin = text_.data() + at_;
      const auto [stop, problem] = std::from_chars(begin, text_.data() + text_.size(), token_.number);
      if (problem != std::errc()) fail(at_, "this is no number");
      token_.kind = Token::kNumber;
      token_.text = std::string(begin, stop);
      at_ += static_cast<std::size_t>(stop - begin);
      if (at_ < text_.size() && letter(text_[at_]))
        fail(at_, format("'{}' stands right behind a number: write `*` between them", text_[at_]));
    } else if (letter(c)) {
      std::size_t end = at_;
      // base.linear_velocity is one name.
      while (end < text_.size() &&
             (letter(text_[end]) || (text_[end] == '.' && end + 1 < text_.size() && letter(text_[end + 1]))))
        ++end;
      token_.kind = Token::kName;
      token_.text = std::string(text_.substr(at_, end - at_));
      at_ = end;
    } else if (c == '"' || c == '\'') {
      const std::size_t end = text_.find(c, at_ + 1);
      if (end == std::string_view::npos) fail(at_, "a text begins here and does not end");
      token_.kind = Token::kText;
      token_.text = std::string(text_.substr(at_ + 1, end - at_ - 1));
      at_ = end + 1;
    } else {
      static constexpr const char* kSigns[] = {"<=", ">=", "==", "!=", "**", "<", ">", "+", "-",
                                               "*",  "/",  "^",  "(",  ")",  "[", "]", ",", ":"};
      for (const char* sign : kSigns) {
        if (!text_.substr(at_).starts_with(sign)) continue;
        token_.kind = Token::kSign;
        token_.text = sign;
        at_ += token_.text.size();
        return;
      }
      fail(at_, format("'{}' is no part of a formula", c));
    }
  }
  bool is(const char* sign) const { return token_.kind == Token::kSign && token_.text == sign; }
  bool word(const char* name) const { return token_.kind == Token::kName && token_.text == name; }
  bool take(const char* sign) {
    if (!is(sign)) return false;
    next();
    return true;
  }
  void need(const char* sign) {
    if (!take(sign))
      fail(token_.at,
           format("'{}' is expected{}", sign,
                  token_.kind == Token::kEnd ? ", and the formula ends" : format(" instead of '{}'", token_.text)));
  }

  /// What f gives, with its complaints at this column.
  template <class F>
  Expr at(std::size_t column, F f) {
    try {
      return f();
    } catch (const Error& e) {
      const std::string what = e.what();
      if (what.starts_with("at column ")) throw;
      fail(column, what);
    }
  }
  Expr condition(const Expr& value, std::size_t column) {
    if (!value.truth) fail(column, "a condition is needed here, such as `x > 0`: this is a number, not true or false");
    return value;
  }

  Expr whole() {
    Expr value = conjunction();
    while (word("or")) {
      const std::size_t column = token_.at;
      next();
      const Expr other = conjunction();
      value = at(column, [&] { return g_.binary(Op::kOr, condition(value, column), condition(other, column)); });
    }
    return value;
  }
  Expr conjunction() {
    Expr value = negation();
    while (word("and")) {
      const std::size_t column = token_.at;
      next();
      const Expr other = negation();
      value = at(column, [&] { return g_.binary(Op::kAnd, condition(value, column), condition(other, column)); });
    }
    return value;
  }
  Expr negation() {
    if (!word("not")) return comparison();
    next();
    const std::size_t column = token_.at;
    return g_.unary(Op::kNot, condition(negation(), column));
  }
  Expr comparison() {
    const Expr left = sum();
    static constexpr const char* kOrders[] = {"<", "<=", ">", ">=", "==", "!="};
    for (const char* order : kOrders) {
      if (!is(order)) continue;
      const std::size_t column = token_.at;
      const std::string sign = order;
      next();
      const Expr right = sum();
      return at(column, [&] {
        if (sign == "<") return g_.compare(Op::kLess, left, right);
        if (sign == ">") return g_.compare(Op::kLess, right, left);
        if (sign == "<=") return g_.compare(Op::kAtMost, left, right);
        if (sign == ">=") return g_.compare(Op::kAtMost, right, left);
        const Expr same = g_.compare(Op::kEqual, left, right);
        return sign == "==" ? same : g_.unary(Op::kNot, same);
      });
    }
    return left;
  }
  Expr sum() {
    Expr value = product();
    while (is("+") || is("-")) {
      const std::size_t column = token_.at;
      const Op op = is("+") ? Op::kAdd : Op::kSubtract;
      next();
      const Expr other = product();
      value = at(column, [&] { return g_.binary(op, value, other); });
    }
    return value;
  }
  Expr product() {
    Expr value = sign();
    while (is("*") || is("/")) {
      const std::size_t column = token_.at;
      const Op op = is("*") ? Op::kMultiply : Op::kDivide;
      next();
      const Expr other = sign();
      value = at(column, [&] { return g_.binary(op, value, other); });
    }
    return value;
  }
  Expr sign() {
    if (take("-")) return g_.unary(Op::kNegate, sign());
    if (take("+")) return sign();
    return power();
  }
  Expr power() {
    const Expr base = indexed();
    const std::size_t column = token_.at;
    if (!take("^") && !take("**")) return base;
    const Expr exponent = sign();
    return at(column, [&] { return g_.binary(Op::kPower, base, exponent); });
  }

  int whole_number(const char* what) {
    const bool negative = take("-");
    if (token_.kind != Token::kNumber || token_.number != std::floor(token_.number))
      fail(token_.at, format("{}: a whole number is expected", what));
    const int value = static_cast<int>(token_.number);
    next();
    return negative ? -value : value;
  }
  Expr indexed() {
    Expr value = primary();
    while (is("[")) {
      const std::size_t column = token_.at;
      next();
      int first = 0, last = value.cols;
      bool range = false;
      if (!is(":")) first = whole_number("an index");
      if (first < 0) first += value.cols;
      if (take(":")) {
        range = true;
        if (!is("]")) last = whole_number("the end of a range");
        if (last < 0) last += value.cols;
      } else {
        last = first + 1;
      }
      need("]");
      if (first < 0 || last > value.cols || first >= last)
        fail(column, range ? format("the range {} to {} of {} numbers", first, last, value.cols)
                           : format("there are {} numbers, which count from 0", value.cols));
      std::vector<int> which;
      for (int i = first; i < last; ++i) which.push_back(i);
      value = g_.columns(value, which);
      if (!range && value.rows > 1) value = g_.reshape(value, 1, value.rows);
    }
    return value;
  }

  Expr primary() {
    const Token token = token_;
    switch (token.kind) {
      case Token::kNumber:
        next();
        return g_.constant(static_cast<float>(token.number));
      case Token::kName:
        next();
        return name(token);
      case Token::kText:
        fail(token.at, format("the text '{}' stands where a value is needed", token.text));
      case Token::kEnd:
        fail(token.at, "a value is missing: the formula ends");
      case Token::kSign:
        break;
    }
    if (take("(")) {
      const Expr value = whole();
      need(")");
      return value;
    }
    if (take("[")) {
      std::vector<Expr> parts{whole()};
      while (take(",")) parts.push_back(whole());
      need("]");
      return g_.join(parts);
    }
    fail(token.at, format("'{}' is not expected here: a value is missing", token.text));
  }

  std::vector<Argument> arguments() {
    std::vector<Argument> all;
    if (take(")")) return all;
    do {
      if (token_.kind == Token::kText) {
        all.emplace_back(std::vector<std::string>{token_.text});
        next();
      } else if (std::vector<std::string> texts; token_.kind == Token::kName && names_.text(token_.text, texts)) {
        all.emplace_back(std::move(texts));
        next();
      } else if (is("[") && text_list()) {
        do {
          next();
          if (token_.kind != Token::kText) fail(token_.at, "a text in quotation marks is expected");
          texts.push_back(token_.text);
          next();
        } while (is(","));
        need("]");
        all.emplace_back(std::move(texts));
      } else {
        all.emplace_back(whole());
      }
    } while (take(","));
    need(")");
    return all;
  }
  /// Whether a list that begins here is one of texts.
  bool text_list() const {
    std::size_t i = at_;
    while (i < text_.size() && std::isspace(static_cast<unsigned char>(text_[i]))) ++i;
    return i < text_.size() && (text_[i] == '"' || text_[i] == '\'');
  }

  Expr name(const Token& token) {
    if (token.text == "pi") return g_.constant(std::numbers::pi_v<float>);
    if (token.text == "true") return g_.constant(1);
    if (token.text == "false") return g_.constant(0);
    const bool call = take("(");
    const std::vector<Argument> given = call ? arguments() : std::vector<Argument>();
    const auto function = std::ranges::find(kFunctions, token.text, [](const FunctionEntry& f) { return f.name; });
    Expr value;
    return at(token.at, [&] {
      if (names_.find(token.text, given, value)) return value;
      if (function != std::end(kFunctions)) {
        if (!call) throw Error(format("{} is a function: {}", token.text, function->call));
        return function_value(*function, given, token.at);
      }
      std::vector<std::string> known = names_.all();
      for (const FunctionEntry& f : kFunctions) known.emplace_back(f.name);
      const std::string near = config::nearest(token.text, known);
      throw Error(format("there is no quantity or function '{}'{}", token.text,
                         near.empty() ? "; `cohort tasks --terms` lists them" : format(", did you mean '{}'?", near)));
    });
  }

  Expr function_value(const FunctionEntry& f, const std::vector<Argument>& given, std::size_t column) {
    const std::string name = f.name;
    std::vector<Expr> x;
    for (const Argument& argument : given) {
      if (!std::holds_alternative<Expr>(argument)) throw Error(format("{} takes values, not texts: {}", name, f.call));
      x.push_back(std::get<Expr>(argument));
    }
    const auto takes = [&](std::size_t least, std::size_t most) {
      if (x.size() < least || x.size() > most)
        throw Error(format("{} is given {} value{}: {}", name, x.size(), x.size() == 1 ? "" : "s", f.call));
    };
    static constexpr std::pair<const char*, Op> kUnary[] = {
        {"abs", Op::kAbsolute},          {"sign", Op::kSign},      {"sqrt", Op::kSquareRoot}, {"exp", Op::kExponential},
        {"log", Op::kLogarithm},         {"sin", Op::kSine},       {"cos", Op::kCosine},      {"tan", Op::kTangent},
        {"asin", Op::kArcSine},          {"acos", Op::kArcCosine}, {"floor", Op::kFloor},     {"finite", Op::kFinite},
        {"tanh", Op::kHyperbolicTangent}};
    for (const auto& [known, op] : kUnary)
      if (name == known) return takes(1, 1), g_.unary(op, x[0]);
    static constexpr std::pair<const char*, Op> kBinary[] = {
        {"min", Op::kMinimum}, {"max", Op::kMaximum}, {"atan2", Op::kAtan2}};
    for (const auto& [known, op] : kBinary)
      if (name == known) return takes(2, 2), g_.binary(op, x[0], x[1]);
    static constexpr std::pair<const char*, Op> kReductions[] = {
        {"norm2", Op::kSumOfSquares}, {"sum", Op::kSum}, {"smallest", Op::kSmallest}, {"largest", Op::kLargest}};
    for (const auto& [known, op] : kReductions)
      if (name == known) return takes(1, 1), g_.reduce(op, x[0]);
    const Expr step = names_.step();
    const auto truth = [&](const Expr& e) { return condition(e, column); };
    if (name == "square") return takes(1, 1), g_.multiply(x[0], x[0]);
    if (name == "clip") {
      takes(3, 3);
      return g_.binary(Op::kMinimum, g_.binary(Op::kMaximum, x[0], x[1]), x[2]);
    }
    if (name == "wrap") {
      takes(1, 1);
      const Expr turns = g_.unary(Op::kFloor, g_.add(g_.multiply(x[0], g_.constant(0.159154943f)), g_.constant(0.5f)));
      return g_.subtract(x[0], g_.multiply(turns, g_.constant(6.283185307f)));
    }
    if (name == "where") return takes(3, 3), g_.select(truth(x[0]), x[1], x[2]);
    if (name == "norm") return takes(1, 1), g_.unary(Op::kSquareRoot, g_.reduce(Op::kSumOfSquares, x[0]));
    if (name == "norm1") return takes(1, 1), g_.reduce(Op::kSum, g_.unary(Op::kAbsolute, x[0]));
    if (name == "mean") {
      takes(1, 1);
      return g_.multiply(g_.reduce(Op::kSum, x[0]), g_.constant(1.0f / static_cast<float>(x[0].cols)));
    }
    if (name == "any") return takes(1, 1), g_.reduce(Op::kLargest, truth(x[0]));
    if (name == "all") return takes(1, 1), g_.reduce(Op::kSmallest, truth(x[0]));
    if (name == "dot") return takes(2, 2), g_.dot(x[0], x[1]);
    if (name == "cross") return takes(2, 2), g_.cross(x[0], x[1]);
    if (name == "rotate") return takes(2, 2), g_.rotate(x[0], x[1], false);
    if (name == "rotate_inverse") return takes(2, 2), g_.rotate(x[0], x[1], true);
    if (name == "quat_multiply") return takes(2, 2), g_.quat_multiply(x[0], x[1]);
    if (name == "quat_inverse") return takes(1, 1), g_.quat_inverse(x[0]);
    if (name == "quat_error") {
      takes(2, 2);
      const Expr turn = g_.quat_multiply(g_.quat_inverse(x[0]), x[1]);
      const Expr sine = g_.unary(Op::kSquareRoot, g_.reduce(Op::kSumOfSquares, g_.columns(turn, {1, 2, 3})));
      const Expr cosine = g_.unary(Op::kAbsolute, g_.flat(g_.columns(turn, {0})));
      return g_.multiply(g_.constant(2), g_.binary(Op::kAtan2, sine, cosine));
    }
    if (name == "yaw") {
      takes(1, 1);
      const auto part = [&](int i) { return g_.flat(g_.columns(x[0], {i})); };
      const Expr y = g_.multiply(g_.constant(2), g_.add(g_.multiply(part(0), part(3)), g_.multiply(part(1), part(2))));
      const Expr both = g_.add(g_.multiply(part(2), part(2)), g_.multiply(part(3), part(3)));
      return g_.binary(Op::kAtan2, y, g_.subtract(g_.constant(1), g_.multiply(g_.constant(2), both)));
    }
    if (name == "join") {
      if (x.empty()) takes(1, 1);
      return g_.join(x);
    }
    if (name == "flat") return takes(1, 1), g_.flat(x[0]);
    if (name == "previous") return takes(1, 1), previous(g_, step, x[0]);
    if (name == "rising") {
      takes(1, 1);
      const Expr before = g_.select(g_.started(step), truth(x[0]), previous(g_, step, x[0]));
      return g_.binary(Op::kAnd, x[0], g_.unary(Op::kNot, before));
    }
    if (name == "held") return takes(1, 1), held(g_, step, names_.control_period(), truth(x[0]));
    if (name == "total") return takes(1, 1), total(g_, step, x[0]);
    if (name == "at_reset") return takes(1, 1), at_reset(g_, step, x[0]);
    if (name == "peak") return takes(2, 2), peak(g_, step, x[0], truth(x[1]));
    const auto fixed = [&](const Expr& e, const char* what) {
      const std::vector<float> value = g_.constant_value(e);
      if (value.size() != 1) throw Error(format("{} of {} is a number that stands in the formula", what, f.call));
      return static_cast<int>(std::lround(value[0]));
    };
    if (name == "history") {
      takes(2, 2);
      const int n = fixed(x[1], "n");
      if (n < 1 || n > 1000) throw Error(format("history of {} steps: 1 to 1000", n));
      return history(g_, step, x[0], n);
    }
    // uniform and normal
    takes(2, 3);
    const int n = x.size() == 3 ? fixed(x[2], "n") : std::max(x[0].size(), x[1].size());
    if (n < 1 || n > 100000) throw Error(format("{} random numbers: 1 to 100000", n));
    const std::string stream = format("{}@{}", names_.place(), column);
    if (name == "uniform") return g_.add(x[0], g_.multiply(g_.subtract(x[1], x[0]), g_.uniform(stream, n)));
    return g_.add(x[0], g_.multiply(x[1], g_.normal(stream, n)));
  }

  std::string_view text_;
  Graph& g_;
  Names& names_;
  std::size_t at_ = 0;
  Token token_;
};

}  // namespace

Expr read_formula(std::string_view text, Graph& graph, Names& names) {
  return Reader(text, graph, names).read();
}

std::span<const FunctionEntry> formula_functions() {
  return kFunctions;
}

}  // namespace cohort::tasks::terms
