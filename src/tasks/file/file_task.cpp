#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files.h"
#include "core/fnv.h"
#include "core/format.h"
#include "core/json_text.h"
#include "core/log.h"
#include "core/real_at.h"
#include "sim/backends/cpu/engine.h"
#include "sim/host/inverse_kinematics.h"
#include "sim/host/kinematics.h"
#include "tasks/actor.h"
#include "tasks/events/randomizer.h"
#include "tasks/file/device_loop.h"
#include "tasks/file/file_plan.h"
#include "tasks/file/library_files.h"
#include "tasks/file/task_content.h"
#include "tasks/file/task_file.h"
#include "tasks/takes_commands.h"
#include "tasks/task_fields.h"
#include "tasks/terrain/terrain_height.h"
#include "tasks/terrain/terrain_level.h"

namespace cohort::tasks {

namespace fs = std::filesystem;
using config::Json;
using terms::Array;
using terms::ArrayType;

namespace {

Array array_of(const ArrayView& view) {
  Array array;
  array.data = view.data;
  array.type = view.type == ElementType::kFloat64 ? ArrayType::kDouble
               : view.type == ElementType::kInt32 ? ArrayType::kInt32
                                                  : ArrayType::kFloat;
  array.env_stride = view.strides[0], array.value_stride = view.strides[1];
  return array;
}

/// A program with its arrays and what it remembers of the environments.
class Evaluator {
 public:
  Evaluator(const terms::Program& program, std::vector<ArrayPlace> places, std::vector<terms::MemorySlot> memories,
            std::int64_t n_pad)
      : program_(program),
        places_(std::move(places)),
        slots_(std::move(memories)),
        arrays_(places_.size()),
        n_pad_(n_pad),
        memory_(static_cast<std::size_t>(program.memory_rows * n_pad)) {}

  template <class ArrayAt>
  void bind(const ArrayAt& array_at) {
    for (std::size_t i = 0; i < places_.size(); ++i) arrays_[i] = array_at(places_[i]);
  }

  /// Of the active ones of [first, last), rounded up to whole ranges.
  void run(const unsigned* keys, const std::int64_t* steps, const unsigned char* active, int first, int last) const {
    static_assert(sizeof(std::int64_t) == sizeof(long long));
    // 64 bytes hold a register of every lane type.
    thread_local std::vector<std::byte> registers;
    const std::size_t bytes = static_cast<std::size_t>(program_.registers) * 64 + 64;
    if (registers.size() < bytes) registers.resize(bytes);
    void* at = registers.data();
    std::size_t space = registers.size();
    std::align(64, bytes - 64, at, space);
    terms::Evaluation e = program_.evaluation();
    e.arrays = arrays_.data();
    e.memory = memory_.data();
    e.keys = keys;
    e.steps = reinterpret_cast<const long long*>(steps);
    e.active = active;
    e.n_pad = n_pad_;
    e.ground = ground_;
    static const terms::RunRange run_range = sim::of_lanes(sim::LaneWidth::kAuto, terms::scalar_run_range(),
                                                           terms::avx2_run_range(), terms::avx512_run_range());
    run_range(e, first, (last + 15) / 16 * 16, at);
  }

  void set_ground(const sim::TerrainView& ground) { ground_ = ground; }
  /// What is remembered of an environment by this name; 0 where the program has no such memory.
  float remembered(const std::string& name, int row, int env) const {
    for (const terms::MemorySlot& slot : slots_)
      if (slot.name == name) return memory_[static_cast<std::size_t>((slot.first + row) * n_pad_ + env)];
    return 0;
  }

  void remember(const std::string& name, int row, int env, float value) {
    for (const terms::MemorySlot& slot : slots_)
      if (slot.name == name) memory_[static_cast<std::size_t>((slot.first + row) * n_pad_ + env)] = value;
  }

  DeviceLoop::HostMemory host_memory() { return {&memory_, n_pad_}; }

  void visit(StateVisitor& state, const std::string& prefix, int n_envs) {
    for (const terms::MemorySlot& slot : slots_) {
      ArrayView rows = make_view(memory_.data() + slot.first * n_pad_, {n_envs, slot.rows});
      rows.strides[0] = 1, rows.strides[1] = n_pad_;
      state.add(prefix + slot.name, rows);
    }
  }

 private:
  const terms::Program& program_;
  std::vector<ArrayPlace> places_;
  std::vector<terms::MemorySlot> slots_;
  std::vector<Array> arrays_;
  std::int64_t n_pad_;
  sim::TerrainView ground_{};
  mutable std::vector<float> memory_;  // [row][environment]
};

SceneTaskSetup setup_of(const TaskSettings& settings, FileTaskSettings& file_settings, const FilePlan& plan) {
  SceneTaskSetup setup;
  file_settings.horizon = plan.spec.horizon;
  setup.fields = read_fields(settings, file_settings);
  setup.settings = file_settings;
  setup.spec = plan.spec;
  setup.entities = plan.entities;
  setup.cameras = plan.cameras;
  setup.compiled = plan.compiled;
  setup.simulation = plan.simulation;
  setup.simulation.parameters = parameters_of(plan.randomizations);
  setup.keyframe = plan.keyframe;
  setup.remarks = plan.remarks;
  setup.leaves = plan.leaves;
  setup.by_range = true;
  return setup;
}

/// Settings of the content's task with their defaults.
FileTaskSettings settings_of(const std::string& path, const Json& content) {
  FileTaskSettings file_settings;
  file_settings.of_file = settings_of_content(path, content);
  if (!content.is_object() || !content.contains("success") || !content["success"].is_object()) return file_settings;
  const Json& success = content["success"];
  if (!success.contains("ends_episode")) return file_settings;
  COHORT_THROW_UNLESS(success["ends_episode"].is_boolean(), "{}: success.ends_episode is {}: true or false", path,
                      json_text(success["ends_episode"]));
  file_settings.end_on_success = success["ends_episode"].get<bool>();
  return file_settings;
}

class FileTask final : public SceneTask, public TakesCommands {
 public:
  FileTask(const TaskSettings& settings, FileTaskSettings file_settings, FilePlan plan)
      : FileTask(settings, file_settings, std::make_unique<FilePlan>(std::move(plan))) {}

  TaskContract contract() override {
    TaskContract contract = SceneTask::contract();
    const TaskContract& file = plan_->contract;
    contract.action_scale = file.action_scale;
    contract.command_names = file.command_names;
    contract.observations = file.observations;
    contract.default_joint_pos.clear();
    const sim::ModelInfo& info = plan_->model.info;
    for (const std::string& name : contract.joint_names) {
      const auto named = std::ranges::find(file.joint_names, name);
      contract.default_joint_pos.push_back(
          named != file.joint_names.end()
              ? file.default_joint_pos[static_cast<std::size_t>(named - file.joint_names.begin())]
              : plan_->model
                    .qpos[static_cast<std::size_t>(info.joints[static_cast<std::size_t>(info.joint(name))].qpos)]);
    }
    // Forces have no pose from which they count.
    if (file.joint_names.empty() && std::ranges::all_of(contract.default_joint_pos, [](double q) { return q == 0; }))
      contract.default_joint_pos.clear();
    return contract;
  }

  std::span<const CommandShape> commands() const override { return plan_->commands; }
  void hold_command(int env, std::size_t command, std::span<const float> value) override {
    const CommandShape& shape = command_shape(env, command);
    COHORT_THROW_UNLESS(value.size() == shape.parts.size(), "command {} has {} numbers, not {}", shape.name,
                        shape.parts.size(), value.size());
    for (const float x : value)
      COHORT_THROW_UNLESS(std::isfinite(x), "command {} cannot be {}, which is no number", shape.name, x);
    for (std::size_t i = 0; i < value.size(); ++i)
      judge_.remember("commands." + shape.name + ".by_hand", static_cast<int>(i), env, value[i]);
    judge_.remember("commands." + shape.name + ".held", 0, env, 1);
  }
  void release_command(int env, std::size_t command) override {
    judge_.remember("commands." + command_shape(env, command).name + ".held", 0, env, 0);
  }
  std::vector<float> command(int env, std::size_t command) const override {
    const CommandShape& shape = command_shape(env, command);
    std::vector<float> out;
    for (std::size_t i = 0; i < shape.parts.size(); ++i)
      out.push_back(judge_.remembered("commands." + shape.name + ".shown", static_cast<int>(i), env));
    return out;
  }

 private:
  const CommandShape& command_shape(int env, std::size_t command) const {
    COHORT_THROW_UNLESS(command < plan_->commands.size() && env >= 0 && env < n_envs(),
                        "there is no command {} of environment {}", command, env);
    return plan_->commands[command];
  }

  FileTask(const TaskSettings& settings, FileTaskSettings file_settings, std::unique_ptr<FilePlan> plan)
      : SceneTask(settings, setup_of(settings, file_settings, *plan)),
        plan_(std::move(plan)),
        n_pad_((n_envs() + kRange - 1) / kRange * kRange),
        control_(plan_->control, plan_->control_arrays, plan_->control_memories, n_pad_),
        judge_(plan_->judge, plan_->judge_arrays, plan_->judge_memories, n_pad_),
        expert_(plan_->expert, plan_->expert_arrays, {}, n_pad_),
        keys_(2 * static_cast<std::size_t>(n_pad_)),
        step_counts_(static_cast<std::size_t>(n_pad_)),
        active_(static_cast<std::size_t>(n_pad_)),
        terms_(static_cast<std::size_t>(n_pad_) * plan_->spec.reward_terms.size()),
        success_(static_cast<std::size_t>(n_pad_)),
        terminated_(success_.size()),
        truncated_(success_.size()),
        randomizer_(plan_->randomizations, scene(), spec().control_period),
        walks_(plan_->terrain_levels.empty() || !settings.learning ? 0 : static_cast<std::size_t>(n_envs())) {
    if (plan_->terrain != nullptr && !plan_->terrain->is_flat()) {
      control_.set_ground(plan_->terrain->view());
      judge_.set_ground(plan_->terrain->view());
    }
    if (scene().options().device.kind != DeviceKind::kCuda || !file_settings.on_device || plan_->commands_by_hand)
      return;
    // Parameters of environments are in host memory: who reads them computes there.
    const auto reads_parameters = [](const std::vector<ArrayPlace>& places) {
      return std::ranges::any_of(places, [](ArrayPlace at) { return at.kind == ArrayPlace::kParameter; });
    };
    if (reads_parameters(plan_->control_arrays) || reads_parameters(plan_->judge_arrays)) return;
    DeviceLoop::Rules rules{.horizon = spec().horizon,
                            .clips = clips_actions(),
                            .sparse = is_sparse(),
                            .ends_on_success = file_settings.end_on_success,
                            .terms = static_cast<std::int64_t>(spec().reward_terms.size()),
                            .scales = term_scales()};
    auto there = std::make_unique<DeviceLoop>(*plan_, scene(), randomizer_, rules, keys_, n_pad_,
                                              control_.host_memory(), judge_.host_memory());
    there_ = there.get();
    compute_on(std::move(there));
    randomizer_.put_values_by(
        [this](sim::Field field, std::span<const std::int32_t> envs, std::span<const std::int32_t> items,
               std::span<const double> values) { there_->put_values(field, envs, items, values); });
    for (const Randomization& event : plan_->randomizations)
      for (const Randomization::Write& write : event.writes)
        sends_task_values_ = sends_task_values_ ||
                             (event.mode == Randomization::kInterval && write.place == Randomization::Write::kTask);
  }

  void start(int env, const RandomStream& random, Start& start) override {
    const auto e = static_cast<std::size_t>(env);
    keys_[e] = random.bits(0), keys_[static_cast<std::size_t>(n_pad_) + e] = random.bits(1);
    std::ranges::copy(plan_->model.qpos, start.qpos.begin());
    std::ranges::copy(plan_->model.ctrl, start.ctrl.begin());
    const std::uint64_t key = key_of(e);
    if (plan_->terrain != nullptr) place_on_terrain(env, key, start);
    for (const ResetEvent& event : plan_->resets) {
      const RandomStream draws(key, RandomPurpose::kEnvironment, fnv1a(event.name) & 0xffffffff, 0);
      if (event.kind == ResetEvent::kBase)
        reset_base(event, draws, start);
      else if (event.kind == ResetEvent::kOnGround)
        place_on_ground(event, start);
      else if (event.kind == ResetEvent::kFrame)
        place_frame(event, draws, start);
      else
        reset_joints(event, draws, start);
    }
  }

  std::uint64_t key_of(std::size_t env) const {
    return (std::uint64_t{keys_[static_cast<std::size_t>(n_pad_) + env]} << 32) | keys_[env];
  }
  void after_start(std::span<const std::int32_t> envs) override {
    random_keys_.clear();
    for (const std::int32_t env : envs) random_keys_.push_back(key_of(static_cast<std::size_t>(env)));
    randomizer_.reset(envs, random_keys_);
  }
  void before_step() override {
    if (!randomizer_.has_intervals()) return;
    random_keys_.clear();
    for (int env = 0; env < n_envs(); ++env) random_keys_.push_back(key_of(static_cast<std::size_t>(env)));
    randomizer_.step(steps(), random_keys_);
    if (sends_task_values_) there_->send_task_values();
  }

  /// How far the robots have come, for the levels at which they begin again.
  void before_reset(std::span<const std::int32_t> envs) override {
    if (walks_.empty()) return;
    const int base = plan_->model.of_robot().free_qpos;
    const std::string command = "commands." + plan_->terrain_levels;
    const std::size_t count = envs.size();
    // Positions x and y, then the command's x and y, [4][envs]: of these environments alone.
    std::vector<double> numbers;
    if (there_ != nullptr) {
      for (const float x : there_->read_field(sim::Field::kQpos, base, 2, envs))
        numbers.push_back(static_cast<double>(x));
      for (const float x : there_->read_memory(command, 2, envs)) numbers.push_back(static_cast<double>(x));
    } else {
      const ArrayView qpos = scene().engine().host_view(sim::Field::kQpos, sim::Access::kRead);
      for (int axis = 0; axis < 2; ++axis)
        for (const std::int32_t env : envs) numbers.push_back(real_at(qpos, env, base + axis));
      for (int axis = 0; axis < 2; ++axis)
        for (const std::int32_t env : envs)
          numbers.push_back(static_cast<double>(judge_.remembered(command, axis, env)));
    }
    for (std::size_t i = 0; i < count; ++i) {
      Walk& walk = walks_[static_cast<std::size_t>(envs[i])];
      walk.ended = walk.begun != 0 && steps()[static_cast<std::size_t>(envs[i])] > 0;
      if (!walk.ended) continue;
      walk.distance = std::hypot(numbers[i] - walk.from[0], numbers[count + i] - walk.from[1]);
      walk.commanded = std::hypot(numbers[2 * count + i], numbers[3 * count + i]) * plan_->spec.control_period *
                       static_cast<double>(spec().horizon);
    }
  }

  /// The level at which an episode begins: by the curriculum, or, where nobody learns, drawn from all.
  int level_of(int env, const RandomStream& draws) {
    const GeneratedTerrain& ground = *plan_->terrain;
    if (walks_.empty()) return static_cast<int>(draws.below(0, static_cast<std::uint32_t>(ground.num_levels)));
    Walk& walk = walks_[static_cast<std::size_t>(env)];
    if (walk.begun == 0)
      walk.level = static_cast<std::int32_t>(draws.below(0, static_cast<std::uint32_t>(plan_->first_levels)));
    else if (walk.ended)
      walk.level = next_terrain_level({walk.level, walk.distance, walk.commanded}, ground.num_levels, ground.patch_size,
                                      static_cast<double>(draws.uniform(2)));
    walk.begun = 1, walk.ended = false;
    return walk.level;
  }

  /// Moves the robot to the patch that the episode's seed chooses, of the level that the curriculum has come to.
  void place_on_terrain(int env, std::uint64_t key, Start& start) {
    const GeneratedTerrain& ground = *plan_->terrain;
    const int base = plan_->model.of_robot().free_qpos;
    if (base < 0) return;  // it stands where it is fixed
    const RandomStream draws(key, RandomPurpose::kEnvironment, fnv1a("terrain") & 0xffffffff, 0);
    const int level = level_of(env, draws);
    const auto column = static_cast<int>(draws.below(1, static_cast<std::uint32_t>(ground.num_columns)));
    const auto& middle = ground.spawn(level, column);
    for (std::size_t i = 0; i < 3; ++i)
      start.qpos[static_cast<std::size_t>(base) + i] += static_cast<double>(middle[i]);
    if (walks_.empty()) return;
    Walk& walk = walks_[static_cast<std::size_t>(env)];
    for (std::size_t i = 0; i < 2; ++i) walk.from[i] = start.qpos[static_cast<std::size_t>(base) + i];
  }

  void reset_base(const ResetEvent& event, const RandomStream& random, Start& start) const {
    const TaskModel::Entity& entity = plan_->model.entities[static_cast<std::size_t>(event.entity)];
    const bool free = entity.free_qpos >= 0;
    const auto m = static_cast<std::size_t>(std::max(entity.mocap, 0)),
               q = static_cast<std::size_t>(std::max(entity.free_qpos, 0)),
               v = static_cast<std::size_t>(std::max(entity.free_dof, 0));
    const std::span<double> pos = free ? start.qpos.subspan(q, 3) : start.mocap_pos.subspan(3 * m, 3),
                            quat = free ? start.qpos.subspan(q + 3, 4) : start.mocap_quat.subspan(4 * m, 4);
    double pose[6], velocity[6];
    for (std::size_t i = 0; i < 6; ++i) {
      pose[i] = event.pose[i].at(random.uniform(i));
      velocity[i] = event.velocity[i].at(random.uniform(6 + i));
    }
    for (std::size_t i = 0; i < 3; ++i) pos[i] += pose[i];
    // The turn is about the world's axes, on top of where the body begins.
    std::ranges::copy(product(quat_of_rpy(pose[3], pose[4], pose[5]), {quat[0], quat[1], quat[2], quat[3]}),
                      quat.begin());
    for (std::size_t i = 0; free && i < 6; ++i) start.qvel[v + i] += velocity[i];
  }

  /// The joints' positions that put a frame where it is drawn, near enough where none do; their servos hold them there.
  void place_frame(const ResetEvent& event, const RandomStream& random, Start& start) {
    const sim::ModelInfo& info = plan_->model.info;
    std::array<double, 3> pos = event.frame_pos;
    std::array<double, 3> turn{};
    for (std::size_t i = 0; i < 3; ++i) {
      pos[i] += event.pose[i].at(random.uniform(i));
      turn[i] = event.pose[3 + i].at(random.uniform(3 + i));
    }
    const std::array<double, 4>& at_start = event.frame.quat;
    const std::array<double, 4> wanted = product(quat_of_rpy(turn[0], turn[1], turn[2]), event.frame_quat);
    const sim::IkTarget target{.link = event.frame.link,
                               .point = event.frame.pos,
                               .pos = pos,
                               .quat = product(wanted, {at_start[0], -at_start[1], -at_start[2], -at_start[3]})};
    std::vector<int> dofs;
    for (const int j : event.joints) dofs.push_back(info.joints[static_cast<std::size_t>(j)].dof);
    constexpr double kNear = 1e-6;  // m, rad
    const sim::IkResult found = sim::inverse_kinematics(scene().kinematics(), info, start.qpos, dofs, {&target, 1},
                                                        {.pos_tolerance = kNear, .rot_tolerance = kNear});
    std::ranges::copy(found.qpos, start.qpos.begin());
    for (const sim::ActuatorInfo& actuator : info.actuators)
      for (const int j : event.joints)
        if (const sim::JointInfo& joint = info.joints[static_cast<std::size_t>(j)];
            actuator.kind == sim::ActuatorInfo::Kind::kPosition && actuator.dof == joint.dof)
          start.ctrl[static_cast<std::size_t>(actuator.ctrl)] = start.qpos[static_cast<std::size_t>(joint.qpos)];
  }

  /// Up or down, until the lowest of the points is as high over the ground as is asked for.
  void place_on_ground(const ResetEvent& event, Start& start) {
    const TaskModel::Entity& entity = plan_->model.entities[static_cast<std::size_t>(event.entity)];
    const sim::Kinematics::Posture posture = scene().kinematics().at(start.qpos);
    const bool level = plan_->terrain == nullptr || plan_->terrain->is_flat();
    const sim::TerrainView ground = level ? sim::TerrainView{} : plan_->terrain->view();
    double lift = -INFINITY;
    for (const int link : event.links) {
      const sim::Kinematics::Pose pose = posture.link_pose(link);
      std::array<double, 3> at = pose.pos;
      for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t k = 0; k < 3; ++k) at[i] += pose.rot[3 * i + k] * event.point[k];
      const float below = level ? 0 : sim::terrain_height(ground, static_cast<float>(at[0]), static_cast<float>(at[1]));
      lift = std::max(lift, static_cast<double>(below) + event.clearance - at[2]);
    }
    start.qpos[static_cast<std::size_t>(entity.free_qpos) + 2] += lift;
  }

  void reset_joints(const ResetEvent& event, const RandomStream& random, Start& start) const {
    std::uint64_t next = 0;
    for (const int j : event.joints) {
      const sim::JointInfo& joint = plan_->model.info.joints[static_cast<std::size_t>(j)];
      double& position = start.qpos[static_cast<std::size_t>(joint.qpos)];
      double& speed = start.qvel[static_cast<std::size_t>(joint.dof)];
      const double drawn = event.position.at(random.uniform(next)), fast = event.speed.at(random.uniform(next + 1));
      next += 2;
      if (event.kind == ResetEvent::kJointsByOffset)
        position += drawn, speed += fast;
      else
        position *= drawn, speed *= fast;
      if (joint.limited) position = std::clamp(position, joint.range[0], joint.range[1]);
    }
  }

  void views_taken() override {
    sim::Engine& engine = scene().engine();
    const auto place = [&](ArrayPlace at) {
      const auto of_task = [](auto* data, ArrayType type, long long env_stride) {
        return Array{data, type, env_stride, 1};
      };
      switch (at.kind) {
        case ArrayPlace::kField: {
          const auto field = static_cast<sim::Field>(at.which);
          const bool written = field == sim::Field::kQvel;
          return array_of(engine.host_view(field, written ? sim::Access::kWrite : sim::Access::kRead));
        }
        case ArrayPlace::kControl:
          return array_of(engine.host_view(sim::Field::kCtrl, sim::Access::kWrite));
        case ArrayPlace::kSteps:
          return of_task(step_counts_.data(), ArrayType::kInt64, 1);
        case ArrayPlace::kAction: {
          const auto width = static_cast<long long>(plan_->spec.action.names.size());
          return of_task(const_cast<float*>(actions().data()), ArrayType::kFloat, width);
        }
        case ArrayPlace::kObservation: {
          const auto which = static_cast<std::size_t>(at.which);
          return of_task(observation_values(which).data(), ArrayType::kFloat,
                         plan_->spec.observations[which].elements());
        }
        case ArrayPlace::kTerms:
          return of_task(terms_.data(), ArrayType::kFloat, static_cast<long long>(plan_->spec.reward_terms.size()));
        case ArrayPlace::kMetrics:
          return of_task(metric_values().data(), ArrayType::kFloat, static_cast<long long>(plan_->spec.metrics.size()));
        case ArrayPlace::kTask:
          return array_of(randomizer_.task_values(static_cast<TaskParameter>(at.which)));
        case ArrayPlace::kParameter:
          return array_of(engine.parameter(static_cast<sim::Parameter>(at.which)));
        case ArrayPlace::kExpert:
          expert_actions_.resize(static_cast<std::size_t>(n_pad_) * plan_->spec.action.names.size());
          return of_task(expert_actions_.data(), ArrayType::kFloat,
                         static_cast<long long>(plan_->spec.action.names.size()));
        case ArrayPlace::kSuccess:
          return of_task(success_.data(), ArrayType::kUInt8, 1);
        case ArrayPlace::kTerminated:
          return of_task(terminated_.data(), ArrayType::kUInt8, 1);
        case ArrayPlace::kTruncated:
          return of_task(truncated_.data(), ArrayType::kUInt8, 1);
      }
      return Array{};
    };
    control_.bind(place);
    judge_.bind(place);
    expert_.bind(place);
  }

  void control_range(int first, int last) override {
    for (int env = first; env < last; ++env) {
      const auto e = static_cast<std::size_t>(env);
      active_[e] = !is_broken(env);
      step_counts_[e] = steps()[e];
    }
    control_.run(keys_.data(), step_counts_.data(), active_.data(), first, last);
  }

  void finish_range(int first, int last) override {
    for (int env = first; env < last; ++env) {
      const auto e = static_cast<std::size_t>(env);
      active_[e] = !is_broken(env);
      step_counts_[e] = steps()[e];
    }
    judge_.run(keys_.data(), step_counts_.data(), active_.data(), first, last);
    const std::size_t width = plan_->spec.reward_terms.size();
    for (int env = first; env < last; ++env) {
      const auto e = static_cast<std::size_t>(env);
      if (!active_[e]) continue;
      judged(env, {.success = success_[e] != 0, .terminated = terminated_[e] != 0, .truncated = truncated_[e] != 0},
             std::span<const float>(terms_).subspan(e * width, width));
    }
  }

  void observe_some(std::span<const std::int32_t> envs) override {
    std::fill(active_.begin(), active_.end(), 0);
    for (const std::int32_t env : envs) {
      const auto e = static_cast<std::size_t>(env);
      active_[e] = 1;
      step_counts_[e] = steps()[e];
    }
    judge_.run(keys_.data(), step_counts_.data(), active_.data(), 0, n_envs());
  }

  void visit_variables(StateVisitor& state) override {
    const int n = n_envs();
    if (there_ != nullptr && !state.loads()) there_->save_memories();
    ArrayView keys = make_view(reinterpret_cast<std::int32_t*>(keys_.data()), {n, 2});
    keys.strides[0] = 1, keys.strides[1] = n_pad_;
    state.add("key", keys);
    control_.visit(state, "control.", n);
    judge_.visit(state, "", n);
    randomizer_.visit(state);
    if (!walks_.empty()) {
      state.add("terrain.begun", walks_, &Walk::begun);
      state.add("terrain.level", walks_, &Walk::level);
      state.add("terrain.from", walks_, &Walk::from);
    }
    if (there_ != nullptr && state.loads()) there_->load_memories();
  }

  std::unique_ptr<Actor> make_expert(std::uint64_t seed) override {
    COHORT_THROW_UNLESS(there_ == nullptr || !spec().has_expert,
                        "{}: the expert of a task's file acts where the simulator is on the CPU: device cpu",
                        spec().name);
    return SceneTask::make_expert(seed);
  }

  void expert(int env, const EnvState&, std::span<float> action) override {
    const auto e = static_cast<std::size_t>(env);
    step_counts_[e] = steps()[e];
    std::fill(active_.begin(), active_.end(), 0);
    active_[e] = 1;
    const int first = env / kRange * kRange;
    expert_.run(keys_.data(), step_counts_.data(), active_.data(), first, first + kRange);
    const std::size_t width = plan_->spec.action.names.size();
    std::copy_n(expert_actions_.begin() + static_cast<std::ptrdiff_t>(e * width), width, action.begin());
  }

  // What one environment at a time would do: ranges do it.
  void control(int, const EnvState&, std::span<const float>, std::span<double>) override {}
  void observe(int, const EnvState&, ObservationRows&) override {}
  Judgement judge(int, const EnvState&, Terms&) override { return {}; }

  /// What the curriculum of levels remembers of an environment.
  struct Walk {
    std::int32_t begun = 0, level = 0;
    std::array<double, 2> from{};        // m, where the episode has begun
    double distance = 0, commanded = 0;  // m, of the episode that ends
    bool ended = false;
  };

  std::unique_ptr<FilePlan> plan_;
  std::int64_t n_pad_;
  Evaluator control_, judge_, expert_;
  std::vector<std::uint32_t> keys_;  // [2][environment]
  std::vector<std::int64_t> step_counts_;
  std::vector<unsigned char> active_;
  std::vector<float> terms_, expert_actions_;
  std::vector<std::uint8_t> success_, terminated_, truncated_;
  Randomizer randomizer_;
  std::vector<Walk> walks_;
  std::vector<std::uint64_t> random_keys_;  // scratch
  DeviceLoop* there_ = nullptr;             // what computes the environments where the engine is on a device
  bool sends_task_values_ = false;          // an event changes them while an episode runs
};

}  // namespace

void describe(config::Fields& fields, FileTaskSettings& s) {
  describe(fields, static_cast<SceneTaskSettings&>(s));
  fields.add("play", s.play, "with the changes of the file's `play`: as it is shown and evaluated");
  fields.add("commands_by_hand", s.commands_by_hand,
             "commands can be held at a person's wish, as the page of `cohort view` does; on the CPU then");
  fields.add("on_device", s.on_device,
             "where the engine is on a GPU, observations, rewards and ends are computed there, too; false: on the CPU");
  describe_file_settings(fields, s.of_file);
}

bool is_task_file(const std::string& name) {
  const std::string suffix = fs::path(name).extension().string();
  return suffix == ".yaml" || suffix == ".yml" || suffix == ".json";
}

std::string task_title(const std::string& name) {
  return is_task_file(name) ? fs::path(name).stem().string() : name;
}

namespace {

/// The task with its settings, as `overrides` of `settings` have them.
FilePlan plan_of_settings(const std::string& path, Json content, const TaskSettings& settings, FileTaskSettings set) {
  return plan_of_file(path, std::move(content), set.play, set.horizon, set.of_file, settings.learning,
                      set.reward_scales, set.commands_by_hand);
}

}  // namespace

std::unique_ptr<Task> make_file_task(const std::string& named, const TaskSettings& settings) {
  return of_file_or_copy(named, [&](const std::string& path) {
    Json content = read_content(path);
    FileTaskSettings file_settings = settings_of(path, content);
    FileTaskSettings set = file_settings;
    read_fields(settings, set);
    FilePlan plan = plan_of_settings(path, std::move(content), settings, std::move(set));
    return std::unique_ptr<Task>(std::make_unique<FileTask>(settings, file_settings, std::move(plan)));
  });
}

std::string task_file_content(const std::string& named) {
  return of_file_or_copy(named, [](const std::string& path) { return json_text(read_content(path)); });
}

TaskEntry task_of_file(const std::string& named) {
  return of_file_or_copy(named, [&](const std::string& path) {
    const Json content = read_content(path);
    const FilePlan plan = plan_of_file(path, content, false);
    FileTaskSettings file_settings = settings_of(path, content);
    file_settings.horizon = plan.spec.horizon;
    return TaskEntry{.name = named,
                     .summary = plan.spec.summary,
                     .make = [named](const TaskSettings& s) { return make_file_task(named, s); },
                     .settings = [file_settings] { return fields_of(file_settings); },
                     .ppo = plan.ppo};
  });
}

void keep_task(const std::string& task, const fs::path& run, const std::vector<std::string>& settings) {
  if (!is_task_file(task)) return;
  const std::string path = present_file(task);
  if (fs::weakly_canonical(fs::path(path).parent_path()) == fs::weakly_canonical(run / "task")) return;
  const Json content = read_content(path);
  FileTaskSettings set = settings_of(path, content);
  const TaskSettings named{.overrides = settings};
  read_fields(named, set);
  std::vector<FilePlan> plans;
  plans.push_back(plan_of_settings(path, content, named, set));
  if (!settings.empty()) plans.push_back(plan_of_file(path, content, false));
  if (!set.play && content.contains("play")) {
    set.play = true;
    try {
      plans.push_back(plan_of_settings(path, content, named, set));
    } catch (const Error& e) {
      log::warning("{} cannot be played with its `play`: {}", task, e.what());
    }
  }
  keep_plans(plans, content, run / "task");
}

void register_library_task(const std::string& file) {
  [[maybe_unused]] const std::string path = kLibrary + file;
#ifdef COHORT_HAS_YAML
  const Json content = read_content(path);
  FileTaskSettings file_settings = settings_of(path, content);
  const Json& time = content.at("simulation");
  file_settings.horizon =
      std::llround(time.at("episode_length_s").get<double>() / time.at("control_period").get<double>());
  register_task({.name = task_title(file),
                 .summary = content.value("summary", ""),
                 .make = [path](const TaskSettings& s) { return make_file_task(path, s); },
                 .settings = [file_settings] { return fields_of(file_settings); },
                 .ppo = ppo_words(content)});
#endif
}

}  // namespace cohort::tasks
