#include "random_state.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "core/philox.h"

namespace cohort::sim::test {

namespace {

double single(double x) {
  return static_cast<float>(x);
}

/// FNV-1a.
std::uint32_t hash_of(const std::string& text) {
  std::uint32_t hash = 2166136261u;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

/// The numbers of one element.
class ElementDraw {
 public:
  ElementDraw(const mjModel& m, mjtObj type, int id, std::uint64_t seed, int state)
      : random_(seed, RandomPurpose::kTest, hash_of(key(m, type, id)), static_cast<std::uint64_t>(state)) {}
  double normal() { return static_cast<double>(random_.normal(next_++)); }

 private:
  static std::string key(const mjModel& m, mjtObj type, int id) {
    const char* name = mj_id2name(&m, type, id);
    return std::to_string(type) + "/" + (name != nullptr && *name != 0 ? std::string(name) : "#" + std::to_string(id));
  }
  RandomStream random_;
  std::uint64_t next_ = 0;
};

/// How a state is spread.
struct Spread {
  double position, velocity;
  bool forces;  ///< applied to dofs and bodies
};

Spread spread_of(std::uint64_t seed, int state) {
  const RandomStream random(seed, RandomPurpose::kTest, 0, static_cast<std::uint64_t>(state));
  return {std::array{0.05, 0.2, 0.6}[static_cast<std::size_t>(state % 3)],
          std::array{0.3, 1.0, 2.0}[random.below(0, 3)], random.below(1, 2) == 0};
}

void turn(double* quat, double by, ElementDraw& draw) {
  for (int k = 0; k < 4; ++k) quat[k] += by * draw.normal();
  mju_normalize4(quat);
  for (int k = 0; k < 4; ++k) quat[k] = single(quat[k]);
}

void random_joint(const mjModel& m, int joint, const Spread& spread, ElementDraw& draw, mjData& d) {
  double* q = d.qpos + m.jnt_qposadr[joint];
  const int type = m.jnt_type[joint], first = m.jnt_dofadr[joint];
  const bool ball = type == mjJNT_BALL, free = type == mjJNT_FREE;
  const double length = 0.3 * spread.position, quaternion = 1.2 * spread.position;
  for (int k = 0; k < (free ? 3 : ball ? 0 : 1); ++k) {
    q[k] = single(q[k] + (type == mjJNT_HINGE ? spread.position : length) * draw.normal());
  }
  if (ball || free) turn(q + (free ? 3 : 0), quaternion, draw);
  for (int i = first; i < first + (free ? 6 : ball ? 3 : 1); ++i) {
    d.qvel[i] = single(spread.velocity * draw.normal());
    d.qfrc_applied[i] = single(spread.forces ? 0.3 * draw.normal() : 0);
    d.qacc_warmstart[i] = single(draw.normal());
  }
}

void random_body(const mjModel& m, int body, const Spread& spread, ElementDraw& draw, mjData& d) {
  for (int i = 6 * body; i < 6 * body + 6; ++i) d.xfrc_applied[i] = single(spread.forces ? 0.3 * draw.normal() : 0);
  const int mocap = m.body_mocapid[body];
  if (mocap < 0) return;
  for (int i = 3 * mocap; i < 3 * mocap + 3; ++i) d.mocap_pos[i] = single(d.mocap_pos[i] + 0.1 * draw.normal());
  turn(d.mocap_quat + 4 * mocap, 0.2, draw);
}

}  // namespace

void random_state(const mjModel& m, std::uint64_t seed, int state, mjData& d) {
  mj_resetData(&m, &d);
  const Spread spread = spread_of(seed, state);
  for (int j = 0; j < m.njnt; ++j) {
    ElementDraw draw(m, mjOBJ_JOINT, j, seed, state);
    random_joint(m, j, spread, draw, d);
  }
  for (int body = 1; body < m.nbody; ++body) {
    ElementDraw draw(m, mjOBJ_BODY, body, seed, state);
    random_body(m, body, spread, draw, d);
  }
  for (int i = 0; i < m.nactuator; ++i) {
    ElementDraw draw(m, mjOBJ_ACTUATOR, i, seed, state);
    for (int k = 0; k < m.actuator_ctrlnum[i]; ++k) d.ctrl[m.actuator_ctrladr[i] + k] = single(draw.normal());
    for (int k = 0; k < m.actuator_actnum[i]; ++k) d.act[m.actuator_actadr[i] + k] = single(0.4 * draw.normal());
  }
}

void move_by_rounding(const mjModel& m, std::uint64_t sample, mjData& d) {
  const RandomStream random(1, RandomPurpose::kTest, sample, 0);
  std::uint64_t next = 0;
  const auto move = [&](double* values, mjtSize n) {
    for (mjtSize i = 0; i < n; ++i) {
      const double direction = 2 * static_cast<double>(random.uniform(next++)) - 1;
      values[i] += 2e-7 * direction * std::max(0.3, std::abs(values[i]));
    }
  };
  move(d.qpos, m.nq);
  move(d.qvel, m.nv);
  move(d.ctrl, m.nu);
  move(d.act, m.na);
}

}  // namespace cohort::sim::test
