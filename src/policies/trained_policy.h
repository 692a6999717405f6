/// A policy that `cohort train policy` has trained, as it acts: observations and actions in the units of the data.
///
///   TrainedPolicy policy("outputs/pusht/latest");            // a run, a folder of checkpoints, or a checkpoint
///   policy.begin(environment);                                // at the start of its episode
///   const std::vector<float> actions = policy.act({0, 1}, {.low_dim = states});     // states (2, low_dim_width())
///
/// A policy's folder as LeRobot writes it acts likewise (lerobot_folder.h).
///
/// How it acts is its network's own (models/policy_network.h): a diffusion policy by receding horizon, behaviour
/// cloning by its memory; the weights are the moving average where there is one. The checkpoint holds all that is
/// needed: neither the data nor the configuration they were trained with must be at hand.
///
/// Instructions are texts. Some policies carry the embeddings of those that they learnt, and look others up in a file that
/// the run's configuration or an override names (algorithm.h); of others, the language encoder lies where model.language
/// says. A policy whose data held embeddings as one of their low-dimensional fields takes texts in place of its numbers,
/// too, once overrides name that observation and the encoder that made them:
///
///   TrainedPolicy policy(run, {.overrides = {"model.language.name=lang_fixed/language_distilbert",
///       "model.language.weights=distilbert.safetensors", "model.language.vocabulary=vocab.txt"}});
///   policy.act({0}, {.low_dim = state, .instructions = {"close the drawer"}});
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/array_view.h"
#include "core/config.h"
#include "data/transforms/field_vector.h"
#include "policies/recorded_pictures.h"
#include "policy/registry.h"

namespace torch::nn {
class Module;
}

namespace cohort::policies {

/// A policy whose training goes on: its weights as they are when it acts.
struct PolicyInTraining {
  torch::nn::Module* module = nullptr;  ///< in evaluation mode while it acts; must outlive the TrainedPolicy
  std::string configuration;            ///< JSON: of the run, as its checkpoints hold it
  std::string statistics;               ///< JSON: of the data, likewise
};

class TrainedPolicy {
 public:
  /// Throws Error naming the file and what is wrong with it: no checkpoint, one of another job, weights that do not
  /// fit.
  explicit TrainedPolicy(const std::filesystem::path& path, const policy::LoadSettings& settings = {});
  /// Acts with the module on the device where it is; settings.device and settings.averaged have no meaning here.
  explicit TrainedPolicy(const PolicyInTraining& training, const policy::LoadSettings& settings = {});
  ~TrainedPolicy();
  TrainedPolicy(TrainedPolicy&&) noexcept;
  TrainedPolicy& operator=(TrainedPolicy&&) noexcept;

  /// Forgets what the environment has seen and what it was about to do: at the start of an episode.
  /// `instruction`: what the environment is told to do, for policies that see it; "": as before.
  void begin(std::uint64_t environment, const std::string& instruction = "");
  /// Its episode is over: nothing is kept of it.
  void end(std::uint64_t environment);
  /// (n, action_width()): one action for each of the environments, whose numbers must differ, in the units of the data.
  /// Whichever environments act together, each gets the same actions, bit for bit. Throws Error for frames of another
  /// size, and for values that are not finite.
  /// The frame holds the fields that low_dim_fields() lists, transformed and normalised here, and a view for each of
  /// cameras(), for which the image transforms of the training are done here, without their random ones. A text is embedded
  /// once, whoever is told it.
  std::vector<float> act(const std::vector<std::uint64_t>& environments, const policy::Frame& frame);

  /// The same weights and settings, and no environment yet: what several that act apart, e.g. clients of a server, use.
  /// It shares the networks with this one, which it must not outlive.
  TrainedPolicy another() const;

  // For who is asked now and then rather than at every frame.

  /// A frame at which nothing is asked.
  void see(const std::vector<std::uint64_t>& environments, const policy::Frame& frame);
  /// (n, rows, action_width()): the next actions of each environment after this frame, as many as act() would hand out before
  /// it decides anew; they are then no longer handed out. Together with see() the same bits as act() at every frame. None of
  /// the environments' actions is left to be handed out.
  std::vector<float> act_ahead(const std::vector<std::uint64_t>& environments, const policy::Frame& frame);
  bool remembers() const;       ///< more than the last frames(): a recurrent network, which must see every frame
  std::int64_t frames() const;  ///< that a decision looks at, the last ones
  std::int64_t chunk() const;   ///< rows of act_ahead()

  /// The environments take an action every `seconds`. A policy that learnt data sets of several control frequencies and
  /// acts by them (an algorithm's frequencies()) must be told so before it acts; of others nothing depends on it. Throws Error with the choices
  /// where it learnt no such frequency.
  void act_every(double seconds);
  /// "10, 25": Hz of which one must be told by act_every() before it acts; empty where none must, or one has been.
  std::string frequencies_to_choose() const;

  /// data.stride: control steps from one frame, and one action, to the next. Whoever steps an environment asks act() at
  /// every so many steps only, and holds the action in between.
  int stride() const;
  int action_width() const;
  int low_dim_width() const;
  /// Fields of data.proprio that the caller has to provide, before the transforms that training did: all but an embedding
  /// that instructions give. A component for which there is no such field stands for itself, as it was trained.
  const std::vector<data::RecordedField>& low_dim_fields() const;
  bool takes_instructions() const;
  /// What it does where it is told nothing in all episodes; empty: it must be told.
  const std::string& own_instruction() const;
  const std::vector<std::string>& cameras() const;  ///< data.images
  /// What drew the pictures that it learnt from; whoever shows it others says so.
  const RecordedPictures& pictures() const;
  /// Fields of data.actions, in whose own numbers it acts: what training did to them is taken back. A component that
  /// nothing leads back from, or that is part of a field, stands for itself.
  const std::vector<data::RecordedField>& action_fields() const;
  /// Components of data.actions that it gives as they were trained, and why; mostly empty.
  const std::vector<std::string>& one_way_actions() const;
  bool exact() const;  ///< policy::LoadSettings::exact
  std::int64_t parameters() const;
  std::int64_t step() const;                  ///< of the training, when the checkpoint was written
  const config::Json& configuration() const;  ///< of the run
  std::string summary() const;                ///< a line for logs: which checkpoint, weights, parameters

 private:
  struct Impl;
  explicit TrainedPolicy(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::policies
