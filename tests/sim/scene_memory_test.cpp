// Memory of a scene, on both engines and on a device: planned before it is taken, refused where there is too little.
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/format.h"
#include "core/message_of.h"
#include "sim/host_memory.h"
#include "sim/models.h"
#include "sim/scene_api.h"
#if defined(COHORT_HOST_CUDA)
#include "sim/host_cuda/host_cuda.h"
#endif

namespace cohort::sim {
namespace {

TEST_P(SceneApi, MoreEnvironmentsThanMemoryAreRefusedWithTheNumbers) {
  Scene scene(options());
  scene.add_entity(Mjcf{kModels + "walker.xml"});
  for (const int n : {2000000000, std::numeric_limits<int>::max()}) {
    const std::string text = message_of([&] { scene.build(n); });
    EXPECT_NE(text.find(format("{} environments need", n)), std::string::npos) << text;
    EXPECT_NE(text.find("enough for"), std::string::npos) << text;
  }
}

/// While it lives, this process gets so many more bytes of its own and no others.
class HostMemory {
 public:
  explicit HostMemory(double more) {
    const std::string status = read_file("/proc/self/status");
    const double own = 1024 * std::stod(status.substr(status.find("RssAnon:") + 8));
    ::setenv(kHostMemoryVariable, format("{:.0f}", own + more).c_str(), 1);
  }
  ~HostMemory() { ::unsetenv(kHostMemoryVariable); }
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
};

#if defined(COHORT_HOST_CUDA)
constexpr bool kOnDevice = true;
/// The same of the device's memory, beside what the engine leaves free of it.
class SceneMemory {
 public:
  explicit SceneMemory(double more) { host_cuda::limit_memory(1, more + 64 * (1 << 20)); }
  ~SceneMemory() { host_cuda::limit_memory(1, host_cuda::kTotalBytes); }
  SceneMemory(const SceneMemory&) = delete;
  SceneMemory& operator=(const SceneMemory&) = delete;
};
#else
constexpr bool kOnDevice = false;
using SceneMemory = HostMemory;
#endif

TEST_P(SceneApi, ThePlanBeforeTheBuildIsWhatTheBuildTakes) {
  SceneOptions o = options();
  const auto total = [](const MemoryPlan& plan) { return plan.bytes_per_environment(); };
  double plain = 0;
  for (const bool own : {false, true}) {
    if (own) o.parameters = {Parameter::kLinkMass, Parameter::kGeomFriction, Parameter::kActuatorGain};
    Scene scene(o);
    scene.add_entity(Mjcf{kModels + "walker.xml"});
    MemoryPlan plan = scene.plan();
    EXPECT_FALSE(scene.built());
    EXPECT_GT(plan.most_environments(), 1000);
    {
      const SceneMemory limit(plan.fixed_bytes + 3000 * total(plan));
      plan = scene.plan();
      EXPECT_GT(plan.most_environments(), 1000);
      EXPECT_LE(plan.most_environments(), 3000);
      const std::string refused = message_of([&] { scene.build(6000); });
      EXPECT_NE(refused.find("6000 environments need"), std::string::npos) << refused;
      EXPECT_EQ(refused.find(", parameters ") != std::string::npos, own) << refused;
      EXPECT_FALSE(scene.built());
    }
    scene.build(16);
    const MemoryPlan taken = scene.memory();
    ASSERT_EQ(plan.parts.size(), taken.parts.size());
    for (std::size_t i = 0; i < plan.parts.size(); ++i) {
      EXPECT_EQ(plan.parts[i].name, taken.parts[i].name);
      EXPECT_EQ(plan.parts[i].bytes, taken.parts[i].bytes) << plan.parts[i].name;
    }
    EXPECT_EQ(plan.fixed_bytes, taken.fixed_bytes);
    if (!own) {
      plain = total(plan);
    } else {
      EXPECT_GT(total(plan), plain);
      scene.randomize_parameter(Parameter::kLinkMass, 0.5, 1.5);
      EXPECT_EQ(scene.memory().bytes_per_environment(), total(taken)) << "what was taken at the build is used";
      EXPECT_NE(message_of([&] { scene.plan(); }), "");
    }
  }
  o.parameters = {static_cast<Parameter>(kParameterCount)};
  EXPECT_NE(message_of([&] { Scene{o}; }).find(format("no parameter {}", kParameterCount)), std::string::npos);
}

/// Two bodies of a hundred spheres make 10,000 pairs, of which an environment has room for 30.
TEST_P(SceneApi, RoomForFewerContactsTakesLessMemory) {
  if (GetParam() == EngineKind::kMujoco) return;  // keeps what touches, and refuses the setting
  const std::string body = "<freejoint/><replicate count='100' offset='0 0 0.3'><geom size='0.1'/></replicate></body>";
  const std::string spheres = "<body pos='0 0 1'>" + body + "<body pos='1 0 1'>" + body;
  const auto plan = [&](int capacity) {
    SceneOptions o = options();
    o.contact_capacity = capacity;
    Scene scene(o);
    scene.add_entity(Mjcf{.file = "", .xml = "<mujoco><worldbody>" + spheres + "</worldbody></mujoco>"});
    return scene.plan();
  };
  const MemoryPlan all = plan(0), few = plan(30), enough = plan(20000);
  EXPECT_EQ(all.total(64), enough.total(64));
  EXPECT_LT(few.total(64), 0.2 * all.total(64));
}

TEST_P(SceneApi, ParametersThatDoNotFitLaterAreRefusedAndChangeNothing) {
  constexpr int kEnvs = 4000;
  const auto file = SceneApi::file("state");
  const auto built = [&](Scene& scene, const char* model) {
    scene.add_entity(Mjcf{kModels + model});
    scene.build(kEnvs);
    scene.step();
  };
  Scene scene(options()), twin(options());
  built(scene, "walker.xml"), built(twin, "walker.xml");
  twin.randomize_parameter(Parameter::kGeomFriction, 0.5, 0.6);
  twin.save_state(file);
  const double before = scene.memory().bytes_per_environment();
  {
    const HostMemory limit(2e5);
    const auto refused = [&](const char* what, const std::function<void()>& take) {
      const std::string message = message_of(take);
      EXPECT_NE(message.find(format("{} of {} environments", what, kEnvs)), std::string::npos) << message;
      EXPECT_NE(message.find("this process can get"), std::string::npos) << message;
      EXPECT_EQ(scene.memory().bytes_per_environment(), before) << what;
    };
    for (int repeated = 0; repeated < 2; ++repeated) {
      refused("geom_friction", [&] { scene.randomize_parameter(Parameter::kGeomFriction, 0.5, 0.6); });
    }
    refused("link_mass", [&] { scene.set_links_mass(std::vector<float>{2}, {1}, {7}); });
    refused("the state's parameters", [&] { scene.load_state(file); });
  }
  // As one that was never asked.
  Scene other(options());
  built(other, "walker.xml");
  scene.step(), other.step();
  EXPECT_EQ(scene.get_qpos(), other.get_qpos());
  // And with more memory it can be had.
  scene.load_state(file);
  EXPECT_EQ(scene.get_parameter(Parameter::kGeomFriction), twin.get_parameter(Parameter::kGeomFriction));
  std::filesystem::remove(file);
  Scene driven(options());
  built(driven, "arm_plain.xml");
  const double plain = driven.memory().bytes_per_environment();
  {
    const HostMemory limit(5e4);
    const auto refused = [&](const char* what, const std::function<void()>& take) {
      const std::string message = message_of(take);
      EXPECT_NE(message.find(what), std::string::npos) << message;
      EXPECT_EQ(driven.memory().bytes_per_environment(), plain) << what;
    };
    refused("actuator_gain of 4000", [&] { driven.set_dofs_kp(std::vector<float>{50}, {0}); });
    refused("actuator_gain of 4000", [&] { driven.control_dofs_force(std::vector<float>{0}, {0}); });
    refused("dofs that the scene drives of 4000", [&] { driven.set_dofs_kp(std::vector<float>{50}, {1}); });
  }
  driven.control_dofs_force(std::vector<float>{0}, {0});
  driven.set_dofs_kp(std::vector<float>{50}, {1});
  driven.control_dofs_position(std::vector<float>{0.2f}, {1});
  driven.step();
}

/// Of this process.
int thread_count() {
  const std::string status = read_file("/proc/self/status");
  return std::stoi(status.substr(status.find("Threads:") + 8));
}

TEST_P(SceneApi, TakesTheThreadsItIsToldToAndNoMore) {
  const int before = thread_count();
  for (const int threads : {1, 3}) {
    SceneOptions o = options();
    o.threads = threads;
    Scene scene(o);
    scene.add_entity(Mjcf{kModels + "walker.xml"});
    scene.build(64);
    scene.step();
    // The caller is one of the batched engine's; MuJoCo's pool has all of its own, and the caller waits. A device's
    // scene starts none.
    const int least = kOnDevice ? 0 : threads - 1;
    EXPECT_LE(thread_count() - before, o.engine == EngineKind::kBatched ? least : threads);
    EXPECT_GE(thread_count() - before, least);
  }
  EXPECT_EQ(thread_count(), before) << "threads outlive their scene";
}

}  // namespace
}  // namespace cohort::sim
