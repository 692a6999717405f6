// Pictures per second of the ray caster and of MuJoCo's renderer, in one run, on one core, each picture of another
// pose; and of the ray caster on the first CUDA device, where there is one.
//
//   render_pictures_bench [--seconds 1] [--only NAME] [--no-mujoco]
//
// Models: twenty primitives (written here), and where they are found gymnasium's or mujoco-mjx's humanoid, Genesis'
// Panda (COHORT_MODELS: the folder of the wheels) and a LIBERO kitchen (COHORT_SHARED/data/libero). MuJoCo's renderer
// runs on OpenGL's llvmpipe with one thread (LP_NUM_THREADS=1 unless set) and without multisampling. Seconds are a
// core's; on the device the clock's, with the pictures left there and the poses read there where the engine on it takes
// the model (else copied there), of many more environments too. Its bytes are compared with the processor's.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "core/error.h"
#include "render/renderer.h"
#include "sim/backends/cuda/runner.h"
#include "sim/host/scene.h"

namespace cohort::render {
namespace {

constexpr int kEnvs = 256, kManyEnvs = 2048;  ///< the latter on a device

/// Every shape, a texture, two lights, some of them shiny: a fifth of the picture is covered.
std::string twenty_primitives() {
  std::string xml = R"(<mujoco><visual><headlight ambient=".2 .2 .2" diffuse=".3 .3 .3" specular=".2 .2 .2"/>
    <global offwidth="1024" offheight="1024"/></visual><statistic extent="2" center="0 0 0"/>
    <asset><texture name="checks" type="cube" builtin="checker" rgb1=".2 .3 .4" rgb2=".8 .8 .7" width="64" height="64"/>
    <material name="checked" texture="checks"/><material name="shiny" rgba=".8 .3 .2 1" specular="1" shininess=".8"/></asset>
    <worldbody><light directional="true" dir=".3 .2 -1" diffuse=".5 .5 .5" specular=".3 .3 .3"/>
    <light pos="1 -1 2" dir="-.4 .4 -1" cutoff="60" diffuse=".4 .4 .4" castshadow="false"/>
    <camera name="front" pos="0 -3 1" xyaxes="1 0 0 0 .316 .949" fovy="27"/>)";
  const char* shapes[] = {"sphere\" size=\".09", "capsule\" size=\".06 .08", "box\" size=\".09 .07 .08",
                          "cylinder\" size=\".07 .09", "ellipsoid\" size=\".08 .1 .06"};
  for (int i = 0; i < 20; ++i) {
    const char* look = i % 4 == 0 ? "material=\"checked\"" : i % 4 == 1 ? "material=\"shiny\"" : "rgba=\".3 .6 .8 1\"";
    xml += format("<body pos=\"{} {} {}\"><freejoint/><geom type=\"{}\" {}/></body>", -0.9 + 0.45 * (i % 5),
                  -0.3 + 0.3 * (i / 10), -0.4 + 0.35 * (i / 5 % 4), shapes[i % 5], look);
  }
  return xml + "</worldbody></mujoco>";
}

struct BenchScene {
  const char* name;
  std::string file, xml, camera;
  bool hide_collisions = false;
  bool shadow = false;  ///< of the first light
};

struct Timing {
  double per_second = 0, covered = 0;
};

/// s, of all threads of this process.
double processor_time() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// batch: pictures of a call.
Timing measure(Renderer& renderer, int camera, int side, int batch, const Wanted& wanted, double seconds) {
  std::vector<std::int32_t> envs(static_cast<std::size_t>(batch));
  const auto pixels = static_cast<std::size_t>(batch) * static_cast<std::size_t>(side * side);
  std::vector<std::uint8_t> rgb(3 * pixels);
  std::vector<float> depth(pixels);
  std::vector<std::int32_t> segmentation(pixels);
  Pictures out{.rgb = make_view(rgb.data(), {batch, side, side, 3})};
  if (wanted.depth) out.depth = make_view(depth.data(), {batch, side, side});
  if (wanted.segmentation) out.segmentation = make_view(segmentation.data(), {batch, side, side});
  int first = 0;
  const auto call = [&] {
    for (int i = 0; i < batch; ++i) envs[static_cast<std::size_t>(i)] = (first + i) % kEnvs;
    first = (first + batch) % kEnvs;
    renderer.render(camera, envs, out);
  };
  call();  // textures and code are there now
  std::int64_t done = 0;
  const double begin = processor_time();
  double passed = 0;
  do {
    call();
    done += batch;
    passed = processor_time() - begin;
  } while (passed < seconds);
  Timing t{static_cast<double>(done) / passed};
  const Frames seen =
      renderer.render(camera, std::span(envs).first(1), side, side, {.rgb = false, .segmentation = true});
  for (const std::int32_t id : seen.segmentation) t.covered += id >= 0;
  t.covered /= static_cast<double>(side * side);
  return t;
}

/// Every environment stands a little differently.
std::unique_ptr<sim::Scene> scene_of(const BenchScene& s, const sim::SceneOptions& options, int n_envs) {
  auto scene = std::make_unique<sim::Scene>(options);
  scene->add_entity(s.xml.empty() ? sim::Mjcf{s.file} : sim::Mjcf{.file = "", .xml = s.xml});
  scene->build(n_envs);
  std::vector<float> qpos = scene->get_qpos();
  for (std::size_t i = 0; i < qpos.size(); ++i) qpos[i] += 0.05f * std::sin(1.7f * static_cast<float>(i));
  scene->set_qpos(qpos);
  return scene;
}

/// The ray caster on the first CUDA device, if there is one.
class OnDevice {
 public:
  OnDevice(const BenchScene& s, RendererSettings settings) {
    if (!sim::cuda::available() || sim::cuda::device_count() == 0) return;
    sim::SceneOptions options;
    options.device = {DeviceKind::kCuda, 0};
    try {
      scene_ = scene_of(s, options, kManyEnvs);
    } catch (const Error& e) {
      std::printf("# %s: poses are copied to the device: %.120s\n", s.name, e.what());
      scene_ = scene_of(s, {.engine = sim::EngineKind::kMujoco}, kManyEnvs);
    }
    settings.device = DeviceId{};
    processor_ = make_renderer(*scene_, settings);
    settings.device = options.device;
    renderer_ = make_renderer(*scene_, settings);
  }
  explicit operator bool() const { return renderer_ != nullptr; }

  double per_second(const std::string& name, int side, int batch, const Wanted& wanted, double seconds) {
    int camera = 0;
    for (Renderer* r : {processor_.get(), renderer_.get()}) {
      camera = name.empty() ? r->add_camera_that_sees_all(side, side) : r->camera(name);
    }
    std::vector<std::int32_t> envs(static_cast<std::size_t>(batch));
    int first = 0;
    const auto call = [&] {
      for (int i = 0; i < batch; ++i) envs[static_cast<std::size_t>(i)] = (first + i) % kManyEnvs;
      first = (first + batch) % kManyEnvs;
      renderer_->render_in_place(camera, envs, side, side, wanted);
    };
    const auto wait = [&] {
      if (const char* why = sim::cuda::wait(0, renderer_->stream())) throw Error(why);
    };
    call();
    wait();
    std::int64_t done = 0;
    const auto begin = std::chrono::steady_clock::now();
    double passed = 0;
    do {
      for (int i = 0; i < 8; ++i) call();
      wait();
      done += 8 * batch;
      passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    } while (passed < seconds);
    const auto one = std::span(envs).first(1);
    const Frames a = renderer_->render(camera, one, side, side, wanted),
                 b = processor_->render(camera, one, side, side, wanted);
    if (a.rgb != b.rgb || a.segmentation != b.segmentation || a.depth != b.depth) {
      std::printf("# the device's picture is not the processor's\n");
    }
    return static_cast<double>(done) / passed;
  }

 private:
  std::unique_ptr<sim::Scene> scene_;
  std::unique_ptr<Renderer> processor_, renderer_;
};

void run(const BenchScene& s, double seconds, bool with_mujoco) {
  const auto built = scene_of(s, {.engine = sim::EngineKind::kMujoco}, kEnvs);
  sim::Scene& scene = *built;
  RendererSettings settings;
  if (s.hide_collisions) settings.geom_groups[0] = false;
  settings.shadows = s.shadow;
  const auto ours = make_renderer(scene, settings);
  OnDevice device(s, settings);
  std::unique_ptr<Renderer> theirs;
  settings.kind = "mujoco", settings.samples = 0;
  try {
    if (with_mujoco) theirs = make_renderer(scene, settings);
  } catch (const Error& e) {
    std::printf("# %s\n", e.what());
  }
  for (const int side : {64, 128}) {
    const auto camera_of = [&](Renderer& r) {
      return s.camera.empty() ? r.add_camera_that_sees_all(side, side) : r.camera(s.camera);
    };
    for (const int batch : {1, kEnvs, kManyEnvs}) {
      for (const bool views : {false, true}) {
        if (views && s.xml.empty()) continue;
        const Wanted wanted{.rgb = true, .depth = views, .segmentation = views};
        const double on_device = device ? device.per_second(s.camera, side, batch, wanted, seconds) : 0;
        const char* what = views ? "rgb depth segmentation" : "rgb";
        if (batch == kManyEnvs) {
          if (device) std::printf("%s,%d,%d,%s,,,,,%.0f\n", s.name, side, batch, what, on_device);
          continue;
        }
        const Timing a = measure(*ours, camera_of(*ours), side, batch, wanted, seconds);
        Timing b;
        // It draws one after the other, however many are asked for.
        if (theirs) b = measure(*theirs, camera_of(*theirs), side, std::min(batch, 8), wanted, seconds);
        std::printf("%s,%d,%d,%s,%.2f,%.0f,%.0f,%.1f,%.0f\n", s.name, side, batch, what, a.covered, a.per_second,
                    b.per_second, b.per_second > 0 ? a.per_second / b.per_second : 0, on_device);
        std::fflush(stdout);
      }
    }
  }
  if (theirs) std::printf("# %s: %s\n", s.name, theirs->description().c_str());
}

int run_all(int argc, char** argv) {
  setenv("LP_NUM_THREADS", "1", 0);
  double seconds = 1;
  std::string only;
  bool with_mujoco = true;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--no-mujoco") == 0) with_mujoco = false;
    if (i + 1 < argc && std::strcmp(argv[i], "--seconds") == 0) seconds = std::atof(argv[++i]);
    if (i + 1 < argc && std::strcmp(argv[i], "--only") == 0) only = argv[++i];
  }
  const char* models = std::getenv("COHORT_MODELS");
  const char* shared = std::getenv("COHORT_SHARED");
  const std::string wheels = models ? models : "", data = shared ? shared : COHORT_SOURCE_DIR "/../shared";
  const BenchScene scenes[] = {
      {"twenty_primitives", "", twenty_primitives(), "front"},
      {.name = "twenty_primitives_with_a_shadow",
       .file = "",
       .xml = twenty_primitives(),
       .camera = "front",
       .shadow = true},
      {"humanoid", wheels + "/mujoco/mjx/test_data/humanoid/humanoid.xml", "", ""},
      {"panda", wheels + "/genesis/assets/xml/franka_emika_panda/panda.xml", "", ""},
      {"libero_kitchen", data + "/data/libero/scene3_turn_on_stove/scene.xml", "", "agentview", true}};
  std::printf("scene,side,environments,views,covered,raycast_per_s,mujoco_per_s,ratio,raycast_cuda_per_s\n");
  for (const BenchScene& s : scenes) {
    if (!only.empty() && only != s.name) continue;
    if (s.xml.empty() && !std::filesystem::exists(s.file)) {
      std::printf("# %s: there is no %s\n", s.name, s.file.c_str());
      continue;
    }
    run(s, seconds, with_mujoco);
  }
  return 0;
}

}  // namespace
}  // namespace cohort::render

int main(int argc, char** argv) {
  try {
    return cohort::render::run_all(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
