// A training loop of one's own around the simulator, on one device or on many: every rank simulates its share of the
// environments, all learn one model of how they move, and gradients are averaged over the ranks.
//
//   sim_ddp                                                                one process
//   cohort launch --nproc_per_node=2 -- sim_ddp                            a process for each device
//   torchrun --standalone --nproc-per-node=2 --no-python sim_ddp           the same under torchrun
//
//   sim_ddp [ENVIRONMENTS [STEPS]]     over all ranks, 2048 and 400 without
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <torch/torch.h>

#include "core/devices.h"
#include "dist/cuda_plugin.h"
#include "dist/group.h"
#include "parallel/distributed_data_parallel.h"
#include "sim/backends/cuda/engine.h"
#include "sim/host/scene.h"
#include "tensors/convert.h"
#include "tensors/stream_order.h"

using namespace cohort;

// Two links on a motor each. Angles in rad, torques in N m.
const char* const kArm = R"(
<mujoco model="arm">
  <option timestep="0.01" integrator="implicitfast"/>
  <default><geom type="capsule" size="0.04" density="500"/><joint axis="0 1 0" damping="0.3"/></default>
  <worldbody>
    <body pos="0 0 1">
      <joint name="shoulder"/><geom fromto="0 0 0 0 0 -0.4"/>
      <body pos="0 0 -0.4"><joint name="elbow"/><geom fromto="0 0 0 0 0 -0.3"/></body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="shoulder" ctrlrange="-4 4" ctrllimited="true"/>
    <motor joint="elbow" ctrlrange="-2 2" ctrllimited="true"/>
  </actuator>
</mujoco>)";

// From angles, velocities and torques to how much the velocities change in a step.
struct NetImpl : torch::nn::Module {
  torch::nn::Linear in{nullptr}, hidden{nullptr}, out{nullptr};
  NetImpl()
      : in(register_module("in", torch::nn::Linear(8, 64))),
        hidden(register_module("hidden", torch::nn::Linear(64, 64))),
        out(register_module("out", torch::nn::Linear(64, 2))) {}
  torch::Tensor forward(const torch::Tensor& x_BI) { return out(torch::tanh(hidden(torch::tanh(in(x_BI))))); }
};
TORCH_MODULE(Net);

int main(int argc, char** argv) try {
  const int environments = argc > 1 ? std::atoi(argv[1]) : 2048;
  const int steps = argc > 2 ? std::atoi(argv[2]) : 400;

  // Which process is this, which device is its own, and who are the others? (gs.init, LOCAL_RANK, init_process_group)
  const rank::Environment environment = rank::read_environment();
  const DeviceId id =
      initialise(
          {.backend = default_backend(), .local_rank = environment.local_rank, .cuda_unusable = sim::cuda_unusable()})
          .device;
  if (id.kind == DeviceKind::kCuda) dist::load_cuda_plugin();  // before LibTorch is asked for a GPU
  const c10::Device device = tensors::to_torch_device(id);
  const std::shared_ptr<dist::Group> group = dist::Group::create(environment, {.device = id});
  const int ranks = group->world_size(), rank = group->rank();
  COHORT_THROW_UNLESS(environments > 0 && environments % ranks == 0 && steps > 0,
                      "{} environments for {} steps cannot be shared equally among {} ranks", environments, steps,
                      ranks);

  // This rank's share of the environments. What one does depends on its global id, not on who computes it.
  const int n_envs = environments / ranks;
  sim::Scene scene({.device = id, .seed = 1, .first_environment = std::int64_t{rank} * n_envs});
  scene.add_entity(sim::Mjcf{.file = "", .xml = kArm});
  scene.build(n_envs, {1.0, 1.0});

  // The simulator's own memory as tensors, without a copy: (n_envs, 2) each.
  const at::Tensor qpos = tensors::to_tensor(scene.view(sim::Field::kQpos));
  const at::Tensor qvel = tensors::to_tensor(scene.view(sim::Field::kQvel));
  const at::Tensor ctrl = tensors::to_tensor(scene.view(sim::Field::kCtrl));

  // Every rank begins with rank 0's weights.
  torch::manual_seed(1);
  Net net;
  net->to(device);
  parallel::DistributedDataParallel ddp(net.ptr(), group);
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(3e-3));

  at::Tensor sum = at::zeros({1}, at::TensorOptions(at::kDouble).device(device));
  const int report_every = std::max(1, steps / 4);
  for (int step = 1; step <= steps; ++step) {
    scene.set_random_ctrl(step);  // uniform in the motors' ranges
    tensors::read_after(scene.view(sim::Field::kQvel));
    const at::Tensor input_BI = at::cat({qpos.sin(), qpos.cos(), qvel * 0.1, ctrl * 0.25}, 1);
    const at::Tensor before_BV = qvel.clone();
    tensors::write_before(scene.view(sim::Field::kQvel));
    scene.step();
    tensors::read_after(scene.view(sim::Field::kQvel));

    const at::Tensor loss = torch::mse_loss(ddp.forward<NetImpl>(input_BI), qvel - before_BV);
    ddp.zero_grad();
    ddp.backward(loss);  // gradients are averaged over the ranks meanwhile
    optimizer.step();

    sum += loss.detach();
    if (step % report_every == 0) {
      ddp.mean_over_ranks(sum);
      if (rank == 0) {
        std::printf("step %d: loss %.6f, %d environments on %d rank(s)\n", step, sum.item<double>() / report_every,
                    environments, ranks);
        std::fflush(stdout);
      }
      sum.zero_();
    }
  }
  group->barrier();  // nobody leaves while another still needs it
  group->close();    // destroy_process_group
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "sim_ddp: %s\n", e.what());
  return 1;
}
