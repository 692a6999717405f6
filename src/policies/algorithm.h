/// What learns from demonstrations, by the name in model.algorithm, and all that the rest of the program asks of it: its
/// settings and files, its network, what it asks of a window of data, its words on the command line.
///
/// One is a folder of policies/ that defines `const Algorithm& <folder>_algorithm()`, and a word of policies_folders in
/// policies/CMakeLists.txt. No file of src outside its folder names it.
#pragma once
#include <any>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/config.h"
#include "models/policy_network.h"
#include "policies/memory_shapes.h"
#include "policies/policy_settings.h"
#include "weights/named_tensors.h"

namespace cohort::data {
class Dataset;
class RobotWindows;
struct RobotDataSettings;
}  // namespace cohort::data

namespace cohort::config {
class JsonSection;
}

namespace cohort::policies {

struct LeRobotPolicy;
struct RobomimicPolicy;

/// A word of `cohort train` that trains one algorithm, with its reference's defaults.
struct JobOfAlgorithm {
  std::string name;                   ///< "act"
  std::string title;                  ///< as texts call the algorithm: "ACT"
  std::string summary;                ///< a line for --help
  std::vector<std::string> defaults;  ///< KEY=VALUE, where they differ from those of `cohort train policy`
  std::vector<std::string> basics;    ///< the settings that --help lists first
};

/// The command line of an algorithm's reference as settings.
struct ForeignWords {
  /// Settings: first those of the files that flags name, then in the order of the flags.
  std::vector<std::string> overrides;
  std::size_t of_files = 0;           ///< how many of them are of files
  bool names_output_dir = false;      ///< the reference's flag for the folder of log and checkpoints was there
  std::vector<std::string> defaults;  ///< the reference's, which hold where no file and no flag says another thing
  std::vector<std::string> notes;     ///< flags that have no effect here, with the reason
};

/// An observation that is a field of a batch.
struct BatchObservation {
  std::string name, field;
  bool every_frame = false;  ///< one value a sample, which each of its frames sees
};

/// Embedded instructions that a network carries, and is told by number.
struct CarriedInstructions {
  std::string observation;                   ///< (1), the number
  std::vector<std::string> texts;            ///< empty: it carries none
  std::string of_all;                        ///< what it is told in all episodes; empty: what each episode says
  std::string file;                          ///< of embeddings, where others than `texts` may be
  std::string of_all_setting, file_setting;  ///< what sets them
};

class Algorithm {
 public:
  virtual ~Algorithm() = default;
  virtual std::string name() const = 0;     ///< of model.algorithm
  virtual std::string section() const = 0;  ///< of its settings: "model.NAME"

  // Settings

  /// A default object of its settings' type, which PolicySettings::of() gives.
  virtual std::any default_settings() const = 0;
  /// Binds them in the section that is open.
  virtual void describe(config::Fields& fields, PolicySettings& settings) const = 0;
  /// Throws Error naming the field of its section that is out of range. An action width of 0 will come from the data.
  virtual void check(const PolicySettings& settings) const = 0;
  /// Settings that name files to begin with, and the files.
  virtual std::vector<std::pair<std::string, std::string>> files(const PolicySettings&) const { return {}; }
  /// Leaves them out: the weights come from a checkpoint.
  virtual void forget_files(PolicySettings&) const {}
  /// Sets what new trainings have otherwise than checkpoints that do not say it.
  virtual void begin_training(PolicySettings&) const {}
  /// Takes what the user has not set from the checkpoint, or folder of checkpoints, that a training goes on from.
  virtual void resume_training(PolicySettings&, const config::Fields&, const std::filesystem::path&) const {}
  /// How many actions of a chunk are executed: the setting. Empty: it gives one action at a time.
  virtual std::string executed_actions_setting() const { return ""; }

  // Network

  /// A network in training mode on the CPU, its weights drawn from `seed`.
  virtual std::shared_ptr<models::PolicyNetwork> make(const PolicySettings& settings,
                                                      models::ObservationEncoderSettings encoder,
                                                      std::uint64_t seed) const = 0;
  /// Copies the weights that files of the settings hold into it: initial_weights, with our names or the reference's.
  virtual void load_files(models::PolicyNetwork& network, const PolicySettings& settings) const;
  /// Whether the reference gives its weights other names (`cohort convert-weights`).
  virtual bool renames_weights() const { return false; }
  /// What its loss is, for charts.
  virtual std::string loss_name(const PolicySettings& settings) const = 0;
  /// The largest normalised action that it can give, in size; nothing: any.
  virtual std::optional<double> reach(const PolicySettings&) const { return std::nullopt; }
  /// What lifts that bound: a setting, KEY=VALUE.
  virtual std::string without_reach() const { return ""; }
  /// For `cohort estimate --shapes`; nothing: a training is measured instead. Throws Error as check() does.
  virtual std::optional<MemoryShapes> memory_shapes(const PolicySettings&) const { return std::nullopt; }

  // What it asks of a window of data, in the order of the questions (train/jobs/policy_job.cpp)

  /// Frames of observations per sample, and rows of actions.
  virtual int observation_steps(const PolicySettings& settings) const = 0;
  virtual int action_steps(const PolicySettings& settings) const = 0;
  /// Row of a sample's actions that belongs to its newest frame.
  virtual int newest_row(const PolicySettings& settings) const = 0;
  /// Frames that one of its decisions sees; fewer than observation_steps() where it remembers the others.
  virtual int frames_per_decision(const PolicySettings& settings) const { return observation_steps(settings); }
  /// Observations beside low_dim, language and rgb, before the cameras.
  virtual std::vector<models::ObservationSettings> extra_observations(const PolicySettings&) const { return {}; }
  /// Sets the data's settings that the user has left, and whose default is another one for it.
  virtual void choose_data(const config::Fields&, data::RobotDataSettings&) const {}
  /// Adds its own transforms of training images.
  virtual void choose_transforms(const PolicySettings&, data::RobotDataSettings&) const {}
  /// The field with the text that an episode is told; empty: none. `carried`: the instructions are those of a checkpoint.
  virtual std::string instruction_field(const PolicySettings&, const data::RobotDataSettings& data, bool carried) const;
  /// Fills what follows from the data, and says it: lines for the banner.
  virtual std::vector<std::string> take_data(PolicySettings&, const config::Fields&, const data::RobotDataSettings&,
                                             const data::RobotWindows& /*train*/, bool /*resumes*/) const {
    return {};
  }
  /// Takes the instructions that the data tell; null: no such part.
  virtual void take_instructions(PolicySettings&, std::initializer_list<const data::RobotWindows*>) const {}
  /// Fits the settings of a checkpoint to data that are to be predicted.
  virtual void begin_prediction(PolicySettings&, const config::Fields&, const data::RobotDataSettings&) const {}
  /// Fields of a batch that it sees beside what the settings name.
  virtual std::vector<BatchObservation> batch_observations(const PolicySettings&) const { return {}; }
  /// The windows with those fields; null: as they are.
  virtual std::shared_ptr<const data::Dataset> with_fields(const PolicySettings&,
                                                           const std::shared_ptr<const data::RobotWindows>&,
                                                           bool /*data_say_instruction*/) const {
    return nullptr;
  }

  // Acting

  virtual CarriedInstructions carried_instructions(const PolicySettings&) const { return {}; }
  /// Hz of each data set that it learnt, where it acts by them; empty: nothing depends on it.
  virtual std::vector<double> frequencies(const PolicySettings&) const { return {}; }
  /// The settings that make it act at one of them: "KEY=VALUE KEY=HZ".
  virtual std::string one_frequency() const { return ""; }

  // Configurations of robomimic (policies/robomimic.h)

  /// Whether robomimic has it: its name() is an algo_name.
  virtual bool is_robomimics() const { return false; }
  /// Reads the section algo, which refuses what cannot be honoured. An empty one gives robomimic's defaults.
  virtual void read_robomimic(config::JsonSection&, PolicySettings&, RobomimicPolicy&) const {}
  /// Fits the settings to the DROID fork's RLDS pipeline; a text: why that cannot be.
  virtual std::string fit_robomimic_stream(PolicySettings&) const { return ""; }

  // LeRobot's folders (policies/lerobot_folder.h)

  /// What config.json of such a folder calls it in "type"; empty: LeRobot has no such policy, or its weights differ.
  virtual std::string lerobot_type() const { return ""; }
  /// Its own fields of config.json as settings. Throws Error naming the field that cannot be honoured.
  virtual void read_lerobot(const LeRobotPolicy&, PolicySettings&) const {}
  virtual void write_lerobot(const PolicySettings&, LeRobotPolicy&) const {}
  /// Our weights as LeRobot has them, and LeRobot's as we have them. Throws Error naming a weight that has no counterpart.
  virtual weights::NamedTensors lerobot_weights(const PolicySettings&, weights::NamedTensors own) const { return own; }
  virtual weights::NamedTensors weights_of_lerobot(const PolicySettings&, weights::NamedTensors theirs) const {
    return theirs;
  }

  // Command line

  /// The word of `cohort train` that trains it, beside `policy model.algorithm=NAME`.
  virtual std::optional<JobOfAlgorithm> job() const { return std::nullopt; }
  /// What people look for it by, in small letters without - _ and dots, and what to tell them.
  virtual std::vector<std::string> other_names() const { return {}; }
  virtual std::string where_it_is() const { return ""; }
  /// Whether the reference's command line has a switch of this name: one without a value.
  virtual bool is_foreign_switch(std::string_view) const { return false; }
  /// The reference's flag that is meant by a misspelt one; empty: none is near.
  virtual std::string near_foreign_flag(const std::string&) const { return ""; }
  /// `words`: NAME=VALUE, of which the reference's become settings. Throws Error naming every flag that cannot be honoured.
  virtual ForeignWords read_foreign(const std::vector<std::string>& words) const;
};

/// All of them; the first is the default.
const std::vector<const Algorithm*>& algorithms();
/// One more, of a program that links this library: before any PolicySettings are made. It must outlive them.
void add_algorithm(const Algorithm& algorithm);
/// The one that model.algorithm names. Throws Error for another name.
const Algorithm& algorithm_of(const PolicySettings& settings);
/// The one that `cohort train NAME` trains; null: that is no word of an algorithm.
const Algorithm* algorithm_of_job(std::string_view name);

}  // namespace cohort::policies
