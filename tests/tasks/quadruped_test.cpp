// quadruped-velocity: where its feet are, what it pays for, what its seeds decide.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "core/real_at.h"
#include "tasks/registry.h"
#include "tasks/scene_task.h"

namespace cohort::tasks {
namespace {

struct Dogs {
  explicit Dogs(int n, std::vector<std::string> overrides = {}, const std::string& engine = "batched", int threads = 1)
      : task(make_task("quadruped-velocity",
                       {.n_envs = n, .threads = threads, .engine = engine, .overrides = std::move(overrides)})),
        actions(static_cast<std::size_t>(12 * n)) {
    std::vector<std::int32_t> envs(static_cast<std::size_t>(n));
    std::iota(envs.begin(), envs.end(), 0);
    std::vector<std::uint64_t> seeds(envs.begin(), envs.end());
    task->reset(envs, seeds);
  }
  void step(float size) {
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const auto env = static_cast<double>(i / 12);
      actions[i] =
          size * static_cast<float>(std::sin(0.37 * static_cast<double>(steps) + env + static_cast<double>(i % 12)));
    }
    ++steps;
    task->step(make_view(actions.data(), {task->n_envs(), 12}));
  }
  SceneTask& scene_task() { return static_cast<SceneTask&>(*task); }
  std::vector<double> qpos(int env) {
    const ArrayView all = scene_task().scene().engine().host_view(sim::Field::kQpos, sim::Access::kRead);
    std::vector<double> own;
    for (std::int64_t i = 0; i < all.shape[1]; ++i) own.push_back(real_at(all, env, i));
    return own;
  }
  /// What only a simulator knows: number i of the critic's.
  float known(int env, int i) {
    return task->observation(task->observation_index("privileged"))
        .span<float>()[static_cast<std::size_t>(12 * env + i)];
  }
  std::unique_ptr<Task> task;
  std::vector<float> actions;
  int steps = 0;
};

std::vector<int> successes_at_the_end(Dogs& dogs) {
  const auto success = dogs.task->success().span<std::uint8_t>();
  return {success.begin(), success.end()};
}

TEST(QuadrupedSuccess, ADogThatStandsStillHasNotFollowedItsCommands) {
  Dogs dogs(32, {}, "batched", 2);
  std::vector<bool> fell(32);
  for (std::int64_t step = 0; step < dogs.task->spec().horizon; ++step) {
    dogs.step(0);
    const auto over = dogs.task->terminated().span<std::uint8_t>();
    for (std::size_t env = 0; env < 32; ++env) fell[env] = fell[env] || over[env];
  }
  EXPECT_LE(std::count(fell.begin(), fell.end(), true), 16) << "most stand to the end";
  EXPECT_EQ(successes_at_the_end(dogs), std::vector<int>(32, 0));
}

TEST(QuadrupedSuccess, ADogThatIsMovedAsItIsToldHasFollowedThem) {
  Dogs dogs(4, {"noise=false", "pushes=false", "randomize=false", "horizon=300"});
  sim::Engine& engine = dogs.scene_task().scene().engine();
  const std::size_t command = dogs.task->observation_index("command");
  for (int step = 0; step < 300; ++step) {
    const ArrayView qvel = engine.host_view(sim::Field::kQvel, sim::Access::kWrite),
                    qpos = engine.host_view(sim::Field::kQpos, sim::Access::kWrite);
    const auto told = dogs.task->observation(command).span<float>();
    for (std::int64_t env = 0; env < 4; ++env) {
      // In the air, where no foot drags, with the velocity that it is told in the world's frame.
      const std::vector<double> now = dogs.qpos(static_cast<int>(env));
      const double yaw = 2 * std::atan2(now[6], now[3]);
      const float* c = told.data() + 3 * env;
      const double forward = static_cast<double>(c[0]), left = static_cast<double>(c[1]);
      const double velocity[] = {std::cos(yaw) * forward - std::sin(yaw) * left,
                                 std::sin(yaw) * forward + std::cos(yaw) * left,
                                 0.1,
                                 0,
                                 0,
                                 static_cast<double>(c[2])};
      static_cast<float*>(qpos.data)[env * qpos.strides[0] + 2 * qpos.strides[1]] = 0.6f;
      // The fourth is told to run and stays where it is.
      for (std::int64_t i = 0; i < 6; ++i)
        static_cast<float*>(qvel.data)[env * qvel.strides[0] + i * qvel.strides[1]] =
            env == 3 ? 0.0f : static_cast<float>(velocity[i]);
    }
    dogs.step(0);
  }
  EXPECT_EQ(successes_at_the_end(dogs), (std::vector<int>{1, 1, 1, 0}));
}

class QuadrupedGeometry : public ::testing::TestWithParam<const char*> {};

TEST_P(QuadrupedGeometry, FeetTouchWhereTheEngineSaysThatTheyDo) {
  // The engine's contacts know nothing of the file's formulas.
  Dogs dogs(16, {std::string("terrain=") + GetParam(), "pushes=false", "privileged=true"}, "mujoco");
  sim::Scene& scene = dogs.scene_task().scene();
  const char* const feet[] = {"fl_foot", "fr_foot", "rl_foot", "rr_foot"};
  int seen = 0, missed = 0, lifted = 0;
  for (int step = 0; step < 60; ++step) {
    dogs.step(0.3f);
    std::array<std::array<bool, 4>, 16> contacts{};
    for (const sim::Contact& contact : scene.get_contacts())
      for (std::size_t leg = 0; leg < 4; ++leg)
        if (contact.distance < 0 &&
            (contact.geom1 == scene.info().geom(feet[leg]) || contact.geom2 == scene.info().geom(feet[leg])))
          contacts[static_cast<std::size_t>(contact.env)][leg] = true;
    for (int env = 0; env < 16; ++env)
      for (int leg = 0; leg < 4; ++leg) {
        const bool touches = dogs.known(env, 6 + leg) > 0.5f;
        const bool in_contact = contacts[static_cast<std::size_t>(env)][static_cast<std::size_t>(leg)];
        seen += in_contact, missed += in_contact && !touches, lifted += !touches;
      }
  }
  EXPECT_GT(seen, 1000);
  EXPECT_GT(lifted, 100) << "feet leave the ground, too";
  // A formula asks for the ground below the foot's middle, and a slope touches it elsewhere.
  EXPECT_LE(missed, std::string(GetParam()) == "flat" ? 0 : seen / 20);
}
INSTANTIATE_TEST_SUITE_P(Both, QuadrupedGeometry, ::testing::Values("flat", "rough"),
                         [](const auto& of) { return std::string(of.param); });

TEST(QuadrupedVelocity, StandsAndIsPaidForIt) {
  Dogs dogs(32, {"noise=false"});
  float linear = 0, least = 1;
  for (int step = 0; step < 200; ++step) {
    dogs.step(0);
    for (int env = 0; env < 32; ++env) {
      linear += dogs.task->reward_terms().span<float>()[static_cast<std::size_t>(11 * env)];
      least = std::min(least, dogs.task->reward().span<float>()[static_cast<std::size_t>(env)]);
    }
  }
  for (const std::uint8_t fallen : dogs.task->terminated().span<std::uint8_t>()) EXPECT_EQ(fallen, 0);
  // Of who stands while commands are uniform in 1 m/s and 0.5 m/s: the mean of exp(-4 v²) over both.
  EXPECT_NEAR(linear / (200 * 32 * 0.02f), 0.441 * 0.747, 0.1);
  EXPECT_GE(least, -1e-7f);
}

TEST(QuadrupedVelocity, ARewardIsTheSumOfItsTermsAndNotBelowZero) {
  Dogs dogs(8);
  const std::size_t terms = dogs.task->spec().reward_terms.size();
  ASSERT_EQ(dogs.task->spec().reward_best.size(), terms);
  for (int step = 0; step < 40; ++step) {
    dogs.step(1);
    for (std::size_t env = 0; env < 8; ++env) {
      float sum = 0;
      for (std::size_t i = 0; i < terms; ++i) sum += dogs.task->reward_terms().span<float>()[env * terms + i];
      EXPECT_FLOAT_EQ(sum, dogs.task->reward().span<float>()[env]);
      EXPECT_GE(sum, -1e-7f);
    }
  }
}

TEST(QuadrupedVelocity, ScaledTermsAreTheSettingsFactorOfThePlainOnesAndTheFloorHolds) {
  Dogs plain(4, {"reward_scales=floor:0"}), scaled(4, {"reward_scales=[torque:40,posture:0]"});
  const std::vector<std::string>& names = plain.task->spec().reward_terms;
  const std::size_t terms = names.size();
  float least = 1, least_floor = 1;
  for (int step = 0; step < 30; ++step) {
    plain.step(1);
    scaled.step(1);
    const auto one = plain.task->reward_terms().span<float>(), other = scaled.task->reward_terms().span<float>();
    for (std::size_t env = 0; env < 4; ++env) {
      float sum = 0;
      for (std::size_t i = 0; i < terms; ++i) {
        const float factor = names[i] == "torque" ? 40.0f : names[i] == "posture" ? 0.0f : 1.0f;
        if (names[i] != "floor") EXPECT_FLOAT_EQ(other[env * terms + i], factor * one[env * terms + i]) << names[i];
        sum += other[env * terms + i];
      }
      EXPECT_NEAR(sum, scaled.task->reward().span<float>()[env], 1e-6f);
      least_floor = std::min(least_floor, sum);
      least = std::min(least, plain.task->reward().span<float>()[env]);
    }
  }
  EXPECT_LT(least, -1e-3f) << "without its floor a reward falls below zero";
  EXPECT_GE(least_floor, -1e-6f) << "the floor counts with scaled terms";
}

TEST(QuadrupedVelocity, CommandsChangeEveryFiveSecondsAndStayWithinTheirLimits) {
  Dogs dogs(64, {"pushes=false"});
  const std::size_t field = dogs.task->observation_index("command");
  const auto commands = [&] {
    const auto now = dogs.task->observation(field).span<float>();
    return std::vector<float>(now.begin(), now.end());
  };
  const std::vector<float> first = commands();
  float widest[3] = {0, 0, 0};
  for (std::size_t i = 0; i < first.size(); ++i) widest[i % 3] = std::max(widest[i % 3], std::abs(first[i]));
  const float limits[3] = {1, 0.5f, 1};
  for (int i = 0; i < 3; ++i) {
    EXPECT_LE(widest[i], limits[i]);
    EXPECT_GT(widest[i], 0.9f * limits[i]);
  }
  for (int step = 0; step < 249; ++step) dogs.step(0);
  EXPECT_EQ(commands(), first);
  dogs.step(0);
  EXPECT_NE(commands(), first);
}

class QuadrupedEpisode : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Curriculum, QuadrupedEpisode, ::testing::Values("curriculum=false", "curriculum=true"),
                         [](const auto& of) { return std::string(of.param).substr(11) == "true" ? "on" : "off"; });

TEST_P(QuadrupedEpisode, IsAFunctionOfItsSeed) {
  // In another place, among others, on two threads, after another episode.
  Dogs few(3, {GetParam()}),
      many(24, {GetParam()}, "batched", 2);  // threads last: the next model's compiler is a fork of this process
  for (int step = 0; step < 30; ++step) few.step(1);
  few.steps = 0;
  const std::vector<std::int32_t> envs{0, 1, 2};
  const std::vector<std::uint64_t> seeds{17, 5, 23};
  few.task->reset(envs, seeds);
  for (int step = 0; step < 450; ++step) {
    many.step(0);
    few.step(0);
  }
  for (std::size_t field = 0; field < many.task->spec().observations.size(); ++field) {
    const auto of_many = many.task->observation(field).span<float>(),
               of_few = few.task->observation(field).span<float>();
    const std::size_t width = of_few.size() / 3;
    for (std::size_t e = 0; e < 3; ++e)
      for (std::size_t i = 0; i < width; ++i)
        EXPECT_EQ(of_few[e * width + i], of_many[seeds[e] * width + i]) << field << " " << i;
  }
}

TEST(QuadrupedCurriculum, MakesCommandsLargerWhereTheyWereFollowed) {
  constexpr std::size_t kDogs = 64;
  const std::vector<std::string> calm = {"pushes=false", "noise=false"};
  std::vector<std::string> by_level = calm;
  by_level.push_back("curriculum=true");
  Dogs whole(kDogs, calm), grown(kDogs, by_level);
  const std::size_t field = whole.task->observation_index("command");
  std::vector<int> level(kDogs, 0);
  int risen = 0, fallen = 0;
  for (int command = 0; command < 4; ++command) {
    // A command is the same share of its range as without the curriculum.
    const auto all = whole.task->observation(field).span<float>(), some = grown.task->observation(field).span<float>();
    for (std::size_t i = 0; i < all.size(); ++i)
      EXPECT_NEAR(some[i], all[i] * static_cast<float>(level[i / 3] + 1) / 4, 1e-6f) << command << ", dog " << i / 3;
    std::vector<double> linear(kDogs), angular(kDogs);
    for (int step = 0; step < 250; ++step) {
      whole.step(0);
      grown.step(0);
      const auto terms = grown.task->reward_terms().span<float>();
      for (std::size_t e = 0; e < kDogs; ++e) {
        linear[e] += static_cast<double>(terms[11 * e]) / (0.02 * 250);
        angular[e] += static_cast<double>(terms[11 * e + 1]) / (0.6 * 0.02 * 250);
      }
    }
    for (std::size_t e = 0; e < kDogs; ++e) {
      const double least = std::min(linear[e], angular[e]);
      if (least >= 0.8) level[e] = std::min(level[e] + 1, 3), ++risen;
      if (least < 0.5) fallen += level[e] > 0, level[e] = std::max(level[e] - 1, 0);
    }
  }
  // Who only stands follows small commands, and no large ones.
  EXPECT_GT(risen, 40);
  EXPECT_GT(fallen, 3);
}

TEST(QuadrupedCurriculum, BeginsOnFlatGroundThatGetsRougher) {
  Dogs rising(64, {"terrain=rough", "curriculum=true", "privileged=true"}),
      rough(64, {"terrain=rough", "privileged=true"});
  double highest = 0;
  for (int env = 0; env < 64; ++env) {
    const std::vector<double> now = rising.qpos(env), other = rough.qpos(env);
    EXPECT_LT(std::max(std::abs(now[0]), std::abs(now[1])), 1);
    EXPECT_NEAR(now[2] - static_cast<double>(rising.known(env, 5)), 0, 1e-6) << "the ground below it";
    EXPECT_NEAR(now[2], 0.315, 0.05) << "it stands";
    highest = std::max(highest, other[2] - static_cast<double>(rough.known(env, 5)));
  }
  EXPECT_GT(highest, 0.03);
  EXPECT_LE(highest, 0.0601);
}

TEST(QuadrupedVelocity, FrictionAndMassAreOfTheEpisode) {
  Dogs dogs(40), same(40, {"randomize=false"});
  sim::Scene& scene = dogs.scene_task().scene();
  const std::vector<float> mass = scene.get_parameter(sim::Parameter::kLinkMass, {}, {scene.info().link("trunk")}),
                           friction = scene.get_parameter(sim::Parameter::kGeomFriction, {},
                                                          {3 * scene.info().geom("fl_foot")}),
                           fixed = same.scene_task().scene().get_parameter(sim::Parameter::kLinkMass, {},
                                                                           {scene.info().link("trunk")});
  EXPECT_LT(*std::min_element(mass.begin(), mass.end()), 5.4f);
  EXPECT_GT(*std::max_element(mass.begin(), mass.end()), 7.4f);
  EXPECT_LT(*std::min_element(friction.begin(), friction.end()), 0.6f);
  EXPECT_GT(*std::max_element(friction.begin(), friction.end()), 1.1f);
  for (const float one : fixed) EXPECT_FLOAT_EQ(one, 6.0f);
}

TEST(QuadrupedVelocity, ShowsTheCriticWhatOnlyASimulatorKnowsWhenAsked) {
  Dogs dogs(4, {"privileged=true", "noise=false"});
  const auto linear = dogs.task->observation(0).span<float>(),
             known = dogs.task->observation(dogs.task->observation_index("privileged")).span<float>();
  for (std::size_t e = 0; e < 4; ++e)
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(linear[3 * e + i], known[12 * e + i]);
}

}  // namespace
}  // namespace cohort::tasks
