#include "tasks/scene_task.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "core/format.h"
#include "core/json_text.h"
#include "core/log.h"
#include "core/real_at.h"
#include "render/renderer.h"
#include "sim/host/model_file.h"
#include "tasks/scene_state.h"

namespace cohort::tasks {
namespace {

using sim::Access;
using sim::Field;

std::size_t as_size(std::int64_t n) {
  return static_cast<std::size_t>(n);
}

void write_row(const ArrayView& v, int env, std::span<const double> values) {
  for (std::size_t i = 0; i < values.size(); ++i) set_real_at(v, env, static_cast<std::int64_t>(i), values[i]);
}

/// What is to be known of the scene's files. A run makes its task several times, and one line tells it.
void say_once(std::span<const std::string> lines) {
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::lock_guard lock(mutex);
  for (const std::string& line : lines)
    if (said.insert(line).second) log::warning("{}", line);
}

/// Known of the present state only, so that the model is evaluated once more for it.
bool by_forward(Field field) {
  return field == Field::kSensors || field == Field::kQacc;
}

sim::SceneOptions scene_options(const TaskSettings& settings, const SceneTaskSetup& setup) {
  sim::SceneOptions options = setup.simulation;
  // A step leaves neither sensors nor accelerations: forward() does, which computes the others, too.
  for (const Field field : setup.leaves) {
    if (!by_forward(field)) options.step_leaves.push_back(field);
  }
  options.engine = sim::parse_engine(settings.engine.empty() ? TaskSpec{}.engine : settings.engine);
  options.threads = settings.threads;
  options.device = settings.device;
  if (options.engine == sim::EngineKind::kBatched && !setup.batched_solver.empty())
    options.solver = setup.batched_solver;
  return options;
}

/// SceneTaskSettings::reward_scales as a factor for each term of the spec; empty where nothing is scaled.
std::vector<float> read_scales(const SceneTaskSettings& settings, const TaskSpec& spec) {
  if (settings.reward_scales.empty()) return {};
  COHORT_THROW_UNLESS(settings.reward != "sparse",
                      "{}: reward_scales is for the terms of reward=dense, and reward=sparse has none", spec.name);
  const std::vector<std::string>& terms = spec.reward_terms;
  std::vector<float> scales(terms.size(), 1.0f);
  std::vector<bool> named(terms.size());
  for (const std::string& text : settings.reward_scales) {
    const std::size_t colon = text.rfind(':');
    const std::string term = text.substr(0, colon), number = colon == std::string::npos ? "" : text.substr(colon + 1);
    float factor = 0;
    const char* end = number.data() + number.size();
    const auto [stop, problem] = std::from_chars(number.data(), end, factor);
    COHORT_THROW_UNLESS(!number.empty() && problem == std::errc() && stop == end && std::isfinite(factor),
                        "{}: reward_scales holds '{}': TERM:FACTOR is needed, e.g. {}:2", spec.name, text,
                        terms.empty() ? "term" : terms.front());
    const auto found = std::find(terms.begin(), terms.end(), term);
    if (found == terms.end()) {
      const std::string near = config::nearest(term, terms);
      throw Error(format("{}: reward_scales names '{}', which is no term of the reward{}; it is the sum of {}",
                         spec.name, term, near.empty() ? "" : format(", did you mean '{}'?", near), join(terms, ", ")));
    }
    const auto i = as_size(found - terms.begin());
    COHORT_THROW_UNLESS(!named[i], "{}: reward_scales names '{}' twice", spec.name, term);
    named[i] = true;
    scales[i] = factor;
  }
  return scales;
}

sim::Morph morph_of(const SceneTaskSetup& setup) {
  if (setup.mjcf.find('<') == std::string::npos) {
    if (sim::is_urdf(setup.mjcf)) return sim::Urdf{.file = setup.mjcf, .fixed = setup.fixed_base};
    return sim::Mjcf{setup.mjcf};
  }
  sim::Mjcf text{.file = "", .xml = setup.mjcf};
  text.folder = setup.model_folder;
  return text;
}

/// Whoever knows a scene task's way.
class SceneExpert final : public Actor {
 public:
  explicit SceneExpert(SceneTask& task) : task_(task) {}
  std::string name() const override { return "expert"; }
  void begin(std::span<const std::int32_t>, std::span<const std::uint64_t>, const std::string&) override {}
  void act(Task&, std::span<const std::int32_t> envs, ArrayView actions) override {
    const auto width = as_size(task_.spec().action.width());
    const std::span<float> rows = actions.span<float>();
    for (const std::int32_t env : envs) task_.act_as_expert(env, rows.subspan(as_size(env) * width, width));
  }

 private:
  SceneTask& task_;
};

}  // namespace

void describe(config::Fields& fields, SceneTaskSettings& s) {
  fields.add_choice("reward", s.reward, {"dense", "sparse"},
                    "dense: what is still missing, below 0; sparse: 1 where the goal is reached");
  fields.add("horizon", s.horizon, "control steps after which an episode is cut off");
  fields.add("end_on_success", s.end_on_success, "an episode ends when its goal is reached");
  fields.add("reward_scales", s.reward_scales,
             "factors on terms of the dense reward, TERM:FACTOR, e.g. [torque:2,floor:0]; 1 where none is named");
}

bool EnvState::touching(const ContactPair& pair) const {
  return std::any_of(contacts.begin(), contacts.end(), [&](const sim::Contact& c) {
    return (pair.first.is(c.link1, c.geom1) && pair.second.is(c.link2, c.geom2)) ||
           (pair.first.is(c.link2, c.geom2) && pair.second.is(c.link1, c.geom1));
  });
}

std::array<double, 3> EnvState::contact_force(const ContactPair& pair) const {
  std::array<double, 3> sum{};
  for (const sim::Contact& c : contacts) {
    // A contact's force acts on the second geom's link.
    const bool ahead = pair.first.is(c.link1, c.geom1) && pair.second.is(c.link2, c.geom2);
    if (!ahead && !(pair.first.is(c.link2, c.geom2) && pair.second.is(c.link1, c.geom1))) continue;
    for (std::size_t i = 0; i < 3; ++i) sum[i] += ahead ? c.force[i] : -c.force[i];
  }
  return sum;
}

SensorPlace SceneTask::sensor(const std::string& name) const {
  const sim::ModelInfo& model = scene_.info();
  const sim::SensorInfo& info = model.sensors[as_size(model.sensor(name))];
  std::size_t first = 0;
  for (const Field field : setup_.leaves) {
    if (field == Field::kSensors) return {first + as_size(info.address), as_size(info.size)};
    first += as_size(sim::field_size(model, field));
  }
  throw Error(format("{}: the sensor '{}' is not computed: add sim::Field::kSensors to SceneTaskSetup::leaves",
                     spec().name, name));
}

ContactPair SceneTask::contact_pair(const std::string& first, const std::string& second) const {
  COHORT_THROW_UNLESS(setup_.contacts, "{}: contacts between '{}' and '{}' are not kept: set SceneTaskSetup::contacts",
                      spec().name, first, second);
  const sim::ModelInfo& model = scene_.info();
  const auto side = [&](const std::string& name) -> ContactPair::Side {
    for (std::size_t i = 0; i < model.links.size(); ++i)
      if (model.links[i].name == name) return {.link = static_cast<int>(i)};
    return {.geom = model.geom(name)};
  };
  return {side(first), side(second)};
}

SceneTask::SceneTask(const TaskSettings& settings, SceneTaskSetup setup)
    : setup_(std::move(setup)),
      scene_(scene_options(settings, setup_)),
      picture_settings_(settings.pictures),
      threads_(settings.threads),
      n_(settings.n_envs) {
  TaskSpec& spec = setup_.spec;
  if (picture_settings_.renderer.empty()) picture_settings_.renderer = spec.renderer;
  const SceneTaskSettings& own = setup_.settings;
  COHORT_THROW_UNLESS(own.horizon > 0, "{}: horizon={}: at least 1 control step", spec.name, own.horizon);
  spec.horizon = own.horizon;
  sparse_ = own.reward == "sparse";
  term_scale_ = read_scales(own, spec);
  // What the most of a term is that counts against, nobody knows.
  for (std::size_t i = 0; i < std::min(term_scale_.size(), spec.reward_best.size()); ++i)
    spec.reward_best[i] *= std::max(0.0f, term_scale_[i]);
  if (sparse_) spec.reward_terms = {"success"}, spec.reward_best = {1};
  term_count_ = static_cast<std::int64_t>(spec.reward_terms.size());

  COHORT_THROW_UNLESS(!setup_.mjcf.empty() || !setup_.entities.empty(),
                      "{}: the task has no model: SceneTaskSetup::mjcf or SceneTaskSetup::entities", spec.name);
  if (!setup_.mjcf.empty()) scene_.add_entity(morph_of(setup_), spec.name);
  for (const sim::EntityDeclaration& entity : setup_.entities) scene_.add_entity(entity.morph, entity.name);
  for (const sim::CameraOptions& camera : setup_.cameras) scene_.add_camera(camera);
  if (setup_.compiled) scene_.use_compiled(*setup_.compiled);
  scene_.build(n_);
  say_once(scene_.warnings());
  say_once(setup_.remarks);
  const sim::ModelInfo& model = scene_.info();
  const double steps = spec.control_period / model.timestep;
  substeps_ = static_cast<int>(std::lround(steps));
  COHORT_THROW_UNLESS(substeps_ >= 1 && std::abs(steps - substeps_) < 1e-6 && substeps_ % setup_.controls == 0,
                      "{}: a control period of {:g} s has {:g} timesteps of {:g} s, and {} controls; it must have a "
                      "multiple of them: change TaskSpec::control_period, or the timestep of the model's <option>",
                      spec.name, spec.control_period, steps, model.timestep, setup_.controls);
  nq_ = model.nq, nv_ = model.nv, nu_ = model.nu;
  if (!setup_.keyframe.empty()) keyframe_ = model.keyframe(setup_.keyframe);

  const auto n = as_size(n_);
  for (const FieldSpec& field : spec.observations) {
    observation_width_.push_back(as_size(field.elements()));
    observations_.emplace_back(n * observation_width_.back());
  }
  reward_.resize(n), success_.resize(n), terminated_.resize(n), truncated_.resize(n), broken_.resize(n);
  terms_.resize(n * as_size(term_count_)), term_rows_.resize(n, as_size(term_count_));
  actions_.resize(n * as_size(spec.action.width()));
  steps_.resize(n);
  moments_.resize(n);
  pictures_.resize(spec.cameras.size());
  qpos_.resize(n * as_size(nq_)), qvel_.resize(n * as_size(nv_)), ctrl_.resize(n, as_size(nu_));
  for (const Field field : setup_.leaves) derived_width_ += as_size(sim::field_size(model, field));
  derived_.resize(n * derived_width_);
  evaluates_ = std::any_of(setup_.leaves.begin(), setup_.leaves.end(), by_forward);
  view_derived_.resize(setup_.leaves.size());
  if (setup_.contacts) contacts_.resize(n);
  std::vector<std::string> names;
  for (const FieldSpec& field : spec.observations) names.push_back(field.name);
  field_names_.assign(std::move(names));
  metrics_.resize(n * spec.metrics.size());
  term_names_.assign(spec.reward_terms);
  start_qpos_.resize(1, as_size(nq_)), start_qvel_.resize(1, as_size(nv_)), start_ctrl_.resize(1, as_size(nu_));
  start_mocap_pos_.resize(1, 3 * as_size(model.nmocap)), start_mocap_quat_.resize(1, 4 * as_size(model.nmocap));
  // The scene computes what it derives from the state anew whenever it is asked: we change the state behind its back.
  scene_.view(Field::kQpos);
  control_work_ = [this](int first, int last) {
    gather_range(first, last);
    control_range(first, last);
  };
  first_control_work_ = [this](int first, int last) {
    for (int env = first; env < last; ++env) read_action(env);
    control_range(first, last);
  };
  after_work_ = [this](int first, int last) {
    gather_range(first, last);
    count_steps(first, last);
    finish_range(first, last);
  };
  part_work_ = [this](sim::Engine::Part& part) {
    for (int k = 0; k < setup_.controls; ++k) {
      (k == 0 ? first_control_work_ : control_work_)(part.first, part.last);
      part.step(substeps_ / setup_.controls);
    }
    after_work_(part.first, part.last);
  };
  team_work_ = [this](int t) {
    const std::int64_t size = team_->size(), ranges = (n_ + kRange - 1) / kRange;
    const auto begin = [&](std::int64_t of) { return static_cast<int>(ranges * of / size) * kRange; };
    const int first = begin(t), last = std::min(n_, begin(t + 1));
    if (first < last) (*body_)(first, last);
  };
}

SceneTask::~SceneTask() = default;

void SceneTask::for_each_range(const std::function<void(int, int)>& body) {
  if (!team_) team_ = std::make_unique<ThreadTeam>(std::min(threads_, (n_ + kRange - 1) / kRange));
  body_ = &body;
  team_->run(team_work_);
}

void SceneTask::control_range(int first, int last) {
  for (int env = first; env < last; ++env) control_env(env);
}

void SceneTask::finish_range(int first, int last) {
  for (int env = first; env < last; ++env) finish_env(env);
}

void SceneTask::observe_some(std::span<const std::int32_t> envs) {
  for (const std::int32_t env : envs) observe_now(env);
}

void SceneTask::control_env(int env) {
  const auto e = as_size(env), width = as_size(setup_.spec.action.width());
  if (broken_[e]) return;
  const std::span<double> ctrl = ctrl_.row(e);
  control(env, state(env), std::span<const float>(actions_.data() + e * width, width), ctrl);
  if (!ctrl_.intact(e)) found_wrong(format("control() writes beyond the model's {} controls, which count from 0", nu_));
  write_row(view_ctrl_, env, ctrl);
}

void SceneTask::count_steps(int first, int last) {
  const auto terms_of = as_size(term_count_);
  for (int env = first; env < last; ++env) {
    const auto e = as_size(env);
    ++steps_[e];
    ++moments_[e];
    truncated_[e] = steps_[e] >= setup_.settings.horizon;
    if (static_cast<const std::int32_t*>(view_status_.data)[env * view_status_.strides[0]] != sim::kStatusOk)
      broken_[e] = 1;
    if (!broken_[e]) continue;
    std::fill_n(terms_.begin() + static_cast<std::ptrdiff_t>(e * terms_of), terms_of, 0.0f);
    reward_[e] = 0, success_[e] = 0, terminated_[e] = 1;
  }
}

void SceneTask::finish_env(int env) {
  const auto e = as_size(env);
  if (broken_[e]) return;
  const EnvState now = state(env);
  refresh(env, now);
  observe_into_rows(env, now);
  const std::span<float> terms = term_rows_.row(e);
  std::fill(terms.begin(), terms.end(), 0.0f);
  Terms asked(*this, sparse_ ? term_rows_.no_row(e) : terms);
  const Judgement judgement = judge(env, now, asked);
  if (!term_rows_.intact(e))
    found_wrong(sparse_ ? std::string("judge() writes terms with reward=sparse, which asks for none: return where "
                                      "terms.empty()")
                        : format("judge() writes beyond the {} terms of the reward ({}), which count from 0: name each "
                                 "in the spec's reward_terms",
                                 terms.size(), join(spec().reward_terms, ", ")));
  judged(env, judgement, terms);
}

void SceneTask::judged(int env, Judgement judgement, std::span<const float> written) {
  const auto e = as_size(env), terms_of = as_size(term_count_);
  const std::span<float> terms(terms_.data() + e * terms_of, terms_of);
  if (sparse_)
    terms[0] = judgement.success ? 1.0f : 0.0f;
  else
    std::copy(written.begin(), written.end(), terms.begin());
  for (std::size_t i = 0; i < term_scale_.size(); ++i) terms[i] *= term_scale_[i];
  float sum = 0;
  for (const float term : terms) sum += term;
  reward_[e] = sum;
  success_[e] = judgement.success;
  if (judgement.truncated) truncated_[e] = 1;
  terminated_[e] = judgement.terminated || (judgement.success && setup_.settings.end_on_success);
}

void SceneTask::gather_range(int first, int last) {
  if (setup_.by_range) return;
  for (int env = first; env < last; ++env) gather_env(env);
}

void SceneTask::gather_env(int env) {
  double* qpos = qpos_.data() + as_size(env) * as_size(nq_);
  double* qvel = qvel_.data() + as_size(env) * as_size(nv_);
  for (int i = 0; i < nq_; ++i) qpos[i] = real_at(view_qpos_, env, i);
  for (int i = 0; i < nv_; ++i) qvel[i] = real_at(view_qvel_, env, i);
  double* derived = derived_.data() + as_size(env) * derived_width_;
  for (const ArrayView& view : view_derived_)
    for (std::int64_t i = 0; i < view.shape[1]; ++i) *derived++ = real_at(view, env, i);
}

EnvState SceneTask::state(int env) const {
  const auto e = as_size(env);
  return {{qpos_.data() + e * as_size(nq_), as_size(nq_)},
          {qvel_.data() + e * as_size(nv_), as_size(nv_)},
          steps_[e],
          {derived_.data() + e * derived_width_, derived_width_},
          contacts_.empty() ? std::span<const sim::Contact>() : contacts_[e]};
}

HostRows SceneTask::host_rows() {
  return {observations_, actions_, reward_, terms_, metrics_, success_, terminated_, truncated_, broken_, steps_};
}

void SceneTask::bring() {
  if (!newer_there_) return;
  newer_there_ = false;
  there_->bring(host_rows());
  say_stop();
}

void SceneTask::gather() {
  if (there_) return;
  sim::Engine& engine = scene_.engine();
  view_qpos_ = engine.host_view(Field::kQpos, Access::kRead);
  view_qvel_ = engine.host_view(Field::kQvel, Access::kRead);
  view_status_ = engine.host_view(Field::kStatus, Access::kRead);
  for (std::size_t i = 0; i < view_derived_.size(); ++i)
    view_derived_[i] = engine.host_view(setup_.leaves[i], Access::kRead);
  views_taken();
}

void SceneTask::find_contacts(int env) {
  if (setup_.contacts) contacts_[as_size(env)] = scene_.engine().contacts(env);
}

void SceneTask::observe_now(int env) {
  gather_env(env);
  find_contacts(env);
  refresh(env, state(env));
  observe_into_rows(env, state(env));
}

void SceneTask::read_state() {
  gather();
  std::vector<std::int32_t> all(as_size(n_));
  std::iota(all.begin(), all.end(), 0);
  for (std::int64_t& moment : moments_) ++moment;
  observe_where_computed(all);
  throw_if_wrong();
}

void SceneTask::visit_state(StateVisitor& state) {
  bring();
  visit_engine(state, scene_.engine());
  if (state.loads()) {
    // Programs read the fields themselves, as the last step left them: of the present state.
    if (setup_.by_range && !setup_.leaves.empty()) scene_.engine().forward();
    gather();
    for (int env = 0; env < n_; ++env) {
      if (!there_) gather_env(env), find_contacts(env);
      ++moments_[as_size(env)];
    }
  }
  // A physics step has left them, which the state alone does not tell.
  state.add("task.derived", derived_);
  ArrayView ctrl = make_view(ctrl_.row(0).data(), {n_, nu_});
  ctrl.strides[0] = static_cast<std::int64_t>(ctrl_.stride());
  state.add("task.ctrl", ctrl);
  state.add("task.step", steps_);
  state.add("task.action", actions_);
  state.add("task.reward", reward_);
  state.add("task.reward_terms", terms_);
  if (!metrics_.empty()) state.add("task.metrics", metrics());
  state.add("task.success", success_);
  state.add("task.terminated", terminated_);
  state.add("task.truncated", truncated_);
  state.add("task.broken", broken_);
  for (std::size_t f = 0; f < observations_.size(); ++f)
    state.add("observation." + spec().observations[f].name, observations_[f]);
  visit_variables(state);
  if (!state.loads()) return;
  if (there_) {
    there_->take(host_rows());
    return;
  }
  // What refresh() works out of variables and state is worked out anew; what it counts is put back.
  for (int env = 0; env < n_; ++env)
    if (!broken_[as_size(env)]) refresh(env, this->state(env));
  visit_variables(state);
}

void SceneTask::reset(std::span<const std::int32_t> envs, std::span<const std::uint64_t> seeds) {
  COHORT_CHECK(envs.size() == seeds.size(), "{} environments and {} seeds", envs.size(), seeds.size());
  for (const std::int32_t env : envs)
    COHORT_CHECK(env >= 0 && env < n_, "environment {} does not exist: there are {}", env, n_);
  if (envs.empty()) return;
  before_reset(envs);
  sim::Engine& engine = scene_.engine();
  engine.reset(envs);
  const sim::ModelInfo& model = scene_.info();
  // In the engine's fields; of what is computed on a device in rows that go there, of these environments alone.
  constexpr Field kStarts[] = {Field::kQpos, Field::kQvel,     Field::kCtrl,
                               Field::kAct,  Field::kMocapPos, Field::kMocapQuat};
  std::array<std::vector<float>, std::size(kStarts)> rows_there;
  std::array<ArrayView, std::size(kStarts)> starts;
  for (std::size_t f = 0; f < starts.size(); ++f) {
    const std::int64_t size = sim::field_size(model, kStarts[f]), count = std::ssize(envs);
    if (there_) rows_there[f].resize(as_size(count * size));
    starts[f] = there_ ? make_view(rows_there[f].data(), {count, size}) : engine.host_view(kStarts[f], Access::kWrite);
  }
  const auto& [qpos, qvel, ctrl, act, mocap_pos, mocap_quat] = starts;
  for (std::size_t i = 0; i < envs.size(); ++i) {
    const std::int32_t env = envs[i];
    const auto e = as_size(env);
    const sim::KeyframeInfo* const key = keyframe_ < 0 ? nullptr : &model.keyframes[as_size(keyframe_)];
    const std::vector<double>& qpos0 = key ? key->qpos : model.qpos0;
    const std::vector<double>& pos0 = key ? key->mocap_pos : model.mocap_pos0;
    const std::vector<double>& quat0 = key ? key->mocap_quat : model.mocap_quat0;
    Start begin{start_qpos_.row(0), start_qvel_.row(0), start_ctrl_.row(0), start_mocap_pos_.row(0),
                start_mocap_quat_.row(0)};
    std::copy(qpos0.begin(), qpos0.end(), begin.qpos.begin());
    std::fill(begin.qvel.begin(), begin.qvel.end(), 0.0);
    std::fill(begin.ctrl.begin(), begin.ctrl.end(), 0.0);
    if (key) std::copy(key->qvel.begin(), key->qvel.end(), begin.qvel.begin());
    if (key) std::copy(key->ctrl.begin(), key->ctrl.end(), begin.ctrl.begin());
    std::copy(pos0.begin(), pos0.end(), begin.mocap_pos.begin());
    std::copy(quat0.begin(), quat0.end(), begin.mocap_quat.begin());
    start(env, RandomStream(seeds[i], RandomPurpose::kEnvironment, 0, 0), begin);
    for (const auto& [rows, name] :
         {std::pair{&start_qpos_, "qpos"}, std::pair{&start_qvel_, "qvel"}, std::pair{&start_ctrl_, "ctrl"},
          std::pair{&start_mocap_pos_, "mocap_pos"}, std::pair{&start_mocap_quat_, "mocap_quat"}})
      if (!rows->intact(0))
        found_wrong(
            format("start() writes beyond the {} numbers of start.{}, which count from 0", rows->width(), name));
    const int row = there_ ? static_cast<int>(i) : env;
    write_row(qpos, row, begin.qpos);
    write_row(qvel, row, begin.qvel);
    write_row(ctrl, row, begin.ctrl);
    if (key) write_row(act, row, key->act);
    write_row(mocap_pos, row, begin.mocap_pos);
    write_row(mocap_quat, row, begin.mocap_quat);
    std::copy(begin.ctrl.begin(), begin.ctrl.end(), ctrl_.row(e).begin());
    steps_[e] = 0;
    ++moments_[e];
    reward_[e] = 0, success_[e] = 0, terminated_[e] = 0, truncated_[e] = 0, broken_[e] = 0;
    const std::span<float> judged = term_rows_.row(e);
    std::fill(judged.begin(), judged.end(), 0.0f);
    const auto terms = terms_.begin() + static_cast<std::ptrdiff_t>(e * as_size(term_count_));
    std::fill(terms, terms + static_cast<std::ptrdiff_t>(term_count_), 0.0f);
  }
  after_start(envs);
  if (there_) {
    for (std::size_t f = 0; f < starts.size(); ++f) there_->put(kStarts[f], rows_there[f]);
    there_->begin(envs);
  }
  // May change what the last step left in others, which they have read.
  if (!setup_.leaves.empty()) engine.forward_some(envs);
  gather();
  observe_where_computed(envs);
  throw_if_wrong();
  if (start_looked_at_) return;
  start_looked_at_ = true;
  const std::string overlap = scene_.overlaps(envs.front());
  if (!overlap.empty()) log::warning("{}: {}", spec().name, overlap);
}

void SceneTask::read_action(int env) {
  const ActionSpec& spec = setup_.spec.action;
  const auto e = as_size(env), width = as_size(spec.width());
  for (std::size_t i = 0; i < width; ++i) {
    const float value = given_[e * width + i];
    if (!std::isfinite(value)) broken_[e] = 1;
    float& action = actions_[e * width + i] = std::isfinite(value) ? value : 0.0f;
    if (setup_.clip_actions) action = std::clamp(action, spec.low[i], spec.high[i]);
  }
}

void SceneTask::observe_where_computed(std::span<const std::int32_t> envs) {
  if (!there_) return observe_some(envs);
  there_->observe(envs);
  newer_there_ = true;
}

void SceneTask::step_there(ArrayView actions) {
  there_->step(actions, substeps_, evaluates_);
  for (std::size_t e = 0; e < steps_.size(); ++e) ++steps_[e], ++moments_[e];
  newer_there_ = true;
}

void SceneTask::step(ArrayView actions) {
  COHORT_CHECK(as_size(actions.size()) == actions_.size(), "{} actions: {} environments of {} numbers are needed",
               actions.size(), n_, setup_.spec.action.width());
  before_step();
  if (there_) return step_there(actions);
  given_ = actions.span<float>();
  sim::Engine& engine = scene_.engine();
  if (engine.has_parts() && !evaluates_ && !setup_.contacts) {
    // A thread takes its environments through the whole control period.
    gather();
    view_ctrl_ = engine.host_view(Field::kCtrl, Access::kWrite);
    engine.run_parts(part_work_);
    throw_if_wrong();
    say_stop();
    return;
  }
  for (int k = 0; k < setup_.controls; ++k) {
    if (k > 0) gather();
    view_ctrl_ = engine.host_view(Field::kCtrl, Access::kWrite);
    for_each_range(k == 0 ? first_control_work_ : control_work_);
    engine.step(substeps_ / setup_.controls);
  }
  if (evaluates_) engine.forward();
  gather();
  for (int env = 0; env < n_; ++env) find_contacts(env);
  for_each_range(after_work_);
  throw_if_wrong();
  say_stop();
}

void SceneTask::say_stop() {
  if (stop_said_) return;
  for (int env = 0; env < n_; ++env) {
    if (!broken_[as_size(env)]) continue;
    const std::string why = scene_.why_stopped(env);
    if (why.empty()) continue;  // an action that is no number
    stop_said_ = true;
    log::warning("{}: environment {} stopped, its episode ends: {}", spec().name, env, why);
    return;
  }
}

ArrayView SceneTask::observation(std::size_t field) {
  COHORT_CHECK(field < observations_.size(), "{} observes {} fields: there is no field {}", spec().name,
               observations_.size(), field);
  bring();
  std::array<std::int64_t, kMaxRank> shape{n_};
  const std::vector<std::int64_t>& own = spec().observations[field].shape;
  std::copy(own.begin(), own.end(), shape.begin() + 1);
  return make_view(observations_[field].data(), ElementType::kFloat32,
                   std::span<const std::int64_t>(shape.data(), own.size() + 1));
}

std::unique_ptr<Actor> SceneTask::make_expert(std::uint64_t) {
  if (!spec().has_expert) return nullptr;
  return std::make_unique<SceneExpert>(*this);
}

std::string SceneTask::description() const {
  const sim::SceneOptions& options = scene_.options();
  config::Json json;
  json["engine"] = sim::to_string(options.engine);
  json["device"] = to_string(options.device);
  json["timestep"] = scene_.info().timestep;
  json["substeps"] = substeps_;
  json["solver"] = scene_.info().solver;
  json["settings"] = setup_.fields ? setup_.fields->to_json() : config::Json::object();
  json["model"] = format("{:016x}", scene_.info().fingerprint());
  json["renderer"] = renderer_ ? renderer_->description() : picture_settings_.renderer;
  return json_text(json);
}

}  // namespace cohort::tasks
