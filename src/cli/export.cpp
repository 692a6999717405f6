// `cohort export`: the executable cohort-export, which `cohort` becomes. A trained policy as a file that others run.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/parse_arguments.h"
#include "cli/subcommand.h"
#include "cli/torch_program.h"
#include "core/error.h"
#include "core/near_file.h"
#include "onnx/contract.h"
#include "rl/export_onnx.h"
#include "tasks/libero/catalogue.h"

namespace cohort::cli {
namespace {

int run_export(const std::vector<std::string>& words) {
  CLI::App app(
      "Writes a policy of `cohort train ppo` as an ONNX file: normalisation and clipping inside, and in its metadata "
      "what\nwhoever runs it has to keep: observations and their order, joints, default pose, gains, action scale, "
      "control period.",
      "cohort export");
  app.footer(
      "  cohort export outputs/ppo/latest policy.onnx\n"
      "  cohort tasks quadruped-velocity --check-policy policy.onnx\n\n"
      "Input obs (n, width), output actions (n, actions); with memory also h_in and h_out (layers, n, width), zeros "
      "where an\nepisode begins. The file is opset 18; onnxruntime reads it, and so does --policy policy.onnx of "
      "`cohort evaluate`\nand `cohort serve`.");
  std::string run, out, libero;
  bool raw_weights = false;
  app.add_option("RUN", run, "a run's folder, its folder of checkpoints, or a checkpoint")->required();
  app.add_option("FILE", out, "file to write, NAME.onnx")->required();
  app.add_flag("--raw-weights,--raw_weights", raw_weights, "not the moving average of the weights");
  app.add_option("--libero", libero, "folder of LIBERO's scenes, for policies that learnt in one");
  if (const auto code = parse_arguments(app, words)) return *code;
  if (!out.ends_with(".onnx")) throw UsageError(format("{}: the name of an ONNX file ends in .onnx", out));
  COHORT_THROW_UNLESS(std::filesystem::exists(run), "{}: there is no such run or checkpoint{}", run, near_file(run));
  if (!libero.empty()) tasks::libero::set_libero_folder(libero);
  const rl::ExportedPolicy exported = rl::export_onnx(run, out, {.averaged = !raw_weights});
  const onnx::Contract& contract = exported.contract;
  std::string text = format("{}: {}, {} actions every {:.4g} s\nobs:", out, contract.task, contract.action_names.size(),
                            contract.control_period);
  std::int64_t at = 0;
  for (const onnx::Contract::Observation& seen : contract.observations) {
    text += format(" {} [{}:{}]", seen.name, at, at + seen.width());
    at += seen.width();
  }
  text += format("\ntry it: cohort tasks {} --check-policy {}", exported.task, out);
  std::puts(text.c_str());
  return 0;
}

const TorchProgram kExport("cohort-export", "cohort export", &run_export);

}  // namespace
}  // namespace cohort::cli
