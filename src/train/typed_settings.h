/// What the command line says, against what files and presets say: a typed setting is done, or it is refused by name.
/// Settings of which one outranks another (train.global_batch_size and train.batch_size) are settled in favour of the
/// typed one; a typed setting that could do nothing (train.milestones without train.schedule=multistep) is refused.
///
///   TypedSettings typed({"train.batch_size=4", "train.milestones=[100]"});
///   settle(typed, settings);  // a global_batch_size of the file is left out, with a line; the milestones are refused
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace cohort::train {

struct RunSettings;

/// The words key.path=value of a command line.
class TypedSettings {
 public:
  explicit TypedSettings(const std::vector<std::string>& words);

  /// Whether the setting was typed; with a dot at the end: one of that section.
  bool has(std::string_view path) const { return !word(path).empty(); }
  /// The last word that sets it, as it was typed; empty: there is none.
  std::string word(std::string_view path) const;
  /// Notes every typed setting of `paths` when it can do nothing. `remedy` says what would let it act, as in
  /// "add train.schedule=multistep".
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

/// Settles pairs of settings, and refuses typed settings that contradict each other or could do nothing. Throws Error.
/// Each setting of a file that gives way is named in the log.
void settle(TypedSettings& typed, RunSettings& settings);

}  // namespace cohort::train
