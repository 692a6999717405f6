// What a training would take, and how fast its parts are: `cohort estimate`, and what `cohort doctor --measure` wants to know.
#include "cli/train_measure.h"

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "cli/subcommand.h"
#include "cli/torch_program.h"
#include "cli/train_words.h"
#include "core/command_line.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/log.h"
#include "dist/group.h"
#include "dist/group_speed.h"
#include "dist/usable_devices.h"
#include "rank/environment.h"
#include "train/estimate.h"
#include "train/supervised_training.h"

namespace cohort::cli {
namespace {

std::string estimate_usage() {
  return "usage: cohort estimate CONFIG.json [key.path=value ...]\n"
         "       cohort estimate JOB [DATA] [--config FILE] [key.path=value ...]\n\n"
         "Says what `cohort train` with the same words would take: memory by part, the largest batch that fits, hours "
         "on "
         "1, 2, 4\nand 8 devices. It makes a few real steps and writes nothing.\n\n"
         "  --memory SIZE      what a device may take: 24G, 800M; without it what there is\n"
         "  --bandwidth SIZE   bytes a second between devices; without it 5e9 for the CPU, 20e9 for GPUs\n"
         "  --shapes           " +
         train::jobs_with_shapes() +
         ": memory from the shapes of its tensors, without data and steps; for models that do "
         "not "
         "fit here\n"
         "  --json             the estimate as JSON\n";
}

/// Takes the estimate's own words out of all of them.
run::Measurement take_measurement(std::vector<std::string>& words) {
  run::Measurement measurement;
  std::vector<std::string> others;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.starts_with("--memory") || word.starts_with("--bandwidth")) {
      const std::size_t equals = word.find('=');
      if (equals == std::string::npos && ++i == words.size()) throw UsageError(format("{} wants a size", word));
      const double bytes = train::parse_bytes(equals == std::string::npos ? words[i] : word.substr(equals + 1));
      (word.starts_with("--memory") ? measurement.memory : measurement.bandwidth) = bytes;
    } else if (word == "--shapes") {
      measurement.kind = run::Measurement::Kind::kShapes;
    } else if (word == "--json") {
      measurement.json = true;
    } else {
      others.push_back(word);
    }
  }
  words = std::move(others);
  return measurement;
}

int measure(TrainingCall& call, const run::Measurement& measurement) {
  config::Fields fields;
  read_settings(call, fields);
  log::set_level(log::Level::kWarning);
  std::fputs(call.training->measure(measurement, fields).c_str(), stdout);
  return 0;
}

int run_estimate(const std::vector<std::string>& all) {
  std::vector<std::string> words = all;
  const run::Measurement measurement = take_measurement(words);
  TrainingCall call = read_call(words);
  if (!call.help && call.training) return measure(call, measurement);
  std::fputs(estimate_usage().c_str(), call.help ? stdout : stderr);
  return call.help ? 0 : 2;
}

int run_measure_parts(const std::vector<std::string>& all) {
  constexpr std::string_view kBatch = "--batch-of-rank=";
  std::vector<std::string> words = all;
  run::Measurement measurement{.kind = run::Measurement::Kind::kParts};
  if (!words.empty() && words.front().starts_with(kBatch)) {
    measurement.batch_size = std::atoll(words.front().c_str() + kBatch.size());
    words.erase(words.begin());
  }
  TrainingCall call = read_call(words);
  if (!call.training) throw UsageError("nothing says what is trained");
  return measure(call, measurement);
}

int run_measure_ranks(const std::vector<std::string>& words) {
  const bool json = !words.empty() && words.back() == "--json";
  const rank::Environment environment = rank::read_environment();
  log::set_console(environment.rank == 0);
  const auto devices = dist::usable_devices({.backend = default_backend(), .local_rank = environment.local_rank});
  // One device for each process: the one of its number where it sees several.
  const std::size_t own = devices.size() > 1 ? static_cast<std::size_t>(environment.local_rank) % devices.size() : 0;
  const auto group = dist::Group::create(environment, {.device = devices.at(own)});
  const dist::GroupSpeed speed = dist::measure_group(*group);
  if (group->rank() == 0 && json)
    std::puts(json_text(nlohmann::ordered_json{{"ranks", speed.world_size},
                                               {"all_reduce_latency_s", speed.latency},
                                               {"all_reduce_bytes", speed.bytes},
                                               {"all_reduce_s", speed.seconds},
                                               {"bytes_per_s_of_a_rank", speed.bandwidth}},
                        2)
                  .c_str());
  else if (group->rank() == 0)
    std::printf(
        "measured  all-reduce between %d ranks: %.3f ms for one number; %s in %.1f ms, each rank sends and receives "
        "%s/s\n          a model of 10 million weights has 40 MB of gradients: %.0f ms a step, as far as they are not "
        "hidden behind the backward pass\n",
        speed.world_size, speed.latency * 1e3, format_bytes(static_cast<double>(speed.bytes)).c_str(),
        speed.seconds * 1e3, format_bytes(speed.bandwidth).c_str(),
        1e3 * 4e7 / static_cast<double>(speed.bytes) * speed.seconds);
  group->close();
  return 0;
}

const TorchProgram kEstimate("cohort-estimate", "cohort estimate", &run_estimate);
const TorchProgram kParts(kMeasureParts, "cohort doctor", &run_measure_parts);
const TorchProgram kRanks(kMeasureRanks, "cohort doctor", &run_measure_ranks);

}  // namespace
}  // namespace cohort::cli
