#include "policies/policy_settings.h"

#include <algorithm>
#include <filesystem>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "policies/algorithm.h"
#include "policies/reference_weights.h"
#include "weights/weight_files.h"
#include "weights/weights.h"

namespace cohort::policies {

SettingsOfAlgorithms::SettingsOfAlgorithms() {
  for (const Algorithm* one : algorithms()) all_.push_back(one->default_settings());
}

PolicySettings::PolicySettings() : algorithm(algorithms().front()->name()) {}

void describe(config::Fields& fields, PolicySettings& s) {
  std::vector<std::string> names;
  for (const Algorithm* algorithm : algorithms()) names.push_back(algorithm->name());
  fields.add_choice("algorithm", s.algorithm, names, "what learns from the data");
  fields.add("low_dim", s.low_dim, "names of the observations that data.proprio lists; empty: its components");
  fields.add("rgb", s.rgb, "names of the cameras that data.images lists; empty: its fields");
  fields.add("sort_observations", s.sort_observations, "join observations by name, as robomimic does on HDF5 data");
  fields.add("first_observations", s.first_observations, "names that begin the joined vector, in this order");
  fields.add("shared_cameras", s.shared_cameras, "cameras with this text in their name share an image encoder");
  fields.section("language", [&] { describe(fields, s.language); });
  fields.section("images", [&] {
    fields.section("core", [&] { models::describe(fields, s.images.core); });
    fields.section("color", [&] { models::describe(fields, s.images.color); });
    fields.section("crop", [&] { models::describe(fields, s.images.crop); });
    fields.add("image_mean", s.images.image_mean,
               "of colours in [0, 1]: three numbers, or three per camera; empty: as they are");
    fields.add("image_std", s.images.image_std, "their standard deviation, likewise");
    fields.add("combine", s.images.combine, "the DROID package's MLP over the joined vector");
    fields.add("channels_last", s.images.channels_last, "memory format of images and their weights");
  });
  for (const Algorithm* one : algorithms()) {
    const std::string section = one->section().substr(one->section().find('.') + 1);
    fields.section(section.c_str(), [&] { one->describe(fields, s); });
  }
  fields.add("initial_weights", s.initial_weights,
             "file to begin with (.safetensors, .bin, .pt), also with the reference's names");
  fields.add("backbone_weights", s.backbone_weights, "file of a torchvision ResNet for the image trunks");
  fields.add("pretrained_backbone", s.pretrained_backbone, "image trunks must begin with weights from a file");
  fields.add("action_width", s.action_width, "numbers per action; 0: from the data");
  fields.add("action_widths", s.action_widths, "numbers per component of the action; empty: from the data");
  fields.add("low_dim_widths", s.low_dim_widths, "numbers per low-dimensional observation; empty: from the data");
  fields.add("image_size", s.image_size, "height and width of images; empty: from the data");
  fields.section("recorded", [&] {
    describe(fields, s.recorded);
    describe(fields, s.recorded_fields);
  });
}

void check_weights(const PolicySettings& s) {
  COHORT_THROW_UNLESS(
      !s.pretrained_backbone || s.rgb.empty() || !s.backbone_weights.empty() || !s.initial_weights.empty(),
      "the image trunks are meant to begin with pretrained weights, which nothing downloads here: name "
      "a file of torchvision's {} with model.backbone_weights=FILE.safetensors (one line of Python makes it: "
      "docs/guide/policies.md), or begin at random with model.pretrained_backbone=false",
      s.images.core.backbone_class);
  COHORT_THROW_UNLESS(
      !s.language.required || s.language.enabled(),
      "the policy sees {}, for which a DistilBERT is needed that nothing downloads here: name its files "
      "with model.language.weights=FILE.safetensors and model.language.vocabulary=vocab.txt",
      s.language.name);
}

std::vector<models::ObservationSettings> observations_of(const PolicySettings& s) {
  COHORT_THROW_UNLESS(s.low_dim.size() == s.low_dim_widths.size(),
                      "model.low_dim names {} observations, but model.low_dim_widths has {} widths", s.low_dim.size(),
                      s.low_dim_widths.size());
  COHORT_THROW_UNLESS(s.rgb.empty() || s.image_size.size() == 2,
                      "model.image_size must be a height and a width, but has {} numbers", s.image_size.size());
  std::vector<models::ObservationSettings> observations;
  for (std::size_t i = 0; i < s.low_dim.size(); ++i)
    observations.push_back({.name = s.low_dim[i], .shape = {s.low_dim_widths[i]}, .shares = ""});
  if (s.language.enabled())
    observations.push_back({.name = s.language.name, .shape = {s.language.encoder.dim}, .shares = ""});
  for (models::ObservationSettings& extra : algorithm_of(s).extra_observations(s))
    observations.push_back(std::move(extra));
  for (const std::string& camera : s.rgb)
    observations.push_back({.name = camera, .shape = {3, s.image_size[0], s.image_size[1]}, .shares = ""});
  if (s.sort_observations)
    std::sort(observations.begin(), observations.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  models::put_first(observations, s.first_observations);
  for (std::size_t i = 0; i < observations.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      COHORT_THROW_UNLESS(observations[i].name != observations[j].name, "two observations are called '{}'",
                          observations[i].name);
  if (!s.shared_cameras.empty()) models::share_cameras(observations, s.shared_cameras);
  return observations;
}

void check(const PolicySettings& s) {
  check_weights(s);
  const auto file = [](const std::string& setting, const std::string& path) {
    std::error_code unreadable;
    COHORT_THROW_UNLESS(path.empty() || std::filesystem::exists(path, unreadable), "{}={}: there is no such file",
                        setting, path);
  };
  file("model.initial_weights (robomimic: experiment.ckpt_path)", s.initial_weights);
  file("model.backbone_weights", s.backbone_weights);
  for (const Algorithm* one : algorithms())
    for (const auto& [setting, path] : one->files(s)) file(setting, path);
  if (s.language.enabled()) {
    file("model.language.weights", s.language.weights);
    file("model.language.vocabulary", s.language.vocabulary);
  }
  const auto section = [](const char* name, const auto& check_it) {
    try {
      check_it();
    } catch (const Error& e) {
      throw Error(format("{}: {}", name, e.what()));
    }
  };
  const Algorithm& algorithm = algorithm_of(s);
  section((algorithm.section() + " (robomimic: algo)").c_str(), [&] { algorithm.check(s); });
  models::ObservationEncoderSettings encoder = s.images;
  if (s.low_dim_widths.size() == s.low_dim.size() && (s.rgb.empty() || !s.image_size.empty()))
    encoder.observations = observations_of(s);
  section("model.images (robomimic: observation.encoder.rgb)", [&] {
    if (!s.rgb.empty()) models::check(s.images.core);
    if (!s.rgb.empty() && s.images.color.enabled) models::check(s.images.color);
    if (!encoder.observations.empty()) models::check(encoder);
  });
}

PolicySettings without_files(PolicySettings settings) {
  settings.initial_weights.clear();
  settings.backbone_weights.clear();
  settings.pretrained_backbone = false;
  for (const Algorithm* one : algorithms()) one->forget_files(settings);
  return settings;
}

std::shared_ptr<models::PolicyNetwork> make_policy(const PolicySettings& s, std::uint64_t seed) {
  check_weights(s);
  models::ObservationEncoderSettings encoder = s.images;
  encoder.observations = observations_of(s);
  const Algorithm& algorithm = algorithm_of(s);
  std::shared_ptr<models::PolicyNetwork> policy = algorithm.make(s, std::move(encoder), seed);
  if (!s.backbone_weights.empty())
    load_backbones(*policy, weights::read_weights(s.backbone_weights).tensors, s.backbone_weights);
  algorithm.load_files(*policy, s);
  return policy;
}

}  // namespace cohort::policies
