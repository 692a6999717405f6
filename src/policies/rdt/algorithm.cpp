// RDT as the program asks for it (policies/algorithm.h).
#include "policies/algorithm.h"

#include <algorithm>
#include <functional>

#include "core/error.h"
#include "data/robot_windows.h"
#include "policies/rdt/data.h"
#include "policies/rdt/files.h"
#include "policies/rdt/flags.h"
#include "policies/rdt/instruction_windows.h"
#include "policies/rdt/memory.h"
#include "policies/rdt/rdt_policy.h"

namespace cohort::policies {
namespace {

constexpr const char* kBeforeEpisode = "model.rdt.before_episode";

bool shows_background(const models::RdtSettings& rdt, int frames) {
  return rdt.before_episode == "background" && frames > 1;
}

class RdtAlgorithm final : public Algorithm {
  using Settings = models::RdtSettings;

 public:
  std::string name() const override { return "rdt"; }
  std::string section() const override { return "model.rdt"; }
  std::any default_settings() const override { return Settings(); }
  void describe(config::Fields& fields, PolicySettings& s) const override {
    models::describe(fields, s.of<Settings>());
  }
  void check(const PolicySettings& s) const override {
    const Settings& rdt = s.of<Settings>();
    models::check(rdt);
    COHORT_THROW_UNLESS(!s.language.enabled() || rdt.network.lang_token_dim == s.language.encoder.dim,
                        "lang_token_dim = {}, but model.language's embeddings have {} numbers",
                        rdt.network.lang_token_dim, s.language.encoder.dim);
    COHORT_THROW_UNLESS(!s.language.enabled() || rdt.lang_embed.empty(),
                        "lang_embed and model.language.weights both say what the policy is told: name one of them");
  }
  std::vector<std::pair<std::string, std::string>> files(const PolicySettings& s) const override {
    const Settings& rdt = s.of<Settings>();
    return {{"model.rdt.vision_weights", rdt.vision_weights},
            {"model.rdt.lang_embed", rdt.lang_embed},
            {"model.rdt.empty_lang_embed", rdt.empty_lang_embed},
            {"model.rdt.dataset_stat", rdt.dataset_stat}};
  }
  void forget_files(PolicySettings& s) const override {
    Settings& rdt = s.of<Settings>();
    for (std::string* file : {&rdt.vision_weights, &rdt.lang_embed, &rdt.empty_lang_embed, &rdt.dataset_stat})
      file->clear();
  }
  void begin_training(PolicySettings& s) const override { s.of<Settings>().before_episode = "background"; }
  void resume_training(PolicySettings& s, const config::Fields& fields,
                       const std::filesystem::path& checkpoint) const override {
    if (!fields.was_set(kBeforeEpisode)) s.of<Settings>().before_episode = before_episode_of(checkpoint);
  }
  std::string executed_actions_setting() const override { return "model.rdt.exec_horizon"; }

  std::shared_ptr<models::PolicyNetwork> make(const PolicySettings& s, models::ObservationEncoderSettings encoder,
                                              std::uint64_t seed) const override {
    Settings rdt = s.of<Settings>();
    rdt.observations = std::move(encoder.observations);
    if (s.language.enabled()) rdt.language_observation = s.language.name;
    return models::make_rdt_policy(rdt, seed);
  }
  void load_files(models::PolicyNetwork& network, const PolicySettings& s) const override {
    load_rdt_files(network, s.of<Settings>(), s.initial_weights);
  }
  std::string loss_name(const PolicySettings& s) const override {
    return s.of<Settings>().network.schedule.prediction_type == "sample"
               ? "mean squared error of the actions, over 128 slots"
               : "mean squared error of the noise, over 128 slots";
  }
  std::optional<MemoryShapes> memory_shapes(const PolicySettings& s) const override {
    models::check(s.of<Settings>());
    return rdt_shapes(s.of<Settings>());
  }

  int observation_steps(const PolicySettings& s) const override {
    return s.rgb.empty() ? 1 : s.of<Settings>().network.img_history_size;
  }
  int action_steps(const PolicySettings& s) const override { return s.of<Settings>().network.horizon; }
  int newest_row(const PolicySettings&) const override { return 0; }
  std::vector<models::ObservationSettings> extra_observations(const PolicySettings& s) const override {
    if (s.of<Settings>().instructions.empty()) return {};
    return {{.name = models::kInstructionObservation, .shape = {1}, .shares = ""}};
  }
  void choose_data(const config::Fields& fields, data::RobotDataSettings& data) const override {
    // The pretrained weights take the state in its own units, as their statistics file has them.
    if (!fields.was_set("data.proprio_normalization")) data.proprio_normalization = {"none"};
  }
  void choose_transforms(const PolicySettings& s, data::RobotDataSettings& data) const override {
    // Before everything else, as the reference does it on images as they are stored.
    std::vector<std::string>& steps = data.image_transforms;
    if (s.of<Settings>().image_aug && !data.images.empty() &&
        std::find(steps.begin(), steps.end(), "rdt_augment") == steps.end())
      steps.insert(steps.begin(), "rdt_augment");
  }
  std::string instruction_field(const PolicySettings& s, const data::RobotDataSettings& data,
                                bool carried) const override {
    return rdt_instruction_field(s.of<Settings>(), data, carried);
  }
  std::vector<std::string> take_data(PolicySettings& s, const config::Fields& fields,
                                     const data::RobotDataSettings& data, const data::RobotWindows& train,
                                     bool resumes) const override {
    return place_rdt_numbers(
        s.of<Settings>(), data, s.low_dim_widths, s.action_widths, train,
        {.mean = resumes,
         .frequency = fields.was_set("model.rdt.ctrl_freq") || fields.was_set("model.rdt.ctrl_freqs")});
  }
  void take_instructions(PolicySettings& s, std::initializer_list<const data::RobotWindows*> windows) const override {
    Settings& rdt = s.of<Settings>();
    policies::take_instructions(rdt, told_by(rdt, windows));
  }
  void begin_prediction(PolicySettings& s, const config::Fields& fields,
                        const data::RobotDataSettings& data) const override {
    Settings& rdt = s.of<Settings>();
    // What the checkpoint does not say is as it was before there was this setting.
    if (!fields.was_set(kBeforeEpisode)) rdt.before_episode = Settings().before_episode;
    std::vector<double>& hz = rdt.ctrl_freqs;
    std::string list;
    for (const double one : hz) list += format("{}{:g}", list.empty() ? "" : ", ", one);
    COHORT_THROW_UNLESS(std::adjacent_find(hz.begin(), hz.end(), std::not_equal_to<>()) == hz.end(),
                        "the policy learnt data sets of {} Hz: say at which the actions of {} follow one another, with "
                        "model.rdt.ctrl_freqs=[] model.rdt.ctrl_freq=HZ",
                        list, data.paths.front());
    hz.clear();  // of the data sets that it learnt
  }
  std::vector<BatchObservation> batch_observations(const PolicySettings& s) const override {
    const Settings& rdt = s.of<Settings>();
    std::vector<BatchObservation> all;
    if (!rdt.instructions.empty())
      all.push_back({.name = models::kInstructionObservation, .field = "lang_row", .every_frame = true});
    if (shows_background(rdt, observation_steps(s)))
      all.push_back({.name = models::kInEpisodeObservation, .field = "observation_mask"});
    if (!rdt.ctrl_freqs.empty()) all.push_back({.name = models::kFrequencyObservation, .field = "ctrl_freq"});
    return all;
  }
  std::shared_ptr<const data::Dataset> with_fields(const PolicySettings& s,
                                                   const std::shared_ptr<const data::RobotWindows>& windows,
                                                   bool data_say_instruction) const override {
    const Settings& rdt = s.of<Settings>();
    if (rdt.instructions.empty() && rdt.ctrl_freqs.empty()) return nullptr;
    return std::make_shared<InstructionWindows>(windows, rdt_instruction_rows(rdt, *windows, data_say_instruction),
                                                rdt.ctrl_freqs);
  }

  CarriedInstructions carried_instructions(const PolicySettings& s) const override {
    const Settings& rdt = s.of<Settings>();
    return {.observation = models::kInstructionObservation,
            .texts = rdt.instructions,
            .of_all = rdt.instruction,
            .file = rdt.lang_embed,
            .of_all_setting = "model.rdt.instruction",
            .file_setting = "model.rdt.lang_embed"};
  }
  std::vector<double> frequencies(const PolicySettings& s) const override { return s.of<Settings>().ctrl_freqs; }
  std::string one_frequency() const override { return "model.rdt.ctrl_freqs=[] model.rdt.ctrl_freq=HZ"; }

  std::optional<JobOfAlgorithm> job() const override {
    // Its reference's optimizer (main.py).
    JobOfAlgorithm job{
        .name = "rdt",
        .title = "RDT",
        .summary = "Robotics Diffusion Transformer (170M, 1B, smaller) from RLDS, HDF5 or LeRobot robot data",
        .defaults = {"train.batch_size=4", "train.epochs=1", "train.lr=5e-6", "train.optimizer=adamw",
                     "train.weight_decay=1e-2", "train.clip_norm=1"},
        .basics = {"data.paths", "data.actions", "data.images", "data.constant_elements", "model.initial_weights",
                   "model.rdt.slots", "model.rdt.hidden_size", "model.rdt.depth", "train.gradient_checkpointing",
                   "train.checkpoint.every", "rollout.task"}};
    // The embedded instructions never change.
    for (const char* strategy : {"ddp", "dp"})
      job.defaults.push_back(format("parallel.{}.constant_buffers=[lang_embed,lang_embeds,lang_mask]", strategy));
    return job;
  }
  bool is_foreign_switch(std::string_view name) const override { return is_rdt_switch(name); }
  std::string near_foreign_flag(const std::string& name) const override { return near_rdt_flag(name); }
  ForeignWords read_foreign(const std::vector<std::string>& words) const override { return read_rdt_flags(words); }
};

}  // namespace

const Algorithm& rdt_algorithm() {
  static const RdtAlgorithm algorithm;
  return algorithm;
}

}  // namespace cohort::policies
