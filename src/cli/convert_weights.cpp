// `cohort convert-weights`: the executable cohort-convert-weights, which `cohort` becomes. PyTorch's files to
// safetensors; with a configuration, weights of a diffusion policy under our names to the state dict of the Python
// reference, and back; a run to the folder in which LeRobot keeps a policy.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/parse_arguments.h"
#include "cli/subcommand.h"
#include "cli/torch_program.h"
#include "core/config.h"
#include "core/files.h"
#include "core/json_text.h"
#include "policies/algorithm.h"
#include "policies/lerobot_folder.h"
#include "policies/policy_settings.h"
#include "policies/reference_weights.h"
#include "weights/checkpoint.h"
#include "weights/safetensors.h"
#include "weights/weight_files.h"

namespace cohort::cli {
namespace {

/// The section "model" of a run's config.json, which holds the shapes that followed from the data.
policies::PolicySettings model_of(const std::string& path) {
  config::Json json = try_json<config::Json>(read_file(path));
  COHORT_THROW_UNLESS(json.is_object() && json.contains("model") && json["model"].contains("algorithm"),
                      "{}: is not the config.json of a run of `cohort train policy`", path);
  policies::PolicySettings model;
  config::Fields fields;
  fields.section("model", [&] { policies::describe(fields, model); });
  config::Json only = config::Json::object();
  only["model"] = json["model"];
  fields.apply_json(only, path);
  // The weights come from the file.
  return policies::without_files(std::move(model));
}

/// A run, or one of its checkpoints, as LeRobot keeps a policy.
int to_lerobot(const std::string& input, const std::string& output, const policies::LeRobotWriting& wanted) {
  const weights::ResumePoint point = weights::find_resume_point(input, {}, weights::CheckpointParts::kWeights).value();
  for (const std::string& line : policies::write_lerobot_folder(point.content, point.path.string(), output, wanted))
    std::puts(line.c_str());
  std::puts(
      format("{}: step {} as LeRobot's folder; it acts here with --policy {}", output, point.content.state.step, output)
          .c_str());
  return 0;
}

int run_convert(const std::vector<std::string>& words) {
  std::string configuration, input, output, names;
  policies::LeRobotWriting wanted;
  CLI::App app(
      "Weights as safetensors; with a configuration, to the names of the Python reference and back; or a run of a "
      "policy "
      "as LeRobot's folder.",
      "cohort convert-weights");
  app.add_option(
         "INPUT", input,
         "file or folder: .safetensors, or PyTorch's .bin, .pt, .pth; read, never executed. For --to lerobot: a run "
         "or checkpoint")
      ->required();
  app.add_option("OUTPUT", output, "safetensors file to write; for --to lerobot a folder")->required();
  app.add_option("--config", configuration,
                 "config.json of the run whose policy it is; without it, names and types stay");
  app.add_option(
         "--to", names,
         "reference: its keys, .module. and repeated tensors included; cohort: ours; lerobot: the folder of a policy "
         "of LeRobot's")
      ->check(CLI::IsMember({"reference", "cohort", "lerobot"}));
  app.add_option("--data-set,--data_set", wanted.data_set,
                 "for --to lerobot, of data.paths: whose statistics it takes, where each set has its own");
  app.add_option("--environment-state,--environment_state", wanted.environment_state,
                 "for --to lerobot: the vectors that are the environment's state, a,b; ACT's settings say it")
      ->delimiter(',');
  if (const auto code = parse_arguments(app, words)) return *code;
  if (names == "lerobot") {
    if (!configuration.empty())
      throw UsageError("--to lerobot takes a run, which holds its configuration: no --config");
    return to_lerobot(input, output, wanted);
  }
  if (configuration.empty() != names.empty())
    throw UsageError("--config and --to belong together; without both, names and types stay as they are");
  if (configuration.empty()) {
    const weights::SafetensorsFile file = weights::read_weights(input);
    for (const auto& [name, tensor] : file.tensors)
      COHORT_THROW_UNLESS(!name.empty(), "{}: holds a tensor without a name, which a safetensors file cannot", input);
    auto metadata = file.metadata;
    metadata.emplace("format", "pt");
    weights::write_safetensors(output, file.tensors, metadata);
    std::puts(format("{}: {} tensors", output, file.tensors.size()).c_str());
    return 0;
  }
  const policies::PolicySettings model = model_of(configuration);
  COHORT_THROW_UNLESS(policies::algorithm_of(model).renames_weights(),
                      "{} is of a {} policy, whose weights bear the reference's names already", configuration,
                      model.algorithm);
  const auto policy = policies::make_policy(model, /*seed=*/0);
  const weights::SafetensorsFile file = weights::read_weights(input);
  const weights::NamedTensors converted = names == "reference" ? policies::to_reference(*policy, file.tensors, input)
                                                               : policies::from_reference(*policy, file.tensors, input);
  weights::write_safetensors(output, converted, {{"format", "pt"}});
  std::puts(format("{}: {} tensors", output, converted.size()).c_str());
  return 0;
}

const TorchProgram kConvertWeights("cohort-convert-weights", "cohort convert-weights", &run_convert);

}  // namespace
}  // namespace cohort::cli
