/// What `cohort train` trains, by the word behind it: how its words become settings, and the run with them.
///
///   Training& training = ...;                          // one of those that the command line lists
///   training.translate(words);                         // flags of other programs become settings
///   config::Fields fields;
///   training.describe(fields, words);                  // all settings with their defaults
///   training.read(fields, words);                      // those of files and words
///   return training.run(fields, words.typed);
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config.h"
#include "run/settings.h"

namespace cohort::run {

struct TrainingWords {
  std::vector<std::string> settings;  ///< key=value, in their order
  std::vector<std::string> files;     ///< of settings, in their order
  std::string resumed;                ///< config.json of the run that is continued; empty: none is
  std::string checkpoint;             ///< the one of that run that was named; empty: its newest
};

/// What `cohort estimate` and `cohort doctor --measure` want to know; nothing is trained.
struct Measurement {
  enum class Kind {
    kEstimate,  ///< memory, batch, hours
    kShapes,    ///< memory from the shapes of tensors alone
    kParts      ///< loader and step, each alone
  };
  Kind kind = Kind::kEstimate;
  bool json = false;
  std::optional<double> memory;            ///< kEstimate, kShapes: bytes that a device may take; unset: what there is
  std::optional<double> bandwidth;         ///< kEstimate: bytes/s between devices; unset: the usual ones
  std::optional<std::int64_t> batch_size;  ///< kParts: of a process; unset: as the settings say
};

class Training {
 public:
  virtual ~Training() = default;

  /// Its word, and one line for --help.
  virtual std::string name() const = 0;
  virtual std::string summary() const = 0;
  /// What --help says above the settings.
  virtual std::string usage() const = 0;
  /// What most runs set, in the order in which one thinks of it: --help explains these.
  virtual std::vector<std::string> basic_settings() const = 0;
  /// What --help says behind them.
  virtual std::string remark() const { return ""; }
  virtual RunSettings& settings() = 0;

  /// The setting that a word without a key behind the job stands for: "data.path".
  virtual std::string key_of_bare_word() const = 0;
  /// The word NAME of --NAME as a setting, where that is a switch of another program; "": it has no effect; else NAME.
  virtual std::string read_switch(const std::string& name) const { return name; }
  /// Flags of other programs become settings. `typed`: the words of the command line as they are.
  virtual void translate(TrainingWords&, const std::vector<std::string>& /*typed*/) {}

  /// Binds all settings. The words may choose the defaults.
  virtual void describe(config::Fields& fields, const TrainingWords& words) = 0;
  /// --help about a word that is no setting: true where it changes the defaults, which are then described anew.
  virtual bool has_defaults_for(const std::string&) { return false; }
  /// Sets what files and words say, words on top. Throws Error for what is wrong, contradicts itself or does nothing.
  virtual void read(config::Fields& fields, const TrainingWords& words) = 0;
  /// What more can be refused before a run is begun.
  virtual void check() {}

  /// Throws Error where it cannot be measured.
  virtual std::string measure(const Measurement& measurement, const config::Fields& fields) = 0;
  /// Returns the exit code of the process. `typed`: the settings of the command line, saved beside the resolved ones.
  virtual int run(const config::Fields& fields, const std::vector<std::string>& typed) = 0;
};

/// Throws Error for a name that is none of `names`: with what there is `instead` of a method that is known elsewhere, where that
/// is not empty, else with the nearest one.
[[noreturn]] void refuse_unknown_training(const std::string& name, const std::vector<std::string>& names,
                                          const std::string& instead = "");

}  // namespace cohort::run
