// Compares random models with MuJoCo C for as long as one likes; differential_test.cpp is its short form.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/files.h"
#include "differential.h"
#include "oracle.h"
#include "random_model.h"
#include "shrink.h"

namespace cohort::sim::test {
namespace {

constexpr const char* kUsage =
    "Compares random models with MuJoCo C: one step and all sensors from random states.\n"
    "  sim_differential run FIRST COUNT    models of COUNT seeds; findings as they come, then summed by kind\n"
    "  sim_differential file MODEL.xml     a model of yours; --seed S other states, --states N more of them\n"
    "  sim_differential print SEED         the model of a seed\n"
    "  sim_differential shrink SEED OUT    the smallest model that shows the worst finding of a seed, written to OUT\n"
    "  --without PART                      run, print, shrink: models without contacts, searched, equalities, "
    "tendons,\n"
    "                                      actuators, sensors, flags or fluid; may be repeated\n"
    "The exit code is 1 where something was found, 2 for a wrong command line.\n";

struct Arguments {
  std::vector<std::string> words;
  Choice choice;
  std::uint64_t seed = 1;
  int states = 6;
};

/// Throws Error for a word that is no number.
std::uint64_t number_of(const std::string& word) {
  std::size_t used = 0;
  std::uint64_t value = 0;
  try {
    value = std::stoull(word, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  COHORT_THROW_UNLESS(used > 0 && used == word.size(), "{} is no whole number", word);
  return value;
}

Arguments parse(int count, char** words) {
  Arguments a;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word.rfind("--", 0) != 0) {
      a.words.push_back(word);
      continue;
    }
    COHORT_THROW_UNLESS(i + 1 < count, "{} needs a value", word);
    const std::string value = words[++i];
    if (word == "--seed") {
      a.seed = number_of(value);
    } else if (word == "--states") {
      a.states = static_cast<int>(number_of(value));
    } else if (word == "--without") {
      member(a.choice, value) = false;
    } else {
      throw Error(format("there is no option {}", word));
    }
  }
  return a;
}

std::string line_of(const Finding& f) {
  return format("{}: ours {:.9g}, MuJoCo's {:.9g}, {:.3g} times what is allowed ({})", f.what, f.ours, f.mujoco,
                f.excess, f.where);
}

/// A model that MuJoCo refuses throws Error.
Comparison compare_text(const std::string& xml, const DifferentialOptions& options) {
  return compare_with_mujoco(compile_xml(xml), options);
}

/// What became of many models.
class Summary {
 public:
  void add(std::uint64_t seed, const Comparison& c) {
    ++models_;
    states_ += c.states, whole_ += c.whole, contacts_ += c.contacts, rows_ += c.rows;
    if (!c.refused.empty()) ++refused_[c.refused];
    for (const auto& [reason, count] : c.excused) excused_[reason] += count;
    for (const Finding& f : c.findings) {
      std::cout << "seed " << seed << ": " << line_of(f) << std::endl;
      found_[f.what].push_back(seed);
    }
  }
  void add_invalid(const std::string& reason) {
    ++models_;
    ++invalid_[reason];
  }

  bool print() const {
    std::cout << models_ << " models, " << states_ << " states, " << whole_ << " of them compared to the end, "
              << contacts_ << " contacts, " << rows_ << " rows\n";
    print_counts("refused by MuJoCo", invalid_);
    print_counts("not run by the batched engine", refused_);
    print_counts("left out", excused_);
    for (const auto& [what, seeds] : found_) {
      std::cout << "FOUND " << seeds.size() << " " << what << ": seeds";
      for (std::size_t i = 0; i < seeds.size() && i < 8; ++i) std::cout << " " << seeds[i];
      std::cout << "\n";
    }
    return found_.empty();
  }

 private:
  static void print_counts(const char* title, const std::map<std::string, int>& counts) {
    for (const auto& [reason, count] : counts) std::cout << title << " " << count << ": " << reason << "\n";
  }

  int models_ = 0;
  long states_ = 0, whole_ = 0, contacts_ = 0, rows_ = 0;
  std::map<std::string, int> invalid_, refused_, excused_;
  std::map<std::string, std::vector<std::uint64_t>> found_;
};

/// The first line, with digits as #: alike for alike reasons.
std::string kind_of(const std::string& message) {
  std::string kind;
  for (char c : message.substr(0, message.find('\n'))) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) kind += c;
    if (digit && (kind.empty() || kind.back() != '#')) kind += '#';
  }
  return kind;
}

int run(const Arguments& a) {
  Summary summary;
  const std::uint64_t first = number_of(a.words.at(1)), count = number_of(a.words.at(2));
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    try {
      summary.add(seed, compare_text(to_xml(random_model(seed, a.choice)), {.seed = seed, .states = a.states}));
    } catch (const Error& e) {
      summary.add_invalid(kind_of(e.what()));
    }
  }
  return summary.print() ? 0 : 1;
}

int file(const Arguments& a) {
  DifferentialOptions options{.seed = a.seed, .states = a.states};
  options.on_finding = [](const Finding& f) { std::cout << line_of(f) << "\n" << f.detail; };
  const Comparison c = compare_with_mujoco(compile_file(a.words.at(1)), options);
  if (!c.refused.empty()) std::cout << "not run by the batched engine: " << c.refused << "\n";
  for (const auto& [reason, count] : c.excused) std::cout << "left out " << count << ": " << reason << "\n";
  std::cout << c.states << " states, " << c.whole << " of them compared to the end, " << c.contacts << " contacts, "
            << c.rows << " rows, " << c.findings.size() << " kinds of findings\n";
  return c.findings.empty() ? 0 : 1;
}

int print(const Arguments& a) {
  std::cout << to_xml(random_model(number_of(a.words.at(1)), a.choice));
  return 0;
}

int shrink_seed(const Arguments& a) {
  const std::uint64_t seed = number_of(a.words.at(1));
  const Element model = random_model(seed, a.choice);
  const DifferentialOptions options{.seed = seed, .states = a.states};
  const auto findings = [&](const Element& root) -> std::vector<Finding> {
    try {
      return compare_text(to_xml(root), options).findings;
    } catch (const Error&) {
      return {};  // no model any more
    }
  };
  std::vector<Finding> found = findings(model);
  if (found.empty()) {
    std::cout << "nothing is found in the model of seed " << seed << "\n";
    return 0;
  }
  std::sort(found.begin(), found.end(), [](const Finding& x, const Finding& y) { return x.excess > y.excess; });
  const std::string what = found.front().what;
  const double enough = std::sqrt(found.front().excess);  // a smaller model may show it less, but not barely
  const auto shows = [&](const Element& root) {
    const std::vector<Finding> list = findings(root);
    return std::any_of(list.begin(), list.end(),
                       [&](const Finding& f) { return f.what == what && f.excess >= enough; });
  };
  const std::string xml = to_xml(shrink(model, shows));
  write_file_atomically(a.words.at(2), xml);
  std::cout << xml << what << "\nsim_differential file " << a.words.at(2) << " --seed " << seed << "\n";
  return 1;
}

int dispatch(const Arguments& a) {
  const struct {
    const char* name;
    std::size_t words;
    int (*command)(const Arguments&);
  } commands[] = {{"run", 3, run}, {"file", 2, file}, {"print", 2, print}, {"shrink", 3, shrink_seed}};
  for (const auto& c : commands) {
    if (a.words.size() == c.words && a.words[0] == c.name) return c.command(a);
  }
  std::cerr << kUsage;
  return 2;
}

}  // namespace
}  // namespace cohort::sim::test

int main(int count, char** words) {
  try {
    return cohort::sim::test::dispatch(cohort::sim::test::parse(count, words));
  } catch (const cohort::Error& e) {
    std::cerr << "error: " << e.what() << "\n";
    return 2;
  }
}
