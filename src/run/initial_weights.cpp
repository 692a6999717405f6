#include "run/initial_weights.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include <torch/nn/module.h>

#include "core/config.h"
#include "core/error.h"
#include "core/json_text.h"
#include "weights/checkpoint.h"
#include "weights/weights.h"

namespace cohort::run {

InitialWeights read_initial_weights(const std::string& path, const std::string& job) {
  std::error_code error;
  COHORT_THROW_UNLESS(std::filesystem::exists(path, error),
                      "init_from={}: there is no such run or checkpoint; name a run's folder, outputs/NAME/latest, or "
                      "one of its checkpoints",
                      path);
  auto point = weights::find_resume_point(path, "", weights::CheckpointParts::kWeights);
  COHORT_THROW_UNLESS(point, "init_from={}: there is no whole checkpoint in it", path);
  const config::Json configuration = try_json<config::Json>(point->content.state.configuration);
  const std::string learnt = configuration.is_object() ? configuration.value("job", "") : "";
  COHORT_THROW_UNLESS(learnt.empty() || learnt == job,
                      "init_from={}: these are weights of `cohort train {}`, and this is `cohort train {}`", path,
                      learnt, job);
  weights::CheckpointContent& content = point->content;
  const bool averaged = !content.ema.empty();
  return {point->path.string() + (averaged ? ", moving average" : ""),
          std::move(averaged ? content.ema : content.model), std::move(content.model_aliases)};
}

void load(torch::nn::Module& module, const InitialWeights& weights) {
  weights::load_weights(module, weights.tensors, weights.aliases, format("init_from: {}", weights.source));
}

}  // namespace cohort::run
