// The job of first_run.cpp under DistributedDataParallel: one process for each device, each with its share of the data.
//
//   cohort data two-link-arm --rows 2000 --out arm.csv
//   cohort launch --nproc_per_node=2 -- first_ddp arm.csv 20
#include <cstdio>

#include <torch/torch.h>

#include "core/devices.h"
#include "dist/cuda_plugin.h"
#include "dist/group.h"
#include "models/random_context.h"
#include "models/regressor/regressor.h"
#include "parallel/distributed_data_parallel.h"
#include "parallel/parameter_hash.h"
#include "report/test_metrics.h"
#include "tables/csv.h"
#include "tables/regression_rows.h"
#include "tensors/convert.h"
#include "tensors/pinned_allocator.h"
#include "train/loader_source.h"
#include "train/optimizer.h"

using namespace cohort;

int main(int argc, char** argv) try {
  const int epochs = argc > 2 ? std::atoi(argv[2]) : 20;

  // Which process is this, which device is its own, and who are the others?
  const rank::Environment environment = rank::read_environment();
  const DeviceId id = initialise({.backend = default_backend(), .local_rank = environment.local_rank}).device;
  if (id.kind == DeviceKind::kCuda) dist::load_cuda_plugin();  // before LibTorch is asked for a GPU
  const c10::Device device = tensors::to_torch_device(id);
  const std::shared_ptr<dist::Group> group = dist::Group::create(environment, {.device = id});

  // 1. Every rank reads the same table and makes the same split.
  const tables::Table table = tables::read_csv(argc > 1 ? argv[1] : "arm.csv");
  const tables::RowSplit split =
      tables::split_rows(table.rows(), {.kind = "random", .train_fraction = 0.8, .test_fraction = 0.2}, table.name());
  const auto scaled = tables::RegressionTable::make(table, split.train, {.n_targets = 2});
  const auto train_set = std::make_shared<tables::RegressionRows>(scaled, split.train, "training");
  const auto test_set = std::make_shared<tables::RegressionRows>(scaled, split.test, "test");

  // 2. and 3. Make the model on this rank's device, and wrap it: all ranks begin with rank 0's weights.
  const auto model =
      models::make_regressor({.inputs = static_cast<int>(scaled->inputs().size()), .outputs = 2}, /*seed=*/1);
  model->to(device);
  parallel::DistributedDataParallel ddp(model, group);
  train::Optimizer optimizer(train::parameter_groups(*model, {.kind = "adamw"}), {.kind = "adamw"});

  // 4. Train: 128 samples a step over all ranks. The sampler deals the samples out by rank.
  Allocator& memory = tensors::host_allocator_for(device.type());
  COHORT_THROW_UNLESS(128 % group->world_size() == 0, "128 samples cannot be divided by {} ranks", group->world_size());
  train::LoaderSource batches(train_set, {.world_size = group->world_size(), .rank = group->rank(), .seed = 1},
                              {.batch_size = 128 / group->world_size(), .workers = 1}, memory);
  std::uint64_t step = 0;
  const parallel::LossFunction loss = [&](torch::nn::Module& wrapped, const parallel::Batch& batch) {
    const models::RandomContextGuard dropout({.seed = 1, .step = step, .sample_ids = batch.sample_ids});
    return torch::mse_loss(models::regressor_forward(wrapped, batch.at("x")), batch.at("y"));
  };
  for (int epoch = 0; epoch < epochs; ++epoch) {
    at::Tensor sum = at::zeros({1}, at::kDouble);
    const std::int64_t count = batches.start_epoch(epoch, /*first_sample=*/0);
    while (const std::optional<parallel::Batch> batch = batches.next()) {
      ddp.zero_grad();
      sum += ddp.forward_backward(*batch, loss, {}).item<double>();  // gradients are averaged while backward runs
      optimizer.step(/*lr=*/1e-3);
      ++step;
    }
    ddp.mean_over_ranks(sum);
    if (group->rank() == 0)
      std::printf("epoch %d: training loss %.4f on %d rank(s)\n", epoch + 1,
                  sum.item<double>() / static_cast<double>(count), group->world_size());
  }
  const parallel::HashCheck check = parallel::check_parameters_equal(ddp);
  COHORT_THROW_UNLESS(check.differing.empty(), "{}", check.text);

  // 5. All ranks hold the same weights: rank 0 tests them, in the units of the table.
  if (group->rank() == 0) {
    std::printf("%s\n", check.text.c_str());
    model->eval();
    const torch::NoGradGuard no_gradients;
    train::LoaderSource test_batches(test_set, {.shuffle = false}, {.batch_size = test_set->size()}, memory);
    test_batches.start_epoch(0, 0);
    const parallel::Batch batch = test_batches.next().value();
    const at::Tensor predicted = models::regressor_forward(*model, batch.at("x").to(device)).to(at::kCPU);
    const at::Tensor truth = batch.at("y").clone();
    const tables::Scaler scaler = scaled->scaler().select(scaled->targets());
    for (const at::Tensor& values : {predicted, truth})
      scaler.inverse(std::span(values.mutable_data_ptr<float>(), static_cast<std::size_t>(values.numel())));
    report::TestMetricsSum metrics(scaled->targets());
    metrics.add(tensors::to_view(truth), tensors::to_view(predicted));
    std::fputs(metrics.result().to_table().c_str(), stdout);
  }
  group->close();
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "first_ddp: %s\n", e.what());
  return 1;
}
