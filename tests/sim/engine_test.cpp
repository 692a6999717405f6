// The batched engine as a whole: the same bits whatever runs it, isolation of broken environments, files, memory.
#include "sim/backends/cpu/engine.h"

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <new>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/files.h"
#include "core/message_of.h"
#include "core/thread_team.h"
#include "sim/host/compile.h"
#include "sim/host/model.h"
#include "sim/simulate.h"

namespace {
std::atomic<long> allocations{0};
}
// Counts what the step asks for; hands on to malloc.
void* operator new(std::size_t size) {
  ++allocations;
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  ++allocations;
  const auto unit = static_cast<std::size_t>(alignment);
  if (void* p = std::aligned_alloc(unit, (size + unit - 1) / unit * unit)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}

namespace cohort::sim {
namespace {

std::uint64_t hash_of(const std::vector<float>& values) {
  std::uint64_t hash = 14695981039346656037ull;
  for (float value : values) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 4; ++i) hash = (hash ^ ((bits >> (8 * i)) & 255)) * 1099511628211ull;
  }
  return hash;
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

TEST_P(Bits, AreTheSameWhereAThreadTakesItsEnvironmentsThroughSeveralSteps) {
  const Job job{.file = GetParam(), .n = 37, .threads = 2};
  SceneOptions options;
  options.threads = job.threads;
  // The first has no threads of its own: the model's compiler is a fork, which must not follow them.
  Scene whole{SceneOptions{}}, parts(options);
  for (Scene* scene : {&whole, &parts}) {
    scene->add_entity(Mjcf{kModels + job.file});
    scene->build(job.n);
  }
  ASSERT_TRUE(parts.engine().has_parts());
  std::vector<int> taken(static_cast<std::size_t>(job.n));
  const ArrayView ctrl = parts.view(Field::kCtrl);
  const std::function<void(Engine::Part&)> twice = [&](Engine::Part& part) {
    for (int k = 0; k < 2; ++k) {
      for (int e = part.first; e < part.last; ++e) {
        ++taken[static_cast<std::size_t>(e)];
        for (std::int64_t i = 0; i < ctrl.shape[1]; ++i)
          static_cast<float*>(ctrl.data)[e * ctrl.strides[0] + i * ctrl.strides[1]] = 0.1f * static_cast<float>(e + k);
      }
      part.step(3);
    }
  };
  for (int round = 0; round < 5; ++round) {
    parts.engine().run_parts(twice);
    for (int k = 0; k < 2; ++k) {
      const ArrayView own = whole.view(Field::kCtrl);
      for (int e = 0; e < job.n; ++e)
        for (std::int64_t i = 0; i < own.shape[1]; ++i)
          static_cast<float*>(own.data)[e * own.strides[0] + i * own.strides[1]] = 0.1f * static_cast<float>(e + k);
      whole.engine().step(3);
    }
  }
  EXPECT_TRUE(same_bits(states(parts), states(whole)));
  EXPECT_EQ(taken, std::vector<int>(static_cast<std::size_t>(job.n), 10));
}

/// Hashes of a thousand steps. A change here is a change of every user's results: say why in the commit.
struct Committed {
  const char* file;
  std::uint64_t hash;
};
constexpr Committed kCommitted[] = {{"walker.xml", 1345934373733385850ull},     {"pile.xml", 68538054105317125ull},
                                    {"arm_plain.xml", 10147326907061092989ull}, {"tendons.xml", 1745700572264993884ull},
                                    {"biped.xml", 7247249821223650584ull},      {"rubble.xml", 6265848938664058946ull},
                                    {"grip.xml", 11981097592977492149ull},      {"troop.xml", 15938588990286137570ull},
                                    {"trio.xml", 6128810435069033912ull}};

TEST(BitsCommitted, AThousandStepsHashAsTheyAlwaysDid) {
  for (const Committed& c : kCommitted) {
    EXPECT_EQ(hash_of(simulate({.file = c.file, .n = 16, .steps = 1000})), c.hash) << c.file;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Bits,
                         ::testing::Values("walker.xml", "pile.xml", "arm_plain.xml", "mixed.xml", "tendons.xml",
                                           "terrain.xml", "crowd.xml", "biped.xml", "rubble.xml", "hills.xml",
                                           "grip.xml", "troop.xml", "trio.xml"));

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

/// Boxes, spheres and capsules in one heap: all environments but one have far more contacts than there is room for, at
/// every width of lanes (the address sanitizer looks on).
TEST(Batched, RoomForFewContactsIsEnoughWhereNearlyAllEnvironmentsOverflow) {
  const auto run = [](bool overflow, int capacity, LaneWidth lanes) {
    SceneOptions o;
    o.contact_capacity = capacity;
    o.lanes = lanes;
    Scene scene(o);
    scene.add_entity(Mjcf{kModels + "pile.xml"});
    scene.build(20);
    std::vector<float> q(scene.info().qpos0.begin(), scene.info().qpos0.end());
    q[2] = 0.079f;  // the box stands on the floor
    for (int e = 0; e < 20; ++e) scene.set_qpos(q, {e});
    for (std::size_t i = 0; i < q.size(); i += 7) q[i] = q[i + 1] = 0, q[i + 2] = 0.05f;
    for (int e = 0; e < 20 && overflow; ++e) {
      if (e != 7) scene.set_qpos(q, {e});
    }
    for (int s = 0; s < 30; ++s) scene.step();
    const auto status = scene.view(Field::kStatus).span<std::int32_t>();
    for (std::size_t e = 0; e < 20; ++e)
      EXPECT_EQ(status[e], overflow && e != 7 ? kStatusContactOverflow : kStatusOk) << e;
    EXPECT_EQ(scene.view(Field::kContactCount).span<std::int32_t>()[7], 4);
    return scene.get_qpos({7});
  };
  const std::vector<float> truth = run(false, 0, LaneWidth::kAuto);
  for (const LaneWidth lanes : {LaneWidth::kAuto, LaneWidth::kScalar}) {
    EXPECT_TRUE(same_bits(run(true, 8, lanes), truth));
    EXPECT_TRUE(same_bits(run(false, 8, lanes), truth));
  }
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

TEST(Batched, LanesThatAreNotThereAreRefusedWithThoseThatAre) {
  for (const LaneWidth width : {LaneWidth::kAvx2, LaneWidth::kAvx512}) {
    if (runs_lanes(width)) {
      EXPECT_EQ(of_lanes(width, 1, 8, 16), width == LaneWidth::kAvx2 ? 8 : 16);
      continue;
    }
    const std::string message = message_of([&] { simulate({.file = "arm.xml", .lanes = width}); });
    EXPECT_NE(message.find(to_string(width)), std::string::npos) << message;
    EXPECT_NE(message.find("take scalar"), std::string::npos) << message;
    EXPECT_EQ(message.find(", avx2 or auto") != std::string::npos, runs_lanes(LaneWidth::kAvx2)) << message;
  }
  EXPECT_EQ(of_lanes(LaneWidth::kScalar, 1, 8, 16), 1);
  EXPECT_EQ(of_lanes(LaneWidth::kAuto, 1, 8, 16), of_lanes(widest_lanes(), 1, 8, 16));
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

/// Bodies fall onto each other within a hundred; builds that are slow look at fewer.
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr int kAllocationSteps = 100;
#else
constexpr int kAllocationSteps = 10;
#endif

/// Contacts of all kinds, searches, height fields, the row space, equalities, tendons; every integrator and solver;
/// dofs that the scene drives and parameters of the environments' own; random controls.
TEST(Batched, AStepAllocatesNothing) {
  struct Case {
    const char* file;
    const char* integrator;
    const char* solver;
  };
  for (const Case& c : {Case{"walker.xml", "Euler", "Newton"}, Case{"walker.xml", "RK4", "CG"},
                        Case{"pile.xml", "implicitfast", "Newton"}, Case{"mixed.xml", "Euler", "Newton"},
                        Case{"terrain.xml", "RK4", "Newton"}, Case{"tendons.xml", "implicitfast", "CG"},
                        Case{"biped.xml", "Euler", "Newton"}, Case{"troop.xml", "Euler", "Newton"},
                        Case{"grip.xml", "implicitfast", "Newton"}, Case{"arm_plain.xml", "RK4", "Newton"}}) {
    SCOPED_TRACE(format("{} {} {}", c.file, c.integrator, c.solver));
    SceneOptions o;
    o.threads = 2;
    o.integrator = c.integrator;
    o.solver = c.solver;
    Scene scene(o);
    scene.add_entity(Mjcf{kModels + c.file});
    scene.build(20);
    scene.randomize_parameter(Parameter::kLinkMass, 0.9, 1.1);
    if (scene.info().nv > 0) {
      scene.set_dofs_kv(std::vector<float>{0.01f}, {0});
      scene.control_dofs_velocity(std::vector<float>{0}, {0});
    }
    scene.set_random_ctrl(0);
    scene.step();
    const long before = allocations;
    for (int s = 1; s < kAllocationSteps; ++s) {
      scene.set_random_ctrl(s);
      scene.step();
    }
    EXPECT_EQ(allocations - before, 0);
  }
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

TEST(Batched, ACompiledModelHoldsNoCapacityWhichIsTheEnginesAtBuild) {
  const auto path = [](int capacity) {
    return std::filesystem::temp_directory_path() / format("cohort_capacity_{}_{}.cohort", getpid(), capacity);
  };
  for (const int capacity : {0, 3}) {
    SceneOptions o;
    o.contact_capacity = capacity;
    Scene scene(o);
    scene.add_entity(Mjcf{kModels + "pile.xml"});
    scene.build(1);
    scene.save_model(path(capacity));
  }
  EXPECT_EQ(read_file(path(0)), read_file(path(3)));
  const auto status_and_bytes = [&](int capacity) {
    SceneOptions o;
    o.contact_capacity = capacity;
    o.report_stops = false;
    o.lanes = LaneWidth::kScalar;  // a block of one environment
    Scene scene(o);
    scene.build_from_file(path(3), 1);
    // Everything in one place.
    std::vector<float> q(scene.info().qpos0.begin(), scene.info().qpos0.end());
    for (std::size_t i = 0; i < q.size(); i += 7) q[i] = q[i + 1] = 0, q[i + 2] = 0.05f;
    scene.set_qpos(q);
    scene.step();
    return std::pair(scene.view(Field::kStatus).span<std::int32_t>()[0], scene.memory().fixed_bytes);
  };
  const auto [all, bytes_of_all] = status_and_bytes(0);
  const auto [few, bytes_of_few] = status_and_bytes(3);
  EXPECT_EQ(all, kStatusOk);
  EXPECT_EQ(few, kStatusContactOverflow);
  EXPECT_LT(bytes_of_few, bytes_of_all);
  std::filesystem::remove(path(0));
  std::filesystem::remove(path(3));
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
