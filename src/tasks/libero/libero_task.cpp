#include "tasks/libero/libero_task.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.h"
#include "core/format.h"
#include "core/json_text.h"
#include "render/renderer.h"
#include "tasks/actor.h"
#include "tasks/built_in_tasks.h"
#include "tasks/libero/burners.h"
#include "tasks/libero/catalogue.h"
#include "tasks/libero/compose/numpy_random.h"
#include "tasks/libero/drawer_expert.h"
#include "tasks/libero/observations.h"
#include "tasks/libero/picture_noise.h"
#include "tasks/registry.h"
#include "tasks/shown_scene.h"
#include "tasks/task_fields.h"

namespace cohort::tasks::libero {
namespace {

std::size_t size_of(std::int64_t n) {
  return static_cast<std::size_t>(n);
}

/// LIBERO's data sets name pictures so, and hold them upside down.
struct UpsideDown {
  const char *name, *camera;
};
constexpr UpsideDown kUpsideDown[] = {{"agentview_rgb", "agentview"}, {"eye_in_hand_rgb", "robot0_eye_in_hand"}};

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TaskSpec spec_of(const SceneFolder& folder, const LiberoSettings& settings, const Simulation& simulation,
                 const SensorReadings& observations) {
  TaskSpec spec;
  spec.name = folder.task;
  spec.summary = format("{}: {}", folder.suite, folder.language);
  spec.instruction = folder.language;
  spec.observations = observations.fields();
  spec.cameras = folder.cameras;
  for (const UpsideDown& picture : kUpsideDown)
    if (contains(folder.cameras, picture.camera)) spec.cameras.emplace_back(picture.name);
  spec.action = {.names = {"dx", "dy", "dz", "rx", "ry", "rz", "grip"},
                 .low = std::vector<float>(kActions, -1.0f),
                 .high = std::vector<float>(kActions, 1.0f),
                 .unit = format("dx dy dz: {:g} m; rx ry rz: {:g} rad about the world's axes; grip: above 0 closes, "
                                "below 0 opens, 0 stays",
                                folder.controller.position_scale, folder.controller.orientation_scale)};
  spec.control_period = folder.substeps * folder.timestep;
  spec.horizon = settings.horizon;
  spec.reward_terms = {"success"};
  spec.reward_best = {1};
  spec.engine = "mujoco";
  spec.renderer = "mujoco";
  spec.has_expert = DrawerExpert::knows(simulation);
  if (spec.has_expert) spec.expert = DrawerExpert::summary();
  return spec;
}

class LiberoTask final : public Task, public ShowsScene {
 public:
  LiberoTask(SceneFolder folder, const LiberoSettings& own, const TaskSettings& settings, TaskFields fields)
      : folder_(std::move(folder)),
        own_(own),
        protocol_(protocol_of(own.protocol, folder_.suite)),
        pictures_settings_(settings.pictures),
        threads_(settings.threads),
        fields_(std::move(fields)),
        simulation_(folder_, simulation_settings(settings, settings.n_envs)),
        observations_(simulation_),
        burners_(simulation_),
        n_(settings.n_envs) {
    if (own_.horizon == 0) own_.horizon = protocol_.horizon;
    if (own_.warmup_steps < 0) own_.warmup_steps = protocol_.warmup_steps;
    COHORT_THROW_UNLESS(own_.horizon >= 1 && own_.horizon + own_.warmup_steps <= folder_.longest,
                        "{}: horizon={} and {} warm-up steps: LIBERO's environment ends after {} steps", folder_.task,
                        own_.horizon, own_.warmup_steps, folder_.longest);
    spec_ = spec_of(folder_, own_, simulation_, observations_);
    if (pictures_settings_.renderer.empty()) pictures_settings_.renderer = spec_.renderer;
    warm_settings_ = simulation_settings(settings, std::min(settings.threads, n_));
    const std::size_t n = size_of(n_);
    workspaces_.assign(n, SensorReadings::Workspace(simulation_));
    for (const FieldSpec& field : spec_.observations) rows_.emplace_back(n * size_of(field.elements()));
    actions_.resize(n * kActions);
    reward_.resize(n), steps_.resize(n), moments_.resize(n), seeds_.resize(n);
    for (auto* flags : {&success_, &terminated_, &truncated_, &broken_, &lit_}) flags->resize(n);
    drawn_.resize(spec_.cameras.size());
    for (int env = 0; env < n_; ++env) observe(env);
  }

  const TaskSpec& spec() const override { return spec_; }
  sim::Scene& shown_scene() override { return simulation_.scene(); }
  int n_envs() const override { return n_; }

  void reset(std::span<const std::int32_t> envs, std::span<const std::uint64_t> seeds) override {
    COHORT_CHECK(envs.size() == seeds.size(), "{} environments and {} seeds", envs.size(), seeds.size());
    for (const std::int32_t env : envs)
      COHORT_CHECK(env >= 0 && env < n_, "environment {} does not exist: there are {}", env, n_);
    std::vector<bool> all(size_of(n_));
    for (const std::int32_t env : envs) all[size_of(env)] = true;
    if (own_.warmup_steps == 0 || std::find(all.begin(), all.end(), false) == all.end()) {
      begin(simulation_, envs, seeds);
    } else {
      // The others must not move meanwhile: the warm-up is done elsewhere.
      if (!warm_) warm_.emplace(folder_, warm_settings_);
      const std::size_t slots = size_of(warm_->n_envs());
      for (std::size_t first = 0; first < envs.size(); first += slots) {
        const std::size_t count = std::min(slots, envs.size() - first);
        std::vector<std::int32_t> own;
        for (std::size_t i = 0; i < count; ++i) own.push_back(static_cast<std::int32_t>(i));
        begin(*warm_, own, seeds.subspan(first, count));
        for (std::size_t i = 0; i < count; ++i) simulation_.put(envs[first + i], warm_->take(own[i]));
      }
    }
    for (std::size_t i = 0; i < envs.size(); ++i) seeds_[size_of(envs[i])] = static_cast<std::int64_t>(seeds[i]);
    for (const std::int32_t env : envs) {
      const std::size_t e = size_of(env);
      reward_[e] = 0, steps_[e] = 0, ++moments_[e];
      success_[e] = terminated_[e] = truncated_[e] = 0;
      broken_[e] = simulation_.broken(env);
      lit_[e] = burners_.lit(simulation_.qpos(env));
      observe(env);
    }
  }

  void step(ArrayView actions) override {
    const auto rows = actions.span<float>();
    COHORT_CHECK(rows.size() == actions_.size(), "{} numbers of actions, not {}", rows.size(), actions_.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!std::isfinite(rows[i])) broken_[i / kActions] = 1;
      actions_[i] = std::isfinite(rows[i]) ? static_cast<double>(rows[i]) : 0.0;
    }
    // LIBERO shows a burner from the end of the control step on in which its stove came on.
    for (int env = 0; env < n_; ++env) lit_[size_of(env)] = burners_.lit(simulation_.qpos(env));
    simulation_.step(actions_);
    for (int env = 0; env < n_; ++env) {
      const std::size_t e = size_of(env);
      ++moments_[e];
      truncated_[e] = ++steps_[e] >= own_.horizon;
      if (simulation_.broken(env)) broken_[e] = 1;
      success_[e] = broken_[e] == 0 && simulation_.success(env);
      reward_[e] = success_[e];
      terminated_[e] = broken_[e] != 0 || (success_[e] != 0 && own_.end_on_success);
      observe(env);
    }
  }

  ArrayView observation(std::size_t field) override {
    COHORT_CHECK(field < rows_.size(), "{} observes {} fields: there is no field {}", spec_.name, rows_.size(), field);
    return make_view(rows_[field].data(), {n_, spec_.observations[field].elements()});
  }
  ArrayView reward() override { return make_view(reward_.data(), {n_}); }
  ArrayView success() override { return make_view(success_.data(), {n_}); }
  ArrayView terminated() override { return make_view(terminated_.data(), {n_}); }
  ArrayView truncated() override { return make_view(truncated_.data(), {n_}); }
  ArrayView broken() override { return make_view(broken_.data(), {n_}); }
  ArrayView reward_terms() override { return make_view(reward_.data(), {n_, 1}); }

  ArrayView picture(const std::string& camera, std::span<const std::int32_t> envs) override {
    Drawn& drawn = drawn_of(camera);
    const int height = pictures_settings_.height, width = pictures_settings_.width;
    if (!renderer_) {
      COHORT_THROW_UNLESS(height > 0 && width > 0, "pictures of {} x {} pixels: at least 1 x 1", width, height);
      COHORT_THROW_UNLESS(folder_.picture_noise == 0 || (height == kNoisyPicture && width == kNoisyPicture),
                          "{}: LIBERO-Plus' noise is one of pictures of {} x {} pixels, and {} x {} are asked for",
                          folder_.task, kNoisyPicture, kNoisyPicture, width, height);
      renderer_ = render::make_renderer(simulation_.scene(), renderer_settings());
    }
    if (drawn.rgb.empty()) {
      drawn.rgb.resize(size_of(n_) * size_of(height) * size_of(width) * 3);
      drawn.moments.assign(size_of(n_), -1);
    }
    draw(drawn, envs);
    return make_view(drawn.rgb.data(), {n_, height, width, 3});
  }

  /// As cameras saw it, by the ray caster, which is twenty times as fast as MuJoCo's renderer without a GPU; a lit stove
  /// as in the task's own pictures.
  ArrayView film(const std::string& camera, std::int32_t env, const FilmSettings& settings) override {
    const std::string& of_model = drawn_of(camera).camera;
    COHORT_CHECK(env >= 0 && env < n_, "environment {} does not exist: there are {}", env, n_);
    const std::int64_t height = settings.height, width = settings.width;
    film_.resize(size_of(height * width) * 3);
    const std::int32_t envs[] = {env};
    const ArrayView rows = make_view(film_.data(), {1, height, width, 3});
    if (lit_[size_of(env)] != 0) {
      burners_.draw(of_model, envs, renderer_settings(), rows);
    } else {
      if (!film_renderer_ || film_groups_ != settings.geom_groups) {
        render::RendererSettings chosen = renderer_settings();
        chosen.kind = "raycast";
        if (settings.geom_groups) chosen.geom_groups = *settings.geom_groups;
        film_renderer_ = render::make_renderer(simulation_.scene(), chosen);
        film_groups_ = settings.geom_groups;
      }
      const Simulation::AsSeen as_seen(simulation_);
      film_renderer_->render(film_renderer_->camera(of_model), envs, {.rgb = rows});
    }
    return make_view(film_.data(), {height, width, 3});
  }

  std::unique_ptr<Actor> make_expert(std::uint64_t) override;
  TaskFields settings() const override { return fields_; }

  std::string description() const override {
    config::Json json;
    json["engine"] = sim::to_string(simulation_.settings().engine);
    json["benchmark"] = folder_.suite;
    json["initial_states"] = folder_.states;
    json["warmup_steps"] = own_.warmup_steps;
    json["timestep"] = folder_.timestep;
    json["substeps"] = folder_.substeps;
    json["settings"] = fields_->to_json();
    json["model"] = format("{:016x}", simulation_.model().fingerprint());
    json["renderer"] = renderer_ ? renderer_->description() : pictures_settings_.renderer;
    return json_text(json);
  }

  Simulation& simulation() { return simulation_; }

 private:
  struct Drawn {
    std::string camera;  ///< of the model
    bool upside_down = false;
    std::vector<std::uint8_t> rgb;      ///< (n, H, W, 3)
    std::vector<std::int64_t> moments;  ///< of an environment when it was drawn
  };

  /// Throws Error for a camera that there is not, naming the nearest.
  Drawn& drawn_of(const std::string& camera) {
    const auto found = std::find(spec_.cameras.begin(), spec_.cameras.end(), camera);
    if (found == spec_.cameras.end()) {
      const std::string near = config::nearest(camera, spec_.cameras);
      throw Error(format("{} has no camera '{}'{}; it has {}", spec_.name, camera,
                         near.empty() ? "" : format(", did you mean '{}'?", near), join(spec_.cameras, ", ")));
    }
    Drawn& drawn = drawn_[size_of(found - spec_.cameras.begin())];
    if (drawn.camera.empty()) {
      const auto* other = std::find_if(std::begin(kUpsideDown), std::end(kUpsideDown),
                                       [&](const UpsideDown& p) { return camera == p.name; });
      drawn.upside_down = other != std::end(kUpsideDown);
      drawn.camera = drawn.upside_down ? other->camera : camera;
    }
    return drawn;
  }

  static SimulationSettings simulation_settings(const TaskSettings& settings, int n_envs) {
    return {.n_envs = n_envs,
            .threads = settings.threads,
            .engine = sim::parse_engine(settings.engine.empty() ? "mujoco" : settings.engine)};
  }

  void begin(Simulation& simulation, std::span<const std::int32_t> envs, std::span<const std::uint64_t> seeds) const {
    for (std::size_t i = 0; i < envs.size(); ++i)
      simulation.reset(envs[i], own_.start == "given" ? given_state(folder_, seeds[i])
                                                      : perturbed_state(folder_, simulation.frames(), seeds[i]));
    std::vector<double> still(size_of(simulation.n_envs()) * kActions, 0.0);
    for (std::size_t i = kActions - 1; i < still.size(); i += kActions)
      still[i] = static_cast<double>(protocol_.warmup_grip);
    for (std::int64_t step = 0; step < own_.warmup_steps; ++step) simulation.step(still);
  }

  void visit_state(StateVisitor& state) override {
    simulation_.visit_state(state);
    state.add("task.step", steps_);
    // The noise in an episode's pictures is a function of its seed and its steps.
    if (folder_.picture_noise != 0) state.add("task.seed", seeds_);
    state.add("task.reward", reward_);
    state.add("task.success", success_);
    state.add("task.terminated", terminated_);
    state.add("task.truncated", truncated_);
    state.add("task.broken", broken_);
    state.add("task.stove_lit", lit_);
    for (std::size_t f = 0; f < rows_.size(); ++f) state.add("observation." + spec_.observations[f].name, rows_[f]);
    if (state.loads())
      for (std::int64_t& moment : moments_) ++moment;
  }

  void observe(int env) {
    observations_.read(simulation_.seen(env), workspaces_[size_of(env)],
                       [&](std::size_t field, std::span<const double> numbers) {
                         float* to = rows_[field].data() + size_of(env) * numbers.size();
                         for (std::size_t i = 0; i < numbers.size(); ++i) to[i] = static_cast<float>(numbers[i]);
                       });
  }

  /// The scene shows for a moment what the cameras saw, which is late.
  void draw(Drawn& drawn, std::span<const std::int32_t> envs) {
    std::vector<std::int32_t> dark, lit;
    for (const std::int32_t env : envs) {
      COHORT_CHECK(env >= 0 && env < n_, "environment {} does not exist: there are {}", env, n_);
      if (drawn.moments[size_of(env)] == moments_[size_of(env)]) continue;
      drawn.moments[size_of(env)] = moments_[size_of(env)];
      (lit_[size_of(env)] != 0 ? lit : dark).push_back(env);
    }
    if (!dark.empty()) {
      const ArrayView rows = picture_rows(dark.size());
      const Simulation::AsSeen as_seen(simulation_);
      renderer_->render(renderer_->camera(drawn.camera), dark, {.rgb = rows});
      put_pictures(dark, drawn);
    }
    if (!lit.empty()) {
      burners_.draw(drawn.camera, lit, renderer_settings(), picture_rows(lit.size()));
      put_pictures(lit, drawn);
    }
  }

  render::RendererSettings renderer_settings() const {
    return {.kind = pictures_settings_.renderer, .threads = threads_, .geom_groups = folder_.geom_groups};
  }

  /// Memory for so many pictures.
  ArrayView picture_rows(std::size_t count) {
    const std::int64_t height = pictures_settings_.height, width = pictures_settings_.width;
    picture_rows_.resize(count * size_of(height * width) * 3);
    return make_view(picture_rows_.data(), {static_cast<std::int64_t>(count), height, width, 3});
  }

  void put_pictures(std::span<const std::int32_t> envs, Drawn& drawn) {
    const std::size_t height = size_of(pictures_settings_.height), line = size_of(pictures_settings_.width) * 3,
                      bytes = height * line;
    const bool noisy = folder_.picture_noise != 0 && drawn.camera == "agentview";
    for (std::size_t i = 0; i < envs.size(); ++i) {
      const std::span<std::uint8_t> rendered = std::span(picture_rows_).subspan(i * bytes, bytes);
      if (noisy) add_noise(rendered, size_of(envs[i]), line);
      for (std::size_t y = 0; y < height; ++y) {
        const std::size_t from = drawn.upside_down ? height - 1 - y : y;
        std::copy_n(rendered.begin() + static_cast<std::ptrdiff_t>(from * line), line,
                    drawn.rgb.begin() + static_cast<std::ptrdiff_t>(size_of(envs[i]) * bytes + y * line));
      }
    }
  }

  /// LIBERO-Plus puts noise into pictures as its environment has them, upside down.
  void add_noise(std::span<std::uint8_t> rgb, std::size_t env, std::size_t line) const {
    const auto turn = [&] {
      for (std::size_t top = 0, bottom = rgb.size() - line; top < bottom; top += line, bottom -= line)
        std::swap_ranges(rgb.begin() + static_cast<std::ptrdiff_t>(top),
                         rgb.begin() + static_cast<std::ptrdiff_t>(top + line),
                         rgb.begin() + static_cast<std::ptrdiff_t>(bottom));
    };
    // Its own draws are unseeded; these are those of the episode's step.
    const RandomStream stream(static_cast<std::uint64_t>(seeds_[env]), RandomPurpose::kEnvironment, 1,
                              static_cast<std::uint64_t>(steps_[env]));
    compose::NumpyRandom random(stream.bits(0));
    turn();
    add_picture_noise(rgb, folder_.picture_noise, random);
    turn();
  }

  SceneFolder folder_;
  LiberoSettings own_;
  Protocol protocol_;
  PictureSettings pictures_settings_;
  int threads_ = 1;
  TaskFields fields_;
  Simulation simulation_;
  SensorReadings observations_;
  Burners burners_;
  int n_ = 0;
  TaskSpec spec_;
  SimulationSettings warm_settings_;
  std::optional<Simulation> warm_;  ///< for warm-ups of some environments only
  std::vector<SensorReadings::Workspace> workspaces_;
  std::vector<std::vector<float>> rows_;
  std::vector<double> actions_;
  std::vector<float> reward_;
  std::vector<std::int64_t> steps_, moments_, seeds_;
  std::vector<std::uint8_t> success_, terminated_, truncated_, broken_;
  std::vector<std::uint8_t> lit_;  ///< a stove was on when the cameras saw
  std::unique_ptr<render::Renderer> renderer_, film_renderer_;
  std::optional<std::array<bool, 6>> film_groups_;  ///< that film_renderer_ draws
  std::vector<std::uint8_t> film_;
  std::vector<std::uint8_t> picture_rows_;
  std::vector<Drawn> drawn_;  ///< of the spec's cameras
};

class ExpertActor final : public Actor {
 public:
  explicit ExpertActor(Simulation& simulation) : simulation_(simulation), expert_(simulation) {}
  std::string name() const override { return "expert"; }
  void begin(std::span<const std::int32_t>, std::span<const std::uint64_t>, const std::string&) override {}
  void act(Task&, std::span<const std::int32_t> envs, ArrayView actions) override {
    const auto rows = actions.span<float>();
    for (const std::int32_t env : envs)
      expert_.act(simulation_.qpos(env), rows.subspan(size_of(env) * kActions, kActions));
  }

 private:
  Simulation& simulation_;
  DrawerExpert expert_;
};

std::unique_ptr<Actor> LiberoTask::make_expert(std::uint64_t) {
  if (!spec_.has_expert) return nullptr;
  return std::make_unique<ExpertActor>(simulation_);
}

}  // namespace

void describe(config::Fields& fields, LiberoSettings& s) {
  fields.add_choice("protocol", s.protocol, {"libero", "lerobot"},
                    "libero: 5 warm-up steps of zeros, 600 steps in every suite; lerobot: 10 with the gripper opening, "
                    "280 to 520 by suite");
  fields.add_choice("start", s.start, {"given", "perturbed"},
                    "given: the benchmark's initial state number seed modulo their number; perturbed: one of them with "
                    "objects, arm and joints moved at random, for demonstrations");
  fields.add("warmup_steps", s.warmup_steps, "before an episode's first action; below 0: the protocol's");
  fields.add("horizon", s.horizon, "control steps after which an episode is cut off; 0: the protocol's");
  fields.add("end_on_success", s.end_on_success, "an episode ends when its goal is reached");
}

Protocol protocol_of(const std::string& name, const std::string& suite) {
  if (name == "libero") return {.warmup_steps = 5, .warmup_grip = 0, .horizon = 600};
  // A variant has the limit of the suite that it changes.
  const auto is_of = [&](const char* libero) {
    return suite == libero || suite.starts_with(std::string(libero) + "_");
  };
  const std::int64_t horizon = is_of("libero_goal") ? 300 : is_of("libero_10") ? 520 : is_of("libero_90") ? 400 : 280;
  return {.warmup_steps = 10, .warmup_grip = -1, .horizon = horizon};
}

std::unique_ptr<Task> make_libero_task(const std::filesystem::path& path, const TaskSettings& settings) {
  LiberoSettings own;
  TaskFields fields = read_fields(settings, own);
  SceneFolder folder = read_scene_folder(path);
  COHORT_THROW_UNLESS(settings.device.kind == DeviceKind::kCpu, "{}: LIBERO's tasks run on the CPU, not on {}",
                      folder.task, to_string(settings.device));
  return std::make_unique<LiberoTask>(std::move(folder), own, settings, std::move(fields));
}

void register_libero_tasks() {
  for (const SceneHead& head : libero_tasks())
    register_task({.name = head.task,
                   .summary = format("{}: {}", head.suite, head.language),
                   .make = [path = head.path](const TaskSettings& s) { return make_libero_task(path, s); },
                   .settings = [] { return fields_of(LiberoSettings()); }});
}

}  // namespace cohort::tasks::libero
