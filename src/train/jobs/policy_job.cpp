// Policies (policies/algorithm.h) on windows of robot data.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "core/json_text.h"
#include "core/utf8.h"
#include "data/disjoint.h"
#include "data/names_of_sets.h"
#include "data/open_episodes.h"
#include "data/robot_windows.h"
#include "data/transforms/component.h"
#include "data/transforms/field_vector.h"
#include "policies/algorithm.h"
#include "policies/language.h"
#include "policies/policy_settings.h"
#include "policies/recorded_fields.h"
#include "policies/statistics_of_set.h"
#include "train/jobs/job.h"
#include "train/jobs/own_fields.h"
#include "train/jobs/policy_batch.h"
#include "train/jobs/some_samples.h"
#include "train/jobs/statistics_of_sets.h"
#include "train/run.h"
#include "weights/checkpoint_folder.h"

namespace cohort::train {
namespace {

/// "action_dict/cartesian_position[3:6]->rotation_6d" of "action_dict/cartesian_position[3:6] |
/// euler_xyz->rotation_6d"; what else is done to a field stays in its name, whose numbers it changes.
std::string short_name(const std::string& component) {
  const data::ComponentText parts(component);
  if (parts.transforms.size() != 1) return component;
  const std::size_t arrow = parts.transforms.front().find("->");
  if (arrow == std::string::npos) return component;
  return parts.field + (parts.slice.empty() ? "" : "[" + parts.slice + "]") + parts.transforms.front().substr(arrow);
}

/// Without the folders of the field, which charts have no room for: "cartesian_position[3:6]->rotation_6d".
std::string leaf_name(const std::string& name) {
  const std::size_t slash = name.rfind('/', name.find('|'));
  return slash == std::string::npos ? name : name.substr(slash + 1);
}

class PolicyJob final : public Job {
 public:
  /// `trained`: the algorithm whose own job this is; null: the settings choose it.
  explicit PolicyJob(const policies::Algorithm* trained) {
    if (trained == nullptr) return;
    only_ = trained->job();
    model_.algorithm = trained->name();
  }

  std::string name() const override { return only_ ? only_->name : "policy"; }
  std::string summary() const override {
    if (only_) return only_->summary;
    return "diffusion policy or behaviour cloning from RLDS, HDF5 or LeRobot robot data; also load_from=ROBOMIMIC.json";
  }
  std::vector<std::string> basic_settings() const override {
    if (only_) return only_->basics;
    return {"data.paths",
            "data.actions",
            "data.proprio",
            "data.images",
            "data.action_normalization",
            "data.proprio_normalization",
            "validation.splits",
            "model.algorithm",
            "train.checkpoint.every",
            "rollout.enabled",
            "rollout.task"};
  }

  void describe(config::Fields& fields, RunSettings& run) override {
    // The DROID configuration's: Adam at 1e-4 without a schedule, batch 128, a moving average with power 0.75.
    run.train.batch_size = 128;
    run.train.epochs = 100;
    run.train.lr = 1e-4;
    run.train.optimizer.kind = "adam";
    run.train.ema.enabled = true;
    data_.proprio_normalization = {"bounds"};
    fields.section("data", [&] {
      data::describe(fields, data_);
      fields.add("combine_statistics", combine_statistics_, "normalise all sets by statistics over all of them");
    });
    fields.section("validation", [&] {
      fields.add("splits", validation_splits_, "of each data set, or one for all; empty: no validation");
      fields.add("sampled", sampled_, "validation samples for which actions are drawn and compared; 0: none");
    });
    for (const policies::Algorithm* one : policies::algorithms()) one->begin_training(model_);
    fields.section("model", [&] { policies::describe(fields, model_); });
    fields_ = &fields;
    run_ = &run;
    fields.alias("data.path", "data.paths");
    fields.alias("data.split", "data.splits");
    if (!only_) return;
    config::Fields of_run;
    train::describe(of_run, run);
    for (const std::string& text : only_->defaults) of_run.apply_override(text);
  }

  void load() override {
    COHORT_THROW_UNLESS(!only_ || policies::algorithm_of_job(only_->name) == &algorithm(),
                        "model.algorithm={}: `cohort train {}` trains {}; write `cohort train policy` for others",
                        model_.algorithm, only_->name, only_->title);
    COHORT_THROW_UNLESS(!data_.paths.empty(), "which data? write data.paths=FOLDER (RLDS, LeRobot) or FILE.hdf5");
    check_splits();
    COHORT_THROW_UNLESS(sampled_ >= 0, "validation.sampled = {} must not be negative", sampled_);
    if (resumes()) algorithm().resume_training(model_, *fields_, resumed_checkpoint());
    algorithm().choose_data(*fields_, data_);
    for (auto& [list, what] : {std::pair(&data_.actions, "data.actions"), std::pair(&data_.proprio, "data.proprio"),
                               std::pair(&data_.images, "data.images")})
      data::take_entries_of_sets(*list, data_.names, data_.paths.size(), what);
    choose_fields();
    policies::check(resumes() ? policies::without_files(model_) : model_);
    shape_windows();
    choose_instruction();
    data::RobotDataSettings combined = data_;
    if (combine_statistics_ && data_.paths.size() > 1 && data_.statistics.empty()) {
      // What never changes in one set may change over all of them.
      data::RobotDataSettings apart = data_;
      apart.constant_elements = "keep";
      combined.given_statistics = {combined_statistics(data::RobotWindows(apart))};
    }
    train_ = std::make_shared<data::RobotWindows>(combined);
    take_shapes();
    taken_from_data_ = algorithm().take_data(model_, *fields_, data_, *train_, resumes());
    policies::check(resumes() ? policies::without_files(model_) : model_);
    if (const std::vector<std::string> differences = train_->differences(); !differences.empty())
      log::warning(
          "the data sets hardly share the range of {}: where they mean different things, a sign or a unit, list that "
          "part "
          "apart (action[2]) and say what the set has in its place: data.names=[\"1: action[2] = action[2] | negate\"]",
          join(differences, "; "));
    for (const std::string& action : given_->kept_transformed())
      log::warning("{}, so whoever acts with this policy is given it as it is trained", action);
    check_batch_size();
    check_reach();
    if (!validation_splits_.empty()) load_validation();
    if (!resumes()) algorithm().take_instructions(model_, {train_.get(), validation_.get()});
    policies::check(resumes() ? policies::without_files(model_) : model_);
    train_samples_ = with_language(train_);
    if (!validation_) return;
    validation_samples_ = with_language(validation_);
    if (sampled_ > 0) shown_ = std::make_shared<SomeSamples>(validation_samples_, sampled_);
  }

  PredictionRequest load_request(const config::Json& statistics, const std::string& data_set) override {
    COHORT_THROW_UNLESS(data_.paths.size() == 1, "{} data sets are to be predicted: name one", data_.paths.size());
    predicts_ = true;
    algorithm().begin_prediction(model_, *fields_, data_);
    policies::check(policies::without_files(model_));
    shape_windows();
    choose_instruction();
    data_.augment = false;
    data_.given_statistics = {
        policies::statistics_of_set(json_text(statistics), data_set, "the checkpoint's statistics")};
    train_ = std::make_shared<data::RobotWindows>(data_);
    take_shapes();
    PredictionRequest request{.samples = with_language(train_), .has_truth = true};
    if (!data_.images.empty()) request.batch_size = 64;
    request.row = algorithm().newest_row(model_);
    // As they were recorded: what a sample holds is normalised, and clipped to the training's range.
    const data::EpisodeSource& source = train_->source(0);
    const data::ComponentVector actions(given_->texts(), source, "actions");
    request.recorded.resize(static_cast<std::size_t>(train_->size() * actions.width()));
    std::shared_ptr<const data::Episode> episode;
    for (std::int64_t i = 0; i < train_->size(); ++i) {
      const data::WindowAddress at = train_->address(i, 0);
      if (!episode || request.steps.back().episode != at.episode) episode = source.open(at.episode);
      request.steps.push_back({at.episode, at.step});
      actions.read(
          *episode, at.step, 1,
          std::span(request.recorded)
              .subspan(static_cast<std::size_t>(i * actions.width()), static_cast<std::size_t>(actions.width())));
    }
    return request;
  }

  std::shared_ptr<const data::Dataset> dataset(Part part) const override {
    switch (part) {
      case Part::kTrain:
        return train_samples_;
      case Part::kValidation:
        return validation_samples_;
      case Part::kTest:
        return shown_;
    }
    return nullptr;
  }

  std::string data_summary() const override {
    std::string text;
    std::istringstream lines(train_->summary());
    for (std::string line; std::getline(lines, line);) text += (text.empty() ? "" : "; ") + line;
    if (validation_) text += format("; {} validation windows", validation_->size());
    return text;
  }

  std::vector<std::string> statistics_summary() const override {
    std::vector<std::string> lines;
    const auto& of_state = data_.proprio_normalization;
    const bool as_it_is =
        std::all_of(of_state.begin(), of_state.end(), [](const auto& kind) { return kind == "none"; });
    const char* what = data_.proprio.empty() ? "actions"
                       : as_it_is            ? "actions (the state is not scaled: data.proprio_normalization=none)"
                                             : "actions and state";
    if (!data_.statistics.empty()) {
      lines.push_back(format("{}: taken from {}", what, data_.statistics));
    } else {
      std::int64_t steps = 0, episodes = 0;
      for (std::size_t set = 0; set < train_->sets(); ++set) {
        steps += train_->statistics(set).transitions, episodes += train_->statistics(set).trajectories;
        if (combine_statistics_) break;  // they all have those of all
      }
      lines.push_back(format("{}: computed from {} steps of {} episodes{}", what, steps, episodes,
                             train_->sets() == 1   ? ""
                             : combine_statistics_ ? ", all data sets alike"
                                                   : ", each data set by its own"));
    }
    lines.insert(lines.end(), taken_from_data_.begin(), taken_from_data_.end());
    return lines;
  }

  config::Json statistics() const override {
    if (train_->sets() == 1 || combine_statistics_) return data::to_json(train_->statistics(0));
    config::Json json = config::Json::object();
    for (std::size_t set = 0; set < train_->sets(); ++set)
      json[bytes_to_utf8(data_.paths[set])] = data::to_json(train_->statistics(set));
    return json;
  }

  std::shared_ptr<torch::nn::Module> make_model(std::uint64_t seed) const override {
    return policies::make_policy(resumes() ? policies::without_files(model_) : model_, seed);
  }

  at::Tensor loss(torch::nn::Module& model, const parallel::Batch& batch) const override {
    return models::as_policy(model).loss(train::observations_of(layout_, batch), batch.at("action"));
  }

  std::string loss_name() const override { return algorithm().loss_name(model_); }

  std::vector<std::string> validation_figure_names() const override {
    if (sampled_ == 0) return {};
    std::vector<std::string> names{"validation/action_mse"};
    for (const std::string& action : data_.actions) names.push_back("validation/action_mae/" + short_name(action));
    return names;
  }

  std::vector<Metric> validation_figures(torch::nn::Module& model, const parallel::Batch& batch) const override {
    if (sampled_ == 0) return {};
    std::vector<Metric> figures;
    for (const std::string& name : validation_figure_names()) {
      figures.emplace_back();
      figures.back().name = name;
    }
    // Places in the order of the whole set: the same samples whatever the number of ranks. They are those of the
    // report, spread over all episodes.
    std::vector<std::int64_t> held;
    const at::Tensor ids = batch.sample_ids.contiguous();
    for (std::int64_t i = 0; i < ids.numel(); ++i)
      if (shown_->holds(ids.const_data_ptr<std::int64_t>()[i])) held.push_back(i);
    if (held.empty()) return figures;
    const at::Tensor chosen = torch::tensor(held, at::kLong);
    parallel::Batch part;
    for (const auto& [field, tensor] : batch.fields)
      part.add(field, tensor.index_select(0, chosen.to(tensor.device())));
    part.sample_ids = batch.sample_ids.index_select(0, chosen);
    const Prediction result = predict(model, part);
    at::Tensor predicted = result.predicted.to(at::kCPU, at::kFloat).contiguous();
    at::Tensor truth = result.truth.to(at::kCPU, at::kFloat).contiguous();
    figures[0].sum = (predicted - truth).square().sum(at::kDouble).item<double>();
    figures[0].weight = static_cast<double>(truth.numel());
    const std::int64_t* indices = part.sample_ids.const_data_ptr<std::int64_t>();
    for (at::Tensor* tensor : {&predicted, &truth}) {
      *tensor = tensor->clone();
      in_units_of_sets({indices, indices + part.sample_ids.numel()},
                       {tensor->mutable_data_ptr<float>(), static_cast<std::size_t>(tensor->numel())});
    }
    const at::Tensor errors = (predicted - truth).abs();
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < widths_.size(); ++i) {
      const at::Tensor own = errors.narrow(2, begin, widths_[i]);
      figures[i + 1].sum = own.sum(at::kDouble).item<double>();
      figures[i + 1].weight = static_cast<double>(own.numel());
      begin += widths_[i];
    }
    return figures;
  }

  Prediction predict(torch::nn::Module& model, const parallel::Batch& batch) const override {
    const at::Tensor predicted = drawn_actions(model, train::observations_of(layout_, batch), batch.sample_ids);
    return {predicted, batch.at("action").narrow(1, 0, predicted.size(1))};
  }

  std::vector<std::string> target_names() const override {
    std::vector<std::string> leaves, names;
    for (const std::string& action : data_.actions) leaves.push_back(leaf_name(short_name(action)));
    for (std::size_t i = 0; i < widths_.size(); ++i) {
      const bool unique = std::count(leaves.begin(), leaves.end(), leaves[i]) == 1;
      const std::string name = unique ? leaves[i] : short_name(data_.actions[i]);
      const std::vector<std::string> elements = elements_of(data_.actions[i]);
      for (std::int64_t k = 0; k < widths_[i]; ++k)
        names.push_back(!elements.empty() ? elements[static_cast<std::size_t>(k)]
                        : widths_[i] == 1 ? name
                                          : format("{} {}", name, k));
    }
    return names;
  }

  std::vector<std::string> answer_names() const override {
    std::vector<std::string> names;
    for (const data::RecordedField& field : given_->fields()) {
      const std::string leaf = leaf_name(field.name);
      const bool unique = std::count_if(given_->fields().begin(), given_->fields().end(),
                                        [&](const auto& other) { return leaf_name(other.name) == leaf; }) == 1;
      const std::string& name = unique ? leaf : field.name;
      for (std::int64_t k = 0; k < field.width; ++k)
        names.push_back(!field.elements.empty() ? field.elements[static_cast<std::size_t>(k)]
                        : field.width == 1      ? name
                                                : format("{} {}", name, k));
    }
    return names;
  }
  std::vector<float> answers_of(std::span<const float> rows) const override {
    std::vector<float> own(rows.size() / static_cast<std::size_t>(given_->components_width()) *
                           static_cast<std::size_t>(given_->fields_width()));
    given_->take_apart(rows, own);
    return own;
  }

  std::string test_name() const override { return "validation data"; }

  void to_data_units(std::span<float> rows) const override { train_->action_normalizer(0).denormalize(rows); }
  void to_units_of(std::span<const std::int64_t> samples, std::span<float> rows) const override {
    std::vector<std::int64_t> indices;
    for (const std::int64_t sample : samples) indices.push_back(shown_->index_of(sample));
    in_units_of_sets(indices, rows);
  }

  std::vector<std::int64_t> example_samples() const override {
    std::vector<std::int64_t> samples;
    const std::int64_t size = shown_ ? shown_->size() : 0, wanted = std::min<std::int64_t>(size, kExamples);
    for (std::int64_t i = 0; i < wanted; ++i) samples.push_back(i * size / wanted);
    return samples;
  }

  report::ForecastWindow example(std::int64_t index, std::span<const float> predicted) const override {
    std::vector<float> truth = true_actions(index);
    to_units_of({&index, 1}, truth);
    const std::vector<std::string> names = target_names();
    // Another element of the action in each example, from the first to the last, which often is the gripper's.
    const auto samples = example_samples();
    const auto place = static_cast<std::size_t>(std::find(samples.begin(), samples.end(), index) - samples.begin());
    const std::size_t width = names.size(), rows = predicted.size() / width;
    const std::size_t element =
        width > samples.size() && samples.size() > 1 ? place * (width - 1) / (samples.size() - 1) : place % width;
    report::ForecastWindow window;
    window.title = format("validation sample {}", index);
    window.y_label = names[element];
    for (std::size_t row = 0; row < rows; ++row) {
      window.truth.push_back(static_cast<double>(truth[row * width + element]));
      window.prediction.push_back(static_cast<double>(predicted[row * width + element]));
    }
    return window;
  }

  std::string time_label() const override { return "actions of the chunk"; }

 private:
  static constexpr std::int64_t kExamples = 6;

  const policies::Algorithm& algorithm() const { return policies::algorithm_of(model_); }

  /// The checkpoint, or the folder of checkpoints, that the training goes on from; empty: it begins. A run that ended
  /// before its first checkpoint begins anew.
  std::filesystem::path resumed_checkpoint() const {
    const std::string& checkpoint = run_->train.checkpoint.resume;
    if (checkpoint == "none") return {};
    if (checkpoint != "auto") return checkpoint;
    if (run_->resume.empty()) return {};
    const std::filesystem::path folder = std::filesystem::path(run_->resume) / "checkpoints";
    return weights::CheckpointFolder(folder).steps().empty() ? std::filesystem::path() : folder;
  }

  /// Whether all weights come from a checkpoint: files to begin with are not read then, and need not be there any more.
  bool resumes() const { return !resumed_checkpoint().empty(); }

  /// Whether there is a batch at all; with several ranks, each of which has a share, the loop says it.
  void check_batch_size() const {
    const std::int64_t batch = run_->train.batch_size, samples = train_->size();
    COHORT_THROW_UNLESS(
        !run_->drop_last || run_->train.global_batch_size || batch <= samples,
        "train.batch_size = {}, but an epoch of the data has {} windows, and drop_last leaves out a batch "
        "that is not full: lower train.batch_size, or set drop_last=false",
        batch, samples);
  }

  /// Before anything is opened: whoever looks at the first data set takes the first split.
  void check_splits() const {
    const std::size_t splits = data_.splits.size(), sets = data_.paths.size();
    COHORT_THROW_UNLESS(splits == 1 || splits == sets,
                        "data.splits names {} splits, but data.paths {} data {}: name one split for all, or one for "
                        "each, or leave data.splits out",
                        splits, sets, sets == 1 ? "set" : "sets");
  }

  std::unique_ptr<data::EpisodeSource> open_first() const {
    return data::open_episodes(data_.paths[0], {.format = data_.format,
                                                .split = data_.splits.at(0),
                                                .on_corrupt = data_.on_corrupt,
                                                .checksums = data_.checksums,
                                                .tolerance_s = data_.tolerance_s,
                                                .index_cache = data_.index_cache});
  }

  /// Where nobody says what the policy sees and does: the data set's own fields, which is said.
  void choose_fields() {
    const bool sees_nothing = data_.proprio.empty() && data_.images.empty(), does_nothing = data_.actions.empty();
    if (!sees_nothing && !does_nothing) return;
    const auto source = open_first();
    const OwnFields own = own_fields(*source);
    const auto list = [](const std::vector<std::string>& names) { return "[" + join(names, ", ") + "]"; };
    std::string said;
    if (does_nothing) {
      COHORT_THROW_UNLESS(!own.actions.empty(),
                          "no action is named, and {} has no field of real numbers that is called so: name its parts, "
                          "data.actions=[FIELD]; it holds {}",
                          data_.paths[0], fields_text(*source));
      data_.actions = own.actions;
      said = "data.actions=" + list(own.actions);
    }
    if (sees_nothing) {
      COHORT_THROW_UNLESS(
          !own.proprio.empty() || !own.images.empty(),
          "the policy sees nothing: name data.proprio=[FIELD] or data.images=[FIELD] of {}; it holds {}",
          data_.paths[0], fields_text(*source));
      data_.proprio = own.proprio;
      data_.images = own.images;
      said += format("{}data.proprio={} data.images={}", said.empty() ? "" : " ", list(own.proprio), list(own.images));
    }
    log::info("the fields of {} itself: {}", data_.paths[0], said);
    if (!own.left_out.empty())
      log::info("not seen, since no robot measures them: {} (data.proprio takes them in)", join(own.left_out, ", "));
    if (sees_nothing && !own.beside_state.empty())
      log::info("not seen beside observation.state: {} (data.proprio takes them in)", join(own.beside_state, ", "));
    if (sees_nothing && !own.not_taken.empty())
      log::warning(
          "not seen unless they are named: {}; name what the policy shall see besides in data.proprio, or data.images",
          join(own.not_taken, "; "));
    if (sees_nothing && !own.not_fields.empty())
      log::warning("not seen, since they are no fields of a step: {}", join(own.not_fields, "; "));
  }

  /// What a window holds follows from the model.
  void shape_windows() {
    if (model_.low_dim.empty()) model_.low_dim = data_.proprio;
    if (model_.rgb.empty()) model_.rgb = data_.images;
    const auto follow = [&](const char* field, int& setting, int wanted) {
      COHORT_THROW_UNLESS(!fields_->was_set(field) || setting == wanted,
                          "{}={} contradicts the model, from which it follows as {}; leave it out", field, setting,
                          wanted);
      setting = wanted;
    };
    follow("data.observation_steps", data_.observation_steps, algorithm().observation_steps(model_));
    follow("data.action_steps", data_.action_steps, algorithm().action_steps(model_));
    follow("data.action_begin", data_.action_begin, -algorithm().newest_row(model_));
    COHORT_THROW_UNLESS(model_.low_dim.size() == data_.proprio.size(),
                        "model.low_dim names {} observations, but data.proprio has {} components",
                        model_.low_dim.size(), data_.proprio.size());
    COHORT_THROW_UNLESS(model_.rgb.size() == data_.images.size(), "model.rgb names {} cameras, but data.images has {}",
                        model_.rgb.size(), data_.images.size());
    COHORT_THROW_UNLESS(!model_.rgb.empty() || !model_.low_dim.empty(),
                        "the policy sees nothing: name data.proprio or data.images");
    if (!data_.images.empty() && data_.image_transforms.empty()) keep_stored_size();
    algorithm().choose_transforms(model_, data_);
  }

  /// Without a transform that fixes the size, images stay as they are stored.
  void keep_stored_size() {
    const auto source = open_first();
    const data::StepField& field = source->fields()[source->field_index(
        data::NamesOfSets(data_.names, data_.paths.size()).picture(0, data_.images[0]))];
    COHORT_THROW_UNLESS(field.shape.size() == 3 && field.shape[0] > 0 && field.shape[1] > 0,
                        "{}: the size of {} varies; give one: data.image_transforms=[\"resize(H, W)\"]", data_.paths[0],
                        data_.images[0]);
    data_.image_transforms = {format("resize({}, {})", field.shape[0], field.shape[1])};
  }

  /// What the model has to take follows from the data.
  void take_shapes() {
    const data::EpisodeSource& source = train_->source(0);
    const auto follow = [](const char* field, auto& setting, const auto& from_data, bool unset) {
      COHORT_THROW_UNLESS(unset || setting == from_data, "{} contradicts the data, from which it follows; leave it out",
                          field);
      setting = from_data;
    };
    widths_.clear();
    const data::NamesOfSets names(data_.names, data_.paths.size());
    const data::ComponentVector actions(names.components(0, data_.actions), source, "actions"),
        proprio(names.components(0, data_.proprio), source, "proprio");
    for (const data::Component& component : actions.components()) widths_.push_back(component.width());
    follow("model.action_widths", model_.action_widths, std::vector<int>(widths_.begin(), widths_.end()),
           model_.action_widths.empty());
    std::vector<int> low_dim;
    for (const data::Component& component : proprio.components())
      low_dim.push_back(static_cast<int>(component.width()));
    follow("model.low_dim_widths", model_.low_dim_widths, low_dim, model_.low_dim_widths.empty());
    for (const data::FieldSpec& spec : train_->fields()) {
      if (spec.name == "action")
        follow("model.action_width", model_.action_width, static_cast<int>(spec.sample_shape[1]),
               model_.action_width == 0);
      if (spec.name.starts_with("image/"))
        follow("model.image_size", model_.image_size,
               std::vector<int>{static_cast<int>(spec.sample_shape[1]), static_cast<int>(spec.sample_shape[2])},
               model_.image_size.empty());
    }
    std::vector<std::string> components = data_.proprio;
    components.insert(components.end(), data_.actions.begin(), data_.actions.end());
    model_.recorded_fields = policies::recorded_fields(source, names.components(0, components));
    for (std::size_t set = 1; set < train_->sets(); ++set)
      policies::add_fields(model_.recorded_fields,
                           policies::recorded_fields(train_->source(set), names.components(set, components)));
    given_.emplace(names.components(0, data_.actions), widths_, policies::fields_of(model_.recorded_fields),
                   data::FieldVector::Use::kGiven, data_.action_answers);
    take_recorded_pictures();
    layout_ = {.low_dim = model_.low_dim,
               .widths = model_.low_dim_widths,
               .rgb = model_.rgb,
               .images = data_.images,
               .language = model_.language.enabled() ? model_.language.name : "",
               .others = {},
               .frames = algorithm().observation_steps(model_)};
  }

  /// Whoever evaluates the policy draws its pictures as those of the data were drawn.
  void take_recorded_pictures() {
    if (data_.images.empty()) return;
    model_.recorded = policies::recorded_pictures(
        train_->source(0), data::NamesOfSets(data_.names, data_.paths.size()).picture(0, data_.images[0]));
    for (std::size_t set = 0; set < train_->sets(); ++set)
      for (const std::string& field : data::NamesOfSets(data_.names, data_.paths.size()).pictures(set, data_.images))
        model_.recorded = policies::common(model_.recorded, policies::recorded_pictures(train_->source(set), field));
  }

  /// A sampler that clamps what it draws must be able to draw every action of the data.
  void check_reach() const {
    const std::optional<double> reach = algorithm().reach(model_);
    if (!reach) return;
    constexpr double kRounding = 1e-5;  // of a normalisation in float32
    for (std::size_t set = 0; set < train_->sets(); ++set) {
      const data::VectorStatistics& actions = train_->statistics(set).action;
      std::vector<float> low(actions.min.begin(), actions.min.end()), high(actions.max.begin(), actions.max.end());
      train_->action_normalizer(set).normalize(low);
      train_->action_normalizer(set).normalize(high);
      std::size_t element = 0;
      for (std::size_t i = 0; i < widths_.size(); ++i)
        for (std::int64_t k = 0; k < widths_[i]; ++k, ++element) {
          const bool reached =
              std::max(std::abs(low[element]), std::abs(high[element])) <= static_cast<float>(*reach + kRounding);
          const auto& kinds = data_.action_normalization;
          COHORT_THROW_UNLESS(
              reached,
              "{}: actions: {}, element {}, lies in [{}, {}] with data.action_normalization={}, but what the policy "
              "draws is clamped to +-{}: set data.action_normalization=bounds (in train.action_config: "
              "\"normalization\": \"min_max\"){}, or {}",
              data_.paths[set], data_.actions[i], k, low[element], high[element], kinds[kinds.size() == 1 ? 0 : i],
              *reach, low[element] == high[element] ? " and data.constant_elements=zero" : "",
              algorithm().without_reach());
        }
    }
  }

  void load_validation() {
    data::RobotDataSettings settings = data_;
    settings.splits = validation_splits_;
    settings.augment = false;
    settings.weights.clear();  // every window once, however often training draws from its set
    settings.windows_per_episode = settings.samples_per_epoch = 0;
    for (std::size_t set = 0; set < train_->sets(); ++set) settings.given_statistics.push_back(train_->statistics(set));
    try {
      validation_ = std::make_shared<data::RobotWindows>(settings);
    } catch (const Error& e) {
      throw Error(format("validation.splits: {}; choose other splits, or none (validation.splits=[])", e.what()));
    }
    data::check_disjoint(*train_, *validation_);
  }

  /// The text that says what episodes are told, for models that take it.
  void choose_instruction() {
    data_.instruction = algorithm().instruction_field(model_, data_, resumes() || predicts_);
    if (model_.language.enabled() && data_.instruction.empty()) data_.instruction = "language_instruction";
  }

  /// Instructions as the policy takes them.
  std::shared_ptr<const data::Dataset> with_language(const std::shared_ptr<const data::RobotWindows>& windows) {
    layout_.others = algorithm().batch_observations(model_);
    if (auto samples = algorithm().with_fields(model_, windows, !data_.instruction.empty())) return samples;
    if (!model_.language.enabled()) return windows;
    return std::make_shared<policies::LanguageWindows>(
        windows, policies::embed_instructions(model_.language, windows->instructions()));
  }

  /// Actions of validation samples, as many of each, back to the units of the data set that the sample is of.
  void in_units_of_sets(std::span<const std::int64_t> samples, std::span<float> rows) const {
    const std::size_t of_sample = rows.size() / samples.size();
    for (std::size_t i = 0; i < samples.size(); ++i)
      train_->action_normalizer(validation_->address(samples[i], 0).set)
          .denormalize(rows.subspan(i * of_sample, of_sample));
  }

  /// What the numbers of a component are called, where the data say it and nothing is done to them; else empty.
  std::vector<std::string> elements_of(const std::string& component) const {
    const data::ComponentText parts(component);
    if (!parts.transforms.empty()) return {};
    for (const data::RecordedField& field : policies::fields_of(model_.recorded_fields)) {
      if (field.name != parts.field || field.elements.empty()) continue;
      const auto [low, high] = parts.range(field.width);
      return {field.elements.begin() + low, field.elements.begin() + high};
    }
    return {};
  }

  /// The normalised actions of a shown sample, row after row.
  std::vector<float> true_actions(std::int64_t index) const {
    const std::vector<data::FieldSpec> specs = shown_->fields();
    std::vector<std::vector<std::byte>> memory;
    std::vector<ArrayView> rows;
    for (const data::FieldSpec& spec : specs) {
      std::size_t elements = 1;
      for (const std::int64_t extent : spec.sample_shape) elements *= static_cast<std::size_t>(extent);
      memory.emplace_back(elements * element_size(spec.type));
      rows.push_back(make_view(memory.back().data(), spec.type, spec.sample_shape));
    }
    shown_->read(index, 0, rows);
    for (std::size_t i = 0; i < specs.size(); ++i)
      if (specs[i].name == "action") {
        const std::span<const float> values = rows[i].span<float>();
        return {values.begin(), values.end()};
      }
    throw Error("the samples have no action");
  }

  std::optional<policies::JobOfAlgorithm> only_;
  data::RobotDataSettings data_;
  policies::PolicySettings model_;
  const config::Fields* fields_ = nullptr;
  bool predicts_ = false;
  const RunSettings* run_ = nullptr;
  bool combine_statistics_ = false;
  std::vector<std::string> validation_splits_;
  std::vector<std::string> taken_from_data_;  // by the algorithm: lines for the banner
  int sampled_ = 20;
  ObservationLayout layout_;
  std::vector<std::int64_t> widths_;        // of the action's components
  std::optional<data::FieldVector> given_;  // the action as the data hold it
  std::shared_ptr<const data::RobotWindows> train_, validation_;
  std::shared_ptr<const data::Dataset> train_samples_, validation_samples_;  // these, with language where it is used
  std::shared_ptr<const SomeSamples> shown_;
};

}  // namespace

std::unique_ptr<Job> make_policy_job(const policies::Algorithm* trained) {
  return std::make_unique<PolicyJob>(trained);
}

}  // namespace cohort::train
