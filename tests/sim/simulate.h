/// Runs of the batched engine, to compare their bits.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/backends/cpu/engine.h"
#include "sim/host/scene.h"
#include "sim/models.h"

namespace cohort::sim {

/// Environments of one model, with random controls.
struct Job {
  std::string file = "walker.xml";
  int n = 64, threads = 1, steps = 200;
  std::int64_t first = 0;
  LaneWidth lanes = LaneWidth::kAuto;
  int row_space = -1;
  std::function<void(Scene&, int)> before_step = [](Scene&, int) {};
};

/// What every environment continues from, one environment after the other.
inline std::vector<float> states(Scene& scene) {
  std::vector<float> all;
  for (int e = 0; e < scene.n_envs(); ++e) {
    for (Field f : {Field::kQpos, Field::kQvel, Field::kWarmstart, Field::kTime}) {
      const ArrayView v = scene.view(f);
      for (std::int64_t i = 0; i < v.shape[1]; ++i)
        all.push_back(static_cast<float*>(v.data)[e * v.strides[0] + i * v.strides[1]]);
    }
  }
  return all;
}

/// The states of a new scene's environments after a job.
inline std::vector<float> simulate(const Job& job) {
  SceneOptions o;
  o.threads = job.threads;
  o.lanes = job.lanes;
  o.row_space = job.row_space;
  o.first_environment = job.first;
  o.seed = 3;
  Scene scene(o);
  scene.add_entity(Mjcf{kModels + job.file});
  scene.build(job.n);
  for (int s = 0; s < job.steps; ++s) {
    scene.set_random_ctrl(s);
    job.before_step(scene, s);
    scene.step();
  }
  return states(scene);
}

/// The lane widths that this machine has.
inline std::vector<LaneWidth> widths() {
  std::vector<LaneWidth> list;
  for (const LaneWidth width : {LaneWidth::kScalar, LaneWidth::kAvx2, LaneWidth::kAvx512})
    if (runs_lanes(width)) list.push_back(width);
  return list;
}

}  // namespace cohort::sim
