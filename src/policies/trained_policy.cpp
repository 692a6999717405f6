#include "policies/trained_policy.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include <ATen/Context.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "core/json_text.h"
#include "core/near_file.h"
#include "core/utf8.h"
#include "data/images/image_pipeline.h"
#include "data/names_of_sets.h"
#include "data/robot_statistics.h"
#include "data/robot_windows.h"
#include "data/transforms/normalization.h"
#include "models/policy_network.h"
#include "policies/algorithm.h"
#include "policies/instruction_embeddings.h"
#include "policies/lerobot_folder.h"
#include "policies/policy_settings.h"
#include "policies/statistics_of_set.h"
#include "tensors/convert.h"
#include "tensors/processor.h"
#include "weights/checkpoint.h"
#include "weights/weights.h"

namespace cohort::policies {
using config::Json;

struct TrainedPolicy::Impl {
  Impl(const std::filesystem::path& path, const policy::LoadSettings& wanted) {
    COHORT_THROW_UNLESS(std::filesystem::exists(path), "{}: there is no such run or checkpoint{}", path.string(),
                        near_file(path));
    const DeviceId device_id = parse_device(wanted.device);
    device = tensors::to_torch_device(device_id);
    COHORT_THROW_UNLESS(
        !device.is_cuda() || at::globalContext().hasCUDA(),
        "device {} cannot be used: LibTorch's CUDA part is not loaded; dist::check_device() loads it, or says "
        "why it cannot",
        wanted.device);
    tensors::prepare_arithmetic();
    const weights::ResumePoint point =
        is_lerobot_folder(path)
            ? weights::ResumePoint{path, read_lerobot_folder(path)}
            : weights::find_resume_point(path.string(), {}, weights::CheckpointParts::kWeights).value();
    const std::string source = point.path.string();  // the checkpoint, where a run was named
    const weights::CheckpointContent& content = point.content;
    prepare(content.state.configuration, content.dataset_statistics, source, wanted);
    step = content.state.step;
    policy = make_policy(model, /*seed=*/0);
    averaged = wanted.averaged && !content.ema.empty();
    weights::load_weights(*policy, averaged ? content.ema : content.model, content.model_aliases,
                          source + "/" + (averaged ? weights::kEmaFile : weights::kModelFile));
    policy->to(device);
    policy->eval();
    for (const at::Tensor& parameter : policy->parameters()) {
      at::Tensor(parameter).requires_grad_(false);
      parameters += parameter.numel();
    }
    seed = wanted.seed;
    make_control();
    const std::string whose =
        is_lerobot_folder(path) ? "a LeRobot folder, which does not say its step" : format("step {}", step);
    summary = format("{}: {}, {} parameters, {} of {}", source, model.algorithm, parameters,
                     averaged ? "moving average" : "weights", whose);
  }

  Impl(const PolicyInTraining& training, const policy::LoadSettings& wanted) {
    const std::string source = "the training";
    prepare(training.configuration, training.statistics, source, wanted);
    // It stays the training's.
    policy =
        std::shared_ptr<models::PolicyNetwork>(&models::as_policy(*training.module), [](models::PolicyNetwork*) {});
    for (const at::Tensor& parameter : policy->parameters()) {
      device = parameter.device();
      parameters += parameter.numel();
    }
    seed = wanted.seed;
    make_control();
    summary = format("{} in training, {} parameters", model.algorithm, parameters);
  }

  /// With environments of its own.
  Impl(const Impl& other, std::uint64_t own_seed)
      : configuration(other.configuration),
        data(other.data),
        model(other.model),
        language(other.language),
        text_place(other.text_place),
        seen_fields(other.seen_fields),
        given_fields(other.given_fields),
        actions(other.actions),
        low_dim(other.low_dim),
        policy(other.policy),
        device(other.device),
        embeddings(other.embeddings),
        instruction_rows(other.instruction_rows),
        carried(other.carried),
        averaged(other.averaged),
        exact(other.exact),
        frequency_known(other.frequency_known),
        network_width(other.network_width),
        low_dim_width(other.low_dim_width),
        parameters(other.parameters),
        step(other.step),
        summary(other.summary),
        seed(own_seed) {
    if (other.images) images.emplace(data.image_transforms);
    make_control();
  }

  void make_control() {
    control = policy->control(seed);
    control->set_exact(exact);
  }

  /// All but the module.
  void prepare(const std::string& configuration_text, const std::string& statistics_text, const std::string& source,
               const policy::LoadSettings& wanted) {
    exact = wanted.exact;
    configuration = try_json<Json>(configuration_text);
    std::vector<std::string> overrides = wanted.overrides;
    if (wanted.exec_horizon > 0)
      for (const Algorithm* one : algorithms())
        if (const std::string setting = one->executed_actions_setting(); !setting.empty())
          overrides.push_back(format("{}={}", setting, wanted.exec_horizon));
    try {
      read_configuration(source, overrides);
    } catch (const Error& e) {
      if (wanted.exec_horizon == 0) throw;
      read_configuration(source, wanted.overrides);  // what is wrong without the flag is told as it is
      throw Error(format("--exec-horizon {}: {}", wanted.exec_horizon, e.what()));
    }
    const data::RobotStatistics statistics =
        statistics_of_set(statistics_text, wanted.data_set, source + "/" + weights::kStatisticsFile);
    const std::vector<std::int64_t> action_widths(model.action_widths.begin(), model.action_widths.end()),
        low_dim_widths(model.low_dim_widths.begin(), model.low_dim_widths.end());
    actions.emplace(data.action_normalization, action_widths, statistics.action, data.constant_elements,
                    source + ": actions");
    for (const int width : model.low_dim_widths) network_width += width;
    // Of the data set in whose numbers it acts: it may call them otherwise than the others.
    const auto of_set = std::find(data.paths.begin(), data.paths.end(), wanted.data_set);
    const auto set =
        of_set == data.paths.end() ? std::size_t{0} : static_cast<std::size_t>(of_set - data.paths.begin());
    const data::NamesOfSets names(data.names, std::max<std::size_t>(1, data.paths.size()));
    data.proprio = names.components(set, data.proprio);
    data.actions = names.components(set, data.actions);
    data.images = names.pictures(set, data.images);
    std::vector<std::string> components = data.proprio;
    std::vector<std::int64_t> widths = low_dim_widths;
    if (text_place) {
      components.erase(components.begin() + static_cast<std::ptrdiff_t>(*text_place));
      widths.erase(widths.begin() + static_cast<std::ptrdiff_t>(*text_place));
    }
    COHORT_THROW_UNLESS(components.size() == widths.size(), "{}: {} components of data.proprio have {} low_dim_widths",
                        source, components.size(), widths.size());
    COHORT_THROW_UNLESS(data.actions.size() == action_widths.size(), "{}: {} components of data.actions have {} widths",
                        source, data.actions.size(), action_widths.size());
    std::vector<data::RecordedField> fields = fields_of(model.recorded_fields);
    // Whoever gives texts has not the numbers that the data held in their place.
    if (text_place)
      std::erase_if(fields, [&](const data::RecordedField& field) {
        return field.name == data::ComponentText(data.proprio[*text_place]).field;
      });
    seen_fields.emplace(components, widths, fields, data::FieldVector::Use::kSeen);
    given_fields.emplace(data.actions, action_widths, fields, data::FieldVector::Use::kGiven, data.action_answers);
    low_dim_width = static_cast<int>(seen_fields->fields_width());
    if (network_width > 0)
      low_dim.emplace(data.proprio_normalization, low_dim_widths, statistics.proprio, data.constant_elements,
                      source + ": proprio");
    if (!model.rgb.empty()) images.emplace(data.image_transforms);
  }

  /// The sections "data" and "model".
  void read_configuration(const std::string& source, const std::vector<std::string>& overrides) {
    const Json::json_pointer algorithm("/model/algorithm"), job("/job");
    COHORT_THROW_UNLESS(
        configuration.contains(algorithm),
        "{} is no checkpoint of a policy{}: in a task acts what `cohort train policy`, `rdt` or `ppo` "
        "has learnt",
        source,
        configuration.contains(job) && configuration.at(job).is_string()
            ? format(" but of `cohort train {}`, which `cohort predict` uses", configuration.at(job).get<std::string>())
            : "");
    bool combine_statistics = false;  // the checkpoint's statistics say it
    config::Fields fields;
    fields.section("data", [&] {
      data::describe(fields, data);
      fields.add("combine_statistics", combine_statistics, "");
    });
    fields.section("model", [&] { describe(fields, model); });
    Json sections = Json::object();
    for (const char* name : {"data", "model"}) sections[name] = configuration.at(name);
    fields.apply_json(sections, source);
    for (const std::string& text : overrides) fields.apply_override(text);
    const auto named = std::find(model.low_dim.begin(), model.low_dim.end(), model.language.name);
    if (model.language.enabled() && named != model.low_dim.end()) {
      // The data held embeddings: texts stand for numbers that the network already sees, and for no observation more.
      text_place = static_cast<std::size_t>(named - model.low_dim.begin());
      language = std::exchange(model.language, {});
      COHORT_THROW_UNLESS(model.low_dim_widths.at(*text_place) == language.encoder.dim,
                          "{}: {} has {} numbers, but model.language.encoder.dim is {}", source, language.name,
                          model.low_dim_widths[*text_place], language.encoder.dim);
    } else {
      language = model.language;
    }
    // The weights come from the checkpoint. Instructions that it does not carry may be where the run took its own from.
    carried = algorithm_of(model).carried_instructions(model);
    model = without_files(std::move(model));
    COHORT_THROW_UNLESS(model.action_width > 0 && !model.action_widths.empty(),
                        "{}: the configuration lacks model.action_widths", source);
  }

  std::vector<float> act(const std::vector<std::uint64_t>& environments, const policy::Frame& frame) {
    return actions_of(control->act(environments, observe(environments, frame)));
  }

  /// (rows, A) as the network gives them -> as the data hold them.
  std::vector<float> actions_of(at::Tensor chosen) const {
    chosen = chosen.to(at::kCPU, at::kFloat).contiguous();
    const float* values = chosen.const_data_ptr<float>();
    std::vector<float> rows(values, values + chosen.numel());
    actions->denormalize(rows);
    if (given_fields->is_plain()) return rows;
    std::vector<float> own(rows.size() / static_cast<std::size_t>(given_fields->components_width()) *
                           static_cast<std::size_t>(given_fields->fields_width()));
    given_fields->take_apart(rows, own);
    return own;
  }

  /// A frame as the network sees it.
  models::Observations observe(const std::vector<std::uint64_t>& environments, const policy::Frame& frame) {
    const auto n = static_cast<std::int64_t>(environments.size());
    COHORT_THROW_UNLESS(n > 0, "no environment is to act");
    COHORT_THROW_UNLESS(frequency_known || frequencies().empty(),
                        "the policy learnt data of {} Hz and has not been told how often it acts (act_every); {} makes "
                        "it act at one",
                        frequencies(), algorithm_of(model).one_frequency());
    COHORT_THROW_UNLESS(std::set<std::uint64_t>(environments.begin(), environments.end()).size() == environments.size(),
                        "an environment is named twice");
    COHORT_THROW_UNLESS(frame.instructions.empty() || frame.instructions.size() == environments.size(),
                        "{} instructions for {} environments", frame.instructions.size(), n);
    for (std::size_t i = 0; i < frame.instructions.size(); ++i)
      if (!frame.instructions[i].empty()) instruct(environments[i], frame.instructions[i]);
    models::Observations seen;
    add_low_dim(frame.low_dim, environments, seen);
    add_images(frame.images, n, seen);
    if (model.language.enabled()) {
      std::vector<float> rows;
      for (const std::uint64_t environment : environments) {
        const std::vector<float>& row = embedding_of(environment);
        rows.insert(rows.end(), row.begin(), row.end());
      }
      seen[model.language.name] = torch::tensor(rows).reshape({n, model.language.encoder.dim}).to(device);
    }
    if (takes_rows()) {
      std::vector<std::int64_t> rows;
      for (const std::uint64_t environment : environments) rows.push_back(row_of(environment));
      seen[carried.observation] = torch::tensor(rows, at::kLong).reshape({n, 1}).to(device);
    }
    return seen;
  }

  void add_low_dim(std::span<const float> given, const std::vector<std::uint64_t>& environments,
                   models::Observations& seen) const {
    const auto n = static_cast<std::int64_t>(environments.size());
    COHORT_THROW_UNLESS(given.size() == static_cast<std::size_t>(n) * static_cast<std::size_t>(low_dim_width),
                        "{} low-dimensional numbers for {} environments, but the policy takes {} of each", given.size(),
                        n, low_dim_width);
    if (network_width == 0) return;
    for (std::size_t i = 0; i < given.size(); ++i)
      COHORT_THROW_UNLESS(std::isfinite(given[i]), "low-dimensional number {} of environment {} of the frame is {}",
                          i % static_cast<std::size_t>(low_dim_width), i / static_cast<std::size_t>(low_dim_width),
                          given[i]);
    at::Tensor rows = at::empty({n, network_width}, at::kFloat);
    float* value = rows.mutable_data_ptr<float>();
    std::vector<float> composed(static_cast<std::size_t>(n * seen_fields->components_width()));
    seen_fields->compose(given, composed);
    const float* next = composed.data();
    for (const std::uint64_t environment : environments)
      for (std::size_t i = 0; i < model.low_dim_widths.size(); ++i) {
        const int width = model.low_dim_widths[i];
        value = std::copy_n(i == text_place ? embedding_of(environment).data() : next, width, value);
        if (i != text_place) next += width;
      }
    low_dim->normalize({rows.mutable_data_ptr<float>(), static_cast<std::size_t>(rows.numel())});
    rows = rows.to(device);
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < model.low_dim.size(); ++i) {
      seen[model.low_dim[i]] = rows.narrow(1, begin, model.low_dim_widths[i]);
      begin += model.low_dim_widths[i];
    }
  }

  void add_images(std::span<const ArrayView> given, std::int64_t n, models::Observations& seen) const {
    COHORT_THROW_UNLESS(given.size() == model.rgb.size(), "{} cameras are given, but the policy sees {}", given.size(),
                        model.rgb.size());
    const RandomStream unused(0, RandomPurpose::kAugmentation, 0, 0);
    for (std::size_t camera = 0; camera < given.size(); ++camera) {
      const ArrayView& view = given[camera];
      COHORT_THROW_UNLESS(view.type == ElementType::kUInt8 && view.rank == 4 && view.shape[0] == n &&
                              view.shape[3] == 3 && view.device.kind == DeviceKind::kCpu,
                          "images of {} must be (n, height, width, 3) uint8 on the CPU", model.rgb[camera]);
      const at::Tensor frames = tensors::to_tensor(view).contiguous();
      at::Tensor transformed = at::empty({n, images->height(), images->width(), 3}, at::kByte);
      data::Image image;
      image.resize(view.shape[1], view.shape[2], 3);
      for (std::int64_t i = 0; i < n; ++i) {
        std::memcpy(image.pixels.data(), frames[i].const_data_ptr<std::uint8_t>(), image.pixels.size());
        images->run(image, /*augment=*/false, unused, camera, transformed[i].mutable_data_ptr<std::uint8_t>());
      }
      seen[model.rgb[camera]] = transformed.to(device);
    }
  }

  /// "10, 25": frequencies that it learnt, where they are several and it acts by them; else "".
  std::string frequencies() const {
    const std::vector<double> of_sets = algorithm_of(model).frequencies(model);
    std::string text;
    const std::set<double> learnt(of_sets.begin(), of_sets.end());
    if (learnt.size() < 2) return "";
    for (const double hz : learnt) text += format("{}{:g}", text.empty() ? "" : ", ", hz);
    return text;
  }

  void act_every(double seconds) {
    const std::string learnt = frequencies();
    if (learnt.empty()) return;
    constexpr double kSame = 0.01;  // control periods are sums of time steps
    for (const double hz : algorithm_of(model).frequencies(model)) {
      if (std::abs(hz * seconds - 1) > kSame) continue;
      policy->set_frequency(hz);
      frequency_known = true;
      return;
    }
    throw Error(
        format("the policy learnt data of {} Hz, and here an action is taken at {:.4g} Hz: {} makes it act at one",
               learnt, 1 / seconds, algorithm_of(model).one_frequency()));
  }

  /// Whether the policy carries embedded instructions, by number.
  bool takes_rows() const { return !carried.texts.empty(); }

  std::int64_t row_of(std::uint64_t environment) {
    const auto told = instructions.find(environment);
    const std::string text = told != instructions.end() ? told->second : carried.of_all;
    COHORT_THROW_UNLESS(!text.empty(),
                        "the policy sees instructions, and environment {} has none: begin(environment, text)",
                        environment);
    find_instruction(text);
    return instruction_rows->at(text);
  }

  /// Finds a text among those that the checkpoint carries, else in the file that the run took them from or an override
  /// names.
  void find_instruction(const std::string& text) {
    if (instruction_rows->contains(text)) return;
    const std::vector<std::string>& known = carried.texts;
    if (const auto place = std::find(known.begin(), known.end(), text); place != known.end()) {
      instruction_rows->emplace(text, place - known.begin());
      return;
    }
    std::error_code error;
    std::string also;
    if (!carried.file.empty() && std::filesystem::exists(carried.file, error)) {
      const InstructionEmbeddings all = read_instruction_embeddings(carried.file);
      if (const at::Tensor* embedding = all.find(text)) {
        instruction_rows->emplace(text, policy->add_instruction(*embedding));
        return;
      }
      also = ", and neither has " + carried.file;
    }
    std::string texts;
    for (std::size_t i = 0; i < known.size() && i < 3; ++i) texts += (i == 0 ? "\"" : ", \"") + known[i] + "\"";
    throw Error(format(
        "the policy has no lang_embed of {}{}; it carries {}{}. Make it with {} and name the file with {}=FILE, or "
        "tell the policy one of its own in all episodes with {}=TEXT",
        shown_instruction(text), also, texts, known.size() > 3 ? format(" and {} more", known.size() - 3) : "",
        embed_command(text), carried.file_setting, carried.of_all_setting));
  }

  void instruct(std::uint64_t environment, const std::string& text) {
    if (takes_rows()) {
      const std::string& told = carried.of_all.empty() ? text : carried.of_all;
      find_instruction(told);
      instructions[environment] = told;
      return;
    }
    COHORT_THROW_UNLESS(language.enabled(), "the policy takes no instructions, but is told {}", quoted_bytes(text));
    if (!embeddings.contains(text)) embeddings.emplace(text, embed_instructions(language, {text}).at(0));
    instructions[environment] = text;
  }

  const std::vector<float>& embedding_of(std::uint64_t environment) const {
    const auto told = instructions.find(environment);
    COHORT_THROW_UNLESS(told != instructions.end(),
                        "the policy sees instructions, and environment {} has none: begin(environment, text)",
                        environment);
    return embeddings.at(told->second);
  }

  Json configuration;
  data::RobotDataSettings data;
  PolicySettings model;
  LanguageSettings language;              // of instructions
  std::optional<std::size_t> text_place;  // among model.low_dim: the embedding that instructions give
  std::optional<data::FieldVector> seen_fields, given_fields;  // low_dim but for the text, and actions
  std::optional<data::Normalizer> actions, low_dim;
  std::optional<data::ImagePipeline> images;
  std::shared_ptr<models::PolicyNetwork> policy;
  std::unique_ptr<models::PolicyControl> control;
  c10::Device device{at::kCPU};
  std::map<std::string, std::vector<float>> embeddings;  // by text
  std::map<std::uint64_t, std::string> instructions;     // by environment
  // Of the network's embeddings, by text; of all that share it.
  std::shared_ptr<std::map<std::string, std::int64_t>> instruction_rows =
      std::make_shared<std::map<std::string, std::int64_t>>();
  CarriedInstructions carried;  // by the network, and where others are
  bool averaged = false, exact = true, frequency_known = false;
  int network_width = 0, low_dim_width = 0;  // low-dimensional numbers that the network sees; of frames
  std::int64_t parameters = 0, step = 0;
  std::string summary;
  std::uint64_t seed = 0;
};

TrainedPolicy::TrainedPolicy(const std::filesystem::path& path, const policy::LoadSettings& settings)
    : impl_(std::make_unique<Impl>(path, settings)) {}
TrainedPolicy::TrainedPolicy(const PolicyInTraining& training, const policy::LoadSettings& settings)
    : impl_(std::make_unique<Impl>(training, settings)) {}
TrainedPolicy::TrainedPolicy(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TrainedPolicy::~TrainedPolicy() = default;
TrainedPolicy::TrainedPolicy(TrainedPolicy&&) noexcept = default;
TrainedPolicy& TrainedPolicy::operator=(TrainedPolicy&&) noexcept = default;

void TrainedPolicy::begin(std::uint64_t environment, const std::string& instruction) {
  if (!instruction.empty()) impl_->instruct(environment, instruction);
  impl_->control->begin(environment);
}

void TrainedPolicy::end(std::uint64_t environment) {
  impl_->control->end(environment);
  impl_->instructions.erase(environment);
}

void TrainedPolicy::act_every(double seconds) {
  impl_->act_every(seconds);
}

std::string TrainedPolicy::frequencies_to_choose() const {
  return impl_->frequency_known ? "" : impl_->frequencies();
}

int TrainedPolicy::stride() const {
  return impl_->data.stride;
}

std::vector<float> TrainedPolicy::act(const std::vector<std::uint64_t>& environments, const policy::Frame& frame) {
  return impl_->act(environments, frame);
}

TrainedPolicy TrainedPolicy::another() const {
  return TrainedPolicy(std::make_unique<Impl>(*impl_, impl_->seed));
}

void TrainedPolicy::see(const std::vector<std::uint64_t>& environments, const policy::Frame& frame) {
  impl_->control->see(environments, impl_->observe(environments, frame));
}

std::vector<float> TrainedPolicy::act_ahead(const std::vector<std::uint64_t>& environments,
                                            const policy::Frame& frame) {
  const std::vector<float> first = impl_->act(environments, frame);
  const auto width = static_cast<std::ptrdiff_t>(action_width());
  std::vector<float> rows;
  for (std::size_t i = 0; i < environments.size(); ++i) {
    const auto own = first.begin() + static_cast<std::ptrdiff_t>(i) * width;
    rows.insert(rows.end(), own, own + width);
    if (const at::Tensor queued = impl_->control->take_queued(environments[i]); queued.defined()) {
      const std::vector<float> others = impl_->actions_of(queued);
      rows.insert(rows.end(), others.begin(), others.end());
    }
  }
  return rows;
}

bool TrainedPolicy::remembers() const {
  return impl_->control->remembers();
}

std::int64_t TrainedPolicy::frames() const {
  return impl_->control->frames();
}
std::int64_t TrainedPolicy::chunk() const {
  return impl_->control->chunk();
}

int TrainedPolicy::action_width() const {
  return static_cast<int>(impl_->given_fields->fields_width());
}
int TrainedPolicy::low_dim_width() const {
  return impl_->low_dim_width;
}
const std::vector<data::RecordedField>& TrainedPolicy::low_dim_fields() const {
  return impl_->seen_fields->fields();
}
const std::string& TrainedPolicy::own_instruction() const {
  return impl_->carried.of_all;
}
bool TrainedPolicy::takes_instructions() const {
  return impl_->language.enabled() || impl_->takes_rows();
}
const std::vector<std::string>& TrainedPolicy::cameras() const {
  return impl_->data.images;
}
const RecordedPictures& TrainedPolicy::pictures() const {
  return impl_->model.recorded;
}
const std::vector<data::RecordedField>& TrainedPolicy::action_fields() const {
  return impl_->given_fields->fields();
}
const std::vector<std::string>& TrainedPolicy::one_way_actions() const {
  return impl_->given_fields->kept_transformed();
}
bool TrainedPolicy::exact() const {
  return impl_->exact;
}
std::int64_t TrainedPolicy::parameters() const {
  return impl_->parameters;
}
std::int64_t TrainedPolicy::step() const {
  return impl_->step;
}
const config::Json& TrainedPolicy::configuration() const {
  return impl_->configuration;
}
std::string TrainedPolicy::summary() const {
  return impl_->summary;
}

}  // namespace cohort::policies
