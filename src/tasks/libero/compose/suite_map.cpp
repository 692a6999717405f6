#include "tasks/libero/compose/suite_map.h"

#include <cctype>

#include "core/error.h"
#include "core/format.h"

namespace cohort::tasks::libero::compose {
namespace {

class LiteralReader {
 public:
  LiteralReader(const std::string& text, const std::string& source, std::size_t at)
      : text_(text), source_(source), at_(at) {}

  SuiteMap dictionary() {
    SuiteMap map;
    expect('{');
    while (!taken('}')) {
      std::string key = quoted();
      expect(':');
      expect('[');
      map.emplace_back(std::move(key), std::vector<std::string>());
      while (!taken(']')) {
        map.back().second.push_back(quoted());
        // LIBERO-Pro 0.1.1 lacks a comma between two names, which Python makes one name of that no file has.
        if (!taken(',') && peek() != ']' && peek() != '"' && peek() != '\'') refuse();
      }
      if (!taken(',') && peek() != '}') refuse();
    }
    return map;
  }

 private:
  [[noreturn]] void refuse() const {
    throw Error(
        format("{}: byte {}: a dictionary of lists of texts is expected here, which is what LIBERO has", source_, at_));
  }
  char peek() {
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '#')
        at_ = std::min(text_.find('\n', at_), text_.size() - 1);
      else if (!std::isspace(static_cast<unsigned char>(text_[at_])))
        return text_[at_];
    }
    refuse();
  }
  bool taken(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!taken(c)) refuse();
  }
  std::string quoted() {
    const char quote = peek();
    if (quote != '"' && quote != '\'') refuse();
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string::npos) refuse();
    std::string value = text_.substr(at_ + 1, end - at_ - 1);
    if (value.find_first_of("\\\n/") != std::string::npos) refuse();
    at_ = end + 1;
    return value;
  }

  const std::string& text_;
  const std::string& source_;
  std::size_t at_;
};

}  // namespace

SuiteMap read_suite_map(const std::string& text, const std::string& source) {
  constexpr const char* kName = "libero_task_map";
  const std::size_t name = text.find(kName), begin = text.find('{', name == std::string::npos ? text.size() : name);
  COHORT_THROW_UNLESS(begin != std::string::npos, "{}: the dictionary {} is not in it", source, kName);
  return LiteralReader(text, source, begin).dictionary();
}

}  // namespace cohort::tasks::libero::compose
