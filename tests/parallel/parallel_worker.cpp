// One rank of the tests of data parallelism: parallel_worker SCENARIO FOLDER. Writes the same files as
// ddp_reference.py. Prints "error: ..." and returns 1 on an exception.
#include <cstdio>
#include <fstream>
#include <sstream>

#include <signal.h>

#include <torch/torch.h>

#include "dist/group.h"
#include "parallel/distributed_data_parallel.h"
#include "parallel/fixture_model.h"
#include "parallel/module_layout.h"

namespace cohort::test {
namespace {

using parallel::BackwardOptions;
using parallel::Batch;
using parallel::DdpSettings;
using parallel::DistributedDataParallel;
using namespace std::chrono_literals;

template <class T>
void write_numbers(const std::string& path, const std::vector<T>& values) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
}

void write_results(const std::string& folder, const std::string& scenario, int rank, const std::vector<double>& losses,
                   torch::nn::Module& model) {
  write_numbers(format("{}/{}.{}.losses", folder, scenario, rank), losses);
  std::vector<float> state;
  const auto append = [&](const at::Tensor& t) {
    const at::Tensor flat = t.detach().contiguous();
    state.insert(state.end(), flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel());
  };
  for (const at::Tensor& p : model.parameters()) append(p);
  for (const at::Tensor& b : model.buffers())
    if (b.is_floating_point()) append(b);
  write_numbers(format("{}/{}.{}.state", folder, scenario, rank), state);
}

at::Tensor mean_squared_error(torch::nn::Module& model, const Batch& batch) {
  return torch::mse_loss(dynamic_cast<FixtureNetImpl&>(model).forward(batch.at("x")), batch.at("y"));
}

Batch fixture_batch(int step, int rank) {
  Batch batch;
  batch.add("x", fixture_input(step, rank));
  batch.add("y", fixture_target(step, rank));
  return batch;
}

dist::GroupOptions quick_options() {
  dist::GroupOptions options;
  options.store_timeout = 30s;
  options.collective_timeout = 30s;
  return options;
}

/// The scenarios of ddp_reference.py.
void train(const std::shared_ptr<dist::Group>& group, const std::string& scenario, const std::string& folder) {
  const int rank = group->rank();
  FixtureNet net(scenario == "norm", scenario == "find_unused" || scenario == "static_graph");
  fill_parameters(*net, rank);

  DdpSettings settings;
  settings.find_unused_parameters = scenario == "find_unused";
  settings.static_graph = scenario == "static_graph";
  settings.gradient_as_bucket_view = scenario == "bucket_view";
  if (scenario == "small_buckets") settings.bucket_cap_mb = settings.first_bucket_cap_mb = 0.0005;
  if (scenario == "fp16" || scenario == "bf16") settings.compression = scenario;
  DistributedDataParallel ddp(net.ptr(), group, settings);

  std::unique_ptr<torch::optim::Optimizer> optimizer;
  if (scenario == "adam") {
    optimizer = std::make_unique<torch::optim::Adam>(net->parameters(), torch::optim::AdamOptions(1e-2));
  } else {
    optimizer = std::make_unique<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  }
  std::vector<double> losses;
  const auto one_step = [&](int step) {
    net->use_extra = scenario == "find_unused" && (step + rank) % 3 != 0;
    ddp.zero_grad();
    if (scenario == "no_sync") {
      for (int micro = 0; micro < 3; ++micro) {
        BackwardOptions options;
        options.synchronise = micro == 2;
        options.weight = 1.0 / 3;
        losses.push_back(
            ddp.forward_backward(fixture_batch(3 * step + micro, rank), mean_squared_error, options).item<double>());
      }
    } else if (step % 2 == 0) {
      losses.push_back(ddp.forward_backward(fixture_batch(step, rank), mean_squared_error, {}).item<double>());
    } else {
      // The interface for library users, in turn with the training loop's.
      const at::Tensor loss =
          torch::mse_loss(ddp.forward<FixtureNetImpl>(fixture_input(step, rank)), fixture_target(step, rank));
      ddp.backward(loss);
      losses.push_back(loss.item<double>());
    }
    optimizer->step();
  };
  if (scenario == "join" || scenario == "join_remaining") {
    ddp.join(
        [&] {
          for (int step = 0; step < 6 + 3 * rank; ++step) one_step(step);
        },
        {.divide_by_initial_world_size = scenario == "join"});
  } else {
    for (int step = 0; step < 50; ++step) one_step(step);
  }
  if (scenario == "small_buckets") {
    COHORT_CHECK(ddp.buckets_were_rebuilt(), "buckets follow the order of the gradients after the first iteration");
    COHORT_CHECK(ddp.bucket_sizes().size() > 2, "{} buckets of half a KiB", ddp.bucket_sizes().size());
  }
  if (scenario == "bucket_view")
    COHORT_CHECK(net->a->weight.grad().is_alias_of(net->b->weight.grad()), "gradients share the bucket's memory");
  write_results(folder, scenario, rank, losses, *net);
}

/// Accumulation over two micro-batches equals one batch of both; the result of the ranks is compared by the test.
void accumulate(const std::string& folder) {
  const auto group = dist::Group::create(dist::read_rank_environment(), quick_options());
  const int rank = group->rank();
  for (const bool split : {false, true}) {
    FixtureNet net;
    fill_parameters(*net, 0);
    DistributedDataParallel ddp(net.ptr(), group, {.gradient_as_bucket_view = split});
    torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.05));
    std::vector<double> losses;
    for (int step = 0; step < 10; ++step) {
      ddp.zero_grad();
      const Batch whole = fixture_batch(step, rank);
      if (split) {
        double sum = 0;
        for (int half = 0; half < 2; ++half) {
          const BackwardOptions options{.synchronise = half == 1, .weight = 0.5};
          sum += ddp.forward_backward(whole.slice(half * kBatch / 2, kBatch / 2), mean_squared_error, options)
                     .item<double>() /
                 2;
        }
        losses.push_back(sum);
      } else {
        losses.push_back(ddp.forward_backward(whole, mean_squared_error, {}).item<double>());
      }
      optimizer.step();
    }
    write_results(folder, split ? "accumulated" : "whole", rank, losses, *net);
  }
  group->close();
}

void different_shape() {
  const auto group = dist::Group::create(dist::read_rank_environment(), quick_options());
  FixtureNet net(false, false, group->rank() == 1 ? kHidden / 2 : kHidden);
  DistributedDataParallel ddp(net.ptr(), group);
}

void missing_layer() {
  const auto group = dist::Group::create(dist::read_rank_environment(), quick_options());
  FixtureNet net(false, group->rank() == 0);
  DistributedDataParallel ddp(net.ptr(), group);
}

void unused_parameter() {
  const auto group = dist::Group::create(dist::read_rank_environment(), quick_options());
  FixtureNet net(false, true);
  net->use_extra = false;
  DistributedDataParallel ddp(net.ptr(), group);
  for (int step = 0; step < 2; ++step) ddp.forward_backward(fixture_batch(step, group->rank()), mean_squared_error, {});
}

void died_peer() {
  const auto group = dist::Group::create(dist::read_rank_environment(), quick_options());
  FixtureNet net;
  DistributedDataParallel ddp(net.ptr(), group);
  for (int step = 0; step < 5; ++step) {
    if (step == 3 && group->rank() == 1) raise(SIGKILL);
    ddp.forward_backward(fixture_batch(step, group->rank()), mean_squared_error, {});
  }
}

void early_termination() {
  const auto group = dist::Group::create(dist::read_rank_environment(), quick_options());
  FixtureNet net;
  DistributedDataParallel ddp(net.ptr(), group);
  ddp.join(
      [&] {
        for (int step = 0; step < 2 + group->rank(); ++step) {
          ddp.forward_backward(fixture_batch(step, group->rank()), mean_squared_error, {});
          std::printf("step %d\n", step);
        }
      },
      {.throw_on_early_termination = true});
}

/// Reductions of the Strategy interface, which the training loop's log uses.
void strategy_numbers() {
  const auto group = dist::Group::create(dist::read_rank_environment(), quick_options());
  FixtureNet net;
  DistributedDataParallel ddp(net.ptr(), group);
  const double r = group->rank();
  at::Tensor mean = torch::tensor({r, 10.0 * r}, at::kDouble);
  ddp.mean_over_ranks(mean);
  COHORT_CHECK(torch::equal(mean, torch::tensor({0.5, 5.0}, at::kDouble)), "mean over two ranks");
  at::Tensor maximum = torch::tensor({r, -r}, at::kDouble);
  ddp.max_over_ranks(maximum);
  COHORT_CHECK(torch::equal(maximum, torch::tensor({1.0, 0.0}, at::kDouble)), "maximum over two ranks");
  ddp.barrier();
  group->close();
}

int run(const std::string& scenario, const std::string& folder) {
  torch::set_num_threads(1);
  if (scenario == "accumulate") {
    accumulate(folder);
  } else if (scenario == "different_shape") {
    different_shape();
  } else if (scenario == "missing_layer") {
    missing_layer();
  } else if (scenario == "unused_parameter") {
    unused_parameter();
  } else if (scenario == "died_peer") {
    died_peer();
  } else if (scenario == "early_termination") {
    early_termination();
  } else if (scenario == "strategy_numbers") {
    strategy_numbers();
  } else {
    const auto group = dist::Group::create(dist::read_rank_environment(), quick_options());
    std::istringstream names(scenario);
    for (std::string name; std::getline(names, name, ',');) train(group, name, folder);
    group->close();
  }
  std::puts("done");
  return 0;
}

}  // namespace
}  // namespace cohort::test

int main(int argc, char** argv) {
  try {
    return cohort::test::run(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : ".");
  } catch (const std::exception& problem) {
    std::printf("error: %s\n", problem.what());
    return 1;
  }
}
