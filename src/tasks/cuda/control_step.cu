// A control step of a file's task around the physics: the program's source is the CPU's (tasks/terms/program.h), compiled
// without contraction, so that its bits are the CPU's; what is done besides is SceneTask's, an environment a thread.
#include "sim/backends/cuda/current_device.h"
#include "sim/backends/cuda/lane.h"
#include "tasks/cuda/control_step.h"

namespace cohort::tasks::cuda {
namespace {

using sim::cuda::GpuLane;
using sim::cuda::kLanes;
using sim::cuda::LanePointer;
using sim::cuda::launch_on;
using sim::cuda::OnDevice;
using sim::cuda::text;
using Lane = terms::ProgramLane<GpuLane>;

/// For kernels without registers.
constexpr int kThreads = 128;

COHORT_LANE bool is_finite(float x) {
  return x - x == 0.0f;
}

__device__ LanePointer registers_of(const Registers& r) {
  const long long block = static_cast<long long>(blockIdx.x) * kLanes * r.count;
  return {r.memory + block + static_cast<long long>(threadIdx.x)};
}
__device__ int first_env() {
  return static_cast<int>(blockIdx.x) * kLanes + static_cast<int>(threadIdx.x);
}
__device__ int env_stride() {
  return static_cast<int>(gridDim.x) * kLanes;
}

/// SceneTask::read_action.
__device__ void read_action(const Environments& t, int env) {
  const long long row = static_cast<long long>(env) * t.action_width;
  for (int i = 0; i < t.action_width; ++i) {
    float action = t.given[row + i];
    if (!is_finite(action)) {
      t.broken[env] = 1;
      action = 0.0f;
    }
    if (t.clips != 0) {
      if (action < t.low[i])
        action = t.low[i];
      else if (t.high[i] < action)
        action = t.high[i];
    }
    t.actions[row + i] = action;
  }
}

/// SceneTask::count_steps.
__device__ void count_step(const Environments& t, int env) {
  const long long steps = ++t.steps[env];
  t.truncated[env] = steps >= t.horizon ? 1 : 0;
  if (t.status[env] != 0) t.broken[env] = 1;
  if (t.broken[env] == 0) return;
  float* const terms = t.shown_terms + static_cast<long long>(env) * t.terms;
  for (int i = 0; i < t.terms; ++i) terms[i] = 0.0f;
  t.reward[env] = 0.0f;
  t.success[env] = 0;
  t.terminated[env] = 1;
}

/// SceneTask::judged.
__device__ void add_up(const Environments& t, int env) {
  float* const terms = t.shown_terms + static_cast<long long>(env) * t.terms;
  const float* const written = t.written + static_cast<long long>(env) * t.written_terms;
  const bool success = t.is_success[env] != 0;
  if (t.sparse != 0) {
    terms[0] = success ? 1.0f : 0.0f;
  } else {
    for (int i = 0; i < t.terms; ++i) terms[i] = written[i];
  }
  if (t.scale != nullptr) {
    for (int i = 0; i < t.terms; ++i) terms[i] *= t.scale[i];
  }
  float sum = 0.0f;
  for (int i = 0; i < t.terms; ++i) sum += terms[i];
  t.reward[env] = sum;
  t.success[env] = success ? 1 : 0;
  if (t.is_truncated[env] != 0) t.truncated[env] = 1;
  t.terminated[env] = t.is_terminated[env] != 0 || (success && t.ends_on_success != 0) ? 1 : 0;
}

__global__ void control_kernel(const __grid_constant__ Environments t,
                               const __grid_constant__ terms::Evaluation program,
                               const __grid_constant__ Registers registers) {
  for (int env = first_env(); env < t.n; env += env_stride()) {
    read_action(t, env);
    if (t.broken[env] == 0) Lane::run(program, env, 1u, registers_of(registers));
  }
}

__global__ void judge_kernel(const __grid_constant__ Environments t, const __grid_constant__ terms::Evaluation program,
                             const __grid_constant__ Registers registers) {
  for (int env = first_env(); env < t.n; env += env_stride()) {
    count_step(t, env);
    if (t.broken[env] != 0) continue;
    Lane::run(program, env, 1u, registers_of(registers));
    add_up(t, env);
  }
}

__global__ void begin_kernel(const __grid_constant__ Environments t, const int* chosen, const unsigned* keys,
                             int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  const int env = chosen[i];
  t.keys[env] = keys[i];
  t.keys[t.keys_stride + env] = keys[count + i];
  t.steps[env] = 0;
  t.reward[env] = 0.0f;
  t.success[env] = 0;
  t.terminated[env] = 0;
  t.truncated[env] = 0;
  t.broken[env] = 0;
  for (int k = 0; k < t.terms; ++k) t.shown_terms[static_cast<long long>(env) * t.terms + k] = 0.0f;
}

__global__ void observe_kernel(const __grid_constant__ terms::Evaluation program,
                               const __grid_constant__ Registers registers, const int* chosen, int count) {
  for (int i = first_env(); i < count; i += env_stride()) Lane::run(program, chosen[i], 1u, registers_of(registers));
}

unsigned blocks_for(int n, const Registers& r) {
  const int blocks = (n + kLanes - 1) / kLanes;
  return static_cast<unsigned>(blocks < r.blocks ? blocks : r.blocks);
}

}  // namespace

const char* control(int device, void* stream, const Environments& envs, const terms::Evaluation& program,
                    const Registers& registers) {
  const OnDevice on(device);
  if (on.status() != cudaSuccess) return text(on.status());
  return text(launch_on(stream, blocks_for(envs.n, registers), kLanes, 0, control_kernel, envs, program, registers));
}

const char* judge(int device, void* stream, const Environments& envs, const terms::Evaluation& program,
                  const Registers& registers) {
  const OnDevice on(device);
  if (on.status() != cudaSuccess) return text(on.status());
  return text(launch_on(stream, blocks_for(envs.n, registers), kLanes, 0, judge_kernel, envs, program, registers));
}

const char* begin(int device, void* stream, const Environments& envs, const int* chosen, const unsigned* keys,
                  int count) {
  const OnDevice on(device);
  if (on.status() != cudaSuccess) return text(on.status());
  if (count == 0) return nullptr;
  const unsigned blocks = static_cast<unsigned>((count - 1) / kThreads + 1);
  return text(launch_on(stream, blocks, kThreads, 0, begin_kernel, envs, chosen, keys, count));
}

const char* observe(int device, void* stream, const terms::Evaluation& program, const Registers& registers,
                    const int* chosen, int count) {
  const OnDevice on(device);
  if (on.status() != cudaSuccess) return text(on.status());
  if (count == 0) return nullptr;
  return text(
      launch_on(stream, blocks_for(count, registers), kLanes, 0, observe_kernel, program, registers, chosen, count));
}

}  // namespace cohort::tasks::cuda
