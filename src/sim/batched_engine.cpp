#include "sim/batched_engine.h"

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "sim/engine_plan.h"
#include "sim/field_table.h"

namespace cohort::sim {

namespace {

/// Of a state's arrays, what no field shows (hidden_rows).
constexpr const char* kHidden = "hidden";

/// Environments with which the last block is full. The greatest numbers end at the last block that is an int's: no
/// machine has the memory, and need_memory() or the device's plan refuses them.
int padded(int n_envs, int block) {
  return block * std::min(std::numeric_limits<int>::max() / block, (n_envs - 1) / block + 1);
}

}  // namespace

int left_bits(const FieldSet& step_leaves, bool present) {
  const auto leaves = [&](Field field) { return step_leaves.test(static_cast<std::size_t>(field)); };
  int bits = (leaves(Field::kLinkPos) ? kLeftLinkPos : 0) | (leaves(Field::kLinkQuat) ? kLeftLinkQuat : 0);
  if (leaves(Field::kLinkCom) || leaves(Field::kLinkInertia) || leaves(Field::kLinkVelocity) ||
      leaves(Field::kLinkForce)) {
    bits |= kLeftLinks;
  }
  if (leaves(Field::kQfrcActuator) || leaves(Field::kQfrcConstraint)) bits |= kLeftForces;
  if (leaves(Field::kLinkTwist)) bits |= kLeftTwists;
  if (leaves(Field::kGeomForce)) bits |= kLeftGeomForces;
  if (present && bits != 0) bits |= kLeftPresent;
  return bits;
}

int hidden_rows(const ModelView& m) {
  return 1 + m.nhistory;
}

MemoryPlan plan_of_fields(const Model& model, const FieldSet& step_leaves, double besides) {
  MemoryPlan plan;
  double state = besides, derived = 0;
  for (int f = 0; f < kFieldCount; ++f) {
    const Field field = static_cast<Field>(f);
    if (has_field(step_leaves, field)) (is_state(field) ? state : derived) += 4.0 * field_size(model.info, field);
  }
  plan.parts = {{"state and inputs", state}, {"derived", derived}};
  if (model.sizes.nseparation > 0) plan.parts.push_back({"separating directions", 12.0 * model.sizes.nseparation});
  return plan;
}

BatchedEngine::BatchedEngine(Model model, int n_envs, int block, const EngineOptions& options)
    : model_(std::move(model)),
      step_leaves_(options.step_leaves),
      leave_present_(options.leave_present),
      n_(n_envs),
      n_pad_(padded(n_envs, block)),
      parameters_(model_, n_pad_) {}

void BatchedEngine::point(DataView& data, Field field, void* memory) {
  const FieldTraits& of = traits(field);
  if (of.floats != nullptr) {
    data.*of.floats = static_cast<float*>(memory);
  } else {
    data.*of.ints = static_cast<int*>(memory);
  }
}

ArrayView BatchedEngine::shape_of(Field field, void* data) const {
  ArrayView v;
  v.data = data;
  v.type = traits(field).floats != nullptr ? ElementType::kFloat32 : ElementType::kInt32;
  v.rank = 2;
  v.shape = {n_, size_of(field)};
  v.strides = {1, n_pad_};
  return v;
}

namespace {
bool is_int(const std::string& field) {
  for (int i = 0; i < kFieldCount; ++i)
    if (field == field_name(static_cast<Field>(i))) return traits(static_cast<Field>(i)).floats == nullptr;
  return false;
}
}  // namespace

/// In the order of for_state().
std::vector<std::string> BatchedEngine::state_names() const {
  std::vector<std::string> names;
  for (int i = 0; i < kFieldCount; ++i)
    if (is_state(static_cast<Field>(i))) names.emplace_back(field_name(static_cast<Field>(i)));
  names.emplace_back(kHidden);
  return names;
}

ArrayView BatchedEngine::parameter(Parameter parameter) {
  ParameterSet wanted;
  wanted.set(static_cast<std::size_t>(parameter));
  check_step_leaves(model_, step_leaves_, wanted);
  if ((wanted & ~parameters_.taken()).any()) {
    // The caller keeps what was there until the new values are in place.
    need_room(wanted, parameter_name(parameter), 2.0 * sizeof(float) * parameters_.size(parameter));
    take_parameters(wanted);
  }
  return parameters_.view(parameter, n_);
}

/// Calls f(memory, bytes) for what makes up a state, in the order of a saved one.
template <class F>
void BatchedEngine::for_state(F f) {
  for (int i = 0; i < kFieldCount; ++i) {
    const Field field = static_cast<Field>(i);
    if (is_state(field)) f(field_memory(field), field_bytes(field));
  }
  f(hidden_, hidden_bytes());
}

std::vector<std::uint8_t> BatchedEngine::save_state() {
  settle();
  std::size_t total = 0, from = 0;
  for_state([&](void*, std::size_t size) { total += size; });
  std::vector<std::uint8_t> bytes(total);
  for_state([&](void* memory, std::size_t size) {
    if (size > 0) read_memory(bytes.data() + from, memory, size);
    from += size;
  });
  parameters_.save(bytes);
  return bytes;
}

void BatchedEngine::load_state(std::span<const std::uint8_t> bytes) {
  std::size_t expected = 0, from = 0;
  for_state([&](void*, std::size_t size) { expected += size; });
  const auto other = [&] {
    return Error(format("a state of {} bytes was saved; {} environments of this model take {}{}", bytes.size(), n_,
                        expected, place()));
  };
  if (bytes.size() < expected) throw other();
  const ParameterSet saved = ParameterStore::saved_in(bytes.subspan(expected));
  check_step_leaves(model_, step_leaves_, saved);
  need_room(saved, "the state's parameters", 0);
  ParameterStore read(model_, n_pad_);
  if (read.load(bytes.subspan(expected)) != bytes.size() - expected) throw other();
  for_state([&](void* memory, std::size_t size) {
    if (size > 0) write_memory(memory, bytes.data() + from, size);
    from += size;
  });
  state_loaded();
  parameters_.exchange_values(read);
  if (parameters_.any()) {
    commit_parameters();
  } else {
    share_parameters();
  }
}

ArrayView BatchedEngine::state_array(const std::string& name, Access access) {
  settle();
  std::size_t total = 0, from = 0, i = 0;
  for_state([&](void*, std::size_t size) { total += size; });
  if (!is_host()) state_copy_.resize(total);
  const std::vector<std::string> names = state_names();
  ArrayView array;
  for_state([&](void* memory, std::size_t size) {
    if (names[i] == name) {
      if (!is_host()) {
        if (size > 0) read_memory(state_copy_.data() + from, memory, size);
        memory = state_copy_.data() + from;
        if (access == Access::kWrite) written_in_copy_.set(i);
      }
      const bool ints = name != kHidden && is_int(name);
      array.data = memory;
      array.type = ints ? ElementType::kInt32 : ElementType::kFloat32;
      array.rank = 2;
      array.shape = {n_, static_cast<std::int64_t>(size / row_bytes())};
      array.strides = {1, n_pad_};
    }
    from += size, ++i;
  });
  COHORT_THROW_UNLESS(array.rank > 0, "no array of a state is called '{}'", name);
  return array;
}

void BatchedEngine::state_written() {
  std::size_t from = 0, i = 0;
  for_state([&](void* memory, std::size_t size) {
    if (written_in_copy_.test(i) && size > 0) write_memory(memory, state_copy_.data() + from, size);
    from += size, ++i;
  });
  written_in_copy_.reset();
  state_loaded();
  if (parameters_.any()) commit_parameters();
}

}  // namespace cohort::sim
