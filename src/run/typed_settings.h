/// What the command line says, apart from what files and presets say: a typed setting that could do nothing is refused by
/// name.
///
///   TypedSettings typed({"train.milestones=[100]"});
///   typed.needs(schedule.kind == "multistep", {"train.milestones"}, "add train.schedule=multistep");
///   typed.refuse_what_does_nothing();
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace cohort::run {

/// The words key.path=value of a command line.
class TypedSettings {
 public:
  explicit TypedSettings(const std::vector<std::string>& words);

  /// Whether the setting was typed; with a dot at the end: one of that section.
  bool has(std::string_view path) const { return !word(path).empty(); }
  /// The last word that sets it, as it was typed; empty: there is none.
  std::string word(std::string_view path) const;
  /// Notes every typed setting of `paths` (with a dot at the end: all of that section) when it can do nothing. `remedy` says
  /// what would let it act, as in "add train.schedule=multistep".
  void needs(bool acts, const std::vector<std::string_view>& paths, const std::string& remedy);
  /// Throws Error that names what `needs` has noted.
  void refuse_what_does_nothing() const;

 private:
  struct Word {
    std::string path, text;
  };
  std::vector<Word> words_;
  std::vector<std::string> idle_;
};

}  // namespace cohort::run
