/// Pictures of a scene's environments: colours, depth, segmentation and normals through its cameras, without a display.
///
///   auto renderer = render::make_renderer(scene, {.threads = 2});
///   const int front = renderer->camera("front");
///   std::vector<std::uint8_t> rgb(4 * 128 * 128 * 3);
///   const std::vector<std::int32_t> envs{0, 1, 2, 3};
///   renderer->render(front, envs, {.rgb = make_view(rgb.data(), {4, 128, 128, 3})});
///   const render::Frames frames = renderer->render(front, envs, 128, 128, {.depth = true});  // the same, with memory
///   const render::Pictures here = renderer->render_in_place(front, envs, 128, 128);  // where the renderer draws
///
/// Two renderers: `raycast`, ours, which needs nothing but the processor and gives the same bytes for any number of
/// environments and threads and any vector width; on a CUDA device it draws by the same source, from the engine's poses
/// where that runs there, and leaves the pictures there if asked to; and `mujoco`, MuJoCo's own through EGL or OSMesa,
/// for the exact look of data sets that were made with it. Both draw the scene's present state, of either engine.
///
/// A picture shows what MuJoCo's does (its classic renderer, src/render/classic/render_gl3.c in google-deepmind/mujoco,
/// an OpenGL fixed-function pipeline): geoms and sites of the visible groups, lights, textures, sky and haze.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/array_view.h"
#include "render/camera_pose.h"
#include "sim/host/entity.h"
#include "sim/host/scene.h"
#include "sim/host/visual_model.h"

namespace cohort::render {

/// What is wanted of n environments: contiguous arrays in host memory, or in the memory of the renderer's device, where
/// they are valid on Renderer::stream(). They agree in n, H and W. A view without data is not drawn.
struct Pictures {
  ArrayView rgb{};           ///< (n, H, W, 3) uint8; row 0 is the top
  ArrayView depth{};         ///< (n, H, W) float32: m along the camera's axis; where nothing is, the far plane's
  ArrayView segmentation{};  ///< (n, H, W) int32: the geom of the file; -1 for the background and for sites
  ArrayView normal{};        ///< (n, H, W, 3) float32: unit, in the world; 0 for the background
  /// Degrees, vertical, instead of the camera's; 0: the camera's. Transparent surfaces (alpha below 0.995, planes from
  /// behind) are in the colours and in the segmentation, not in the depth and the normals, as in MuJoCo's.
  double fovy = 0;
};

struct RendererSettings {
  std::string kind = "raycast";  ///< or "mujoco"
  /// Where the raycast renderer draws: the processor or a CUDA device; nothing: where the scene's engine runs.
  std::optional<DeviceId> device{};
  int threads = 1;  ///< of the raycast renderer on the processor; the mujoco renderer's OpenGL has its own
  /// Bytes of a CUDA device that the drawing of some pictures may take besides the pictures; of one it takes its need.
  double device_workspace = 256.0 * (1 << 20);
  bool shadows = false;     ///< of lights that cast them
  bool reflections = true;  ///< in the first plane or box whose material reflects
  /// Groups 0 to 5 that are drawn; MuJoCo's defaults. Tendons, skins and flexes: the mujoco renderer only.
  std::array<bool, 6> geom_groups{true, true, true, false, false, false};
  std::array<bool, 6> site_groups{true, true, true, false, false, false};
  int samples = -1;  ///< of the mujoco renderer: multisampling; 0: none; -1: what the model says, MuJoCo's look
  int slices = 0;    ///< of the mujoco renderer: divisions of round shapes; 0: what the model says
  sim::LaneWidth lanes = sim::LaneWidth::kAuto;  ///< of the raycast renderer
  bool culling = true;                           ///< false: every ray meets every geom; the same bytes, for tests
};

/// A camera as it may be asked for.
struct CameraInfo {
  std::string name;               ///< "" for one without a name
  int width = 320, height = 240;  ///< what the model or CameraOptions says; render() draws what it is asked for
  double fovy = 45;               ///< degrees, vertical
};

/// Which arrays Renderer::render() makes.
struct Wanted {
  bool rgb = true, depth = false, segmentation = false, normal = false;
};
/// Pictures with their memory; shapes as in Pictures.
struct Frames {
  std::int64_t count = 0;
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgb;
  std::vector<float> depth;
  std::vector<std::int32_t> segmentation;
  std::vector<float> normal;
};

class Renderer {
 public:
  virtual ~Renderer() = default;

  /// The model's cameras, in its order (those of Scene::add_camera among them), then those of a scene that was built
  /// from a compiled model, then those that were added here.
  const std::vector<CameraInfo>& cameras() const { return cameras_; }
  /// Index of the camera of that name; throws Error with the nearest name.
  int camera(const std::string& name) const;
  /// A camera that stands still in the world. Returns its index.
  int add_camera(const sim::CameraOptions& options);
  /// Puts a camera that add_camera() made elsewhere: m; w x y z of the rotation whose columns are its right, its up and
  /// its back. Throws Error for another camera.
  void move_camera(int camera, const std::array<double, 3>& pos, const std::array<double, 4>& quat);
  /// One that sees the whole model of environment 0 as it stands now, from the front, the left and above. Returns its
  /// index.
  int add_camera_that_sees_all(int width, int height);
  /// Likewise, all of these environments as render_together() shows them.
  int add_camera_that_sees_all(int width, int height, std::span<const std::int32_t> envs);
  /// `camera` moved straight back and aside until it sees all of these environments as render_together() shows them:
  /// what its file placed for one environment cuts many off. The same camera where it sees them all as it stands, and
  /// where it does not stand still in the world or is orthographic.
  int camera_that_sees_all(int camera, int width, int height, std::span<const std::int32_t> envs);

  /// Draws the present state of these environments. Throws Error for a camera or environment that there is not, for
  /// arrays that do not fit, and for what the mujoco renderer's OpenGL cannot do.
  void render(int camera, std::span<const std::int32_t> envs, const Pictures& out);
  /// The same into memory of its own.
  Frames render(int camera, std::span<const std::int32_t> envs, int width, int height, const Wanted& wanted = {});
  /// The same into memory of the renderer's own on its device, which it uses again in the next call for this camera. On
  /// a CUDA device nothing is copied to the host and nothing waited for: the views are valid on their stream
  /// (tensors::to_tensor makes LibTorch tensors of them).
  Pictures render_in_place(int camera, std::span<const std::int32_t> envs, int width, int height,
                           const Wanted& wanted = {});

  /// Where it draws, and the CUDA stream on which it does; null on the processor.
  virtual DeviceId device() const { return {}; }
  virtual void* stream() const { return nullptr; }

  /// One picture of several environments, as Genesis shows them: each stands where Scene::environment_offset() says
  /// (env_spacing of build()). The arrays have n = 1. Lights and cameras that stand in the world stay where they are;
  /// those of links are the first environment's, and so are planes without end. The raycast renderer only.
  void render_together(int camera, std::span<const std::int32_t> envs, const Pictures& out);

  /// What made the pictures, for a data set to say: "raycast", or "mujoco 4.0.1 on EGL device 0 (llvmpipe ...)".
  virtual std::string description() const = 0;

 protected:
  Renderer(sim::Scene& scene, const RendererSettings& settings);

  /// Checked arguments; count, width and height are those of the arrays.
  struct Request {
    int camera = 0, width = 0, height = 0;
    std::span<const std::int32_t> envs;
    Pictures out;
    bool together = false;  ///< one picture of them all
  };
  virtual void draw(const Request& request) = 0;
  /// On the renderer's device, of a camera, for the arrays of Pictures in their order.
  virtual void* own_memory(int camera, std::size_t output, std::size_t bytes);
  void check_request(int camera, std::span<const std::int32_t> envs, const Pictures& out) const;

  /// Of environment `env`, from the views that `draw` took of the scene.
  static void read_poses(const ArrayView& pos, const ArrayView& quat, int env, LinkPoses& to);
  /// As the environment has the camera.
  CameraRecord camera_record(const Request& request, std::int32_t env) const;
  LensRecord lens(const Request& request, std::int32_t env) const;
  sim::VisualCamera camera_of(const Request& request, std::int32_t env) const;
  /// Of a view's row and column, float or double.
  /// Puts an environment where Scene::environment_offset() says.
  void move_to_offset(int env, LinkPoses& poses) const;
  const sim::VisualModel& model() const { return *model_; }
  LinkPoses poses_of(int env);

  sim::Scene& scene_;
  RendererSettings settings_;

 private:
  int add_camera_that_sees(const std::vector<LinkPoses>& environments, int width, int height);
  std::vector<bool> moving_links() const;  ///< of each link, whether anything moves it
  std::vector<LinkPoses> poses_together(std::span<const std::int32_t> envs);

  std::shared_ptr<const sim::VisualModel> model_;
  std::vector<sim::VisualCamera> views_;  ///< the model's, then those that were added
  std::vector<CameraInfo> cameras_;
  std::map<std::pair<int, std::size_t>, std::vector<unsigned char>> own_;  ///< of own_memory() on the processor
};

/// Throws Error for a kind that is not known, settings that make no sense, a scene that is not built, a compiled model
/// that holds no pictures, for a CUDA device that is not there or a build without CUDA, and for the mujoco renderer
/// where there is neither EGL nor OSMesa, or no MuJoCo.
/// The renderer refers to the scene, which has to outlive it.
std::unique_ptr<Renderer> make_renderer(sim::Scene& scene, const RendererSettings& settings = {});

}  // namespace cohort::render
