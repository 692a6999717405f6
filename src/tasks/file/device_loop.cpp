#include "tasks/file/device_loop.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/real_at.h"

namespace cohort::tasks {

using sim::cuda::DeviceMemory;
using sim::cuda::make_device_memory;
using sim::cuda::make_device_scratch;
using sim::cuda::need;
using terms::Array;
using terms::ArrayType;

namespace {

/// As many blocks of 32 threads as have registers of a program at a time: more than a device holds.
constexpr int kMostBlocks = 2048;
constexpr int kThreadsOfABlock = 32;

std::size_t count_of(std::int64_t n) {
  return static_cast<std::size_t>(n);
}

ArrayType type_of(ElementType type) {
  return type == ElementType::kFloat64 ? ArrayType::kDouble
         : type == ElementType::kInt32 ? ArrayType::kInt32
                                       : ArrayType::kFloat;
}

}  // namespace

DeviceLoop::DeviceLoop(const FilePlan& plan, sim::Scene& scene, Randomizer& randomizer, const Rules& rules,
                       std::span<const std::uint32_t> keys, std::int64_t keys_stride, HostMemory control,
                       HostMemory judge)
    : plan_(plan),
      scene_(scene),
      randomizer_(randomizer),
      keys_(keys),
      keys_stride_(keys_stride),
      device_(scene.options().device.index),
      n_(scene.n_envs()),
      n_pad_((n_ + kThreadsOfABlock - 1) / kThreadsOfABlock * kThreadsOfABlock),
      stream_(scene.engine().stream()) {
  const auto n = n_size(), pad = count_of(n_pad_);
  for (const FieldSpec& field : plan.spec.observations) firsts_.push_back(width_), width_ += field.elements();
  const auto actions = count_of(plan.spec.action.width()), written = plan.spec.reward_terms.size();
  const auto zeros = [&](std::size_t bytes) { return make_device_memory(device_, stream_, bytes); };
  low_ = upload_all(plan.spec.action.low), high_ = upload_all(plan.spec.action.high);
  if (!rules.scales.empty()) scale_ = upload_all(rules.scales);
  given_ = zeros(n * actions * sizeof(float)), actions_ = zeros(n * actions * sizeof(float));
  device_keys_ = zeros(2 * pad * sizeof(std::uint32_t)), steps_ = zeros(pad * sizeof(std::int64_t));
  observations_ = zeros(n * count_of(width_) * sizeof(float)), written_ = zeros(n * written * sizeof(float));
  shown_ = zeros(n * count_of(rules.terms) * sizeof(float)), reward_ = zeros(n * sizeof(float));
  if (!plan.spec.metrics.empty()) metrics_ = zeros(n * plan.spec.metrics.size() * sizeof(float));
  judged_ = zeros(3 * n), outcomes_ = zeros(4 * n);
  auto* const judged = static_cast<unsigned char*>(judged_.get());
  auto* const outcomes = static_cast<unsigned char*>(outcomes_.get());
  envs_.n = n_;
  envs_.action_width = static_cast<int>(actions);
  envs_.clips = rules.clips, envs_.sparse = rules.sparse, envs_.ends_on_success = rules.ends_on_success;
  envs_.low = static_cast<const float*>(low_.get()), envs_.high = static_cast<const float*>(high_.get());
  envs_.horizon = rules.horizon;
  envs_.written_terms = static_cast<int>(written), envs_.terms = static_cast<int>(rules.terms);
  envs_.scale = static_cast<const float*>(scale_.get());
  envs_.written = static_cast<const float*>(written_.get());
  envs_.is_success = judged, envs_.is_terminated = judged + n, envs_.is_truncated = judged + 2 * n;
  envs_.keys_stride = n_pad_;
  envs_.actions = static_cast<float*>(actions_.get());
  envs_.keys = static_cast<unsigned*>(device_keys_.get());
  envs_.steps = static_cast<long long*>(steps_.get());
  envs_.reward = static_cast<float*>(reward_.get()), envs_.shown_terms = static_cast<float*>(shown_.get());
  envs_.success = outcomes, envs_.terminated = outcomes + n, envs_.truncated = outcomes + 2 * n;
  envs_.broken = outcomes + 3 * n;
  envs_.status = static_cast<const int*>(scene_.engine().view(sim::Field::kStatus).data);
  if (plan.terrain != nullptr && !plan.terrain->is_flat()) {
    ground_ = plan.terrain->view();
    heights_ = upload_all(ground_.heights, count_of(std::int64_t{ground_.rows} * ground_.cols) * sizeof(float));
    ground_.heights = static_cast<const float*>(heights_.get());
  }
  prepare(control_, plan.control, plan.control_arrays, plan.control_memories, control);
  prepare(judge_, plan.judge, plan.judge_arrays, plan.judge_memories, judge);
  own_registers_.count = std::max({plan.control.registers, plan.judge.registers, 1});
  own_registers_.blocks = std::min(n_pad_ / kThreadsOfABlock, kMostBlocks);
  registers_ = make_device_scratch(
      device_, count_of(own_registers_.count) * count_of(own_registers_.blocks) * kThreadsOfABlock * sizeof(float));
  own_registers_.memory = static_cast<float*>(registers_.get());
  send_task_values();
}

DeviceLoop::~DeviceLoop() = default;

DeviceMemory DeviceLoop::upload_all(const void* from, std::size_t bytes) {
  DeviceMemory memory = make_device_scratch(device_, bytes);
  need(sim::cuda::upload(device_, stream_, memory.get(), from, bytes), device_, "the task's program cannot be copied");
  return memory;
}

void DeviceLoop::prepare(Program& p, const terms::Program& program, const std::vector<ArrayPlace>& places,
                         const std::vector<terms::MemorySlot>& slots, HostMemory host) {
  p.program = &program, p.places = &places, p.slots = &slots, p.host = host;
  p.code = upload_all(program.code), p.constants = upload_all(program.constants), p.index = upload_all(program.index);
  std::vector<Array> arrays;
  for (const ArrayPlace& place : places) arrays.push_back(array_at(place));
  p.arrays = upload_all(arrays);
  p.memory = make_device_memory(device_, stream_, count_of(std::int64_t{program.memory_rows} * n_pad_) * sizeof(float));
  p.evaluation = program.evaluation();
  p.evaluation.code = static_cast<const terms::Instruction*>(p.code.get());
  p.evaluation.constants = static_cast<const float*>(p.constants.get());
  p.evaluation.index = static_cast<const int*>(p.index.get());
  p.evaluation.arrays = static_cast<const Array*>(p.arrays.get());
  p.evaluation.memory = static_cast<float*>(p.memory.get());
  p.evaluation.keys = envs_.keys, p.evaluation.steps = envs_.steps;
  p.evaluation.n_pad = n_pad_;
  p.evaluation.ground = ground_;
}

Array DeviceLoop::array_at(const ArrayPlace& at) {
  const auto engine_field = [&](sim::Field field) {
    if (std::ranges::find(fields_, field) == fields_.end()) fields_.push_back(field);
    const ArrayView view = scene_.engine().view(field);
    return Array{view.data, type_of(view.type), view.strides[0], view.strides[1]};
  };
  const auto own = [](void* data, ArrayType type, std::int64_t env_stride) { return Array{data, type, env_stride, 1}; };
  auto* const judged = static_cast<unsigned char*>(judged_.get());
  switch (at.kind) {
    case ArrayPlace::kField:
      return engine_field(static_cast<sim::Field>(at.which));
    case ArrayPlace::kControl:
      return engine_field(sim::Field::kCtrl);
    case ArrayPlace::kSteps:
      return own(steps_.get(), ArrayType::kInt64, 1);
    case ArrayPlace::kAction:
      return own(actions_.get(), ArrayType::kFloat, envs_.action_width);
    case ArrayPlace::kObservation:
      return own(static_cast<float*>(observations_.get()) + firsts_[count_of(at.which)], ArrayType::kFloat, width_);
    case ArrayPlace::kTerms:
      return own(written_.get(), ArrayType::kFloat, envs_.written_terms);
    case ArrayPlace::kMetrics:
      return own(metrics_.get(), ArrayType::kFloat, std::ssize(plan_.spec.metrics));
    case ArrayPlace::kExpert:  // acts on the host
      break;
    case ArrayPlace::kTask: {
      const ArrayView values = randomizer_.task_values(static_cast<TaskParameter>(at.which));
      DeviceMemory& memory = task_values_[at.which];
      if (!memory) memory = make_device_memory(device_, stream_, count_of(values.shape[1] * n_pad_) * sizeof(float));
      return {memory.get(), ArrayType::kFloat, 1, n_pad_};
    }
    case ArrayPlace::kSuccess:
      return own(judged, ArrayType::kUInt8, 1);
    case ArrayPlace::kTerminated:
      return own(judged + n_, ArrayType::kUInt8, 1);
    case ArrayPlace::kTruncated:
      return own(judged + 2 * std::int64_t{n_}, ArrayType::kUInt8, 1);
  }
  return {};
}

void DeviceLoop::settle_fields() {
  for (const sim::Field field : fields_) scene_.engine().view(field);
}

ArrayView DeviceLoop::view(void* data, ElementType type, std::int64_t width) {
  const std::int64_t shape[] = {n_, width};
  ArrayView v = make_view(data, type, std::span(shape, width < 0 ? 1 : 2));
  v.device = device(), v.stream = stream_;
  return v;
}
ArrayView DeviceLoop::observations() {
  return view(observations_.get(), ElementType::kFloat32, width_);
}
ArrayView DeviceLoop::reward() {
  return view(envs_.reward, ElementType::kFloat32, -1);
}
ArrayView DeviceLoop::reward_terms() {
  return view(envs_.shown_terms, ElementType::kFloat32, envs_.terms);
}
ArrayView DeviceLoop::metrics() {
  return view(metrics_.get(), ElementType::kFloat32, std::ssize(plan_.spec.metrics));
}
ArrayView DeviceLoop::success() {
  return view(envs_.success, ElementType::kUInt8, -1);
}
ArrayView DeviceLoop::terminated() {
  return view(envs_.terminated, ElementType::kUInt8, -1);
}
ArrayView DeviceLoop::truncated() {
  return view(envs_.truncated, ElementType::kUInt8, -1);
}
ArrayView DeviceLoop::broken() {
  return view(envs_.broken, ElementType::kUInt8, -1);
}

void DeviceLoop::step(const ArrayView& actions, int timesteps, bool evaluates) {
  COHORT_CHECK(actions.type == ElementType::kFloat32 && actions.contiguous(),
               "actions of {} are needed, without gaps between them", element_name(ElementType::kFloat32));
  if (actions.device.kind == DeviceKind::kCpu) {
    need(sim::cuda::upload(device_, stream_, given_.get(), actions.data, actions.bytes()), device_,
         "the actions cannot be copied");
    envs_.given = static_cast<const float*>(given_.get());
  } else {
    COHORT_CHECK(actions.device == device(), "actions in the memory of {}, of a task on {}", to_string(actions.device),
                 to_string(device()));
    envs_.given = static_cast<const float*>(actions.data);
  }
  settle_fields();
  need(cuda::control(device_, stream_, envs_, control_.evaluation, own_registers_), device_,
       "the task's controls cannot be launched");
  sim::Engine& engine = scene_.engine();
  engine.step(timesteps);
  if (evaluates) engine.forward();
  need(cuda::judge(device_, stream_, envs_, judge_.evaluation, own_registers_), device_,
       "the task's judgement cannot be launched");
}

const char* DeviceLoop::send(std::span<const std::byte> bytes) {
  if (bytes.size() > staging_bytes_) {
    need(sim::cuda::wait(device_, stream_), device_, "an earlier launch failed");
    staging_ = {}, staging_bytes_ = 0;
    staging_ = make_device_scratch(device_, bytes.size());
    staging_bytes_ = bytes.size();
  }
  need(sim::cuda::upload(device_, stream_, staging_.get(), bytes.data(), bytes.size()), device_,
       "what episodes begin with cannot be copied");
  return static_cast<const char*>(staging_.get());
}

void DeviceLoop::put(sim::Field field, std::span<const float> rows) {
  if (!rows.empty()) puts_.push_back({field, {rows.begin(), rows.end()}});
}

void DeviceLoop::begin(std::span<const std::int32_t> envs) {
  const auto count = envs.size();
  // Chosen environments, their keys, then [value][chosen] of each field and of the task's own parameters.
  message_.clear();
  const auto append = [&](const void* from, std::size_t bytes) {
    const std::size_t at = message_.size();
    message_.resize(at + bytes);
    std::memcpy(message_.data() + at, from, bytes);
    return at;
  };
  append(envs.data(), envs.size_bytes());
  std::vector<std::uint32_t> keys(2 * count);
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t half = 0; half < 2; ++half)
      keys[half * count + i] = keys_[half * count_of(keys_stride_) + count_of(envs[i])];
  const std::size_t keys_at = append(keys.data(), keys.size() * sizeof(std::uint32_t));
  struct Target {
    float* to;
    long long stride;
    std::size_t at;
    int rows;
  };
  std::vector<Target> targets;
  std::vector<float> turned;
  for (const Put& put : puts_) {
    const std::size_t width = put.rows.size() / count;
    turned.resize(put.rows.size());
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t v = 0; v < width; ++v) turned[v * count + i] = put.rows[i * width + v];
    const ArrayView field = scene_.engine().view(put.field);
    targets.push_back({static_cast<float*>(field.data), field.strides[1],
                       append(turned.data(), turned.size() * sizeof(float)), static_cast<int>(width)});
  }
  puts_.clear();
  for (auto& [which, memory] : task_values_) {
    const ArrayView values = randomizer_.task_values(static_cast<TaskParameter>(which));
    const auto width = count_of(values.shape[1]);
    turned.resize(width * count);
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t v = 0; v < width; ++v)
        turned[v * count + i] = static_cast<float>(real_at(values, envs[i], static_cast<std::int64_t>(v)));
    targets.push_back({static_cast<float*>(memory.get()), n_pad_, append(turned.data(), turned.size() * sizeof(float)),
                       static_cast<int>(width)});
  }
  const char* const sent = send(message_);
  const auto* const chosen = reinterpret_cast<const int*>(sent);
  need(cuda::begin(device_, stream_, envs_, chosen, reinterpret_cast<const unsigned*>(sent + keys_at),
                   static_cast<int>(count)),
       device_, "the beginning of episodes cannot be launched");
  for (const Target& target : targets)
    need(
        sim::cuda::scatter(device_, stream_, target.to, target.stride, reinterpret_cast<const float*>(sent + target.at),
                           chosen, static_cast<int>(count), target.rows),
        device_, "the beginning of episodes cannot be launched");
}

void DeviceLoop::observe(std::span<const std::int32_t> envs) {
  settle_fields();
  // Those whose episodes have just begun are there.
  const std::span<const std::byte> bytes = std::as_bytes(envs);
  const bool there = message_.size() >= bytes.size() && std::equal(bytes.begin(), bytes.end(), message_.begin());
  if (!there) {
    message_.assign(bytes.begin(), bytes.end());
    send(message_);
  }
  need(cuda::observe(device_, stream_, judge_.evaluation, own_registers_, static_cast<const int*>(staging_.get()),
                     static_cast<int>(envs.size())),
       device_, "the observations cannot be launched");
}

template <class T>
void DeviceLoop::down(std::vector<T>& to, const void* from) {
  need(sim::cuda::download(device_, stream_, to.data(), from, to.size() * sizeof(T)), device_,
       "the task's state cannot be read");
}
template <class T>
void DeviceLoop::up(void* to, const std::vector<T>& from) {
  need(sim::cuda::upload(device_, stream_, to, from.data(), from.size() * sizeof(T)), device_,
       "the task's state cannot be written");
}

void DeviceLoop::bring(const HostRows& rows) {
  down(rows.actions, actions_.get()), down(rows.reward, reward_.get()), down(rows.terms, shown_.get());
  if (!rows.metrics.empty()) down(rows.metrics, metrics_.get());
  down(rows.success, envs_.success), down(rows.terminated, envs_.terminated);
  down(rows.truncated, envs_.truncated), down(rows.broken, envs_.broken);
  observation_rows_.resize(n_size() * count_of(width_));
  down(observation_rows_, observations_.get());
  for (std::size_t f = 0; f < firsts_.size(); ++f) {
    std::vector<float>& field = rows.observations[f];
    const std::size_t own = field.size() / n_size();
    for (std::size_t e = 0; e < n_size(); ++e)
      std::copy_n(observation_rows_.begin() + static_cast<std::ptrdiff_t>(e * count_of(width_) + count_of(firsts_[f])),
                  own, field.begin() + static_cast<std::ptrdiff_t>(e * own));
  }
}

void DeviceLoop::take(const HostRows& rows) {
  up(actions_.get(), rows.actions), up(reward_.get(), rows.reward), up(shown_.get(), rows.terms);
  if (!rows.metrics.empty()) up(metrics_.get(), rows.metrics);
  up(envs_.success, rows.success), up(envs_.terminated, rows.terminated);
  up(envs_.truncated, rows.truncated), up(envs_.broken, rows.broken);
  up(steps_.get(), rows.steps);
  observation_rows_.resize(n_size() * count_of(width_));
  for (std::size_t f = 0; f < firsts_.size(); ++f) {
    const std::vector<float>& field = rows.observations[f];
    const std::size_t own = field.size() / n_size();
    for (std::size_t e = 0; e < n_size(); ++e)
      std::copy_n(field.begin() + static_cast<std::ptrdiff_t>(e * own), own,
                  observation_rows_.begin() + static_cast<std::ptrdiff_t>(e * count_of(width_) + count_of(firsts_[f])));
  }
  up(observations_.get(), observation_rows_);
}

void DeviceLoop::save_memories() {
  std::vector<float> there;
  for (const Program* p : {&control_, &judge_}) {
    const std::int64_t rows = p->program->memory_rows;
    there.resize(count_of(rows * n_pad_));
    down(there, p->memory.get());
    for (std::int64_t row = 0; row < rows; ++row)
      std::copy_n(there.begin() + row * n_pad_, n_, p->host.values->begin() + row * p->host.row_stride);
  }
}

void DeviceLoop::load_memories() {
  std::vector<float> there;
  for (const Program* p : {&control_, &judge_}) {
    const std::int64_t rows = p->program->memory_rows;
    there.assign(count_of(rows * n_pad_), 0.0f);
    for (std::int64_t row = 0; row < rows; ++row)
      std::copy_n(p->host.values->begin() + row * p->host.row_stride, n_, there.begin() + row * n_pad_);
    up(p->memory.get(), there);
  }
  std::vector<std::uint32_t> keys(2 * count_of(n_pad_));
  for (std::int64_t half = 0; half < 2; ++half)
    std::copy_n(keys_.begin() + half * keys_stride_, n_, keys.begin() + half * n_pad_);
  up(device_keys_.get(), keys);
  send_task_values();
}

void DeviceLoop::put_values(sim::Field field, std::span<const std::int32_t> envs, std::span<const std::int32_t> items,
                            std::span<const double> values) {
  const ArrayView view = scene_.engine().view(field);
  // Threads write in any order: one value for each place.
  std::map<std::int32_t, float> of_place;
  for (std::size_t i = 0; i < values.size(); ++i)
    of_place[static_cast<std::int32_t>(items[i] * view.strides[1] + envs[i])] = static_cast<float>(values[i]);
  std::vector<std::int32_t> places;
  std::vector<float> numbers;
  for (const auto& [place, value] : of_place) places.push_back(place), numbers.push_back(value);
  const auto bytes_of = [](const auto& all) { return std::as_bytes(std::span(all)); };
  message_.assign(bytes_of(places).begin(), bytes_of(places).end());
  message_.insert(message_.end(), bytes_of(numbers).begin(), bytes_of(numbers).end());
  const char* const sent = send(message_);
  need(sim::cuda::scatter(device_, stream_, static_cast<float*>(view.data), 0,
                          reinterpret_cast<const float*>(sent + bytes_of(places).size()),
                          reinterpret_cast<const int*>(sent), static_cast<int>(places.size()), 1),
       device_, "values cannot be put in their places");
}

void DeviceLoop::send_task_values() {
  std::vector<float> there;
  for (auto& [which, memory] : task_values_) {
    const ArrayView values = randomizer_.task_values(static_cast<TaskParameter>(which));
    there.assign(count_of(values.shape[1] * n_pad_), 0.0f);
    for (std::int64_t v = 0; v < values.shape[1]; ++v)
      for (int e = 0; e < n_; ++e) there[count_of(v * n_pad_ + e)] = static_cast<float>(real_at(values, e, v));
    up(memory.get(), there);
  }
}

std::vector<float> DeviceLoop::read_rows(const float* from, std::int64_t stride, int rows,
                                         std::span<const std::int32_t> envs) {
  std::vector<float> values(count_of(rows) * envs.size());
  const std::size_t bytes = values.size() * sizeof(float);
  if (bytes > rows_out_bytes_) {
    need(sim::cuda::wait(device_, stream_), device_, "an earlier launch failed");
    rows_out_ = {}, rows_out_bytes_ = 0;
    rows_out_ = make_device_scratch(device_, bytes);
    rows_out_bytes_ = bytes;
  }
  const std::span<const std::byte> chosen = std::as_bytes(envs);
  message_.assign(chosen.begin(), chosen.end());
  send(message_);
  need(sim::cuda::gather(device_, stream_, static_cast<float*>(rows_out_.get()), from, stride,
                         static_cast<const int*>(staging_.get()), static_cast<int>(envs.size()), rows),
       device_, "rows of environments cannot be gathered");
  down(values, rows_out_.get());
  return values;
}

std::vector<float> DeviceLoop::read_field(sim::Field field, int first, int rows, std::span<const std::int32_t> envs) {
  const ArrayView view = scene_.engine().view(field);
  return read_rows(static_cast<const float*>(view.data) + first * view.strides[1], view.strides[1], rows, envs);
}

std::vector<float> DeviceLoop::read_memory(const std::string& name, int rows, std::span<const std::int32_t> envs) {
  for (const terms::MemorySlot& slot : *judge_.slots)
    if (slot.name == name)
      return read_rows(static_cast<const float*>(judge_.memory.get()) + std::int64_t{slot.first} * n_pad_, n_pad_, rows,
                       envs);
  return std::vector<float>(count_of(rows) * envs.size());
}

}  // namespace cohort::tasks
