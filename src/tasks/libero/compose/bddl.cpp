#include "tasks/libero/compose/bddl.h"

#include <algorithm>
#include <cctype>

#include "core/error.h"
#include "core/format.h"
#include "formats/xml_tree.h"

namespace cohort::tasks::libero::compose {
namespace {

/// A word, or a list in brackets.
struct Expression {
  std::string word;
  std::vector<Expression> list;
  bool is_list = false;
};

class BddlReader {
 public:
  BddlReader(const std::string& text, const std::string& source) : source_(source) {
    bool comment = false;
    for (const char c : text) {
      comment = c == '\n' ? false : comment || c == ';';
      text_ += comment ? ' ' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }

  Expression whole() {
    skip_space();
    Expression root = next(0);
    skip_space();
    if (at_ < text_.size()) refuse("something stands behind the last bracket");
    return root;
  }

 private:
  static constexpr int kDeepest = 100;

  [[noreturn]] void refuse(const std::string& what) const {
    const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
    throw Error(format("{}: line {}: {}", source_, line, what));
  }
  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  Expression next(int depth) {
    if (at_ == text_.size()) refuse("a closing bracket is missing");
    if (text_[at_] == ')') refuse("a closing bracket too many");
    Expression e;
    if (text_[at_] != '(') {
      const std::size_t end = std::min(text_.find_first_of("() \t\r\n\f\v", at_), text_.size());
      e.word = text_.substr(at_, end - at_);
      at_ = end;
      return e;
    }
    if (depth > kDeepest) refuse(format("more than {} brackets in one another", kDeepest));
    e.is_list = true;
    for (++at_, skip_space(); at_ == text_.size() || text_[at_] != ')'; skip_space()) e.list.push_back(next(depth + 1));
    ++at_;
    return e;
  }

  const std::string& source_;
  std::string text_;
  std::size_t at_ = 0;
};

class ProblemReader {
 public:
  explicit ProblemReader(const std::string& source) : source_(source) {}

  Problem read(const Expression& root) {
    if (!root.is_list || root.list.empty() || root.list[0].word != "define") refuse("it does not begin with `(define`");
    for (std::size_t i = 1; i < root.list.size(); ++i) section(root.list[i]);
    if (problem_.name.empty()) refuse("it names no problem");
    if (problem_.goal.empty()) refuse("it has no goal");
    return std::move(problem_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(format("{}: no problem of LIBERO's as it is known here: {}", source_, what));
  }
  const std::string& word(const Expression& e) const {
    if (e.is_list) refuse("a list of words has brackets in it");
    return e.word;
  }
  std::vector<std::string> words(const Expression& e, std::size_t first) const {
    std::vector<std::string> all;
    for (std::size_t i = first; i < e.list.size(); ++i) all.push_back(word(e.list[i]));
    return all;
  }
  template <std::size_t N>
  std::array<double, N> numbers(const Expression& e, const char* what) const {
    std::array<double, N> out{};
    if (!e.is_list || e.list.size() != N) refuse(format("{} has {} numbers, not {}", what, e.list.size(), N));
    for (std::size_t i = 0; i < N; ++i) {
      const std::vector<double> one = numbers_of(word(e.list[i]), format("{}: {}", source_, what));
      if (one.size() != 1) refuse(format("{} holds `{}`", what, e.list[i].word));
      out[i] = one[0];
    }
    return out;
  }
  template <class Value>
  static void put(Ordered<Value>& to, const std::string& name, Value value) {
    const auto known = std::find_if(to.begin(), to.end(), [&](const auto& entry) { return entry.first == name; });
    if (known == to.end())
      to.emplace_back(name, std::move(value));
    else
      known->second = std::move(value);
  }

  void section(const Expression& e) {
    if (!e.is_list || e.list.empty()) refuse("a section is empty");
    const std::string& kind = word(e.list[0]);
    if (kind == "problem" && e.list.size() == 2) {
      problem_.name = word(e.list[1]);
    } else if (kind == ":domain" && e.list.size() == 2 && word(e.list[1]) == "robosuite") {
    } else if (kind == ":language") {
      problem_.language = join(words(e, 1), " ");
    } else if (kind == ":regions") {
      for (std::size_t i = 1; i < e.list.size(); ++i) region(e.list[i]);
    } else if (kind == ":fixtures") {
      typed_names(e, problem_.fixtures);
    } else if (kind == ":objects") {
      typed_names(e, problem_.objects);
    } else if (kind == ":obj_of_interest") {
      problem_.of_interest = words(e, 1);
    } else if (kind == ":init") {
      for (std::size_t i = 1; i < e.list.size(); ++i) problem_.initial.push_back(predicate(e.list[i]));
    } else if (kind == ":goal" && e.list.size() == 2 && e.list[1].is_list && !e.list[1].list.empty()) {
      const Expression& goal = e.list[1];
      if (goal.list[0].word != "and")
        problem_.goal.push_back(predicate(goal));
      else
        for (std::size_t i = 1; i < goal.list.size(); ++i) problem_.goal.push_back(predicate(goal.list[i]));
    } else {
      refuse(format("section `{}`", kind));
    }
  }

  /// "a_1 a_2 - a  b_1 - b".
  void typed_names(const Expression& e, Ordered<std::vector<std::string>>& to) {
    std::vector<std::string> names;
    for (std::size_t i = 1; i < e.list.size(); ++i) {
      if (word(e.list[i]) != "-") {
        names.push_back(e.list[i].word);
        continue;
      }
      if (++i == e.list.size()) refuse("a category is missing behind `-`");
      put(to, word(e.list[i]), std::exchange(names, {}));
    }
    if (!names.empty()) refuse(format("`{}` has no category", names.front()));
  }

  std::vector<std::string> predicate(const Expression& e) {
    if (!e.is_list || e.list.size() < 2 || e.list.size() > 3) refuse("a predicate has one or two arguments");
    return words(e, 0);
  }

  void region(const Expression& e) {
    if (!e.is_list || e.list.empty()) refuse("a region is empty");
    const std::string& name = word(e.list[0]);
    Region region;
    for (std::size_t i = 1; i < e.list.size(); ++i) {
      const Expression& attribute = e.list[i];
      if (attribute.list.size() != 2) refuse(format("region `{}`: an attribute has one value", name));
      const std::string& kind = word(attribute.list[0]);
      const Expression& value = attribute.list[1];
      if (kind == ":target")
        region.target = word(value);
      else if (kind == ":ranges")
        for (const Expression& range : value.list) region.ranges.push_back(numbers<4>(range, "a range"));
      else if (kind == ":yaw_rotation")
        for (const Expression& range : value.list) region.yaw = numbers<2>(range, "a yaw_rotation");
      else if (kind == ":rgba")
        region.rgba = numbers<4>(value, "an rgba");
      else
        refuse(format("region `{}` has the attribute `{}`", name, kind));
    }
    if (region.target.empty()) refuse(format("region `{}` has no target", name));
    const std::string full = region.target + "_" + name;
    put(problem_.regions, full, std::move(region));
  }

  const std::string& source_;
  Problem problem_;
};

}  // namespace

const Region* Problem::region(const std::string& wanted) const {
  for (const auto& [known, region] : regions)
    if (known == wanted) return &region;
  return nullptr;
}

Problem read_problem(const std::string& text, const std::string& source) {
  return ProblemReader(source).read(BddlReader(text, source).whole());
}

}  // namespace cohort::tasks::libero::compose
