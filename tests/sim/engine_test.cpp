// The batched engine as a whole: the same bits whatever runs it, isolation of broken environments, files, faults.
#include "sim/cpu/engine.h"

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <new>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/files.h"
#include "core/message_of.h"
#include "sim/compile.h"
#include "sim/cpu/threads.h"
#include "sim/model.h"
#include "sim/scene.h"

namespace {
std::atomic<long> allocations{0};
}
// Counts what the step asks for; hands on to malloc.
void* operator new(std::size_t size) {
  ++allocations;
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}

namespace cohort::sim {
namespace {

const std::string kModels = COHORT_SOURCE_DIR "/tests/sim/models/";

struct Job {
  std::string file = "walker.xml";
  int n = 64, threads = 1, steps = 200;
  std::int64_t first = 0;
  LaneWidth lanes = LaneWidth::kAuto;
  int row_space = -1;
  std::function<void(Scene&, int)> before_step = [](Scene&, int) {};
};

/// qpos and qvel of every environment, one after the other.
std::vector<float> states(Scene& scene) {
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

std::vector<float> simulate(const Job& run) {
  SceneOptions o;
  o.threads = run.threads;
  o.lanes = run.lanes;
  o.row_space = run.row_space;
  o.first_environment = run.first;
  o.seed = 3;
  Scene scene(o);
  scene.add_entity(Mjcf{kModels + run.file});
  scene.build(run.n);
  for (int s = 0; s < run.steps; ++s) {
    scene.set_random_ctrl(s);
    run.before_step(scene, s);
    scene.step();
  }
  return states(scene);
}

std::uint64_t hash_of(const std::vector<float>& values) {
  std::uint64_t hash = 14695981039346656037ull;
  for (float value : values) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 4; ++i) hash = (hash ^ ((bits >> (8 * i)) & 255)) * 1099511628211ull;
  }
  return hash;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::vector<LaneWidth> widths() {
  std::vector<LaneWidth> list{LaneWidth::kScalar};
  if (widest_lanes() != LaneWidth::kScalar) list.push_back(LaneWidth::kAvx2);
  if (widest_lanes() == LaneWidth::kAvx512) list.push_back(LaneWidth::kAvx512);
  return list;
}

/// Meshes and height fields take their time, as do 27 dofs; the bodies of mixed.xml have fallen onto each other by
/// then, and the biped onto the floor.
int steps_of(const std::string& file) {
  return file == "mixed.xml" || file == "biped.xml" ? 80 : 200;
}

class Bits : public ::testing::TestWithParam<const char*> {};

TEST_P(Bits, AreTheSameForEveryLaneWidth) {
  Job run{.file = GetParam(), .n = 20, .steps = steps_of(GetParam())};
  run.lanes = LaneWidth::kScalar;
  const std::vector<float> truth = simulate(run);
  for (float x : truth) ASSERT_TRUE(std::isfinite(x));
  for (LaneWidth width : widths()) {
    run.lanes = width;
    EXPECT_TRUE(same_bits(simulate(run), truth)) << to_string(width);
  }
}

TEST_P(Bits, AreTheSameForEveryBatchSizeThreadCountAndSplit) {
  const int steps = steps_of(GetParam());
  const std::vector<float> truth = simulate({.file = GetParam(), .n = 64, .steps = steps});
  const std::size_t one = truth.size() / 64;
  for (int n : {1, 7, 33}) {
    const std::vector<float> some = simulate({.file = GetParam(), .n = n, .steps = steps});
    EXPECT_TRUE(
        same_bits(some, std::vector<float>(truth.begin(), truth.begin() + static_cast<std::ptrdiff_t>(one) * n)))
        << n;
  }
  EXPECT_TRUE(same_bits(simulate({.file = GetParam(), .n = 64, .threads = 3, .steps = steps}), truth));
  std::vector<float> halves = simulate({.file = GetParam(), .n = 27, .steps = steps});
  const std::vector<float> rest = simulate({.file = GetParam(), .n = 37, .steps = steps, .first = 27});
  halves.insert(halves.end(), rest.begin(), rest.end());
  EXPECT_TRUE(same_bits(halves, truth));
}

/// Hashes of a thousand steps. A change here is a change of every user's results: say why in the commit.
struct Committed {
  const char* file;
  std::uint64_t hash;
};
constexpr Committed kCommitted[] = {{"walker.xml", 15079994520857655425ull},    {"pile.xml", 68538054105317125ull},
                                    {"arm_plain.xml", 10147326907061092989ull}, {"tendons.xml", 1745700572264993884ull},
                                    {"biped.xml", 14006211161228260684ull},     {"rubble.xml", 11406900683451613795ull},
                                    {"grip.xml", 13207877132333830342ull},      {"troop.xml", 4151840346594670612ull}};

TEST(BitsCommitted, AThousandStepsHashAsTheyAlwaysDid) {
  for (const Committed& c : kCommitted) {
    EXPECT_EQ(hash_of(simulate({.file = c.file, .n = 16, .steps = 1000})), c.hash) << c.file;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Bits,
                         ::testing::Values("walker.xml", "pile.xml", "arm_plain.xml", "mixed.xml", "tendons.xml",
                                           "terrain.xml", "crowd.xml", "biped.xml", "rubble.xml", "hills.xml",
                                           "grip.xml", "troop.xml"));

/// 8 rows: environments of one block are solved in both ways.
TEST(BitsOfRowSpaces, AreTheSameForEveryLaneWidthAndLessThanRoundingApart) {
  for (const char* file : {"walker.xml", "crowd.xml", "biped.xml", "troop.xml"}) {
    for (int row_space : {8, 64}) {
      SCOPED_TRACE(format("{}, {} rows", file, row_space));
      Job run{.file = file, .n = 20, .steps = 60, .lanes = LaneWidth::kScalar, .row_space = row_space};
      const std::vector<float> truth = simulate(run);
      for (float x : truth) ASSERT_TRUE(std::isfinite(x));
      for (LaneWidth width : widths()) {
        run.lanes = width;
        EXPECT_TRUE(same_bits(simulate(run), truth)) << to_string(width);
      }
      // A few steps: no chaos yet.
      run.steps = 10;
      const std::vector<float> here = simulate(run);
      run.row_space = 0;
      const std::vector<float> there = simulate(run);
      EXPECT_FALSE(same_bits(here, there)) << "the row space is not used";
      double apart = 0;
      for (std::size_t i = 0; i < here.size(); ++i) {
        apart = std::max(apart, std::abs(double{here[i]} - there[i]) / (1 + std::abs(double{there[i]})));
      }
      EXPECT_LT(apart, 1e-2);
    }
  }
}

/// Two boxes of one kind are two problems of an environment. One rests, the other tumbles and wants more iterations
/// than there are: the forces on the first one are as if it were alone. Environments of both kinds lie beside each
/// other.
TEST(RowSpace, ATreeThatHasEndedKeepsItsForcesWhereAnotherLacksIterations) {
  const auto box = [](double x) {
    return format("<body pos='{} 0 0.0999'><joint type='free' damping='.01'/><geom type='box' size='.1 .1 .1'/></body>",
                  x);
  };
  const auto heights = [&](const std::string& bodies, int nq, float speed, std::vector<std::int32_t>& most) {
    SceneOptions o;
    o.row_space = 64;
    o.iterations = 2;
    Scene scene(o);
    scene.add_entity(
        Mjcf{.file = "",
             .xml = format("<mujoco><option timestep='0.002'/><worldbody><geom type='plane' size='99 99 1'/>{}"
                           "</worldbody></mujoco>",
                           bodies)});
    scene.build(20);
    const auto nv = static_cast<std::size_t>(scene.info().nv);
    most.assign(20, 0);
    std::vector<float> trace;
    for (int s = 0; s < 400; ++s) {
      // Time to come to rest, then a push on the last box of every second environment.
      if (s == 200 && speed != 0) {
        std::vector<float> v(nv, 0.0f);
        v[nv - 6] = speed, v[nv - 4] = -speed / 4, v[nv - 3] = 3 * speed, v[nv - 2] = 2 * speed;
        for (int e = 0; e < 20; e += 2) scene.set_qvel(v, {e});
      }
      scene.step();
      if (s < 200) continue;
      const auto iterations = scene.view(Field::kSolverIterations).span<std::int32_t>();
      for (std::size_t i = 0; i < 20; ++i) most[i] = std::max(most[i], iterations[i]);
      const ArrayView q = scene.view(Field::kQpos);
      for (int e = 0; e < 20; ++e) trace.push_back(static_cast<float*>(q.data)[e * q.strides[0] + 2 * q.strides[1]]);
    }
    EXPECT_EQ(nq, scene.info().nq);
    return trace;
  };
  std::vector<std::int32_t> alone, beside;
  const std::vector<float> truth = heights(box(0), 7, 0, alone), seen = heights(box(0) + box(3), 14, 3, beside);
  for (std::size_t e = 0; e < 20; ++e) {
    EXPECT_LT(alone[e], 2);
    EXPECT_EQ(beside[e], e % 2 == 0 ? 2 : alone[e]) << e;
  }
  for (std::size_t i = 0; i < truth.size(); ++i) ASSERT_NEAR(seen[i], truth[i], 1e-6) << i;
}

/// What two bodies do that lie on each other is nothing to a third: to the last bit, whether its neighbours in the
/// block are alike or not.
TEST(RowSpace, TreesThatNoRowCouplesAreSolvedAsIfAlone) {
  const auto box = [](double x, double z) {
    return format("<body pos='{} 0 {}'><freejoint/><geom type='box' size='.1 .1 .1'/></body>", x, z);
  };
  const auto first = [](const std::string& bodies) {
    SceneOptions o;
    o.row_space = 64;
    Scene scene(o);
    scene.add_entity(Mjcf{.file = "",
                          .xml = format("<mujoco><option timestep='0.002' tolerance='0'/><worldbody>"
                                        "<geom type='plane' size='99 99 1'/>{}</worldbody></mujoco>",
                                        bodies)});
    scene.build(20);
    std::vector<float> trace;
    for (int e = 0; e < 20; ++e) {
      std::vector<float> v(static_cast<std::size_t>(scene.info().nv), 0.0f);
      for (std::size_t i = 0; i < v.size(); ++i)
        v[i] = 0.1f * static_cast<float>((e + 3 * static_cast<int>(i)) % 7 - 3);
      scene.set_qvel(v, {e});
    }
    for (int s = 0; s < 200; ++s) {
      scene.step();
      const ArrayView q = scene.view(Field::kQpos);
      for (int e = 0; e < 20; ++e) {
        for (int i = 0; i < 7; ++i) trace.push_back(static_cast<float*>(q.data)[e * q.strides[0] + i * q.strides[1]]);
      }
    }
    return trace;
  };
  const std::vector<float> alone = first(box(0, 0.12));
  EXPECT_TRUE(same_bits(alone, first(box(0, 0.12) + box(3, 0.0999) + box(3, 0.2997))));
}

/// docs/decisions/row-space.md
TEST(RowSpace, IsChosenForLargeTreesAndForSmallOnesWithManyPairsOfGeoms) {
  const auto chosen = [](const Mjcf& file, SceneOptions options = {}) {
    const EntityDeclaration e{"model", file};
    return import_model(compile_scene(std::span(&e, 1), {}, options).mjb).sizes.row_space;
  };
  const auto walker = [&](SceneOptions options) { return chosen(Mjcf{kModels + "walker.xml"}, options); };
  EXPECT_EQ(chosen(Mjcf{kModels + "biped.xml"}), 64);
  EXPECT_EQ(walker({}), 24);
  EXPECT_GT(chosen(Mjcf{kModels + "troop.xml"}), 0);
  for (const char* free : {"pile.xml", "mixed.xml", "crowd.xml", "terrain.xml", "arm_plain.xml", "tendons.xml"}) {
    EXPECT_EQ(chosen(Mjcf{kModels + free}), 0) << free;
  }
  // Many free bodies are not a large tree.
  std::string bodies;
  for (int i = 0; i < 20; ++i) bodies += format("<body pos='{} 0 1'><freejoint/><geom size='.1'/></body>", i);
  EXPECT_EQ(chosen(Mjcf{.file = "", .xml = format("<mujoco><worldbody>{}</worldbody></mujoco>", bodies)}), 0);
  SceneOptions other;
  other.iterations = 2;
  EXPECT_EQ(walker(other), 0);
  other = {};
  other.solver = "CG";
  EXPECT_EQ(walker(other), 0);
  other = {};
  other.cone = "elliptic";
  EXPECT_EQ(walker(other), 0);
  // Four legs of two hinges each: feet that touch the floor are four pairs, everything that touches it is nine.
  const auto quadruped = [&](int contype) {
    const std::string bits = format("contype='{}' conaffinity='0'", contype);
    std::string legs;
    for (const char* place : {"1 1 0", "1 -1 0", "-1 1 0", "-1 -1 0"}) {
      legs += format(
          "<body pos='{}'><joint axis='1 0 0'/><geom size='.1' {}/><body pos='0 0 -1'><joint axis='0 1 0'/>"
          "<geom size='.1' contype='1' conaffinity='0'/></body></body>",
          place, bits);
    }
    return chosen(
        Mjcf{.file = "",
             .xml = format("<mujoco><worldbody><geom type='plane' size='9 9 1'/><body pos='0 0 2'><freejoint/>"
                           "<geom size='.3' {}/>{}</body></worldbody></mujoco>",
                           bits, legs)});
  };
  EXPECT_EQ(quadruped(0), 0);
  EXPECT_EQ(quadruped(1), 24);
}

TEST(Batched, ARowSpaceOfMoreRowsThanThereAreIsRefused) {
  SceneOptions o;
  o.row_space = 65;
  Scene scene(o);
  scene.add_entity(Mjcf{kModels + "walker.xml"});
  EXPECT_NE(message_of([&] { scene.build(1); }).find("64 is the most"), std::string::npos);
}

TEST(Batched, ABrokenEnvironmentKeepsItsStateAndLeavesItsNeighboursBitsAlone) {
  const std::vector<float> truth = simulate({.n = 20, .steps = 100});
  for (float poison : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 1e30f}) {
    std::int32_t status = 0, neighbour = 0;
    std::vector<float> kept;
    Job run{.n = 20, .steps = 100};
    run.before_step = [&](Scene& scene, int s) {
      if (s == 50) scene.set_qvel(std::vector<float>(static_cast<std::size_t>(scene.info().nv), poison), {5});
      // What was broken and is put right stands still, too, until the reset.
      if (s == 70) scene.set_qvel(std::vector<float>(static_cast<std::size_t>(scene.info().nv), 0.0f), {5});
      if (s == 71) kept = states(scene);
      if (s == 99) {
        const std::vector<float> now = states(scene);
        const std::ptrdiff_t one = static_cast<std::ptrdiff_t>(now.size() / 20);
        EXPECT_TRUE(same_bits({now.begin() + 5 * one, now.begin() + 6 * one},
                              {kept.begin() + 5 * one, kept.begin() + 6 * one}));
        status = scene.view(Field::kStatus).span<std::int32_t>()[5];
        neighbour = scene.view(Field::kStatus).span<std::int32_t>()[6];
        scene.reset({5});
        EXPECT_EQ(scene.view(Field::kStatus).span<std::int32_t>()[5], kStatusOk);
      }
    };
    const std::vector<float> result = simulate(run);
    const std::size_t one = truth.size() / 20;
    EXPECT_EQ(status, kStatusBadState);
    EXPECT_EQ(neighbour, kStatusOk);
    for (std::size_t e = 0; e < 20; ++e) {
      const auto at = static_cast<std::ptrdiff_t>(e * one), end = static_cast<std::ptrdiff_t>((e + 1) * one);
      if (e != 5) {
        EXPECT_TRUE(same_bits({result.begin() + at, result.begin() + end}, {truth.begin() + at, truth.begin() + end}))
            << e;
      }
    }
  }
}

TEST(Batched, AnOverflowingEnvironmentKeepsItsStateAndLeavesItsNeighboursBitsAlone) {
  // Environment 3 alone is pressed into the floor with more contacts than fit.
  const auto run = [](bool overflow) {
    SceneOptions o;
    o.contact_capacity = 3;
    Scene scene(o);
    scene.add_entity(Mjcf{kModels + "pile.xml"});
    scene.build(8);
    const int nq = scene.info().nq;
    std::vector<float> q = std::vector<float>(static_cast<std::size_t>(nq));
    for (int i = 0; i < nq; ++i)
      q[static_cast<std::size_t>(i)] = static_cast<float>(scene.info().qpos0[static_cast<std::size_t>(i)]);
    for (int i = 2; i < nq; i += 7) q[static_cast<std::size_t>(i)] = 5.0f + static_cast<float>(i);
    scene.set_qpos(q);
    if (overflow) {
      for (int i = 2; i < nq; i += 7) q[static_cast<std::size_t>(i)] = 0.05f;
      scene.set_qpos(q, {3});
    }
    for (int s = 0; s < 20; ++s) scene.step();
    const auto status = scene.view(Field::kStatus).span<std::int32_t>();
    EXPECT_EQ(status[3], overflow ? kStatusContactOverflow : kStatusOk);
    EXPECT_EQ(status[2], kStatusOk);
    std::vector<float> all = states(scene);
    const std::size_t one = all.size() / 8;
    if (overflow) {
      EXPECT_EQ(all[3 * one + 2], 0.05f);
      EXPECT_EQ(all[4 * one - 1], 0.0f);  // its time stands still
    }
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(3 * one), all.begin() + static_cast<std::ptrdiff_t>(4 * one));
    return all;
  };
  EXPECT_TRUE(same_bits(run(true), run(false)));
}

TEST(Batched, AWholeScenesStateContinuesWithTheSameBits) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / format("cohort_batched_{}.state", getpid());
  const std::vector<float> truth = simulate({.n = 20, .steps = 100});
  Job first{.n = 20, .steps = 51};
  first.before_step = [&](Scene& scene, int s) {
    if (s == 50) scene.save_state(path);
  };
  simulate(first);
  Job second{.n = 20, .steps = 100};
  second.before_step = [&](Scene& scene, int s) {
    if (s < 50) scene.reset();
    if (s == 50) {
      scene.load_state(path);
      scene.set_random_ctrl(50);
    }
  };
  EXPECT_TRUE(same_bits(simulate(second), truth));
  std::filesystem::remove(path);
}

/// A state that is loaded remembers no directions: every pair that its box does not clear is searched again.
TEST(Batched, RememberedSeparationsChangeNoBits) {
  double contacts = 0;
  Job forgetting{.file = "crowd.xml", .n = 24, .steps = 400};
  forgetting.before_step = [&](Scene& scene, int) {
    const std::vector<std::uint8_t> state = scene.engine().save_state();
    scene.engine().load_state(state);
    const ArrayView count = scene.view(Field::kContactCount);
    for (int e = 0; e < 24; ++e) contacts += static_cast<int*>(count.data)[e * count.strides[0]];
  };
  const std::vector<float> truth = simulate(forgetting);
  for (LaneWidth width : widths()) {
    EXPECT_TRUE(same_bits(simulate({.file = "crowd.xml", .n = 24, .steps = 400, .lanes = width}), truth))
        << to_string(width);
  }
  // Both happen: a pair touches, and most do not.
  EXPECT_GT(contacts / (24 * 400), 0.3);
  EXPECT_LT(contacts / (24 * 400), 10);
}

TEST(Batched, ASavedModelRunsTheSameWithoutMujoco) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / format("cohort_model_{}.cohort", getpid());
  const EntityDeclaration e{"m", Mjcf{kModels + "walker.xml"}};
  const Model model = import_model(compile_scene(std::span(&e, 1), {}, {}).mjb);
  save_model(model, path);
  const Model loaded = load_model(path);
  EXPECT_EQ(loaded.info.joints.size(), model.info.joints.size());
  const auto run = [](const Model& m) {
    const std::unique_ptr<Engine> engine = make_cpu_engine(m, 5, {});
    engine->step(100);
    const ArrayView q = engine->view(Field::kQpos);
    return std::vector<float>(static_cast<float*>(q.data), static_cast<float*>(q.data) + q.strides[1] * q.shape[1]);
  };
  EXPECT_TRUE(same_bits(run(loaded), run(model)));
  std::string file = read_file(path);
  file[file.size() / 2] = static_cast<char>(file[file.size() / 2] ^ 1);
  write_file_atomically(path, file);
  EXPECT_NE(message_of([&] { load_model(path); }).find("damaged"), std::string::npos);
  write_file_atomically(path, file.substr(0, 20));
  EXPECT_NE(message_of([&] { load_model(path); }).find("cut off"), std::string::npos);
  std::filesystem::remove(path);
}

TEST(Parameters, TheModelsValuesGiveTheModelsBits) {
  const std::vector<float> truth = simulate({.n = 20, .steps = 60});
  Job run{.n = 20, .steps = 60};
  run.before_step = [](Scene& scene, int s) {
    if (s > 0) return;
    for (Parameter p : {Parameter::kLinkMass, Parameter::kGeomFriction, Parameter::kDofArmature, Parameter::kDofDamping,
                        Parameter::kActuatorGain, Parameter::kActuatorBias}) {
      scene.set_parameter(p, scene.get_parameter(p));
    }
  };
  EXPECT_TRUE(same_bits(simulate(run), truth));
}

/// Everything randomized, as a learner would.
void randomize(Scene& scene, int s) {
  if (s > 0) return;
  scene.randomize_parameter(Parameter::kLinkMass, 0.7, 1.4);
  scene.randomize_parameter(Parameter::kGeomFriction, 0.5, 1.5);
  scene.randomize_parameter(Parameter::kDofArmature, 0.5, 2);
  scene.randomize_parameter(Parameter::kDofDamping, 0.5, 2);
  scene.randomize_parameter(Parameter::kActuatorGain, 0.8, 1.2);
}

TEST(Parameters, RandomizedOnesAreKeyedByTheGlobalEnvironmentAndKeepTheBits) {
  Job whole{.n = 40, .steps = 60};
  whole.before_step = randomize;
  const std::vector<float> truth = simulate(whole);
  EXPECT_FALSE(same_bits(truth, simulate({.n = 40, .steps = 60})));
  const auto one = static_cast<std::ptrdiff_t>(truth.size() / 40);
  Job part{.n = 17, .threads = 2, .steps = 60, .first = 23, .lanes = LaneWidth::kScalar};
  part.before_step = randomize;
  EXPECT_TRUE(same_bits(simulate(part), std::vector<float>(truth.begin() + 23 * one, truth.end())));
}

TEST(Parameters, EveryEnvironmentMovesAsMujocoWithItsParameters) {
  const auto run = [](EngineKind engine) {
    SceneOptions o;
    o.engine = engine;
    o.seed = 9;
    Scene scene(o);
    scene.add_entity(Mjcf{kModels + "walker.xml"});
    scene.build(12);
    randomize(scene, 0);
    // Short, because walkers are chaotic.
    for (int s = 0; s < 25; ++s) {
      scene.set_random_ctrl(s);
      scene.step();
    }
    return scene.get_dofs_velocity();
  };
  const std::vector<float> ours = run(EngineKind::kBatched), theirs = run(EngineKind::kMujoco);
  ASSERT_EQ(ours.size(), theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) EXPECT_NEAR(ours[i], theirs[i], 5e-3 * (1 + std::abs(theirs[i]))) << i;
}

TEST(Parameters, MassesOfLinksReachSensorsOfForceAndSubtreesAndDrag) {
  // Links welded into a body and into the world among them, one without mass.
  const std::string xml = R"(<mujoco><option density='900' viscosity='0.4' wind='0.3 -0.2 0.1' timestep='0.002'/>
    <default><geom contype='0' conaffinity='0'/></default><worldbody><body name='post' pos='0 0 1'><geom size='0.1' mass='2'/><site name='base'/>
      <body name='upper'><joint type='ball' damping='0.05'/><geom type='box' size='0.05 0.08 0.2' pos='0 0 -0.2'/>
        <site name='shoulder'/>
        <body name='plate' pos='0.05 0 -0.3' euler='20 10 0'><geom type='box' size='0.1 0.02 0.05'/></body>
        <body name='lower' pos='0 0 -0.4'><joint axis='0 1 0'/><joint axis='1 0 0'/>
          <geom type='capsule' size='0.04 0.15' pos='0 0 -0.15'/><site name='elbow' euler='0 30 0'/>
          <body name='bare' pos='0 0.1 -0.3'/></body></body></body>
      <body name='drop' pos='1 0 1'><freejoint/><geom type='ellipsoid' size='0.1 0.2 0.05'/></body></worldbody>
    <sensor><force site='shoulder' name='s0'/><torque site='shoulder' name='s1'/><force site='elbow' name='s2'/><torque site='elbow' name='s3'/><force site='base' name='s4'/>
      <subtreecom body='post' name='s5'/><subtreelinvel body='post' name='s6'/><subtreeangmom body='post' name='s7'/><subtreecom body='lower' name='s8'/>
      <subtreeangmom body='lower' name='s9'/><subtreecom body='drop' name='s10'/></sensor></mujoco>)";
  for (const char* integrator : {"Euler", "implicitfast"}) {
    const auto run = [&](EngineKind engine) {
      SceneOptions o;
      o.engine = engine;
      o.seed = 4;
      Scene scene(o);
      std::string text = xml;
      text.replace(text.find("<option"), 7, std::string("<option integrator='") + integrator + "'");
      scene.add_entity(Mjcf{.file = "", .xml = text});
      scene.build(8);
      std::vector<float> mass = scene.get_parameter(Parameter::kLinkMass);
      const std::size_t links = mass.size() / 8;
      for (std::size_t e = 1; e < 8; ++e) {  // the first environment keeps the model's
        for (std::size_t k = 1; k < links; ++k) {
          float& m = mass[e * links + k];
          m = m * (0.5f + 0.25f * static_cast<float>((e * 3 + k) % 7)) + (m > 0 ? 0.0f : 0.1f * static_cast<float>(e));
        }
      }
      scene.set_parameter(Parameter::kLinkMass, mass);
      std::vector<float> velocity = scene.get_dofs_velocity();
      for (std::size_t i = 0; i < velocity.size(); ++i) velocity[i] = 0.6f * static_cast<float>(i % 11 % 5) - 1.2f;
      scene.set_dofs_velocity(velocity);
      for (int s = 0; s < 50; ++s) scene.step();
      std::vector<float> seen = scene.get_dofs_velocity();
      for (int k = 0; k < 11; ++k) {
        const std::vector<float> sensor = scene.get_sensor(format("s{}", k));
        seen.insert(seen.end(), sensor.begin(), sensor.end());
      }
      return seen;
    };
    const std::vector<float> ours = run(EngineKind::kBatched), theirs = run(EngineKind::kMujoco);
    ASSERT_EQ(ours.size(), theirs.size());
    for (std::size_t i = 0; i < ours.size(); ++i)
      EXPECT_NEAR(ours[i], theirs[i], 1e-3 * (1 + std::abs(theirs[i]))) << integrator << ' ' << i;
    EXPECT_GT(std::abs(theirs[0] - theirs[11]), 1e-2f) << "the masses change nothing";
  }
}

TEST(Parameters, ImpossibleOnesAreRefusedAndChangeNothing) {
  SceneOptions o;
  Scene scene(o);
  scene.add_entity(Mjcf{kModels + "walker.xml"});
  scene.build(3);
  const std::vector<float> before = scene.get_parameter(Parameter::kLinkMass);
  std::vector<float> mass = before;
  mass[mass.size() / 2] = -1;
  EXPECT_NE(message_of([&] { scene.set_parameter(Parameter::kLinkMass, mass); }).find("environment 1"),
            std::string::npos);
  EXPECT_EQ(scene.get_parameter(Parameter::kLinkMass), before);
  scene.step();
  EXPECT_EQ(scene.view(Field::kStatus).span<std::int32_t>()[1], kStatusOk);
}

TEST(Parameters, AStateCarriesThem) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / format("cohort_parameters_{}.state", getpid());
  Job whole{.n = 20, .steps = 40};
  whole.before_step = randomize;
  const std::vector<float> truth = simulate(whole);
  Job first{.n = 20, .steps = 21};
  first.before_step = [&](Scene& scene, int s) {
    randomize(scene, s);
    if (s == 20) scene.save_state(path);
  };
  simulate(first);
  Job second{.n = 20, .steps = 40};
  second.before_step = [&](Scene& scene, int s) {
    if (s == 20) {
      scene.load_state(path);
      scene.set_random_ctrl(20);
    }
  };
  EXPECT_TRUE(same_bits(simulate(second), truth));
  std::filesystem::remove(path);
}

TEST(Batched, AStepAllocatesNothing) {
  SceneOptions o;
  o.threads = 2;
  Scene scene(o);
  scene.add_entity(Mjcf{kModels + "walker.xml"});
  scene.build(64);
  scene.set_random_ctrl(0);
  scene.step();
  const long before = allocations;
  for (int s = 0; s < 100; ++s) scene.step();
  EXPECT_EQ(allocations - before, 0);
}

TEST(Batched, ASceneOfACompiledModelEqualsOneOfItsFile) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / format("cohort_compiled_{}.cohort", getpid());
  const EntityDeclaration e{"m", Mjcf{kModels + "walker.xml"}};
  save_model(import_model(compile_scene(std::span(&e, 1), {}, {}).mjb), path);
  SceneOptions o;
  o.seed = 3;
  Scene scene(o);
  scene.build_from_file(path, 20);
  for (int s = 0; s < 50; ++s) {
    scene.set_random_ctrl(s);
    scene.step();
  }
  EXPECT_TRUE(same_bits(states(scene), simulate({.n = 20, .steps = 50})));
  SceneOptions changed;
  changed.timestep = 0.1;
  Scene other(changed);
  EXPECT_NE(message_of([&] { other.build_from_file(path, 1); }).find("compiled"), std::string::npos);
  std::filesystem::remove(path);
}

TEST(Batched, UnsupportedFeaturesAreListedByNameInTheFile) {
  const EntityDeclaration e{
      "m", Mjcf{.file = "", .xml = R"(<mujoco><option integrator="implicit" noslip_iterations="3"/><worldbody>
      <body><joint name="j" range="-1 1" limited="true"/><geom size="0.1"/></body></worldbody>
      <actuator><muscle name="biceps" joint="j" lengthrange="0 1"/></actuator>
      <sensor><jointlimitpos name="stop" joint="j"/></sensor></mujoco>)"}};
  const std::string text = message_of([&] { import_model(compile_scene(std::span(&e, 1), {}, {}).mjb); });
  for (const char* word : {"implicit", "noslip", "biceps", "stop", "mujoco"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word << " in: " << text;
  }
}

TEST(Batched, EveryRefusalNamesTheElementAndWhatNothingUsesIsNone) {
  const auto refusal = [](const std::string& option, const std::string& world, const std::string& rest) {
    const EntityDeclaration e{
        "m", Mjcf{.file = "",
                  .xml = "<mujoco>" + option + R"(<asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>
        <worldbody>)" + world +
                         R"(<body name="b"><joint name="j"/><geom name="g" type="mesh" mesh="m"/><site name="s"/></body>
        </worldbody>)" + rest +
                         "</mujoco>"}};
    return to_string(find_unsupported(compile_scene(std::span(&e, 1), {}, {}).mjb));
  };
  const std::string box = "<geom name='floor' type='box' size='1 1 1' pos='0 0 -1'/>",
                    plane = "<geom type='plane' size='1 1 1'/>";
  const auto option = [](const char* attributes) { return std::string("<option ") + attributes + "/>"; };
  const std::string libccd = "<option><flag nativeccd='disable'/></option>";
  // What a search would need matters where something is searched: a mesh on a plane is not.
  for (const std::string& o : {libccd, option("ccd_iterations='20'"), option("ccd_tolerance='1e-3'")}) {
    EXPECT_NE(refusal(o, box, ""), "") << o;
    EXPECT_EQ(refusal(o, plane, ""), "") << o;
  }
  EXPECT_EQ(refusal(option("ccd_iterations='100' ccd_tolerance='1e-8'"), box, ""), "");
  const std::string motor = "<actuator><motor name='pull' joint='j' group='2'/></actuator>";
  EXPECT_EQ(refusal(option("actuatorgroupdisable='3'"), "", motor), "");
  EXPECT_NE(refusal(option("actuatorgroupdisable='2'"), "", motor).find("`pull`"), std::string::npos);
  EXPECT_NE(
      refusal("", "", "<actuator><motor name='late' joint='j' nsample='4' delay='0.004'/></actuator>").find("`late`"),
      std::string::npos);
  EXPECT_NE(
      refusal("", "", "<sensor><jointpos name='echo' joint='j' nsample='4' delay='0.004'/></sensor>").find("`echo`"),
      std::string::npos);
  EXPECT_NE(refusal("", "<geom name='belt' type='plane' size='1 1 1' surfacevel='1 0 0 0 0 0'/>", "").find("`belt`"),
            std::string::npos);
  const std::pair<const char*, const char*> sensors[] = {
      {"<e_kinetic name='x'/>", "e_kinetic"},
      {"<e_potential name='x'/>", "e_potential"},
      {"<user name='x' dim='1'/>", "user"},
      {"<insidesite name='x' site='s' objtype='body' objname='b'/>", "insidesite"},
      {"<distance name='x' geom1='g' geom2='floor'/>", "distance"}};
  for (const auto& [sensor, type] : sensors) {
    EXPECT_EQ(refusal("", box, std::string("<sensor>") + sensor + "</sensor>"), format("sensor {} `x`", type));
  }
}

TEST(Batched, AModelTooLargeIsRefusedWithItsNumbers) {
  // Chains of links, so that every pair of their last geoms has hundreds of dofs.
  const auto chain = [](const char* place) {
    std::string open, close;
    for (int i = 0; i < 300; ++i) {
      open += std::string("<body") + (i == 0 ? place : "") +
              "><joint/><inertial pos='0 0 0' mass='1' diaginertia='1 1 1'/>";
      close += "</body>";
    }
    return open + "<replicate count='2000' offset='0 0 1'><geom size='0.1'/></replicate>" + close;
  };
  const EntityDeclaration e{
      "m",
      Mjcf{.file = "", .xml = "<mujoco><worldbody>" + chain("") + chain(" pos='9 0 0'") + "</worldbody></mujoco>"}};
  const CompiledScene scene = compile_scene(std::span(&e, 1), {}, {});
  const std::string text = message_of([&] { import_model(scene.mjb); });
  EXPECT_NE(text.find("4000000 pairs of 4000 geoms"), std::string::npos) << text;
  EXPECT_NE(text.find("contype"), std::string::npos) << text;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // these reserve terabytes of address space
TEST(Batched, ThreadsThatCannotBeStartedAreAnError) {
  // Address space for the stacks of some of the threads.
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlim_t used = std::stoull(read_file("/proc/self/statm")) * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
  const rlimit little{used + (rlim_t{1} << 28), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &little), 0);
  const std::string text = message_of([] { ThreadTeam team(1000); });
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_NE(text.find("1000 threads were asked for"), std::string::npos) << text;
  EXPECT_EQ(text.find("gets 1:"), std::string::npos) << text;
  EXPECT_NE(text.find("--threads"), std::string::npos) << text;
}
#endif

TEST(Batched, MoreEnvironmentsThanMemoryAreRefusedWithTheNumbers) {
  SceneOptions o;
  Scene scene(o);
  scene.add_entity(Mjcf{kModels + "walker.xml"});
  const std::string text = message_of([&] { scene.build(2000000000); });
  EXPECT_NE(text.find("2000000000"), std::string::npos) << text;
  EXPECT_NE(text.find("enough for"), std::string::npos) << text;
}

TEST(Batched, TheMemoryPlanIsWhatIsAllocated) {
  SceneOptions o;
  Scene scene(o);
  scene.add_entity(Mjcf{kModels + "walker.xml"});
  scene.build(160);
  double bytes = 4;
  for (int f = 0; f < kFieldCount; ++f)
    bytes += 4.0 * static_cast<double>(scene.engine().view(static_cast<Field>(f)).shape[1]);
  EXPECT_EQ(scene.engine().memory().bytes_per_environment(), bytes);
}

}  // namespace
}  // namespace cohort::sim
