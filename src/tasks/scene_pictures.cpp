// SceneTask: what its cameras see.
#include <algorithm>

#include "core/format.h"
#include "render/renderer.h"
#include "tasks/scene_task.h"

namespace cohort::tasks {

namespace {

std::size_t index_of(std::int64_t n) {
  return static_cast<std::size_t>(n);
}

}  // namespace

std::size_t SceneTask::camera_index(const std::string& camera) const {
  const std::vector<std::string>& cameras = spec().cameras;
  const auto found = std::find(cameras.begin(), cameras.end(), camera);
  if (found == cameras.end()) {
    const std::string near = config::nearest(camera, cameras);
    throw Error(format("{} has no camera '{}'{}; it has {}", spec().name, camera,
                       near.empty() ? "" : format(", did you mean '{}'?", near), join(cameras, ", ")));
  }
  return index_of(found - cameras.begin());
}

ArrayView SceneTask::film(const std::string& camera, std::int32_t env, const FilmSettings& settings) {
  camera_index(camera);
  COHORT_CHECK(env >= 0 && env < n_, "environment {} does not exist: there are {}", env, n_);
  if (!film_renderer_ || film_groups_ != settings.geom_groups) {
    render::RendererSettings chosen{.kind = picture_settings_.renderer, .threads = threads_};
    if (settings.geom_groups) chosen.geom_groups = *settings.geom_groups;
    film_renderer_ = render::make_renderer(scene_, chosen);
    film_groups_ = settings.geom_groups;
  }
  const std::int64_t height = settings.height, width = settings.width;
  film_.resize(index_of(height) * index_of(width) * 3);
  const std::int32_t envs[] = {env};
  film_renderer_->render(film_renderer_->camera(camera), envs, {.rgb = make_view(film_.data(), {1, height, width, 3})});
  return make_view(film_.data(), {height, width, 3});
}

ArrayView SceneTask::picture(const std::string& camera, std::span<const std::int32_t> envs) {
  Pictures& pictures = pictures_[camera_index(camera)];
  const int height = picture_settings_.height, width = picture_settings_.width;
  if (!renderer_) {
    COHORT_THROW_UNLESS(height > 0 && width > 0, "pictures of {} x {} pixels: at least 1 x 1", width, height);
    renderer_ = render::make_renderer(scene_, {.kind = picture_settings_.renderer, .threads = threads_});
  }
  if (pictures.rgb.empty()) {
    pictures.camera = renderer_->camera(camera);
    pictures.rgb.resize(index_of(n_) * index_of(height) * index_of(width) * 3);
    pictures.drawn.assign(index_of(n_), -1);
  }
  draw(pictures, envs);
  return make_view(pictures.rgb.data(), {n_, height, width, 3});
}

void SceneTask::draw(Pictures& pictures, std::span<const std::int32_t> envs) {
  stale_.clear();
  for (const std::int32_t env : envs) {
    const auto e = index_of(env);
    COHORT_CHECK(env >= 0 && env < n_, "environment {} does not exist: there are {}", env, n_);
    if (pictures.drawn[e] == moments_[e]) continue;
    pictures.drawn[e] = moments_[e];
    stale_.push_back(env);
  }
  if (stale_.empty()) return;
  const int height = picture_settings_.height, width = picture_settings_.width;
  const std::size_t bytes = index_of(height) * index_of(width) * 3;
  const auto count = static_cast<std::int64_t>(stale_.size());
  picture_rows_.resize(index_of(n_) * bytes);
  renderer_->render(pictures.camera, stale_,
                    {.rgb = make_view(picture_rows_.data(), {count, std::int64_t{height}, std::int64_t{width}, 3})});
  for (std::size_t i = 0; i < stale_.size(); ++i) {
    const auto from = picture_rows_.begin() + static_cast<std::ptrdiff_t>(i * bytes);
    std::copy(from, from + static_cast<std::ptrdiff_t>(bytes),
              pictures.rgb.begin() + static_cast<std::ptrdiff_t>(index_of(stale_[i]) * bytes));
  }
}

}  // namespace cohort::tasks
