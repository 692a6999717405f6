#include "tasks/events/randomizer.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/fnv.h"
#include "core/real_at.h"
#include "sim/host/looks.h"

namespace cohort::tasks {

namespace {

/// Index of an event's stream that says when it comes again; what is addressed has smaller ones.
constexpr std::uint64_t kTimeDraw = std::uint64_t{1} << 40;

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

/// What is seen of a parameter.
std::optional<sim::Look> look_of(sim::Parameter parameter) {
  switch (parameter) {
    case sim::Parameter::kGeomPos:
      return sim::Look::kGeomPos;
    case sim::Parameter::kGeomQuat:
      return sim::Look::kGeomQuat;
    case sim::Parameter::kGeomSize:
      return sim::Look::kGeomSize;
    default:
      return std::nullopt;
  }
}

double combined(RandomOperation operation, double base, double value) {
  if (operation == RandomOperation::kAdd) return base + value;
  return operation == RandomOperation::kScale ? base * value : value;
}

}  // namespace

Randomizer::Randomizer(std::vector<Randomization> randomizations, sim::Scene& scene, double control_period)
    : scene_(scene), control_period_(control_period) {
  sim::Engine& engine = scene_.engine();
  const auto n = at(scene_.n_envs());
  std::array<std::vector<float>, sim::kParameterCount> own;
  for (const sim::Parameter p : parameters_of(randomizations)) {
    engine.parameter(p);
    own[at(static_cast<int>(p))] = engine.model_values(p);
    has_parameters_ = true;
    if (const auto look = look_of(p)) {
      scene_.looks().values(*look);
      has_looks_ = true;
    }
  }
  for (Randomization& r : randomizations) {
    Prepared p{.what = std::move(r), .base = {}, .inertias = {}, .quats = {}, .id = 0, .next = {}, .count = {}};
    p.id = fnv1a(p.what.name) & 0xffffffff;
    for (const Randomization::Write& w : p.what.writes) {
      const bool parameter = w.place == Randomization::Write::kParameter;
      if (w.place == Randomization::Write::kLook) {
        const auto look = static_cast<sim::Look>(w.which);
        scene_.looks().values(look);
        has_looks_ = true;
        p.base.push_back(static_cast<double>(scene_.looks().model_values(look).at(at(w.item))));
        continue;
      }
      p.base.push_back(parameter ? static_cast<double>(own[at(w.which)].at(at(w.item))) : 0.0);
      if (w.place == Randomization::Write::kTask) task_values(static_cast<TaskParameter>(w.which));
    }
    for (const Randomization::Inertia& inertia : p.what.inertias) {
      const auto value = [&](sim::Parameter parameter, int width, int i) {
        // Of what no event changes the engine is asked all the same: the inertia depends on it.
        std::vector<float>& model = own[at(static_cast<int>(parameter))];
        if (model.empty()) model = engine.model_values(parameter);
        return static_cast<double>(model.at(at(width * inertia.link + i)));
      };
      LinkInertia model;
      model.mass = value(sim::Parameter::kLinkMass, 1, 0);
      for (int i = 0; i < 3; ++i) {
        model.com[at(i)] = value(sim::Parameter::kLinkCom, 3, i);
        model.moments[at(i)] = value(sim::Parameter::kLinkInertia, 3, i);
      }
      for (int i = 0; i < 4; ++i) model.quat[at(i)] = value(sim::Parameter::kLinkInertiaQuat, 4, i);
      p.inertias.push_back(model);
    }
    for (const Randomization::Turn& turn : p.what.turns) {
      const std::vector<float>& model = own[at(static_cast<int>(sim::Parameter::kGeomQuat))];
      std::array<double, 4>& quat = p.quats.emplace_back();
      for (int i = 0; i < 4; ++i) quat[at(i)] = static_cast<double>(model.at(at(4 * turn.geom + i)));
    }
    if (p.what.mode == Randomization::kInterval) {
      has_intervals_ = true;
      p.next.assign(n, 0), p.count.assign(n, 0);
    }
    all_.push_back(std::move(p));
  }
}

RandomStream Randomizer::stream(const Prepared& p, std::uint64_t key, std::int64_t count) const {
  return {key, RandomPurpose::kEnvironment, p.id, static_cast<std::uint64_t>(count)};
}

template <class F>
void Randomizer::for_each_parameter(const Prepared& p, F f) {
  for (const Randomization::Write& w : p.what.writes)
    if (w.place == Randomization::Write::kParameter) f(static_cast<sim::Parameter>(w.which));
  for (const Randomization::Inertia& inertia : p.what.inertias) {
    f(sim::Parameter::kLinkMass), f(sim::Parameter::kLinkInertia);
    if (!inertia.density_alone()) f(sim::Parameter::kLinkCom), f(sim::Parameter::kLinkInertiaQuat);
  }
  if (!p.what.turns.empty()) f(sim::Parameter::kGeomQuat);
}

void Randomizer::set_parameter(sim::Parameter parameter, std::int32_t env, int item, double value) {
  set_real_at(parameters_[at(static_cast<int>(parameter))], env, item, value);
  if (const auto look = look_of(parameter)) set_look(*look, env, item, value);
}

void Randomizer::write_inertia(const Prepared& p, std::size_t k, std::int32_t env, const LinkInertia& value) {
  const Randomization::Inertia& inertia = p.what.inertias[k];
  const auto put = [&](sim::Parameter parameter, std::span<const double> values) {
    const std::int64_t first = std::ssize(values) * inertia.link;
    for (std::int64_t i = 0; i < std::ssize(values); ++i)
      set_real_at(parameters_[at(static_cast<int>(parameter))], env, first + i, values[at(i)]);
  };
  put(sim::Parameter::kLinkMass, {&value.mass, 1});
  put(sim::Parameter::kLinkInertia, value.moments);
  if (inertia.density_alone()) return;
  put(sim::Parameter::kLinkCom, value.com);
  put(sim::Parameter::kLinkInertiaQuat, value.quat);
}

void Randomizer::apply(const Prepared& p, std::int32_t env, std::uint64_t key, std::int64_t count) {
  const RandomStream random = stream(p, key, count);
  for (std::size_t k = 0; k < p.what.inertias.size(); ++k) {
    const Randomization::Inertia& inertia = p.what.inertias[k];
    std::array<double, 10> by;
    for (std::size_t i = 0; i < by.size(); ++i)
      by[i] = draw_from(random, inertia.draw + i, p.what.distribution, inertia.ranges[i]);
    LinkInertia value = p.inertias[k];
    if (inertia.density_alone()) {
      const double factor = std::exp(2 * by[0]);
      value.mass *= factor;
      for (double& moment : value.moments) moment *= factor;
    } else if (value.mass > 0) {
      value = perturbed(value, by);
    }
    write_inertia(p, k, env, value);
  }
  for (std::size_t k = 0; k < p.what.turns.size(); ++k) {
    const Randomization::Turn& turn = p.what.turns[k];
    std::array<double, 3> rpy;
    for (std::size_t i = 0; i < 3; ++i) rpy[i] = draw_from(random, turn.draw + i, p.what.distribution, turn.ranges[i]);
    const std::array<double, 4> quat = turned_by(rpy, p.quats[k]);
    for (int i = 0; i < 4; ++i) set_parameter(sim::Parameter::kGeomQuat, env, 4 * turn.geom + i, quat[at(i)]);
  }
  for (std::size_t k = 0; k < p.what.writes.size(); ++k) {
    const Randomization::Write& w = p.what.writes[k];
    double value = w.sign * draw_from(random, w.draw, p.what.distribution, w.range);
    if (w.whole) value = std::round(value);
    value = w.sign == 0 ? p.base[k] : combined(p.what.operation, p.base[k], value);
    if (w.place == Randomization::Write::kParameter) {
      set_parameter(static_cast<sim::Parameter>(w.which), env, w.item, value);
    } else if (w.place == Randomization::Write::kForce) {
      force_envs_.push_back(env), force_items_.push_back(w.item), force_values_.push_back(value);
    } else if (w.place == Randomization::Write::kLook) {
      set_look(static_cast<sim::Look>(w.which), env, w.item, value);
    } else {
      set_real_at(task_values(static_cast<TaskParameter>(w.which)), env, w.item, value);
    }
  }
}

void Randomizer::set_look(sim::Look look, std::int32_t env, int item, double value) {
  // Colours and fields of view that can be drawn, whatever an operation makes of them.
  constexpr double kLeastFovy = 1, kMostFovy = 179;  // degrees
  if (look == sim::Look::kCameraFovy) value = std::clamp(value, kLeastFovy, kMostFovy);
  if (look == sim::Look::kGeomRgba) value = std::clamp(value, 0.0, 1.0);
  if (look >= sim::Look::kLightAmbient && look <= sim::Look::kLightSpecular) value = std::max(value, 0.0);
  set_real_at(scene_.looks().values(look), env, item, value);
}

std::int64_t Randomizer::steps_until_next(const Prepared& p, std::uint64_t key, std::int64_t count) const {
  const double seconds = draw_from(stream(p, key, count), kTimeDraw, RandomDistribution::kUniform, p.what.interval);
  return std::max<std::int64_t>(1, std::llround(seconds / control_period_));
}

void Randomizer::reset(std::span<const std::int32_t> envs, std::span<const std::uint64_t> keys) {
  COHORT_CHECK(envs.size() == keys.size(), "{} keys for {} environments", keys.size(), envs.size());
  if (envs.empty() || all_.empty()) return;
  sim::Engine& engine = scene_.engine();
  for (const Prepared& p : all_)
    for_each_parameter(
        p, [&](sim::Parameter which) { parameters_[at(static_cast<int>(which))] = engine.parameter(which); });
  for (std::size_t i = 0; i < envs.size(); ++i) {
    const std::int32_t env = envs[i];
    for (Prepared& p : all_) {
      if (p.what.mode == Randomization::kInterval) {
        // Of the episode before, nothing is left.
        p.count[at(env)] = 0;
        p.next[at(env)] = steps_until_next(p, keys[i], 0);
        for (std::size_t k = 0; k < p.what.writes.size(); ++k) {
          const Randomization::Write& w = p.what.writes[k];
          if (w.place == Randomization::Write::kParameter)
            set_parameter(static_cast<sim::Parameter>(w.which), env, w.item, p.base[k]);
          if (w.place == Randomization::Write::kTask)
            set_real_at(task_values(static_cast<TaskParameter>(w.which)), env, w.item, 0);
          if (w.place == Randomization::Write::kLook) set_look(static_cast<sim::Look>(w.which), env, w.item, p.base[k]);
        }
        for (std::size_t k = 0; k < p.inertias.size(); ++k) write_inertia(p, k, env, p.inertias[k]);
        for (std::size_t k = 0; k < p.quats.size(); ++k)
          for (int c = 0; c < 4; ++c)
            set_parameter(sim::Parameter::kGeomQuat, env, 4 * p.what.turns[k].geom + c, p.quats[k][at(c)]);
      }
    }
    for (const Prepared& p : all_)
      if (p.what.mode == Randomization::kReset) apply(p, env, keys[i], 0);
  }
  put_forces();
  if (has_parameters_) engine.commit_parameters(envs);
}

void Randomizer::step(std::span<const std::int64_t> steps, std::span<const std::uint64_t> keys) {
  if (!has_intervals_) return;
  sim::Engine& engine = scene_.engine();
  bool parameters = false;
  due_.clear();
  for (std::int32_t env = 0; env < scene_.n_envs(); ++env) {
    bool changed = false;
    for (Prepared& p : all_) {
      if (p.what.mode != Randomization::kInterval || steps[at(env)] < p.next[at(env)]) continue;
      for_each_parameter(p, [&](sim::Parameter which) {
        parameters_[at(static_cast<int>(which))] = engine.parameter(which);
        changed = true;
      });
      const std::int64_t count = ++p.count[at(env)];
      apply(p, env, keys[at(env)], count);
      p.next[at(env)] += steps_until_next(p, keys[at(env)], count);
    }
    if (changed) due_.push_back(env);
    parameters = parameters || changed;
  }
  put_forces();
  if (parameters) engine.commit_parameters(due_);
}

void Randomizer::put_forces() {
  if (force_values_.empty()) return;
  if (put_values_) {
    put_values_(sim::Field::kXfrcApplied, force_envs_, force_items_, force_values_);
  } else {
    const ArrayView forces = scene_.engine().host_view(sim::Field::kXfrcApplied, sim::Access::kWrite);
    for (std::size_t i = 0; i < force_values_.size(); ++i)
      set_real_at(forces, force_envs_[i], force_items_[i], force_values_[i]);
  }
  force_envs_.clear(), force_items_.clear(), force_values_.clear();
}

ArrayView Randomizer::task_values(TaskParameter parameter) {
  std::vector<float>& values = task_values_[at(static_cast<int>(parameter))];
  const std::int64_t n = scene_.n_envs(), n_pad = (n + 15) / 16 * 16;
  const int size = task_parameter_size(scene_.info(), parameter);
  if (values.empty()) values.assign(at(n_pad * std::max(size, 1)), 0.0f);
  ArrayView view = make_view(values.data(), {n, size});
  view.strides[0] = 1, view.strides[1] = n_pad;
  return view;
}

void Randomizer::visit(StateVisitor& state) {
  for (int p = 0; p < kTaskParameterCount; ++p) {
    const auto parameter = static_cast<TaskParameter>(p);
    if (!task_values_[at(p)].empty()) state.add(task_parameter_name(parameter), task_values(parameter));
  }
  for (int l = 0; l < sim::kLookCount; ++l) {
    const auto look = static_cast<sim::Look>(l);
    if (has_looks_ && scene_.looks().has(look))
      state.add(std::string("look.") + sim::look_name(look), scene_.looks().values(look));
  }
  for (Prepared& p : all_) {
    if (p.what.mode != Randomization::kInterval) continue;
    state.add("events." + p.what.name + ".next", p.next);
    state.add("events." + p.what.name + ".count", p.count);
  }
}

}  // namespace cohort::tasks
