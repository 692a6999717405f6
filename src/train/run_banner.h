/// What a run says of itself before it begins: nothing is decided silently.
#pragma once
#include <vector>

#include "parallel/plan.h"
#include "run/learner.h"
#include "train/run.h"

namespace torch::nn {
class Module;
}

namespace cohort::train {

/// Job, data, the statistics that they are scaled by, model, devices and why, effective batch, learning rate and its rule,
/// precision, loader, seed.
std::vector<run::BannerRow> banner_rows(const Trainable& trainable, const RunSettings& settings,
                                        const parallel::Plan& plan, const torch::nn::Module& model);

}  // namespace cohort::train
