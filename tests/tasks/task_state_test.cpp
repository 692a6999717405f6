// What a task saves, and how it goes on from there; what it reads of sensors and contacts; how it names what it writes.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/config.h"
#include "core/message_of.h"
#include "core/philox.h"
#include "tasks/observations.h"
#include "tasks/registry.h"
#include "tasks/scene_task.h"

namespace cohort::tasks {
namespace {

/// A step with actions that are a function of the seed and the environment's id, which may lie anywhere in the batch.
void step(Task& task, std::uint64_t moment, const std::vector<std::uint64_t>& ids) {
  const ActionSpec& spec = task.spec().action;
  std::vector<float> actions;
  for (const std::uint64_t id : ids) {
    const RandomStream random(9, RandomPurpose::kAction, id, moment);
    for (std::size_t i = 0; i < spec.names.size(); ++i)
      actions.push_back(spec.low[i] + (spec.high[i] - spec.low[i]) * random.uniform(i));
  }
  task.step(make_view(actions.data(), {task.n_envs(), spec.width()}));
}

/// All bytes of a state, of the environments that are named.
std::vector<std::uint8_t> bytes_of(const TaskState& state, const std::vector<std::size_t>& envs) {
  std::vector<std::uint8_t> bytes;
  for (const StateArray& array : state) {
    const std::size_t row = array.bytes.size() / static_cast<std::size_t>(array.shape[0]);
    for (const std::size_t env : envs)
      bytes.insert(bytes.end(), array.bytes.begin() + static_cast<std::ptrdiff_t>(env * row),
                   array.bytes.begin() + static_cast<std::ptrdiff_t>((env + 1) * row));
  }
  return bytes;
}

/// The rows of one environment.
TaskState row_of(const TaskState& state, std::size_t env) {
  TaskState row = state;
  for (StateArray& array : row) {
    const std::size_t bytes = array.bytes.size() / static_cast<std::size_t>(array.shape[0]);
    array.shape[0] = 1;
    array.bytes = {array.bytes.begin() + static_cast<std::ptrdiff_t>(env * bytes),
                   array.bytes.begin() + static_cast<std::ptrdiff_t>((env + 1) * bytes)};
  }
  return row;
}

struct Case {
  const char* task;
  std::vector<std::string> overrides = {};
};

class TaskStateOnEngine : public ::testing::TestWithParam<const char*> {};
#ifdef __SANITIZE_THREAD__
// MuJoCo's library is not instrumented: how its thread pool synchronises is not seen (tests/sim/CMakeLists.txt).
INSTANTIATE_TEST_SUITE_P(Engines, TaskStateOnEngine, ::testing::Values("batched"));
#else
INSTANTIATE_TEST_SUITE_P(Engines, TaskStateOnEngine, ::testing::Values("batched", "mujoco"));
#endif

TEST_P(TaskStateOnEngine, WhatWasSavedGoesOnWithTheSameBitsTogetherAndApart) {
  std::vector<Case> cases{{"cartpole-swingup"},
                          {"pick-and-place", {"goal=random"}},
                          {"stack"},
                          {"quadruped-velocity", {"curriculum=true", "terrain=rough"}}};
  const char* assets = std::getenv("COHORT_GYMNASIUM_ASSETS");
  const bool gymnasium = assets || message_of([] { make_task("Ant-v5", {}); }).empty();
  if (gymnasium) cases.insert(cases.end(), {{"Ant-v5"}, {"Humanoid-v5"}, {"Reacher-v5"}, {"HalfCheetah-v5"}});
  for (const Case& of : cases) {
    const auto make = [&](int n) {
      return make_task(of.task, {.n_envs = n, .threads = 2, .engine = GetParam(), .overrides = of.overrides});
    };
    const auto task = make(3), again = make(3), apart = make(1);
    const std::vector<std::uint64_t> ids{0, 1, 2};
    const std::vector<std::int32_t> all{0, 1, 2}, one{1}, first{0};
    task->reset(all, std::vector<std::uint64_t>{5, 6, 7});
    for (std::uint64_t t = 0; t < 25; ++t) {
      // One of them is younger than the others.
      if (t == 11) task->reset(one, std::vector<std::uint64_t>{8});
      step(*task, t, ids);
    }
    const TaskState state = task->save();
    // Whatever the others were doing before.
    again->reset(all, std::vector<std::uint64_t>{11, 12, 13});
    step(*again, 99, ids);
    again->load(state, "the test");
    apart->load(row_of(state, 1), "the test");
    ASSERT_EQ(bytes_of(again->save(), {0, 1, 2}), bytes_of(state, {0, 1, 2})) << of.task;
    for (std::uint64_t t = 25; t < 45; ++t) {
      if (t == 35) {
        for (Task* whole : {task.get(), again.get()}) whole->reset(one, std::vector<std::uint64_t>{9});
        apart->reset(first, std::vector<std::uint64_t>{9});
      }
      step(*task, t, ids), step(*again, t, ids), step(*apart, t, {1});
      const TaskState now = task->save();
      ASSERT_EQ(bytes_of(again->save(), {0, 1, 2}), bytes_of(now, {0, 1, 2})) << of.task << ", step " << t;
      ASSERT_EQ(bytes_of(apart->save(), {0}), bytes_of(now, {1})) << of.task << ", step " << t << ", alone";
    }
  }
}

TEST(TaskState, OfAnotherTaskEngineOrNumberOfEnvironmentsIsRefusedByName) {
  const auto state_of = [](const char* name, const TaskSettings& settings) {
    return make_task(name, settings)->save();
  };
  const auto reach = make_task("reach", {.n_envs = 2});
  const auto refused = [&](const TaskState& state) { return message_of([&] { reach->load(state, "checkpoint-3"); }); };
  EXPECT_EQ(refused(state_of("reach", {.n_envs = 2})), "");
  EXPECT_NE(refused(state_of("cartpole-balance", {.n_envs = 2})).find("checkpoint-3 holds 'scene."), std::string::npos);
  EXPECT_NE(refused(state_of("reach", {.n_envs = 3})).find("(3, "), std::string::npos);
  EXPECT_NE(refused(state_of("reach", {.n_envs = 2, .engine = "mujoco"})).find("checkpoint-3 holds"),
            std::string::npos);
  TaskState less = state_of("reach", {.n_envs = 2});
  std::erase_if(less, [](const StateArray& array) { return array.name == "key"; });
  EXPECT_NE(refused(less).find("checkpoint-3 holds no 'key'"), std::string::npos);
  TaskState more = state_of("reach", {.n_envs = 2});
  more.push_back(more.back());
  more.back().name = "level";
  EXPECT_NE(refused(more).find("checkpoint-3 holds 'level'"), std::string::npos);
}

constexpr const char* kDrop = R"(
<mujoco><option timestep="0.002"/><worldbody>
<geom name="floor" type="plane" size="1 1 0.1"/>
<body name="ball" pos="0 0 0.1"><freejoint/><geom name="shell" size="0.1" mass="2"/></body>
<body name="far" pos="0.5 0 1"><joint type="slide" axis="0 0 1"/><geom size="0.1" mass="1"/></body>
</worldbody>
<sensor><framelinvel name="speed" objtype="body" objname="ball"/><framepos name="where" objtype="body" objname="ball"/></sensor>
</mujoco>)";

/// A ball that lies on the floor, and one that falls.
class Drop final : public SceneTask {
 public:
  explicit Drop(const std::string& engine, const std::string& mistake = "")
      : SceneTask({.n_envs = 2, .engine = engine}, setup(mistake)),
        mistake_(mistake),
        where_(sensor(mistake_ == "sensor" ? "wher" : "where")),
        on_floor_(contact_pair("floor", "ball")),
        far_(contact_pair("far", "shell")) {}

 private:
  static SceneTaskSetup setup(const std::string& mistake) {
    SceneTaskSetup setup;
    setup.spec.name = "drop";
    setup.spec.observations = {{"place", {3}, "m", ""}, {"force", {3}, "N", ""}, {"touches", {2}, "1", ""}};
    setup.spec.action = {.names = {"none"}, .low = {-1}, .high = {1}, .unit = ""};
    setup.spec.control_period = 0.02;
    setup.spec.reward_terms = {"height"};
    setup.mjcf = kDrop;
    if (mistake != "leaves") setup.leaves = {sim::Field::kLinkPos, sim::Field::kSensors};
    setup.contacts = mistake != "contacts";
    setup.settings.horizon = 100;
    return setup;
  }
  void start(int, const RandomStream&, Start&) override {}
  void control(int, const EnvState&, std::span<const float>, std::span<double>) override {}
  void observe(int, const EnvState& now, ObservationRows& out) override {
    out.put(mistake_ == "name" ? Name("plase") : Name("place"), now.sensor(where_));
    const std::array<double, 3> force = now.contact_force(on_floor_);
    out.put("force", force);
    out.put("touches", {now.touching(on_floor_) ? 1.0 : 0.0, now.touching(far_) ? 1.0 : 0.0});
  }
  Judgement judge(int, const EnvState& now, Terms& terms) override {
    terms.put(mistake_ == "term" ? Name("hight") : Name("height"), now.sensor(where_)[2]);
    return {};
  }
  void visit_variables(StateVisitor&) override {}

  std::string mistake_;
  SensorPlace where_;
  ContactPair on_floor_, far_;
};

TEST_P(TaskStateOnEngine, SensorsAndForcesOfContactsAreReadByName) {
  Drop task(GetParam());
  const std::vector<std::int32_t> all{0, 1};
  task.reset(all, std::vector<std::uint64_t>{1, 2});
  for (std::uint64_t t = 0; t < 60; ++t) step(task, t, {0, 1});
  const auto place = task.observation(task.observation_index("place")).span<float>(),
             force = task.observation(task.observation_index("force")).span<float>(),
             touches = task.observation(task.observation_index("touches")).span<float>();
  for (std::size_t env = 0; env < 2; ++env) {
    EXPECT_NEAR(place[3 * env + 2], 0.1, 0.002);
    // The floor bears the ball's weight.
    EXPECT_NEAR(force[3 * env + 2], 2 * 9.81, 0.2);
    EXPECT_NEAR(force[3 * env], 0, 0.01);
    EXPECT_EQ(touches[2 * env], 1);
    EXPECT_EQ(touches[2 * env + 1], 0) << "the other ball is far away, or on the floor";
    EXPECT_EQ(task.reward().span<float>()[env], place[3 * env + 2]);
  }
  Drop again(GetParam());
  again.load(task.save(), "the test");
  step(task, 60, {0, 1}), step(again, 60, {0, 1});
  EXPECT_EQ(bytes_of(task.save(), {0, 1}), bytes_of(again.save(), {0, 1}));
}

TEST(SceneTaskNames, AreCheckedAgainstTheSpecAndTheModel) {
  const auto said = [](const char* mistake) {
    return message_of([&] {
      Drop task("batched", mistake);
      const std::vector<std::int32_t> all{0, 1};
      task.reset(all, std::vector<std::uint64_t>{1, 2});
      step(task, 0, {0, 1});
    });
  };
  EXPECT_EQ(said(""), "");
  EXPECT_NE(said("name").find("observe() writes 'plase', which the spec does not observe, did you mean 'place'?"),
            std::string::npos)
      << said("name");
  EXPECT_NE(said("term").find("judge() writes 'hight', which is no term of the reward, did you mean 'height'?"),
            std::string::npos)
      << said("term");
  EXPECT_NE(said("sensor").find("where"), std::string::npos) << said("sensor");
  EXPECT_NE(said("leaves").find("add sim::Field::kSensors to SceneTaskSetup::leaves"), std::string::npos);
  EXPECT_NE(said("contacts").find("set SceneTaskSetup::contacts"), std::string::npos);
}

TEST(TaskSettings, AreKnownWithoutTheSimulation) {
  const TaskFields fields = settings_of("pick-and-place");
  ASSERT_NE(fields, nullptr);
  EXPECT_TRUE(fields->has("goal"));
  EXPECT_TRUE(fields->has("end_on_success"));
  EXPECT_FALSE(fields->has("terrain"));
  // They are those of the task itself.
  for (const char* name : {"cartpole-balance", "open-drawer", "pick-and-place", "push", "reach", "quadruped-velocity"})
    EXPECT_EQ(settings_of(name)->help(), make_task(name, {})->settings()->help()) << name;
  EXPECT_NE(message_of([] { settings_of("pick-and-plase"); }).find("did you mean 'pick-and-place'"), std::string::npos);
}

TEST(GivenObservations, AreWhatSomebodyHasWritten) {
  GivenObservations seen("robot", {{"joint_pos", {7}, "rad", ""}, {"image_size", {2, 2}, "1", ""}}, 2);
  std::fill(seen.row(1, 1).begin(), seen.row(1, 1).end(), 3.0f);
  const ArrayView view = seen.observation(seen.observation_index("image_size"));
  ASSERT_EQ(view.rank, 3);
  EXPECT_EQ(view.span<float>()[3], 0);
  EXPECT_EQ(view.span<float>()[4], 3);
  EXPECT_NE(message_of([&] {
              seen.observation_index("joint_po");
            }).find("robot observes no 'joint_po', did you mean 'joint_pos'?"),
            std::string::npos);
  EXPECT_NE(message_of([&] { seen.picture("front", {}); }).find("robot has no cameras"), std::string::npos);
}

}  // namespace
}  // namespace cohort::tasks
