#include "run/typed_settings.h"

#include "core/error.h"

namespace cohort::run {

TypedSettings::TypedSettings(const std::vector<std::string>& words) {
  for (const std::string& text : words) words_.push_back({text.substr(0, text.find('=')), text});
}

std::string TypedSettings::word(std::string_view path) const {
  for (auto it = words_.rbegin(); it != words_.rend(); ++it)
    if (path.ends_with('.') ? it->path.starts_with(path) : it->path == path) return it->text;
  return "";
}

void TypedSettings::needs(bool acts, const std::vector<std::string_view>& paths, const std::string& remedy) {
  if (acts) return;
  for (const std::string_view path : paths)
    if (has(path)) idle_.push_back(format("{}: {}, or leave it out", word(path), remedy));
}

void TypedSettings::refuse_what_does_nothing() const {
  std::string lines;
  for (const std::string& line : idle_) lines += "\n  " + line;
  COHORT_THROW_UNLESS(idle_.empty(), "settings of the command line that would do nothing:{}", lines);
}

}  // namespace cohort::run
