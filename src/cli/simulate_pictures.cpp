#include "cli/simulate_pictures.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <tuple>
#include <vector>

#include "cli/picture_arguments.h"
#include "cli/subcommand.h"
#include "core/error.h"
#include "core/files.h"
#include "core/log.h"
#include "render/renderer.h"
#include "render/video.h"
#include "view/page.h"
#include "view/pose_track.h"
#include "view/scene_document.h"

namespace cohort::cli {

namespace {

constexpr int kMostShown = 16, kMostTogether = 256, kMostOnPage = 64;

}  // namespace

void check(const PictureSettings& s) {
  for (const double m : s.env_spacing) {
    if (!std::isfinite(m)) throw UsageError(format("--env-spacing {}: metres between environments, e.g. 2", m));
  }
  if (!s.env_spacing.empty() && s.renderer != "raycast") {
    throw UsageError("--env-spacing: the renderer mujoco draws one environment a picture; leave --renderer out");
  }
  if (!s.device.empty() && s.renderer != "raycast") {
    throw UsageError("--render-device: the renderer mujoco draws where OpenGL does; leave --renderer or this out");
  }
  if (!s.device.empty() && !s.drawn()) {
    throw UsageError("--render-device is for --video and --picture: name one of them");
  }
  if (!s.video.empty() && !s.video.ends_with(".mp4")) {
    throw UsageError(format("--video {}: a video's name ends in .mp4", s.video));
  }
  if (!s.picture.empty() && !s.picture.ends_with(".png")) {
    throw UsageError(format("--picture {}: a picture's name ends in .png", s.picture));
  }
  if (!s.html.empty() && !s.html.ends_with(".html")) {
    throw UsageError(format("--html {}: a page's name ends in .html", s.html));
  }
  if (!s.size.empty()) picture_size("--size", s.size, false);
  if (!s.geom_groups.empty()) geom_groups(s.geom_groups);
  const bool for_pictures = !s.camera.empty() || !s.size.empty() || s.shadows.has_value() || !s.geom_groups.empty();
  if (!s.drawn() && (for_pictures || (!s.env_spacing.empty() && s.html.empty()))) {
    throw UsageError(
        "--camera, --size, --shadows, --geom-groups and --env-spacing are for --video and --picture: name one of them");
  }
}

struct SimulatePictures::Parts {
  sim::Scene& scene;
  PictureSettings settings;
  std::unique_ptr<render::Renderer> renderer;
  std::string page_scene;  ///< of settings.html
  std::optional<view::PoseTrack> track;
  std::optional<render::VideoWriter> video;
  int camera = 0, width = 0, height = 0;
  std::vector<std::int32_t> envs;
  render::Mosaic mosaic;
  std::vector<std::uint8_t> pictures, whole;

  const std::vector<std::uint8_t>& draw() {
    if (!settings.env_spacing.empty()) {
      renderer->render_together(camera, envs, {.rgb = make_view(whole.data(), {1, height, width, 3})});
      return whole;
    }
    const auto n = static_cast<std::int64_t>(envs.size());
    renderer->render(camera, envs, {.rgb = make_view(pictures.data(), {n, height, width, 3})});
    render::tile(mosaic, pictures, static_cast<int>(n), whole);
    return whole;
  }
};

SimulatePictures::SimulatePictures(sim::Scene& scene, const PictureSettings& settings, int threads)
    : parts_(new Parts{.scene = scene, .settings = settings}) {
  Parts& p = *parts_;
  if (!settings.html.empty()) {
    std::vector<std::int32_t> envs(static_cast<std::size_t>(std::min(scene.n_envs(), kMostOnPage)));
    std::iota(envs.begin(), envs.end(), 0);
    if (scene.n_envs() > kMostOnPage)
      log::info("{} shows the first {} of {} environments", settings.html, kMostOnPage, scene.n_envs());
    p.page_scene = view::scene_document(scene, envs);
    p.track.emplace(scene, envs, settings.fps);
  }
  if (!settings.drawn()) return;
  render::RendererSettings chosen{
      .kind = settings.renderer, .threads = threads, .shadows = settings.shadows.value_or(settings.own_light)};
  if (!settings.device.empty()) chosen.device = parse_device(settings.device);
  if (!settings.geom_groups.empty()) chosen.geom_groups = geom_groups(settings.geom_groups);
  p.renderer = render::make_renderer(scene, chosen);
  p.width = 640, p.height = 480;
  if (!settings.size.empty()) std::tie(p.width, p.height) = picture_size("--size", settings.size, false);
  const bool together = !settings.env_spacing.empty();
  const int most = together ? kMostTogether : kMostShown;
  p.envs.resize(static_cast<std::size_t>(std::min(scene.n_envs(), most)));
  std::iota(p.envs.begin(), p.envs.end(), 0);
  if (scene.n_envs() > most) log::info("pictures show the first {} of {} environments", most, scene.n_envs());
  if (settings.camera.empty()) {
    p.camera = together ? p.renderer->add_camera_that_sees_all(p.width, p.height, p.envs)
                        : p.renderer->add_camera_that_sees_all(p.width, p.height);
  } else {
    p.camera = p.renderer->camera(settings.camera);
    const render::CameraInfo& info = p.renderer->cameras()[static_cast<std::size_t>(p.camera)];
    if (settings.size.empty()) p.width = info.width, p.height = info.height;
    if (together) {
      const int all = p.renderer->camera_that_sees_all(p.camera, p.width, p.height, p.envs);
      if (all != p.camera)
        log::info("camera {} is moved back to see all {} environments", settings.camera, p.envs.size());
      p.camera = all;
    }
  }
  p.mosaic = render::mosaic_of(together ? 1 : static_cast<int>(p.envs.size()), p.width, p.height);
  const std::size_t bytes = 3 * static_cast<std::size_t>(p.width) * static_cast<std::size_t>(p.height);
  if (!together) p.pictures.resize(bytes * p.envs.size());
  p.whole.resize(3 * static_cast<std::size_t>(p.mosaic.width) * static_cast<std::size_t>(p.mosaic.height));
  if (!settings.video.empty()) p.video.emplace(settings.video, p.mosaic.width, p.mosaic.height, settings.fps);
}
SimulatePictures::~SimulatePictures() = default;

void SimulatePictures::add() {
  Parts& p = *parts_;
  if (!p.video && !p.track) return;
  const double time = static_cast<double>(p.scene.step_count()) * p.scene.options().substeps * p.scene.info().timestep;
  if (p.track) p.track->add(time);
  if (!p.video) return;
  // Frame k shows the state at k / fps; steps longer than a frame's time are shown several times.
  constexpr double kRounding = 1e-9;
  if (static_cast<double>(p.video->frames()) / p.settings.fps > time + kRounding) return;
  p.draw();
  render::draw_text({p.whole, p.mosaic.width, p.mosaic.height}, 2, 2,
                    format("step {}  {:.2f} s{}{}", p.scene.step_count(), time, p.settings.camera.empty() ? "" : "  ",
                           p.settings.camera));
  while (static_cast<double>(p.video->frames()) / p.settings.fps <= time + kRounding) p.video->add(p.whole);
}

void SimulatePictures::save() {
  Parts& p = *parts_;
  if (!p.settings.picture.empty()) {
    render::write_png(p.settings.picture, p.draw(), p.mosaic.width, p.mosaic.height);
    log::info("picture of the last state in {}", p.settings.picture);
  }
  if (p.track) {
    const std::string page = view::offline_page({.title = std::filesystem::path(p.settings.html).stem().string(),
                                                 .scene = p.page_scene,
                                                 .episodes = {{"", p.track->bytes()}}});
    write_file_atomically(p.settings.html, page);
    log::info("{} frames in {}, {}: open it in a browser", p.track->frames(), p.settings.html,
              format_bytes(static_cast<double>(page.size())));
  }
  if (!p.video) return;
  p.video->finish();
  log::info("{} frames of {} x {} in {}, drawn by {}", p.video->frames(), p.mosaic.width, p.mosaic.height,
            p.settings.video, p.renderer->description());
}

}  // namespace cohort::cli
