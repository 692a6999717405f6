/// MuJoCo C as the oracle: random states of a model, and our kernels in one float beside it.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <mujoco/mujoco.h>

#include "core/philox.h"
#include "sim/engine_plan.h"
#include "sim/host/compile.h"
#include "sim/host/import/handle.h"
#include "sim/host/model.h"
#include "sim/host/model_check.h"
#include "sim/kernels/lane/workspace.h"

namespace cohort::sim::test {

inline std::vector<std::uint8_t> compile_xml(const std::string& xml) {
  const EntityDeclaration e{"model", Mjcf{.file = "", .xml = xml}};
  return compile_scene(std::span(&e, 1), {}, {}).mjb;
}
inline std::vector<std::uint8_t> compile_file(const std::string& file, SceneOptions options = {}) {
  const EntityDeclaration e{"model", Mjcf{file}};
  return compile_scene(std::span(&e, 1), {}, options).mjb;
}

/// A model in MuJoCo and in ours, one state in both.
class Pair {
 public:
  explicit Pair(const std::vector<std::uint8_t>& mjb, int row_space = -1)
      : mj(mj::load(mjb)), data(mj_makeData(mj.get())), ours(import_model(mjb)) {
    check_model(ours);  // what a file may not hold, an import must not make
    mj->opt.jacobian = mjJAC_DENSE;
    view = planned_view(ours, row_space, 0);
    Arena<ScalarLane> count{nullptr};
    lay_out<ScalarLane>(view, count, w);
    memory.assign(static_cast<std::size_t>(count.used), 0);
    Arena<ScalarLane> place{memory.data()};
    lay_out<ScalarLane>(view, place, w);
  }

  /// Coordinates near the default, velocities, controls, applied forces: a function of `sample` only.
  void randomize(std::uint64_t sample, double position = 0.6, double velocity = 1.0) {
    const RandomStream random(11, RandomPurpose::kTest, sample, 0);
    std::uint64_t next = 0;
    const auto normal = [&] { return static_cast<double>(random.normal(next++)); };
    mj_resetData(mj.get(), data.get());
    for (int i = 0; i < mj->nq; ++i) data->qpos[i] = static_cast<float>(mj->qpos0[i] + position * normal());
    for (int j = 0; j < mj->njnt; ++j) {
      const int a = mj->jnt_qposadr[j] + (mj->jnt_type[j] == mjJNT_FREE ? 3 : 0);
      if (mj->jnt_type[j] == mjJNT_FREE || mj->jnt_type[j] == mjJNT_BALL) {
        for (int k = 0; k < 4; ++k) data->qpos[a + k] = normal();
        mju_normalize4(data->qpos + a);
        for (int k = 0; k < 4; ++k) data->qpos[a + k] = static_cast<float>(data->qpos[a + k]);
      }
    }
    for (int i = 0; i < mj->nv; ++i) {
      data->qvel[i] = static_cast<float>(velocity * normal());
      data->qfrc_applied[i] = static_cast<float>(0.3 * normal());
    }
    for (int i = 0; i < 6 * mj->nbody; ++i) data->xfrc_applied[i] = i < 6 ? 0 : static_cast<float>(0.3 * normal());
    for (int i = 0; i < mj->nu; ++i) data->ctrl[i] = static_cast<float>(normal());
    for (int i = 0; i < mj->na; ++i) data->act[i] = static_cast<float>(0.3 * normal());
    for (int i = 0; i < 3 * mj->nmocap; ++i)
      data->mocap_pos[i] = static_cast<float>(data->mocap_pos[i] + 0.2 * normal());
    for (int i = 0; i < mj->nmocap; ++i) {
      for (int k = 0; k < 4; ++k) data->mocap_quat[4 * i + k] = normal();
      mju_normalize4(data->mocap_quat + 4 * i);
    }
  }

  /// Poisons our workspace, then copies the state into it.
  void copy_state() {
    for (float& x : memory) x = std::numeric_limits<float>::infinity();
    const auto copy = [](float* to, const double* from, mjtSize n) {
      for (mjtSize i = 0; i < n; ++i) to[i] = static_cast<float>(from[i]);
    };
    copy(w.q, data->qpos, mj->nq);
    copy(w.v, data->qvel, mj->nv);
    copy(w.act, data->act, mj->na);
    copy(w.ctrl, data->ctrl, mj->nu);
    copy(w.applied, data->qfrc_applied, mj->nv);
    copy(w.link_force, data->xfrc_applied, 6 * mj->nbody);
    copy(w.mocap_pos, data->mocap_pos, 3 * mj->nmocap);
    copy(w.mocap_quat, data->mocap_quat, 4 * mj->nmocap);
  }

  /// Pose of a link from our bodies.
  void link_pose(int k, double pos[3], double rot[9]) const {
    const LinkRecord& link = view.link[k];
    double local[9], q[4];
    for (int i = 0; i < 4; ++i) q[i] = link.quat[i];
    mju_quat2Mat(local, q);
    for (int i = 0; i < 9; ++i) rot[i] = local[i];
    for (int i = 0; i < 3; ++i) pos[i] = link.pos[i];
    if (link.body < 0) return;
    double R[9], at[3];
    for (int i = 0; i < 9; ++i) R[i] = w.rot[9 * link.body + i];
    mju_mulMatVec3(at, R, pos);
    for (int i = 0; i < 3; ++i) {
      pos[i] = at[i] + w.pos[3 * link.body + i] + w.origin[3 * view.body[link.body].root + i];
    }
    mju_mulMatMat(rot, R, local, 3, 3, 3);
  }

  mj::ModelPtr mj;
  mj::DataPtr data;
  Model ours;
  ModelView view;
  Workspace<ScalarLane> w;
  std::vector<float> memory;
};

/// What is demanded of every element that no cancellation touches.
inline constexpr double kElementTolerance = 5e-4;
/// |a - b| <= tolerance max(1, |b|) with the greatest element of b, since cancellation makes small numbers of large
/// ones; and element by element |a - b| <= max(tolerance, of_element) (1 + |b|).
inline void expect_near(const std::vector<double>& ours, const std::vector<double>& theirs, double tolerance,
                        const std::string& what, double of_element = kElementTolerance) {
  ASSERT_EQ(ours.size(), theirs.size()) << what;
  double scale = 1;
  for (double x : theirs) scale = std::max(scale, std::abs(x));
  of_element = std::max(of_element, tolerance);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    ASSERT_TRUE(std::isfinite(ours[i])) << what << "[" << i << "] was never written";
    ASSERT_NEAR(ours[i], theirs[i], tolerance * scale) << what << "[" << i << "]";
    ASSERT_NEAR(ours[i], theirs[i], of_element * (1 + std::abs(theirs[i]))) << what << "[" << i << "]";
  }
}
template <class T>
std::vector<double> take(const T* from, mjtSize n) {
  return std::vector<double>(from, from + n);
}

}  // namespace cohort::sim::test
