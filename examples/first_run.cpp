// A first data-parallel run in five steps: load a table, make a model, wrap it for all devices, train, test and draw.
//
//   cohort data two-link-arm --rows 2000 --out arm.csv
//   first_run arm.csv 20                  20 epochs on all GPUs; without one, two replicas share the processor
//   first_run arm.csv 20 cuda:0 cuda:1    on these
#include <cstdio>

#include <torch/torch.h>

#include "core/devices.h"
#include "dist/cuda_plugin.h"
#include "models/random_context.h"
#include "models/regressor/regressor.h"
#include "parallel/data_parallel.h"
#include "report/charts.h"
#include "report/standard_figures.h"
#include "report/test_metrics.h"
#include "tables/csv.h"
#include "tables/regression_rows.h"
#include "tensors/convert.h"
#include "tensors/pinned_allocator.h"
#include "train/loader_source.h"
#include "train/optimizer.h"

using namespace cohort;

std::vector<DeviceId> choose_devices(int count, char** names) {
  std::vector<DeviceId> devices;
  for (int i = 0; i < count; ++i) devices.push_back(parse_device(names[i]));
  if (devices.empty())
    for (const GpuDevice& gpu : list_devices().visible)
      if (gpu.kind == Backend::kCuda) devices.push_back({DeviceKind::kCuda, gpu.cuda_index});
  if (devices.empty()) devices.assign(2, {DeviceKind::kCpu, 0});
  if (devices[0].kind == DeviceKind::kCuda) dist::load_cuda_plugin();  // before LibTorch is asked for a GPU
  return devices;
}

int main(int argc, char** argv) try {
  const int epochs = argc > 2 ? std::atoi(argv[2]) : 20;
  const std::vector<DeviceId> devices = choose_devices(argc - 3, argv + 3);
  const c10::Device first_device = tensors::to_torch_device(devices[0]);

  // 1. Load the table: 80 % of the rows train, 20 % test; columns are scaled by the training rows.
  const tables::Table table = tables::read_csv(argc > 1 ? argv[1] : "arm.csv");
  const tables::RowSplit split =
      tables::split_rows(table.rows(), {.kind = "random", .train_fraction = 0.8, .test_fraction = 0.2}, table.name());
  const auto scaled = tables::RegressionTable::make(table, split.train, {.n_targets = 2});
  const auto train_set = std::make_shared<tables::RegressionRows>(scaled, split.train, "training");
  const auto test_set = std::make_shared<tables::RegressionRows>(scaled, split.test, "test");

  // 2. Make the model.
  const auto make_model = [&] {
    return models::make_regressor({.inputs = static_cast<int>(scaled->inputs().size()), .outputs = 2}, /*seed=*/1);
  };
  const auto model = make_model();
  model->to(first_device);

  // 3. Wrap it: every device gets a replica, and a thread that works on its share of each batch.
  parallel::DataParallel parallel_model(model, devices, {}, make_model);
  train::Optimizer optimizer(train::parameter_groups(*model, {.kind = "adamw"}), {.kind = "adamw"});

  // 4. Train.
  Allocator& memory = tensors::host_allocator_for(first_device.type());
  train::LoaderSource batches(train_set, {.seed = 1}, {.batch_size = 128, .workers = 1}, memory);
  std::uint64_t step = 0;
  const parallel::LossFunction loss = [&](torch::nn::Module& replica, const parallel::Batch& share) {
    const models::RandomContextGuard dropout({.seed = 1, .step = step, .sample_ids = share.sample_ids});
    return torch::mse_loss(models::regressor_forward(replica, share.at("x")), share.at("y"));
  };
  for (int epoch = 0; epoch < epochs; ++epoch) {
    double sum = 0;
    const std::int64_t count = batches.start_epoch(epoch, /*first_sample=*/0);
    while (const std::optional<parallel::Batch> batch = batches.next()) {
      parallel_model.zero_grad();
      sum += parallel_model.forward_backward(*batch, loss, {}).item<double>();
      optimizer.step(/*lr=*/1e-3);
      parallel_model.parameters_changed();
      ++step;
    }
    std::printf("epoch %d: training loss %.4f on %d device(s)\n", epoch + 1, sum / static_cast<double>(count),
                parallel_model.replicas());
  }

  // 5. Test in the units of the table, and draw.
  model->eval();
  train::LoaderSource test_batches(test_set, {.shuffle = false}, {.batch_size = test_set->size()}, memory);
  test_batches.start_epoch(0, 0);
  const parallel::Batch batch = test_batches.next().value();
  const at::Tensor predicted = parallel_model
                                   .forward(batch,
                                            [](torch::nn::Module& replica, const parallel::Batch& share) {
                                              return models::regressor_forward(replica, share.at("x"));
                                            })
                                   .to(at::kCPU);
  const at::Tensor truth = batch.at("y").clone();
  const tables::Scaler scaler = scaled->scaler().select(scaled->targets());
  for (const at::Tensor& values : {predicted, truth})
    scaler.inverse(std::span(values.mutable_data_ptr<float>(), static_cast<std::size_t>(values.numel())));
  report::TestMetricsSum metrics(scaled->targets());
  metrics.add(tensors::to_view(truth), tensors::to_view(predicted));
  std::fputs(metrics.result().to_table().c_str(), stdout);
  const report::DrawnFigure drawn = report::draw(
      report::prediction_figure({scaled->targets(), tensors::to_view(truth), tensors::to_view(predicted)}), "charts");
  std::printf("%s\n", drawn.error.empty() ? drawn.svg.c_str() : drawn.error.c_str());
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "first_run: %s\n", e.what());
  return 1;
}
