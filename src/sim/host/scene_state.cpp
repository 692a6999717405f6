// Scene: files of its state and of its compiled model.
#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/files.h"
#include "sim/checksum.h"
#include "sim/host/looks.h"
#include "sim/host/model.h"
#include "sim/host/scene.h"
#include "sim/host/visual_model.h"

namespace cohort::sim {

namespace {

constexpr char kStateMagic[8] = {'C', 'O', 'H', 'O', 'R', 'T', 'S', 'T'};
constexpr std::int32_t kStateVersion = 9;

/// What stands before the engine's bytes in a state file.
struct StateHeader {
  char magic[8];
  std::int32_t version, engine, n_envs, nq, nv, nu;
  std::int64_t steps, first_environment;
  std::uint64_t seed, fingerprint, engine_bytes;
  std::int32_t substeps, contact_capacity;
  std::uint64_t driven;    ///< dofs of all environments that have a spring, a damper and a target: n_envs * nv, or 0
  std::uint64_t idle;      ///< actuators of all environments that may be idle: n_envs * how many, or 0
  std::uint64_t checksum;  ///< of the file with 0 here
};

}  // namespace

void Scene::save_state(const std::filesystem::path& path) {
  const ModelInfo& m = info();
  const std::vector<std::uint8_t> engine = engine_->save_state();
  StateHeader header{};
  std::memcpy(header.magic, kStateMagic, sizeof header.magic);
  header.version = kStateVersion;
  header.engine = static_cast<std::int32_t>(engine_->kind());
  header.n_envs = n_envs();
  header.nq = m.nq, header.nv = m.nv, header.nu = m.nu;
  header.steps = steps_;
  header.first_environment = options_.first_environment;
  header.seed = options_.seed;
  header.fingerprint = m.fingerprint();
  header.substeps = options_.substeps;
  header.contact_capacity = contact_capacity_;
  header.engine_bytes = engine.size();
  header.driven = mode_.size();
  header.idle = is_idle_.size();
  std::string file(reinterpret_cast<const char*>(&header), sizeof header);
  file.append(reinterpret_cast<const char*>(engine.data()), engine.size());
  for (const auto* numbers : {&kp_, &kv_, &force_lower_, &force_upper_, &target_, &servo_damping_, &own_damping_}) {
    file.append(reinterpret_cast<const char*>(numbers->data()), numbers->size() * sizeof(float));
  }
  file.append(reinterpret_cast<const char*>(idle_gains_.data()), idle_gains_.size() * sizeof(double));
  file.append(reinterpret_cast<const char*>(mode_.data()), mode_.size());
  file.append(reinterpret_cast<const char*>(is_idle_.data()), is_idle_.size());
  header.checksum = checksum(file);
  file.replace(0, sizeof header, reinterpret_cast<const char*>(&header), sizeof header);
  write_file_atomically(path, file);
}

void Scene::load_state(const std::filesystem::path& path) {
  const ModelInfo& m = info();
  const std::string file = read_file(path);
  StateHeader h{};
  COHORT_THROW_UNLESS(file.size() >= sizeof h, "{} is no scene state: it is cut off", path.string());
  std::memcpy(&h, file.data(), sizeof h);
  COHORT_THROW_UNLESS(std::memcmp(h.magic, kStateMagic, sizeof h.magic) == 0, "{} is no scene state", path.string());
  COHORT_THROW_UNLESS(h.version == kStateVersion,
                      "{} was written by another version of Cohort (format {}, this one reads {})", path.string(),
                      h.version, kStateVersion);
  COHORT_THROW_UNLESS(
      h.engine == static_cast<std::int32_t>(engine_->kind()) && h.n_envs == n_envs() && h.nq == m.nq && h.nv == m.nv &&
          h.nu == m.nu,
      "{} was saved by another scene: {} environments, nq {}, nv {}, nu {}; this one has {}, {}, {}, {}", path.string(),
      h.n_envs, h.nq, h.nv, h.nu, n_envs(), m.nq, m.nv, m.nu);
  COHORT_THROW_UNLESS(
      h.fingerprint == m.fingerprint(),
      "{} was saved by another scene: its names, joints, masses, shapes, gains, options or default state differ",
      path.string());
  COHORT_THROW_UNLESS(h.substeps == options_.substeps && h.contact_capacity == contact_capacity_,
                      "{} was saved by a scene of {} substeps and room for {} contacts; this one has {} and {}",
                      path.string(), h.substeps, h.contact_capacity, options_.substeps, contact_capacity_);
  COHORT_THROW_UNLESS(h.seed == options_.seed && h.first_environment == options_.first_environment,
                      "{} was saved with seed {} and first environment {}; this scene has {} and {}", path.string(),
                      h.seed, h.first_environment, options_.seed, options_.first_environment);
  const std::size_t whole = static_cast<std::size_t>(n_envs()) * static_cast<std::size_t>(m.nv);
  const std::size_t every_idle = static_cast<std::size_t>(n_envs()) * restoring_.size();
  constexpr std::size_t kDrivenBytes = 7 * sizeof(float) + sizeof(DofMode), kIdleBytes = 6 * sizeof(double) + 1;
  COHORT_THROW_UNLESS((h.driven == 0 || h.driven == whole) && (h.idle == 0 || (h.idle == every_idle && h.driven > 0)) &&
                          h.engine_bytes <= file.size() &&
                          file.size() == sizeof h + h.engine_bytes + h.driven * kDrivenBytes + h.idle * kIdleBytes,
                      "{} is cut off: {} bytes", path.string(), file.size());
  StateHeader without = h;
  without.checksum = 0;
  const std::string_view header(reinterpret_cast<const char*>(&without), sizeof without);
  COHORT_THROW_UNLESS(checksum(std::string_view(file).substr(sizeof h), checksum(header)) == h.checksum,
                      "{} is damaged: its checksum does not fit", path.string());
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(file.data()) + sizeof h;
  const auto* modes = bytes + h.engine_bytes + h.driven * 7 * sizeof(float) + h.idle * 6 * sizeof(double);
  for (std::size_t i = 0; i < h.driven; ++i) {
    COHORT_THROW_UNLESS(modes[i] <= static_cast<std::uint8_t>(DofMode::kVelocity), "{} is damaged: a dof's mode is {}",
                        path.string(), modes[i]);
  }
  engine_->load_state({bytes, h.engine_bytes});
  bytes += h.engine_bytes;
  for (auto* to : {&kp_, &kv_, &force_lower_, &force_upper_, &target_, &servo_damping_, &own_damping_}) {
    to->resize(h.driven);
    if (h.driven > 0) std::memcpy(to->data(), bytes, to->size() * sizeof(float));
    bytes += to->size() * sizeof(float);
  }
  idle_gains_.resize(6 * h.idle);
  if (h.idle > 0) std::memcpy(idle_gains_.data(), bytes, idle_gains_.size() * sizeof(double));
  mode_.resize(h.driven);
  if (h.driven > 0) std::memcpy(mode_.data(), modes, mode_.size());
  is_idle_.resize(h.idle);
  if (h.idle > 0) std::memcpy(is_idle_.data(), modes + h.driven, is_idle_.size());
  any_control_ = std::any_of(mode_.begin(), mode_.end(), [](DofMode mode) { return mode > DofMode::kForce; });
  steps_ = h.steps;
  derived_valid_ = false;
}

std::shared_ptr<const VisualModel> Scene::visual_model() const {
  need_built();
  if (visual_) return visual_;
  if (!compiled_.mjb.empty()) {
    visual_ = std::make_shared<const VisualModel>(import_visual_model(compiled_.mjb));
    return visual_;
  }
  std::shared_ptr<const VisualModel> loaded = load_visual_model(compiled_file_);
  COHORT_THROW_UNLESS(loaded,
                      "{} holds physics only, no pictures: compile the model again (`cohort model FILE --compile OUT`)",
                      compiled_file_.string());
  COHORT_THROW_UNLESS(loaded->content == info().content && loaded->links.size() == info().links.size(),
                      "{} is another model than when this scene was built from it", compiled_file_.string());
  visual_ = std::move(loaded);
  return visual_;
}

Looks& Scene::looks() {
  if (!looks_) looks_ = std::make_unique<Looks>(visual_model(), n_envs());
  return *looks_;
}

const Looks* Scene::looks_in_use() const {
  return looks_ && looks_->any() ? looks_.get() : nullptr;
}

void Scene::save_model(const std::filesystem::path& path) const {
  need_built();
  COHORT_THROW_UNLESS(engine_->kind() == EngineKind::kBatched,
                      "{}: compiled models are those of the engine `batched`, this scene has `{}`", path.string(),
                      to_string(engine_->kind()));
  COHORT_THROW_UNLESS(!compiled_.mjb.empty(), "{}: this scene was built from a compiled model; copy that file",
                      path.string());
  Model model = import_model(compiled_.mjb);
  model.info.entities = entities_;
  model.info.cameras = cameras_;
  sim::save_model(model, path, visual_model().get());
}

}  // namespace cohort::sim
