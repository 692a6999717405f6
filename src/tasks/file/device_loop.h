/// The control step of a file's task where its engine is on a CUDA device: programs, memories, keys and outcomes lie
/// beside the engine's arrays, and two launches around the physics (tasks/cuda/control_step.h) do the rest, with the bits
/// of the CPU. To the host goes nothing; from it what begins with an episode, for the environments whose episodes begin,
/// in one copy.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "sim/backends/cuda/memory.h"
#include "sim/host/scene.h"
#include "tasks/cuda/control_step.h"
#include "tasks/events/randomizer.h"
#include "tasks/file/file_plan.h"
#include "tasks/scene_on_device.h"

namespace cohort::tasks {

class DeviceLoop final : public SceneOnDevice {
 public:
  /// What SceneTask decides of the reward and of ends.
  struct Rules {
    std::int64_t horizon = 0;
    bool clips = false, sparse = false, ends_on_success = false;
    std::int64_t terms = 0;     ///< of the reward, as the task shows them
    std::vector<float> scales;  ///< of the terms; empty: 1
  };
  /// A program's memory in host memory, for who saves and loads it: [row][row_stride].
  struct HostMemory {
    std::vector<float>* values;
    std::int64_t row_stride;
  };

  /// plan, scene and randomizer outlive this; so do keys, [2][keys_stride] in host memory, of all episodes. control and
  /// judge: what save() and load() copy.
  DeviceLoop(const FilePlan& plan, sim::Scene& scene, Randomizer& randomizer, const Rules& rules,
             std::span<const std::uint32_t> keys, std::int64_t keys_stride, HostMemory control, HostMemory judge);
  ~DeviceLoop() override;

  DeviceId device() const override { return {DeviceKind::kCuda, device_}; }
  void* stream() const override { return stream_; }
  ArrayView observations() override;
  ArrayView reward() override;
  ArrayView reward_terms() override;
  ArrayView metrics() override;
  ArrayView success() override;
  ArrayView terminated() override;
  ArrayView truncated() override;
  ArrayView broken() override;

  void step(const ArrayView& actions, int timesteps, bool evaluates) override;
  void put(sim::Field field, std::span<const float> rows) override;
  void begin(std::span<const std::int32_t> envs) override;
  void observe(std::span<const std::int32_t> envs) override;
  void bring(const HostRows& rows) override;
  void take(const HostRows& rows) override;

  /// The programs' memories to the host, and keys and memories back.
  void save_memories();
  void load_memories();
  /// Single values of an engine's field, of which the last one for a place stays.
  void put_values(sim::Field field, std::span<const std::int32_t> envs, std::span<const std::int32_t> items,
                  std::span<const double> values);
  /// What events have drawn for the task itself goes to the device again.
  void send_task_values();

  /// Rows of a field of the engine, or of what the judging program remembers, of some environments, copied to the host:
  /// (rows, envs).
  std::vector<float> read_field(sim::Field field, int first, int rows, std::span<const std::int32_t> envs);
  std::vector<float> read_memory(const std::string& name, int rows, std::span<const std::int32_t> envs);

 private:
  struct Program {
    const terms::Program* program = nullptr;
    const std::vector<ArrayPlace>* places = nullptr;
    const std::vector<terms::MemorySlot>* slots = nullptr;
    HostMemory host{};
    sim::cuda::DeviceMemory code, constants, index, arrays, memory;
    terms::Evaluation evaluation{};
  };
  std::size_t n_size() const { return static_cast<std::size_t>(n_); }
  sim::cuda::DeviceMemory upload_all(const void* from, std::size_t bytes);
  template <class T>
  sim::cuda::DeviceMemory upload_all(const std::vector<T>& values) {
    return upload_all(values.data(), values.size() * sizeof(T));
  }
  void prepare(Program& p, const terms::Program& program, const std::vector<ArrayPlace>& places,
               const std::vector<terms::MemorySlot>& slots, HostMemory host);
  terms::Array array_at(const ArrayPlace& place);
  /// Puts what was written to the host's copies of the engine's fields to the device, before a launch reads them.
  void settle_fields();
  /// The environments, and what follows them, in one copy; gives where it lies.
  const char* send(std::span<const std::byte> bytes);
  std::vector<float> read_rows(const float* from, std::int64_t stride, int rows, std::span<const std::int32_t> envs);
  ArrayView view(void* data, ElementType type, std::int64_t width);
  template <class T>
  void down(std::vector<T>& to, const void* from);
  template <class T>
  void up(void* to, const std::vector<T>& from);

  const FilePlan& plan_;
  sim::Scene& scene_;
  Randomizer& randomizer_;
  std::span<const std::uint32_t> keys_;
  std::int64_t keys_stride_;
  int device_, n_, n_pad_;
  void* stream_;
  std::int64_t width_ = 0;            // of all observations
  std::vector<std::int64_t> firsts_;  // of each field's numbers among them
  sim::cuda::DeviceMemory low_, high_, scale_, given_, actions_, device_keys_, steps_, observations_, written_, shown_,
      metrics_, reward_, judged_, outcomes_, registers_, heights_, staging_, rows_out_;
  std::size_t staging_bytes_ = 0, rows_out_bytes_ = 0;
  std::map<int, sim::cuda::DeviceMemory> task_values_;  // by TaskParameter
  cuda::Environments envs_{};
  cuda::Registers own_registers_{};
  sim::TerrainView ground_{};
  Program control_, judge_;
  std::vector<sim::Field> fields_;  // that the programs read and write
  struct Put {
    sim::Field field;
    std::vector<float> rows;
  };
  std::vector<Put> puts_;
  std::vector<std::byte> message_;
  std::vector<float> observation_rows_;  // scratch of bring() and take()
};

}  // namespace cohort::tasks
