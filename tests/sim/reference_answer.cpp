#include "reference_answer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "constraint_rows.h"
#include "findings.h"
#include "random_state.h"

namespace cohort::sim::test {

namespace {

/// Moves of the state from which the noise is measured.
constexpr std::uint64_t kMoves = 6;
/// Smallest eigenvalue of the inertia matrix, scaled to a diagonal of ones, below which single precision's 1e-7 shows
/// in accelerations.
constexpr double kSingular = 2e-3;

mj::DataPtr copy_of(const mjModel& m, const mjData& d) {
  mj::DataPtr copy(mj_makeData(&m));
  mj_copyData(copy.get(), &m, &d);
  return copy;
}

/// Of the inertia matrix scaled to a diagonal of ones; by inverse iteration.
double smallest_eigenvalue(const mjModel& m, mjData& d) {
  const std::size_t n = static_cast<std::size_t>(m.nv);
  std::vector<double> M(n * n), scale(n), x(n), solved(n);
  mj_fullM(&m, &d, M.data());
  for (std::size_t i = 0; i < n; ++i) scale[i] = std::sqrt(M[i * n + i]);
  // Along no symmetry of two equal joints, which is where the matrix is singular.
  for (std::size_t i = 0; i < n; ++i) x[i] = 1 + 0.1 * static_cast<double>(i * i % 11);
  double inverse = 0;
  for (int iteration = 0; iteration < 25; ++iteration) {
    for (std::size_t i = 0; i < n; ++i) x[i] *= scale[i];
    mj_solveM(&m, &d, solved.data(), x.data(), 1);
    for (std::size_t i = 0; i < n; ++i) x[i] = solved[i] * scale[i];
    inverse = mju_norm(x.data(), static_cast<int>(n));
    for (double& element : x) element /= inverse;
  }
  return 1 / inverse;
}

/// Which geoms touch, how often, and whether with force.
std::multiset<std::array<int, 3>> contact_set(const mjData& d) {
  std::multiset<std::array<int, 3>> set;
  for (int c = 0; c < d.ncon; ++c) {
    set.insert({d.contact[c].geom[0], d.contact[c].geom[1], d.contact[c].exclude});
  }
  return set;
}

void raise(double& most, double value) {
  most = std::max(most, value);
}

double largest_difference(const double a[3], const double b[3]) {
  return std::max({std::abs(a[0] - b[0]), std::abs(a[1] - b[1]), std::abs(a[2] - b[2])});
}

/// Of the contacts of the same geoms, which may be in another order, the nearest one counts.
void raise_contact_noise(const mjData& base, const mjData& moved, ReferenceAnswer::Noise& noise) {
  for (int c = 0; c < base.ncon; ++c) {
    const mjContact& a = base.contact[c];
    const mjContact* nearest = nullptr;
    double least = 1e9;
    for (const mjContact* b = moved.contact; b < moved.contact + moved.ncon; ++b) {
      if (b->geom[0] != a.geom[0] || b->geom[1] != a.geom[1]) continue;
      const double far = std::abs(a.dist - b->dist) + largest_difference(a.pos, b->pos);
      if (far < least) least = far, nearest = b;
    }
    const std::size_t i = static_cast<std::size_t>(c);
    raise(noise.dist[i], std::abs(a.dist - nearest->dist));
    raise(noise.place[i], largest_difference(a.pos, nearest->pos));
    raise(noise.normal[i], largest_difference(a.frame, nearest->frame));
  }
}

void raise_row_noise(const mjModel& m, const mjData& base, const mjData& moved, ReferenceAnswer::Noise& noise) {
  constexpr double kOtherRow = 1e-3;  // the contacts of a pair may be in another order
  for (int i = 0; i < base.nefc; ++i) {
    const Row row = mujoco_row(&m, &base, i);
    double least = row_difference(mujoco_row(&m, &moved, i), row);
    for (int k = 0; k < moved.nefc && least > kOtherRow; ++k) {
      if (moved.efc_type[k] == base.efc_type[i])
        least = std::min(least, row_difference(mujoco_row(&m, &moved, k), row));
    }
    raise(noise.row[static_cast<std::size_t>(i)], least);
  }
}

/// Moves the state, asks again and widens the noise; false where other rows or contacts appear.
bool widen(mjModel& m, std::uint64_t sample, ReferenceAnswer& answer, mjData& moved) {
  const mjData& base = *answer.forward;
  int at = 0;
  mj_copyData(&moved, &m, answer.state.get());
  move_by_rounding(m, sample, moved);
  mj_forward(&m, &moved);
  if (moved.nefc != base.nefc || contact_set(moved) != contact_set(base)) return false;
  ReferenceAnswer::Noise& noise = answer.noise;
  raise(noise.qacc_smooth, relative_difference(take(moved.qacc_smooth, m.nv), take(base.qacc_smooth, m.nv), at));
  raise(noise.qacc, relative_difference(take(moved.qacc, m.nv), answer.qacc, at));
  for (int i = 0; i < m.nsensordata; ++i) {
    raise(noise.sensor[static_cast<std::size_t>(i)], std::abs(moved.sensordata[i] - base.sensordata[i]));
  }
  raise_row_noise(m, base, moved, noise);
  raise_contact_noise(base, moved, noise);
  mj_copyData(&moved, &m, answer.state.get());
  move_by_rounding(m, sample, moved);
  mj_step(&m, &moved);
  raise(noise.step, relative_difference(take(moved.qvel, m.nv), take(answer.step->qvel, m.nv), at));
  raise(noise.step, relative_difference(take(moved.qpos, m.nq), take(answer.step->qpos, m.nq), at));
  return true;
}

}  // namespace

bool warned(const mjData& d) {
  return std::any_of(d.warning, d.warning + mjNWARNING, [](const mjWarningStat& w) { return w.number > 0; });
}

ReferenceAnswer::Noise quiet(const mjModel& m, const mjData& d) {
  const std::size_t contacts = static_cast<std::size_t>(d.ncon);
  ReferenceAnswer::Noise noise;
  noise.sensor.assign(static_cast<std::size_t>(m.nsensordata), 0);
  for (std::vector<double>* of : {&noise.dist, &noise.place, &noise.normal}) of->assign(contacts, 0);
  noise.row.assign(static_cast<std::size_t>(d.nefc), 0);
  return noise;
}

ReferenceAnswer reference_answer(mjModel& m, mj::DataPtr state) {
  ReferenceAnswer answer;
  answer.state = std::move(state);
  answer.forward = copy_of(m, *answer.state);
  mj_forward(&m, answer.forward.get());
  if (warned(*answer.forward)) {
    answer.useless = "MuJoCo warns";
    return answer;
  }
  if (!(smallest_eigenvalue(m, *answer.forward) >= kSingular)) {  // nor not a number
    answer.useless = "the inertia matrix is nearly singular";
    return answer;
  }
  const mjOption options = m.opt;
  m.opt.tolerance = 1e-14;
  m.opt.iterations *= 3;
  m.opt.ls_iterations *= 4;
  mj::DataPtr moved = copy_of(m, *answer.state);
  mj_forward(&m, moved.get());
  answer.qacc = take(moved->qacc, m.nv);
  answer.step = copy_of(m, *answer.state);
  mj_step(&m, answer.step.get());
  answer.noise = quiet(m, *answer.forward);
  for (std::uint64_t sample = 0; sample < kMoves; ++sample) {
    if (widen(m, sample, answer, *moved)) continue;
    answer.useless = "rounding decides which contacts or rows there are";
    break;
  }
  m.opt = options;
  return answer;
}

}  // namespace cohort::sim::test
