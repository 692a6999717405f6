// Physics steps per second and core: the batched engine against MuJoCo C (mj_step one by one, and its own batch),
// in one process pinned to one core, by turns of so many steps, by the processor time they take. Random controls in
// range, equal timestep, solver and tolerance.
//
//   sim_step_bench [--envs N] [--rounds R] [--steps S] [--turn T] [--lanes auto|scalar|avx2|avx512]
//                  [--contacts all|floor|plane|table|none] [--row-space ROWS] MODEL...
//
// --turn: an engine takes so many steps before it is the next one's turn, a whole round without it. With 1 it begins
// every step of all environments with its code and data out of the caches, which nobody's simulation does.
// --contacts, of the models that follow it, on both sides:  all: as in the file;  floor: those of a geom that is fixed
// to the world, without self-collision;  plane: the same with a plane at height 0 in place of the file's own ground;
// table: as in the file, with a box of 0.5 x 1 x 0.3 m in front of the robot, 0.4 m from the origin;  none: contacts
// switched off. --row-space: SceneOptions::row_space.
// Sensors are switched off on both sides: the batched engine computes them when they are read, mj_step always.
// Iterations are those of an evaluation: of RK4's four the mean of ours, the last of MuJoCo's.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>

#include <mujoco/mjbatch.h>
#include <mujoco/mujoco.h>
#include <sched.h>

#include "core/error.h"
#include "core/philox.h"
#include "sim/backends/cpu/engine.h"
#include "sim/host/compile.h"
#include "sim/host/import/handle.h"
#include "sim/host/model.h"

using namespace cohort;
using namespace cohort::sim;

namespace {

/// Time that this process has computed, all threads: what others do on the machine does not count. One thread works at
/// a time here, ours or that of MuJoCo's batch.
double now() {
  std::timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

float control(const ModelInfo& info, int env, long step, int u) {
  const RandomStream random(1, RandomPurpose::kAction, static_cast<std::uint64_t>(env),
                            static_cast<std::uint64_t>(step));
  const float x = random.uniform(static_cast<std::uint64_t>(u));
  for (const ActuatorInfo& a : info.actuators) {
    if (a.ctrl == u && a.limited)
      return static_cast<float>(a.range[0] + (a.range[1] - a.range[0]) * static_cast<double>(x));
  }
  return 2 * x - 1;
}

struct Sides {
  int n, steps;
  mj::ModelPtr model;
  std::vector<mj::DataPtr> data;
  mjBatch* batch;
  std::unique_ptr<Engine> ours;

  /// Calls set(environment, control, value) for the controls of a step; each holds for five.
  template <class Set>
  void controls(long step, Set set) const {
    const ModelInfo& info = ours->info();
    for (int e = 0; e < n; ++e) {
      for (int u = 0; u < info.nu; ++u) set(e, u, control(info, e, step / 5, u));
    }
  }
};

enum class ContactChoice { kAll, kFloor, kPlane, kTable, kNone };

ContactChoice parse_contacts(const std::string& word) {
  if (word == "all") return ContactChoice::kAll;
  if (word == "floor") return ContactChoice::kFloor;
  if (word == "plane") return ContactChoice::kPlane;
  if (word == "table") return ContactChoice::kTable;
  if (word == "none") return ContactChoice::kNone;
  throw Error("--contacts: '" + word + "' is none of all, floor, plane, table, none");
}

struct Case {
  std::string file;
  ContactChoice contacts;
  int row_space;
};

/// What stands in the world besides the model's file.
std::vector<EntityDeclaration> entities_of(const Case& what) {
  std::vector<EntityDeclaration> entities{{"model", Mjcf{what.file}}};
  if (what.contacts == ContactChoice::kPlane) entities.push_back({"plane", Plane{}});
  if (what.contacts == ContactChoice::kTable) {
    entities.push_back({"table", Box{{0.5, 1, 0.3}, {.pose = {{0.65, 0, 0.15}}, .fixed = true}}});
  }
  return entities;
}

/// A binary model of MuJoCo with the chosen contacts only, and without sensors.
std::vector<std::uint8_t> with_contacts(std::vector<std::uint8_t> mjb, ContactChoice contacts) {
  const mj::ModelPtr m = mj::load(mjb);
  m->opt.disableflags |= mjDSBL_SENSOR;
  if (contacts == ContactChoice::kNone) m->opt.disableflags |= mjDSBL_CONTACT;
  const bool grounded = contacts == ContactChoice::kFloor || contacts == ContactChoice::kPlane;
  for (int g = 0; g < m->ngeom && grounded; ++g) {
    // Moving geoms keep the bits that meet the world's, and have none that meet each other's.
    const bool fixed = m->body_weldid[m->geom_bodyid[g]] == 0;
    const bool own =
        contacts == ContactChoice::kFloor || !fixed || std::string(m->names + m->name_geomadr[g]) == "plane";
    const bool collides = own && (m->geom_contype[g] != 0 || m->geom_conaffinity[g] != 0);
    m->geom_contype[g] = collides && fixed ? 1 : 0;
    m->geom_conaffinity[g] = collides && !fixed ? 1 : 0;
  }
  mjb.resize(static_cast<std::size_t>(mj_sizeModel(m.get())));
  mj_saveModel(m.get(), nullptr, mjb.data(), static_cast<int>(mjb.size()));
  return mjb;
}

void measure(const Case& what, int n, int rounds, int steps, int turn, LaneWidth lanes) {
  const std::string& file = what.file;
  CompiledScene scene = compile_scene(entities_of(what), {}, {});
  scene.mjb = with_contacts(std::move(scene.mjb), what.contacts);
  const std::vector<Unsupported> missing = find_unsupported(scene.mjb);
  if (!missing.empty()) {
    std::printf("%-24s not run: %s\n", file.substr(file.rfind('/') + 1).c_str(), to_string(missing).c_str());
    return;
  }
  EngineOptions options;
  options.lanes = lanes;
  options.row_space = what.row_space;
  Sides s{n, steps, mj::load(scene.mjb), {}, nullptr, make_cpu_engine(import_model(scene.mjb), n, options)};
  for (int e = 0; e < n; ++e) s.data.emplace_back(mj_makeData(s.model.get()));
  mjBatchConfig config;
  mjb_defaultConfig(&config);
  config.nthread = 1;
  char error[512];
  s.batch = mjb_makeBatch(s.model.get(), n, &config, error, sizeof error);
  mjb_reset(s.batch, nullptr, n, nullptr, mjSTAGE_NONE);
  std::vector<double> single, batch, ours, ratio;
  double contacts = 0, their_contacts = 0, iterations = 0, their_iterations = 0;
  long step = 0;
  for (int r = -1; r < rounds; ++r) {  // round -1 warms up
    double t_single = 0, t_batch = 0, t_ours = 0;
    for (long end = step + steps; step < end;) {
      const long last = std::min(end, step + turn);
      for (long i = step; i < last; ++i) {
        s.controls(i, [&](int e, int u, float x) { s.data[static_cast<std::size_t>(e)]->ctrl[u] = x; });
        const double t = now();
        for (auto& d : s.data) mj_step(s.model.get(), d.get());
        t_single += now() - t;
        if (r < 0) continue;
        for (const auto& d : s.data) {
          their_contacts += d->ncon;
          their_iterations += *std::max_element(d->solver_niter, d->solver_niter + mjNISLAND);
        }
      }
      for (long i = step; i < last; ++i) {
        int width = 0;
        mjtNum* const first = mjb_stateComponent(s.batch, mjSTATE_CTRL, &width);
        s.controls(i, [&](int e, int u, float x) { first[e * mjb_nstate(s.batch) + u] = x; });
        const double t = now();
        mjb_step(s.batch, nullptr, n, 1, mjSTAGE_NONE);
        t_batch += now() - t;
      }
      for (long i = step; i < last; ++i) {
        const ArrayView ctrl = s.ours->view(Field::kCtrl);
        s.controls(i, [&](int e, int u, float x) {
          static_cast<float*>(ctrl.data)[e * ctrl.strides[0] + u * ctrl.strides[1]] = x;
        });
        const double t = now();
        s.ours->step(1);
        t_ours += now() - t;
        if (r < 0) continue;
        const ArrayView found = s.ours->view(Field::kContactCount), used = s.ours->view(Field::kSolverIterations);
        for (int e = 0; e < n; ++e) {
          contacts += static_cast<int*>(found.data)[e];
          iterations += static_cast<int*>(used.data)[e];
        }
      }
      step = last;
    }
    if (r < 0) continue;
    const double per = 1e6 / (static_cast<double>(n) * steps);
    single.push_back(t_single * per);
    batch.push_back(t_batch * per);
    ours.push_back(t_ours * per);
    ratio.push_back(std::min(t_single, t_batch) / t_ours);
  }
  const double count = static_cast<double>(n) * steps * rounds;
  if (s.model->opt.integrator == mjINT_RK4) iterations /= 4;
  std::printf("%-24s %8.2f %8.2f %8.3f %7.1fx   %5.2f / %5.2f   %5.2f / %5.2f   %s\n",
              file.substr(file.rfind('/') + 1).c_str(), median(single), median(batch), median(ours), median(ratio),
              contacts / count, their_contacts / count, iterations / count, their_iterations / count,
              format_bytes(s.ours->memory().bytes_per_environment()).c_str());
  mjb_deleteBatch(s.batch);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    int n = 64, rounds = 15, steps = 100, turn = 0, row_space = -1;
    LaneWidth lanes = LaneWidth::kAuto;
    std::vector<Case> cases;
    ContactChoice contacts = ContactChoice::kAll;
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (word == "--envs" && i + 1 < argc)
        n = std::atoi(argv[++i]);
      else if (word == "--rounds" && i + 1 < argc)
        rounds = std::atoi(argv[++i]);
      else if (word == "--steps" && i + 1 < argc)
        steps = std::atoi(argv[++i]);
      else if (word == "--turn" && i + 1 < argc)
        turn = std::atoi(argv[++i]);
      else if (word == "--lanes" && i + 1 < argc)
        lanes = parse_lane_width(argv[++i]);
      else if (word == "--contacts" && i + 1 < argc)
        contacts = parse_contacts(argv[++i]);
      else if (word == "--row-space" && i + 1 < argc)
        row_space = std::atoi(argv[++i]);
      else
        cases.push_back({word, contacts, row_space});
    }
    if (cases.empty()) {
      for (const char* name : {"walker", "pile", "arm_plain"})
        cases.push_back({std::string(COHORT_SOURCE_DIR "/tests/sim/models/") + name + ".xml", contacts, row_space});
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    char date[32];
    const std::time_t t = std::time(nullptr);
    std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&t));
    std::printf("# %s, one core, %s lanes, MuJoCo %s, %s; %d environments, %d rounds of %d steps, %d a turn, medians\n",
                cpu_name().c_str(), to_string(lanes == LaneWidth::kAuto ? widest_lanes() : lanes), mj_versionString(),
                date, n, rounds, steps, turn > 0 ? turn : steps);
    std::printf("%-24s %8s %8s %8s %8s   %13s   %13s   %s\n", "us per step", "mj_step", "mjb_step", "ours", "ratio",
                "contacts", "iterations", "bytes/env");
    for (const Case& each : cases) measure(each, n, rounds, steps, turn > 0 ? turn : steps, lanes);
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
