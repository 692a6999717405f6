#include "render/raycast_renderer.h"

#include <algorithm>
#include <atomic>

#include "core/error.h"
#include "core/thread_team.h"
#include "render/cpu/tile_runner.h"
#include "render/own_looks.h"
#include "render/picture.h"
#include "render/traced_scene.h"
#include "sim/backends/cpu/engine.h"
#include "sim/index.h"

namespace cohort::render {

using sim::at;

namespace {

class RaycastRenderer final : public Renderer {
 public:
  RaycastRenderer(sim::Scene& scene, const RendererSettings& settings)
      : Renderer(scene, settings),
        draw_tile_(sim::of_lanes(settings.lanes, scalar_draw_tile(), avx2_draw_tile(), avx512_draw_tile())),
        traced_(model(), settings),
        team_(settings.threads) {
    pictures_.resize(at(settings.threads) * kPicturesAThread);
    poses_.resize(at(settings.threads)), looks_.resize(at(settings.threads));
  }

  std::string description() const override { return "raycast"; }

 protected:
  /// Pictures are placed a few at a time, and their tiles, a row after the other, are what the threads take.
  void draw(const Request& q) override {
    pos_ = scene_.host_view(sim::Field::kLinkPos), quat_ = scene_.host_view(sim::Field::kLinkQuat);
    if (q.together) return draw_together(q);
    for (std::size_t first = 0; first < q.envs.size(); first += pictures_.size()) {
      const std::size_t count = std::min(pictures_.size(), q.envs.size() - first);
      std::atomic<std::size_t> next{0};
      team_.run([&](int thread) {
        for (std::size_t i = next++; i < count; i = next++)
          place(q, first + i, pictures_[i], poses_[at(thread)], looks_[at(thread)]);
      });
      draw_tiles(q, count);
    }
  }

 private:
  static constexpr std::size_t kPicturesAThread = 4;

  /// Of the first `count` pictures that are placed.
  void draw_tiles(const Request& q, std::size_t count) {
    const std::size_t rows = at((q.height + kTile - 1) / kTile);
    std::atomic<std::size_t> next_row{0};
    team_.run([&](int) {
      for (std::size_t i = next_row++; i < count * rows; i = next_row++) {
        const FrameRecord& f = pictures_[i / rows].frame();
        const int begin = static_cast<int>(i % rows) * f.columns;
        for (int tile = begin; tile < begin + f.columns; ++tile) draw_tile_(f, tile);
      }
    });
  }

  void draw_together(const Request& q) {
    std::vector<LinkPoses> environments(q.envs.size());
    for (std::size_t i = 0; i < environments.size(); ++i) {
      read_poses(pos_, quat_, q.envs[i], environments[i]);
      move_to_offset(q.envs[i], environments[i]);
    }
    // Cameras and lights of the world, which is link 0, stay where they are.
    LinkPoses& first = poses_[0];
    first = environments[0];
    first.pos[0] = {0, 0, 0};
    const sim::Looks* const looks = scene_.looks_in_use();
    std::vector<OwnLooks> own(looks == nullptr ? 0 : environments.size());
    std::vector<const GeomRecord*> geoms;
    for (std::size_t i = 0; i < own.size(); ++i) geoms.push_back(own[i].of(traced_, model(), *looks, q.envs[i]).geom);
    const SceneRecord& scene = looks == nullptr ? traced_.record() : own[0].of(traced_, model(), *looks, q.envs[0]);
    pictures_[0].place(scene, camera_record(q, q.envs[0]), lens(q, q.envs[0]), first, environments, geoms);
    set_outputs(q, 0, pictures_[0].frame());
    draw_tiles(q, 1);
  }

  void place(const Request& q, std::size_t index, Picture& picture, LinkPoses& poses, OwnLooks& own) const {
    const std::int32_t env = q.envs[index];
    read_poses(pos_, quat_, env, poses);
    const sim::Looks* const looks = scene_.looks_in_use();
    const SceneRecord& scene = looks == nullptr ? traced_.record() : own.of(traced_, model(), *looks, env);
    picture.place(scene, camera_record(q, env), lens(q, env), poses, {&poses, 1});
    set_outputs(q, index, picture.frame());
  }

  static void set_outputs(const Request& q, std::size_t index, FrameRecord& f) {
    const std::size_t at_pixel = index * at(q.width) * at(q.height);
    const auto from = [&](const ArrayView& array, auto* as, std::size_t components) {
      using T = decltype(as);
      return array.data == nullptr ? nullptr : static_cast<T>(array.data) + components * at_pixel;
    };
    f.rgb = from(q.out.rgb, static_cast<unsigned char*>(nullptr), 3);
    f.depth = from(q.out.depth, static_cast<float*>(nullptr), 1);
    f.segmentation = from(q.out.segmentation, static_cast<int*>(nullptr), 1);
    f.normal = from(q.out.normal, static_cast<float*>(nullptr), 3);
  }

  DrawTile draw_tile_;
  TracedScene traced_;
  ThreadTeam team_;
  std::vector<Picture> pictures_;
  std::vector<LinkPoses> poses_;  ///< of each thread
  std::vector<OwnLooks> looks_;   ///< likewise
  ArrayView pos_, quat_;
};

}  // namespace

std::unique_ptr<Renderer> make_raycast_renderer(sim::Scene& scene, const RendererSettings& settings) {
  return std::make_unique<RaycastRenderer>(scene, settings);
}

}  // namespace cohort::render
