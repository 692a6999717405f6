// Tasks of scenes: bits, isolation, rewards, pictures, trouble. Experts in a few seeds; in 100 in suite_experts_test.
#include "tasks/scene_task.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/files.h"
#include "core/format.h"
#include "core/message_of.h"
#include "data/allocation_count.h"
#include "tasks/actor.h"
#include "tasks/registry.h"
#include "tasks/rollout.h"

namespace cohort::tasks {
namespace {

constexpr const char* kSuite[] = {
    "cartpole-balance", "cartpole-swingup", "open-drawer", "peg-in-hole", "pick-and-place", "push", "reach", "stack"};

std::vector<float> observed(Task& task, int env) {
  std::vector<float> numbers;
  for (std::size_t f = 0; f < task.spec().observations.size(); ++f) {
    const ArrayView view = task.observation(f);
    const auto width = static_cast<std::size_t>(task.spec().observations[f].elements());
    const auto row = view.span<float>().subspan(static_cast<std::size_t>(env) * width, width);
    numbers.insert(numbers.end(), row.begin(), row.end());
  }
  return numbers;
}

std::vector<std::uint8_t> a_copy(const ArrayView& picture) {
  const auto bytes = picture.span<std::uint8_t>();
  return {bytes.begin(), bytes.end()};
}

class SceneTaskOnEngine : public ::testing::TestWithParam<const char*> {};
#ifdef __SANITIZE_THREAD__
// MuJoCo's library is not instrumented: how its thread pool synchronises is not seen (tests/sim/CMakeLists.txt).
INSTANTIATE_TEST_SUITE_P(Engines, SceneTaskOnEngine, ::testing::Values("batched"));
#else
INSTANTIATE_TEST_SUITE_P(Engines, SceneTaskOnEngine, ::testing::Values("batched", "mujoco"));
#endif

TEST_P(SceneTaskOnEngine, TheExpertsOfTheSuiteSucceed) {
  for (const char* name : kSuite) {
    const auto task = make_task(name, {.n_envs = 4, .threads = 2, .engine = GetParam()});
    const auto expert = task->make_expert(0);
    for (const EpisodeOutcome& episode : run_episodes(*task, *expert, consecutive_seeds(70, 4)))
      EXPECT_TRUE(episode.success) << name << ", seed " << episode.seed << " " << episode.fault;
  }
}

TEST_P(SceneTaskOnEngine, RandomActionsDoNotSolveWhatTheExpertDoes) {
  for (const char* name : {"open-drawer", "peg-in-hole", "pick-and-place", "push", "stack", "cartpole-balance"}) {
    const auto task = make_task(name, {.n_envs = 4, .threads = 2, .engine = GetParam()});
    const auto random = make_random_actor(3);
    for (const EpisodeOutcome& episode : run_episodes(*task, *random, consecutive_seeds(70, 4))) {
      EXPECT_FALSE(episode.success) << name;
      EXPECT_FALSE(episode.failed) << name << " " << episode.fault;
    }
  }
}

/// What is observed and rewarded in the episode of `seed` in environment `env`, under actions that only the seed draws.
std::vector<float> episode_numbers(Task& task, int env, std::uint64_t seed, int steps, bool pictures = false) {
  const auto width = static_cast<std::size_t>(task.spec().action.width());
  std::vector<float> actions(static_cast<std::size_t>(task.n_envs()) * width, 0.3f), numbers;
  const std::int32_t envs[] = {env};
  const std::uint64_t seeds[] = {seed};
  task.reset(envs, seeds);
  const auto actor = make_random_actor(9);
  actor->begin(envs, seeds, "");
  for (int step = 0; step < steps; ++step) {
    const ArrayView view = make_view(actions.data(), {task.n_envs(), task.spec().action.width()});
    actor->act(task, envs, view);
    task.step(view);
    if (pictures) task.picture("front", envs);
    const std::vector<float> row = observed(task, env);
    numbers.insert(numbers.end(), row.begin(), row.end());
    numbers.push_back(task.reward().span<float>()[static_cast<std::size_t>(env)]);
  }
  return numbers;
}

TEST_P(SceneTaskOnEngine, AnEpisodeHasTheSameBitsInAnyEnvironmentOfAnyNumberAfterAnyOther) {
  for (const char* name : kSuite) {
    const auto alone = make_task(name, {.n_envs = 1, .engine = GetParam()});
    const auto many = make_task(name, {.n_envs = 19, .threads = 2, .engine = GetParam()});
    std::vector<std::int32_t> all(19);
    std::iota(all.begin(), all.end(), 0);
    many->reset(all, consecutive_seeds(500, 19));
    episode_numbers(*many, 13, 8, 15);
    const std::vector<float> expected = episode_numbers(*alone, 0, 7, 25);
    EXPECT_EQ(episode_numbers(*many, 13, 7, 25), expected) << name;
    EXPECT_EQ(episode_numbers(*alone, 0, 7, 25), expected) << name << ", again";
    EXPECT_NE(episode_numbers(*alone, 0, 6, 25), expected) << name << ", another seed";
  }
}

TEST_P(SceneTaskOnEngine, PicturesChangeNoBitAndAreThoseOfAnEnvironmentAlone) {
  const TaskSettings one{.n_envs = 1, .engine = GetParam(), .pictures = {.height = 32, .width = 48}};
  TaskSettings five = one;
  five.n_envs = 5;
  const auto without = make_task("pick-and-place", one), with = make_task("pick-and-place", one),
             many = make_task("pick-and-place", five);
  EXPECT_EQ(episode_numbers(*without, 0, 4, 12), episode_numbers(*with, 0, 4, 12, true));
  const std::vector<std::int32_t> all{0, 1, 2, 3, 4};
  many->reset(all, consecutive_seeds(90, 5));
  episode_numbers(*many, 3, 4, 12);
  const std::int32_t alone[] = {0}, third[] = {3};
  for (const char* camera : {"front", "wrist"}) {
    const ArrayView a = with->picture(camera, alone), b = many->picture(camera, third);
    ASSERT_EQ(b.size(), 5 * a.size());
    const auto left = a.span<std::uint8_t>(), right = b.span<std::uint8_t>().subspan(3 * left.size(), left.size());
    EXPECT_TRUE(std::equal(left.begin(), left.end(), right.begin())) << camera;
    EXPECT_GT(*std::max_element(left.begin(), left.end()), *std::min_element(left.begin(), left.end()) + 50) << camera;
  }
  // A picture follows the environment.
  const std::vector<std::uint8_t> before = a_copy(with->picture("front", alone));
  episode_numbers(*with, 0, 11, 1);
  EXPECT_NE(before, a_copy(with->picture("front", alone)));
}

TEST_P(SceneTaskOnEngine, AFilmIsDrawnAtItsOwnSizeAndLeavesWhatAPolicySeesAsItIs) {
  const auto task = make_task("pick-and-place",
                              {.n_envs = 2, .engine = GetParam(), .pictures = {.height = 32, .width = 32}}),
             unfilmed = make_task("pick-and-place",
                                  {.n_envs = 2, .engine = GetParam(), .pictures = {.height = 32, .width = 32}});
  const std::int32_t env[] = {1};
  for (Task* one : {task.get(), unfilmed.get()}) episode_numbers(*one, 1, 4, 3);
  const auto seen_by_policy = [&](Task& of) {
    const auto all = a_copy(of.picture("front", env));
    return std::vector<std::uint8_t>(all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
  };
  const std::vector<std::uint8_t> film = a_copy(task->film("front", 1, {.height = 64, .width = 64}));
  ASSERT_EQ(film.size(), 64u * 64 * 3);
  const std::vector<std::uint8_t> seen = seen_by_policy(*task);
  EXPECT_EQ(seen, seen_by_policy(*unfilmed)) << "the policy's picture, drawn after a film";
  EXPECT_EQ(a_copy(task->film("front", 1, {.height = 32, .width = 32})), seen) << "the same view";
  std::size_t doubled = 0;
  for (std::size_t y = 0; y < 64; ++y)
    for (std::size_t x = 0; x < 64; ++x) doubled += film[(y * 64 + x) * 3] == seen[(y / 2 * 32 + x / 2) * 3];
  EXPECT_LT(doubled, 64u * 64) << "drawn anew, not enlarged";
  // Collision shapes alone are another picture; a camera that is not there is named.
  const std::array<bool, 6> none{};
  EXPECT_NE(a_copy(task->film("front", 1, {.height = 64, .width = 64, .geom_groups = none})), film);
  EXPECT_EQ(seen_by_policy(*task), seen);
  EXPECT_THROW(task->film("frunt", 1, {}), Error);
  EXPECT_EQ(episode_numbers(*task, 1, 7, 5), episode_numbers(*unfilmed, 1, 7, 5));
}

TEST_P(SceneTaskOnEngine, AnActionThatIsNotFiniteBreaksItsEnvironmentAlone) {
  const auto task = make_task("push", {.n_envs = 3, .engine = GetParam()}),
             other = make_task("push", {.n_envs = 3, .engine = GetParam()});
  const std::vector<std::int32_t> all{0, 1, 2};
  for (Task* t : {task.get(), other.get()}) t->reset(all, consecutive_seeds(1, 3));
  std::vector<float> good(12, 0.5f), bad = good;
  bad[4] = std::numeric_limits<float>::quiet_NaN();
  for (int step = 0; step < 5; ++step) {
    other->step(make_view(good.data(), {3, 4}));
    task->step(make_view(step == 2 ? bad.data() : good.data(), {3, 4}));
  }
  const auto broken = task->broken().span<std::uint8_t>(), over = task->terminated().span<std::uint8_t>();
  EXPECT_EQ(std::vector<int>(broken.begin(), broken.end()), (std::vector<int>{0, 1, 0}));
  EXPECT_EQ(std::vector<int>(over.begin(), over.end()), (std::vector<int>{0, 1, 0}));
  EXPECT_EQ(observed(*task, 0), observed(*other, 0));
  EXPECT_EQ(observed(*task, 2), observed(*other, 2));
  for (const float x : observed(*task, 1)) EXPECT_TRUE(std::isfinite(x));
  // A reset mends it.
  const std::int32_t one[] = {1};
  const std::uint64_t seed[] = {2};
  task->reset(one, seed), other->reset(one, seed);
  EXPECT_EQ(task->broken().span<std::uint8_t>()[1], 0);
  EXPECT_EQ(observed(*task, 1), observed(*other, 1));
}

TEST_P(SceneTaskOnEngine, AStepAllocatesNothing) {
  for (const char* name : {"pick-and-place", "cartpole-swingup"}) {
    const auto task = make_task(name, {.n_envs = 20, .engine = GetParam()});
    const auto expert = task->make_expert(0);
    std::vector<std::int32_t> all(20);
    std::iota(all.begin(), all.end(), 0);
    const std::vector<std::uint64_t> seeds = consecutive_seeds(1, 20);
    const std::int64_t width = task->spec().action.width();
    std::vector<float> actions(static_cast<std::size_t>(20 * width));
    const ArrayView view = make_view(actions.data(), {20, width});
    task->reset(all, seeds);
    expert->begin(all, seeds, "");
    for (int step = 0; step < 3; ++step) expert->act(*task, all, view), task->step(view);
    const std::int64_t before = allocation_count();
    for (int step = 0; step < 20; ++step) expert->act(*task, all, view), task->step(view);
    EXPECT_EQ(allocation_count(), before) << name;
  }
}

TEST(TaskRegistry, ANameThatDiffersByCaseHyphensOrVersionIsTheOneThatIsSuggested) {
  for (const auto& [asked, meant] : std::map<std::string, std::string>{{"Ant", "Ant-v5"},
                                                                       {"ant-v4", "Ant-v5"},
                                                                       {"HalfCheetah", "HalfCheetah-v5"},
                                                                       {"half_cheetah", "HalfCheetah-v5"},
                                                                       {"hopper", "Hopper-v5"},
                                                                       {"walker", "Walker2d-v5"},
                                                                       {"Reacher", "Reacher-v5"},
                                                                       {"inverted-pendulum", "InvertedPendulum-v5"},
                                                                       {"PushT", "push-t"},
                                                                       {"Cartpole_Balance", "cartpole-balance"}}) {
    const std::string text = message_of([&] { make_task(asked, {}); });
    EXPECT_NE(text.find("there is no task '" + asked + "', did you mean '" + meant + "'?"), std::string::npos) << text;
  }
}

TEST(SceneTask, ADenseRewardIsTheSumOfItsTermsAndASparseOneIsSuccess) {
  for (const char* name : kSuite) {
    const auto dense = make_task(name, {.n_envs = 2});
    const auto sparse = make_task(name, {.n_envs = 2, .overrides = {"reward=sparse"}});
    EXPECT_EQ(sparse->spec().reward_terms, std::vector<std::string>{"success"});
    for (Task* task : {dense.get(), sparse.get()}) {
      const std::vector<std::int32_t> all{0, 1};
      task->reset(all, consecutive_seeds(5, 2));
      const auto expert = task->make_expert(0);
      expert->begin(all, consecutive_seeds(5, 2), "");
      const std::int64_t width = task->spec().action.width();
      std::vector<float> actions(static_cast<std::size_t>(2 * width));
      double most = -1e9;
      for (std::int64_t step = 0; step < task->spec().horizon; ++step) {
        expert->act(*task, all, make_view(actions.data(), {2, width}));
        task->step(make_view(actions.data(), {2, width}));
        const ArrayView terms = task->reward_terms();
        float sum = 0;
        for (std::int64_t i = 0; i < terms.shape[1]; ++i) sum += terms.span<float>()[static_cast<std::size_t>(i)];
        EXPECT_EQ(task->reward().span<float>()[0], sum);
        if (task == sparse.get()) EXPECT_EQ(sum, static_cast<float>(task->success().span<std::uint8_t>()[0]));
        most = std::max(most, static_cast<double>(sum));
      }
      EXPECT_EQ(task->truncated().span<std::uint8_t>()[0], 1);
      if (task == sparse.get()) EXPECT_EQ(most, 1.0) << name;
    }
  }
}

std::string refused(const std::string& name, const TaskSettings& settings, const std::string& camera = "front") {
  return message_of([&] {
    const auto task = make_task(name, settings);
    const std::int32_t envs[] = {0};
    const std::uint64_t seeds[] = {0};
    task->reset(envs, seeds);
    task->picture(camera, envs);
  });
}

TEST(SceneTask, WhatItDoesNotHaveIsRefusedWithTheNearestName) {
  EXPECT_NE(refused("pick-and-place", {.overrides = {"rewart=sparse"}}).find("reward"), std::string::npos);
  EXPECT_NE(refused("pick-and-place", {.overrides = {"reward=none"}}).find("dense"), std::string::npos);
  EXPECT_NE(refused("pick-and-place", {.engine = "bached"}).find("batched or mujoco"), std::string::npos);
  EXPECT_NE(refused("pick-and-place", {}, "frunt").find("did you mean 'front'"), std::string::npos);
  EXPECT_EQ(refused("pick-and-place", {}), "");
}

/// A task of a model that somebody else's file or text gives: one joint, nothing to do.
class GivenModel final : public SceneTask {
 public:
  GivenModel(const std::string& model, const std::string& folder, std::vector<sim::Field> leaves = {},
             const std::string& keyframe = "")
      : SceneTask({.n_envs = 1}, setup_of(model, folder, std::move(leaves), keyframe)) {}

 private:
  static SceneTaskSetup setup_of(const std::string& model, const std::string& folder, std::vector<sim::Field> leaves,
                                 const std::string& keyframe) {
    SceneTaskSetup setup;
    setup.spec.name = "given";
    setup.spec.observations = {{"angle", {1}, "rad", ""}};
    setup.spec.action = {.names = {"none"}, .low = {-1}, .high = {1}, .unit = ""};
    setup.spec.control_period = 0.02;
    setup.spec.reward_terms = {"none"};
    setup.mjcf = model;
    setup.model_folder = folder;
    setup.fixed_base = true;
    setup.keyframe = keyframe;
    setup.settings.horizon = 5;
    setup.leaves = std::move(leaves);
    return setup;
  }
  void start(int, const RandomStream&, Start& start) override { start.qvel[0] = 1; }
  void control(int, const EnvState&, std::span<const float>, std::span<double>) override {}
  void observe(int, const EnvState& now, ObservationRows& out) override { out.put(0, {now.qpos[0]}); }
  Judgement judge(int, const EnvState&, Terms&) override { return {}; }
  void visit_variables(StateVisitor&) override {}
};

TEST(SceneTask, AModelIsAFileOrATextWithAFolderAndItsFilesLieBesideIt) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / format("cohort_given_{}", getpid());
  std::filesystem::create_directories(folder / "meshes");
  const auto write = [&](const char* name, const std::string& text) { write_file_atomically(folder / name, text); };
  write("meshes/rock.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n");
  write("arm.xml",
        "<mujoco><compiler meshdir='meshes'/><asset><mesh name='rock' file='rock.obj'/></asset><worldbody>"
        "<body><joint axis='0 0 1'/><geom type='mesh' mesh='rock'/></body></worldbody></mujoco>");
  const std::string scene = "<mujoco><include file='arm.xml'/></mujoco>";
  write("scene.xml", scene);
  write("arm.urdf",
        "<robot name='r'><link name='a'/><link name='b'><inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1' "
        "ixy='0' ixz='0' iyz='0'/></inertial><collision><geometry><mesh filename='package://meshes/rock.obj'/>"
        "</geometry></collision></link><joint name='j' type='continuous'><parent link='a'/><child link='b'/></joint>"
        "</robot>");
  const auto dofs = [](const std::string& model, const std::string& from = "") {
    GivenModel task(model, from);
    EXPECT_EQ(task.scene().info().geoms.size(), 1u) << model;
    return task.scene().info().nv;
  };
  EXPECT_EQ(dofs((folder / "scene.xml").string()), 1);
  EXPECT_EQ(dofs((folder / "arm.urdf").string()), 1);
  EXPECT_EQ(dofs(scene, folder.string()), 1);
  const std::string missing = message_of([&] { dofs(scene); });
  EXPECT_NE(missing.find("SceneTaskSetup::model_folder"), std::string::npos) << missing;
  EXPECT_NE(message_of([&] { dofs((folder / "scen.xml").string()); }).find("there is no file"), std::string::npos);
  std::filesystem::remove_all(folder);
}

TEST(SceneTask, AnEpisodeMayBeginAtAKeyframeOfTheModel) {
  const std::string text =
      "<mujoco><option gravity='0 0 0'/><worldbody><body><joint name='j' axis='0 0 1'/><geom size='.1' pos='.2 0 0'/>"
      "</body></worldbody><actuator><position joint='j' kp='1' timeconst='0.1'/></actuator><keyframe>"
      "<key qpos='0.1'/><key qpos='0.7' ctrl='0.7' act='0.7'/></keyframe></mujoco>";
  GivenModel task(text, "", {}, "1");
  const std::int32_t envs[] = {0};
  const std::uint64_t seeds[] = {0};
  task.reset(envs, seeds);
  EXPECT_FLOAT_EQ(static_cast<float>(task.state(0).qpos[0]), 0.7f);
  EXPECT_FLOAT_EQ(task.scene().get_ctrl()[0], 0.7f);
  EXPECT_FLOAT_EQ(task.scene().host_view(sim::Field::kAct).span<float>()[0], 0.7f);
  EXPECT_NE(message_of([&] { GivenModel(text, "", {}, "2"); }).find("no keyframe `2`"), std::string::npos);
}

TEST(SceneTask, SensorsAreThoseOfTheStateAfterTheStep) {
  const std::string text =
      "<mujoco><option gravity='0 0 0'/><worldbody><body><joint name='j' axis='0 0 1'/><geom size='.1' pos='.2 0 0'/>"
      "</body></worldbody><sensor><jointpos joint='j'/><jointvel joint='j'/></sensor></mujoco>";
  GivenModel task(text, "", {sim::Field::kLinkPos, sim::Field::kSensors});
  const std::int32_t envs[] = {0};
  const std::uint64_t seeds[] = {0};
  task.reset(envs, seeds);
  EXPECT_EQ(task.state(0).derived[6], 0);
  EXPECT_EQ(task.state(0).derived[7], 1);
  std::vector<float> action{0};
  task.step(make_view(action.data(), {1, 1}));
  EXPECT_EQ(task.state(0).derived.size(), 8u);  // two links' positions before
  EXPECT_GT(task.state(0).derived[6], 0.01);
  EXPECT_EQ(task.state(0).derived[6], task.state(0).qpos[0]);
}

}  // namespace
}  // namespace cohort::tasks
