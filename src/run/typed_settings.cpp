#include "run/typed_settings.h"

#include <algorithm>

#include "core/error.h"

namespace cohort::run {

namespace {

bool is_of(const std::string& typed, std::string_view path) {
  return path.ends_with('.') ? typed.starts_with(path) : typed == path;
}

}  // namespace

TypedSettings::TypedSettings(const std::vector<std::string>& words) {
  for (const std::string& text : words) words_.push_back({text.substr(0, text.find('=')), text});
}

std::string TypedSettings::word(std::string_view path) const {
  for (auto it = words_.rbegin(); it != words_.rend(); ++it)
    if (is_of(it->path, path)) return it->text;
  return "";
}

void TypedSettings::needs(bool acts, const std::vector<std::string_view>& paths, const std::string& remedy) {
  if (acts) return;
  for (const std::string_view path : paths)
    for (auto typed = words_.begin(); typed != words_.end(); ++typed) {
      const bool is_last = std::none_of(typed + 1, words_.end(), [&](const Word& w) { return w.path == typed->path; });
      if (is_last && is_of(typed->path, path)) idle_.push_back(format("{}: {}, or leave it out", typed->text, remedy));
    }
}

void TypedSettings::refuse_what_does_nothing() const {
  std::string lines;
  for (const std::string& line : idle_) lines += "\n  " + line;
  COHORT_THROW_UNLESS(idle_.empty(), "settings of the command line that would do nothing:{}", lines);
}

}  // namespace cohort::run
