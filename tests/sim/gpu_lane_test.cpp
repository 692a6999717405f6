// What a GPU thread runs, compiled for the host: the lane of one float in a warp's interleaved memory. Launches, copies
// and graphs are in gpu_test.cpp; the maths is tested here, where there is no GPU.
// The searches over convex shapes as a GPU's thread makes them: in the memory of its workspace.
#define COHORT_SEARCHES_IN_PLACE

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/philox.h"
#include "sim/compile.h"
#include "sim/cpu/engine.h"
#include "sim/cuda/block.h"
#include "sim/model.h"

namespace cohort::sim {
namespace {

constexpr int kSteps = 150;

float control(int env, int step, int u) {
  const RandomStream random(1, RandomPurpose::kAction, static_cast<std::uint64_t>(env),
                            static_cast<std::uint64_t>(step));
  return 2 * random.uniform(static_cast<std::uint64_t>(u)) - 1;
}

Model model_of(const std::string& name) {
  const EntityDeclaration e{"m", Mjcf{COHORT_SOURCE_DIR "/tests/sim/models/" + name}};
  return import_model(compile_scene(std::span(&e, 1), {}, {}).mjb);
}

/// Fields of a warp's environments in host memory, [value][environment] as on a device.
class Warp {
 public:
  explicit Warp(const Model& model) : view_(model.view()), need_(cuda::block_need(view_)) {
    const ModelInfo& info = model.info;
    for (int f = 0; f < kFieldCount; ++f) {
      fields_[f].assign(static_cast<std::size_t>(field_size(info, static_cast<Field>(f))) * cuda::kLanes, 0.0f);
    }
    fill(Field::kQpos, info.qpos0);
    fill(Field::kMocapPos, info.mocap_pos0);
    fill(Field::kMocapQuat, info.mocap_quat0);
    time_low_.assign(cuda::kLanes, 0.0f);
    d_ = {};
    d_.n_pad = cuda::kLanes;
    d_.qpos = at(Field::kQpos), d_.qvel = at(Field::kQvel), d_.act = at(Field::kAct);
    d_.warmstart = at(Field::kWarmstart), d_.time = at(Field::kTime), d_.time_low = time_low_.data();
    d_.ctrl = at(Field::kCtrl), d_.applied = at(Field::kQfrcApplied), d_.link_force = at(Field::kXfrcApplied);
    d_.mocap_pos = at(Field::kMocapPos), d_.mocap_quat = at(Field::kMocapQuat), d_.qacc = at(Field::kQacc);
    d_.link_pos = at(Field::kLinkPos), d_.link_quat = at(Field::kLinkQuat), d_.sensors = at(Field::kSensors);
    for (auto* list : {&status_, &contacts_, &iterations_}) list->assign(cuda::kLanes, 0);
    d_.status = status_.data(), d_.contact_count = contacts_.data(), d_.iterations = iterations_.data();
    // The scratch memory of a device holds whatever was there before.
    memory_.assign(need_.bytes / sizeof(float), std::numeric_limits<float>::quiet_NaN());
    separations_.assign(static_cast<std::size_t>(3 * view_.nseparation) * cuda::kLanes, 0.0f);
    d_.separations = separations_.data();
    starts_.assign(static_cast<std::size_t>(view_.nstart) * cuda::kLanes, SearchStart{});
    d_.starts = view_.nstart > 0 ? starts_.data() : nullptr;
  }
  float* at(Field f) { return fields_[static_cast<int>(f)].data(); }
  void step() {
    for (int lane = 0; lane < cuda::kLanes; ++lane) {
      BlockSpace<cuda::GpuLane> space;
      cuda::prepare(view_, reinterpret_cast<char*>(memory_.data()), lane, space);
      step_blocks<cuda::GpuLane>(view_, d_, lane, lane + 1, &space);
    }
  }

 private:
  void fill(Field f, const std::vector<double>& from) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      for (int e = 0; e < cuda::kLanes; ++e) {
        at(f)[i * cuda::kLanes + static_cast<std::size_t>(e)] = static_cast<float>(from[i]);
      }
    }
  }
  ModelView view_;
  cuda::BlockNeed need_;
  std::vector<float> fields_[kFieldCount], time_low_, separations_, memory_;
  std::vector<SearchStart> starts_;
  std::vector<int> status_, contacts_, iterations_;
  DataView d_;
};

class GpuThreadOnTheHost : public ::testing::TestWithParam<const char*> {};

TEST_P(GpuThreadOnTheHost, ComputesTheLanesBits) {
  const Model model = model_of(GetParam());
  Warp warp(model);
  const std::unique_ptr<Engine> lanes = make_cpu_engine(model, cuda::kLanes, {});
  const ArrayView ctrl = lanes->view(Field::kCtrl);
  // Its 27 dofs take their time.
  const int steps = GetParam() == std::string("biped.xml") ? kSteps / 4 : kSteps;
  for (int s = 0; s < steps; ++s) {
    for (int e = 0; e < cuda::kLanes; ++e) {
      for (int u = 0; u < model.info.nu; ++u) {
        const float value = control(e, s, u);
        warp.at(Field::kCtrl)[u * cuda::kLanes + e] = value;
        static_cast<float*>(ctrl.data)[e * ctrl.strides[0] + u * ctrl.strides[1]] = value;
      }
    }
    warp.step();
    lanes->step(1);
  }
  float moved = 0;
  for (Field f : {Field::kQpos, Field::kQvel, Field::kAct, Field::kWarmstart, Field::kTime}) {
    const ArrayView v = lanes->view(f);
    for (std::int64_t i = 0; i < v.shape[1]; ++i) {
      for (int e = 0; e < cuda::kLanes; ++e) {
        const float a = static_cast<float*>(v.data)[e * v.strides[0] + i * v.strides[1]];
        const float b = warp.at(f)[i * cuda::kLanes + e];
        ASSERT_EQ(std::memcmp(&a, &b, sizeof a), 0)
            << field_name(f) << " " << i << " of environment " << e << ": " << a << ", " << b;
        if (f == Field::kQvel) moved = std::max(moved, std::abs(a));
      }
    }
  }
  EXPECT_GT(moved, 0.0f) << "nothing moves: the comparison would say nothing";
}

INSTANTIATE_TEST_SUITE_P(Models, GpuThreadOnTheHost,
                         ::testing::Values("walker.xml", "pile.xml", "arm.xml", "tendons.xml", "biped.xml", "mixed.xml",
                                           "terrain.xml", "crowd.xml", "rubble.xml", "hills.xml", "grip.xml",
                                           "troop.xml"));

}  // namespace
}  // namespace cohort::sim
