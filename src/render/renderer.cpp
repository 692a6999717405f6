#include "render/renderer.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/config.h"
#include "core/error.h"
#include "core/real_at.h"
#include "render/cuda/raycast.h"
#include "render/mujoco_renderer.h"
#include "render/own_looks.h"
#include "render/raycast_renderer.h"
#include "sim/index.h"

namespace cohort::render {

using sim::at;

namespace {

CameraInfo info_of(const sim::VisualCamera& camera) {
  CameraInfo info;
  info.name = camera.name;
  if (camera.width > 1 && camera.height > 1) info.width = camera.width, info.height = camera.height;
  info.fovy = camera.fovy;
  return info;
}

void need_side(const char* what, std::int64_t pixels) {
  constexpr std::int64_t kMost = 1 << 14;
  COHORT_THROW_UNLESS(pixels >= 1 && pixels <= kMost, "a picture with a {} of {} pixels: 1 to {}", what, pixels, kMost);
}

/// The four arrays agree with each other and with what is asked.
class ShapeCheck {
 public:
  ShapeCheck(std::int64_t count, DeviceId device) : count_(count), device_(device) {}
  void operator()(const char* name, const ArrayView& view, ElementType type, int components) {
    if (view.data == nullptr) return;
    const int rank = components > 1 ? 4 : 3;
    COHORT_THROW_UNLESS(view.type == type, "the array for {} holds {}: {} is needed", name, element_name(view.type),
                        element_name(type));
    COHORT_THROW_UNLESS(view.rank == rank && (components == 1 || view.shape[3] == components),
                        "the array for {} has {} dimensions: (n, height, width{}) is needed", name, view.rank,
                        components == 1 ? "" : ", 3");
    const bool there = view.device.kind == DeviceKind::kCpu || view.device == device_;
    COHORT_THROW_UNLESS(there && view.contiguous(), "the array for {} is not a contiguous one in host memory{}", name,
                        device_.kind == DeviceKind::kCpu ? "" : " or on " + to_string(device_));
    COHORT_THROW_UNLESS(view.shape[0] == count_, "the array for {} holds {} pictures and {} environments are asked for",
                        name, view.shape[0], count_);
    if (height == 0) height = view.shape[1], width = view.shape[2];
    COHORT_THROW_UNLESS(view.shape[1] == height && view.shape[2] == width,
                        "the array for {} is {} x {} pixels, another {} x {}", name, view.shape[2], view.shape[1],
                        width, height);
    need_side("width", width), need_side("height", height);
  }
  std::int64_t width = 0, height = 0;

 private:
  std::int64_t count_;
  DeviceId device_;
};

/// Corners of what a geom fills, in its frame; false for one without end.
bool box_of(const sim::VisualModel& m, const sim::VisualGeom& g, Vec3& low, Vec3& high) {
  Vec3 half = g.size;
  switch (g.shape) {
    case sim::VisualShape::kPlane:
      return false;
    case sim::VisualShape::kSphere:
      half = {g.size[0], g.size[0], g.size[0]};
      break;
    case sim::VisualShape::kCapsule:
      half = {g.size[0], g.size[0], g.size[0] + g.size[1]};
      break;
    case sim::VisualShape::kCylinder:
      half = {g.size[0], g.size[0], g.size[1]};
      break;
    case sim::VisualShape::kHeightField: {
      const sim::VisualHeightField& f = m.height_fields[at(g.data)];
      low = {-f.size[0], -f.size[1], -f.size[3]}, high = {f.size[0], f.size[1], f.size[2]};
      return true;
    }
    case sim::VisualShape::kMesh: {
      const std::vector<float>& v = m.meshes[at(g.data)].vertex;
      if (v.empty()) return false;
      for (std::size_t k = 0; k < 3; ++k) low[k] = high[k] = static_cast<double>(v[k]);
      for (std::size_t i = 0; i < v.size(); ++i) {
        low[i % 3] = std::min(low[i % 3], static_cast<double>(v[i]));
        high[i % 3] = std::max(high[i % 3], static_cast<double>(v[i]));
      }
      return true;
    }
    default:
      break;
  }
  for (std::size_t k = 0; k < 3; ++k) low[k] = -half[k], high[k] = half[k];
  return true;
}

struct WorldBox {
  Vec3 low{1e30, 1e30, 1e30}, high{-1e30, -1e30, -1e30};
  bool empty() const { return low[0] > high[0]; }
  void add(const Vec3& p) {
    for (std::size_t k = 0; k < 3; ++k) low[k] = std::min(low[k], p[k]), high[k] = std::max(high[k], p[k]);
  }
  Vec3 corner(int i) const { return {i & 1 ? high[0] : low[0], i & 2 ? high[1] : low[1], i & 4 ? high[2] : low[2]}; }
  Vec3 middle() const { return {(low[0] + high[0]) / 2, (low[1] + high[1]) / 2, (low[2] + high[2]) / 2}; }
  double radius() const {
    const Vec3 d = minus(high, low);
    return std::sqrt(dot(d, d)) / 2;
  }
};

WorldBox world_box(const sim::VisualModel& m, const sim::VisualGeom& g, const LinkPoses& poses) {
  WorldBox box;
  Vec3 low, high;
  if (!box_of(m, g, low, high)) return box;
  const Mat3 rot = product(poses.rot[at(g.link)], rotation_of(g.quat));
  const Vec3 pos = plus(poses.pos[at(g.link)], turn(poses.rot[at(g.link)], g.pos));
  for (int i = 0; i < 8; ++i) {
    const Vec3 corner{i & 1 ? high[0] : low[0], i & 2 ? high[1] : low[1], i & 4 ? high[2] : low[2]};
    box.add(plus(pos, turn(rot, corner)));
  }
  return box;
}

/// Of geoms that are shown: those that move, and of what stands still only what lies around them: walls of a room would
/// hide them.
std::vector<WorldBox> boxes_shown(const sim::VisualModel& m, const std::vector<LinkPoses>& environments,
                                  const std::array<bool, 6>& groups, const std::vector<bool>& moves) {
  std::vector<WorldBox> boxes, shown;
  std::vector<bool> box_moves;
  WorldBox moving;
  for (const LinkPoses& poses : environments) {
    for (const sim::VisualGeom& g : m.geoms) {
      const bool seen = g.id >= 0 && g.rgba[3] > 0 && groups[at(g.group)];
      const WorldBox box = seen ? world_box(m, g, poses) : WorldBox{};
      if (box.empty()) continue;
      boxes.push_back(box), box_moves.push_back(moves[at(g.link)]);
      if (moves[at(g.link)]) moving.add(box.low), moving.add(box.high);
    }
  }
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const Vec3 to_low = minus(boxes[i].low, moving.middle()), to_high = minus(boxes[i].high, moving.middle());
    const double reach = 1.5 * moving.radius();
    const bool near = std::max(dot(to_low, to_low), dot(to_high, to_high)) <= reach * reach;
    if (!moving.empty() && !box_moves[i] && !near) continue;
    shown.push_back(boxes[i]);
  }
  return shown;
}

}  // namespace

std::vector<bool> Renderer::moving_links() const {
  std::vector<bool> moves(model_->links.size(), false);
  for (std::size_t i = 1; i < model_->links.size(); ++i) {
    const sim::LinkInfo& link = scene_.info().links[i];
    moves[i] = link.dof_count > 0 || link.mocap >= 0 || moves[at(model_->links[i].parent)];
  }
  return moves;
}

Renderer::Renderer(sim::Scene& scene, const RendererSettings& settings)
    : scene_(scene), settings_(settings), model_(scene.visual_model()), views_(model_->cameras) {
  for (const sim::VisualCamera& camera : views_) cameras_.push_back(info_of(camera));
  // A compiled model has the cameras that its scene had; this scene's own come on top.
  const std::size_t own = scene.cameras().size() - std::min(scene.cameras().size(), scene.info().cameras.size());
  if (scene.binary_model().empty()) {
    for (std::size_t i = 0; i < own; ++i) add_camera(scene.cameras()[i]);
  }
}

int Renderer::camera(const std::string& name) const {
  std::vector<std::string> names;
  for (const CameraInfo& camera : cameras_) names.push_back(camera.name);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<int>(found - names.begin());
  std::erase(names, "");
  const std::string near = config::nearest(name, names);
  std::string known;
  for (const std::string& n : names) known += (known.empty() ? "" : ", ") + n;
  throw Error(format("the model has no camera named `{}`{}", name,
                     !near.empty()   ? format("; is `{}` meant?", near)
                     : known.empty() ? "; it has none with a name"
                                     : format("; it has {}", known)));
}

int Renderer::add_camera(const sim::CameraOptions& options) {
  COHORT_THROW_UNLESS(options.fov > 0 && options.fov < 180, "camera `{}` has a field of view of {} degrees: 0 to 180",
                      options.name, options.fov);
  const Vec3 way = minus(options.pos, options.lookat);
  COHORT_THROW_UNLESS(std::isfinite(dot(way, way)) && dot(way, way) > 1e-18, "camera `{}` looks at its own position",
                      options.name);
  for (const CameraInfo& other : cameras_) {
    COHORT_THROW_UNLESS(options.name.empty() || other.name != options.name, "two cameras are named `{}`", options.name);
  }
  sim::VisualCamera camera = looking_at(options.pos, options.lookat);
  camera.name = options.name;
  camera.fovy = options.fov;
  camera.width = options.width, camera.height = options.height;
  views_.push_back(camera);
  cameras_.push_back(info_of(camera));
  return static_cast<int>(views_.size()) - 1;
}

void Renderer::move_camera(int camera, const std::array<double, 3>& pos, const std::array<double, 4>& quat) {
  check_request(camera, {}, {});
  sim::VisualCamera& view = views_[at(camera)];
  // What add_camera() makes tracks the world, which stands still.
  const bool stands = view.tracking == sim::VisualTracking::kFixed || view.tracking == sim::VisualTracking::kTrack;
  COHORT_THROW_UNLESS(view.link == 0 && stands,
                      "camera `{}` is fixed to a link or follows one: only those that stand in the world are moved",
                      view.name);
  const double length = std::sqrt(quat[0] * quat[0] + quat[1] * quat[1] + quat[2] * quat[2] + quat[3] * quat[3]);
  COHORT_THROW_UNLESS(std::isfinite(dot(pos, pos)) && std::isfinite(length) && length > 1e-9,
                      "camera `{}` cannot be put to ({}, {}, {}) with that orientation", view.name, pos[0], pos[1],
                      pos[2]);
  view.tracking = sim::VisualTracking::kFixed;
  view.pos = pos;
  for (std::size_t i = 0; i < 4; ++i) view.quat[i] = quat[i] / length;
}

int Renderer::add_camera_that_sees_all(int width, int height) {
  return add_camera_that_sees({poses_of(0)}, width, height);
}

std::vector<LinkPoses> Renderer::poses_together(std::span<const std::int32_t> envs) {
  std::vector<LinkPoses> poses;
  for (const std::int32_t env : envs) {
    poses.push_back(poses_of(env));
    move_to_offset(env, poses.back());
  }
  COHORT_CHECK(!poses.empty(), "a camera that sees no environment");
  return poses;
}

int Renderer::add_camera_that_sees_all(int width, int height, std::span<const std::int32_t> envs) {
  return add_camera_that_sees(poses_together(envs), width, height);
}

int Renderer::camera_that_sees_all(int camera, int width, int height, std::span<const std::int32_t> envs) {
  need_side("width", width), need_side("height", height);
  check_request(camera, envs, {});
  const sim::VisualCamera view = views_[at(camera)];
  const std::vector<LinkPoses> environments = poses_together(envs);
  const bool stands_still = view.link == 0 && view.tracking == sim::VisualTracking::kFixed;
  if (!stands_still || view.orthographic || view.fovy <= 0 || view.sensor_size[0] > 0) return camera;
  const Mat3 axes = rotation_of(view.quat);  // columns: right, up, back
  const auto column = [&](std::size_t k) { return Vec3{axes[k], axes[3 + k], axes[6 + k]}; };
  const Vec3 right = column(0), above = column(1), way = column(2);
  const double up = std::tan(view.fovy * std::numbers::pi / 360), across = up * width / height;
  const std::vector<WorldBox> shown = boxes_shown(model(), environments, settings_.geom_groups, moving_links());
  const auto for_corners = [&](const Vec3& from, const auto& visit) {
    for (const WorldBox& box : shown)
      for (int i = 0; i < 8; ++i) {
        const Vec3 p = minus(box.corner(i), from);
        visit(dot(p, right), dot(p, above), dot(p, way));
      }
  };
  bool in_view = true;
  const Vec3 stands{view.pos[0], view.pos[1], view.pos[2]};
  for_corners(stands, [&](double x, double y, double back) {
    in_view = in_view && back < 0 && std::abs(x) <= -back * across && std::abs(y) <= -back * up;
  });
  if (in_view || shown.empty()) return camera;
  WorldBox all;
  for (const WorldBox& box : shown) all.add(box.low), all.add(box.high);
  double distance = 1e-3;
  for_corners(all.middle(), [&](double x, double y, double back) {
    distance = std::max({distance, back + std::abs(x) / across, back + std::abs(y) / up});
  });
  distance *= 1.05;
  sim::VisualCamera moved = view;
  for (std::size_t k = 0; k < 3; ++k) moved.pos[k] = all.middle()[k] + distance * way[k];
  moved.name.clear();
  views_.push_back(moved);
  cameras_.push_back(info_of(moved));
  return static_cast<int>(views_.size()) - 1;
}

int Renderer::add_camera_that_sees(const std::vector<LinkPoses>& environments, int width, int height) {
  need_side("width", width), need_side("height", height);
  const sim::VisualModel& m = *model_;
  const std::vector<WorldBox> shown = boxes_shown(m, environments, settings_.geom_groups, moving_links());
  WorldBox all;
  for (const WorldBox& box : shown) all.add(box.low), all.add(box.high);
  const double fovy = m.fovy > 0 && m.fovy < 180 ? m.fovy : 45;
  const double up = std::tan(fovy * std::numbers::pi / 360), across = up * width / height;
  const Vec3 way = unit({1, 0.8, 0.7}), right = unit(cross({0, 0, 1}, way)), above = cross(way, right);
  const Vec3 middle = shown.empty() ? m.centre : all.middle();
  // So far away that every corner lies between the picture's edges.
  double distance = shown.empty() ? m.extent / std::min(up, across) : 1e-3;
  for (const WorldBox& box : shown) {
    for (int i = 0; i < 8; ++i) {
      const Vec3 p = minus(box.corner(i), middle);
      distance = std::max(distance, dot(p, way) + std::abs(dot(p, right)) / across);
      distance = std::max(distance, dot(p, way) + std::abs(dot(p, above)) / up);
    }
  }
  distance *= 1.05;
  sim::CameraOptions options;
  for (std::size_t k = 0; k < 3; ++k) options.pos[k] = middle[k] + distance * way[k], options.lookat[k] = middle[k];
  options.fov = fovy;
  options.width = width, options.height = height;
  return add_camera(options);
}

void Renderer::check_request(int camera, std::span<const std::int32_t> envs, const Pictures& out) const {
  COHORT_THROW_UNLESS(camera >= 0 && at(camera) < views_.size(), "there is no camera {}: there are {}, counted from 0",
                      camera, views_.size());
  for (const std::int32_t env : envs) {
    COHORT_THROW_UNLESS(env >= 0 && env < scene_.n_envs(),
                        "environment {} does not exist: there are {}, counted from 0", env, scene_.n_envs());
  }
  COHORT_THROW_UNLESS(out.fovy >= 0 && out.fovy < 180, "a field of view of {} degrees: 0 to 180", out.fovy);
}

namespace {

/// Height and width of the arrays that are wanted, n pictures each; height 0: none is.
ShapeCheck checked_shapes(std::int64_t n, const Pictures& out, DeviceId device) {
  ShapeCheck check(n, device);
  check("rgb", out.rgb, ElementType::kUInt8, 3);
  check("depth", out.depth, ElementType::kFloat32, 1);
  check("segmentation", out.segmentation, ElementType::kInt32, 1);
  check("normal", out.normal, ElementType::kFloat32, 3);
  return check;
}

}  // namespace

void Renderer::render(int camera, std::span<const std::int32_t> envs, const Pictures& out) {
  check_request(camera, envs, out);
  const ShapeCheck check = checked_shapes(static_cast<std::int64_t>(envs.size()), out, device());
  if (check.height == 0 || envs.empty()) return;
  draw({camera, static_cast<int>(check.width), static_cast<int>(check.height), envs, out});
}

void Renderer::render_together(int camera, std::span<const std::int32_t> envs, const Pictures& out) {
  COHORT_THROW_UNLESS(settings_.kind == "raycast",
                      "the renderer {} draws one environment a picture: several in one are for the renderer raycast",
                      settings_.kind);
  check_request(camera, envs, out);
  const ShapeCheck check = checked_shapes(1, out, device());
  if (check.height == 0 || envs.empty()) return;
  draw({camera, static_cast<int>(check.width), static_cast<int>(check.height), envs, out, true});
}

Frames Renderer::render(int camera, std::span<const std::int32_t> envs, int width, int height, const Wanted& wanted) {
  need_side("width", width), need_side("height", height);
  Frames f;
  f.count = static_cast<std::int64_t>(envs.size());
  f.width = width, f.height = height;
  const std::size_t pixels = envs.size() * at(width) * at(height);
  Pictures out;
  if (wanted.rgb) {
    f.rgb.resize(3 * pixels);
    out.rgb = make_view(f.rgb.data(), {f.count, height, width, 3});
  }
  if (wanted.depth) {
    f.depth.resize(pixels);
    out.depth = make_view(f.depth.data(), {f.count, height, width});
  }
  if (wanted.segmentation) {
    f.segmentation.resize(pixels);
    out.segmentation = make_view(f.segmentation.data(), {f.count, height, width});
  }
  if (wanted.normal) {
    f.normal.resize(3 * pixels);
    out.normal = make_view(f.normal.data(), {f.count, height, width, 3});
  }
  render(camera, envs, out);
  return f;
}

Pictures Renderer::render_in_place(int camera, std::span<const std::int32_t> envs, int width, int height,
                                   const Wanted& wanted) {
  check_request(camera, envs, {});
  need_side("width", width), need_side("height", height);
  const auto n = static_cast<std::int64_t>(envs.size());
  const auto array = [&](bool is_wanted, std::size_t output, ElementType type, int components) {
    const std::array<std::int64_t, 4> shape{n, height, width, components};
    ArrayView view;
    if (!is_wanted) return view;
    view = make_view(nullptr, type, std::span(shape).first(components == 1 ? 3 : 4), device());
    view.data = own_memory(camera, output, view.bytes());
    view.stream = stream();
    return view;
  };
  const Pictures out{.rgb = array(wanted.rgb, 0, ElementType::kUInt8, 3),
                     .depth = array(wanted.depth, 1, ElementType::kFloat32, 1),
                     .segmentation = array(wanted.segmentation, 2, ElementType::kInt32, 1),
                     .normal = array(wanted.normal, 3, ElementType::kFloat32, 3)};
  render(camera, envs, out);
  return out;
}

void* Renderer::own_memory(int camera, std::size_t output, std::size_t bytes) {
  std::vector<unsigned char>& memory = own_[{camera, output}];
  if (memory.size() < bytes) memory.resize(bytes);
  return memory.data();
}

void Renderer::read_poses(const ArrayView& pos, const ArrayView& quat, int env, LinkPoses& to) {
  const std::size_t n = at(pos.shape[1]) / 3;
  to.pos.resize(n), to.rot.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    const auto link = static_cast<std::int64_t>(i);
    for (int k = 0; k < 3; ++k) to.pos[i][at(k)] = real_at(pos, env, 3 * link + k);
    std::array<double, 4> q;
    for (int k = 0; k < 4; ++k) q[at(k)] = real_at(quat, env, 4 * link + k);
    to.rot[i] = rotation_of(q);
  }
}

void Renderer::move_to_offset(int env, LinkPoses& poses) const {
  const std::array<double, 2> offset = scene_.environment_offset(env);
  for (Vec3& pos : poses.pos) pos[0] += offset[0], pos[1] += offset[1];
}

LinkPoses Renderer::poses_of(int env) {
  LinkPoses poses;
  read_poses(scene_.host_view(sim::Field::kLinkPos), scene_.host_view(sim::Field::kLinkQuat), env, poses);
  return poses;
}

sim::VisualCamera Renderer::camera_of(const Request& request, std::int32_t env) const {
  const sim::VisualCamera& camera = views_[at(request.camera)];
  const sim::Looks* const looks = scene_.looks_in_use();
  // Those that were added here are nobody's own.
  if (looks == nullptr || at(request.camera) >= model_->cameras.size()) return camera;
  return own_camera(camera, *looks, request.camera, env);
}

CameraRecord Renderer::camera_record(const Request& request, std::int32_t env) const {
  return record_of(camera_of(request, env));
}

LensRecord Renderer::lens(const Request& request, std::int32_t env) const {
  const sim::VisualCamera camera = camera_of(request, env);
  LensRecord v{};
  v.width = request.width, v.height = request.height;
  v.near = model_->near, v.far = model_->far;
  v.orthographic = camera.orthographic;
  const double aspect = static_cast<double>(request.width) / request.height;
  if (v.orthographic) {
    v.top = (request.out.fovy > 0 ? request.out.fovy : camera.fovy) / 2;
  } else if (request.out.fovy == 0 && camera.sensor_size[1] > 0) {
    // MuJoCo's frustum from focal lengths and principal point (getFrustum in engine_vis_visualize.c).
    const auto side = [&](std::size_t axis, double sign) {
      const double focal = static_cast<double>(camera.intrinsic[axis]);
      return (static_cast<double>(camera.sensor_size[axis]) / 2 +
              sign * static_cast<double>(camera.intrinsic[2 + axis])) /
             focal;
    };
    v.left = -side(0, -1), v.right = side(0, 1);
    v.top = side(1, -1), v.bottom = -side(1, 1);
    return v;
  } else {
    v.top = std::tan((request.out.fovy > 0 ? request.out.fovy : camera.fovy) * std::numbers::pi / 360);
  }
  v.bottom = -v.top;
  v.right = v.top * aspect, v.left = -v.right;
  return v;
}

std::unique_ptr<Renderer> make_renderer(sim::Scene& scene, const RendererSettings& settings) {
  COHORT_THROW_UNLESS(scene.built(), "the scene is not built yet: call build() first");
  COHORT_THROW_UNLESS(settings.threads >= 1, "threads is {}: at least 1", settings.threads);
  COHORT_THROW_UNLESS(settings.samples >= -1, "samples is {}: -1 (from the model), 0 (none) or more", settings.samples);
  if (settings.kind == "raycast") {
    RendererSettings chosen = settings;
    // What environments have of their own is in host memory.
    if (!chosen.device) chosen.device = scene.looks_in_use() != nullptr ? DeviceId{} : scene.options().device;
    if (chosen.device->kind == DeviceKind::kCuda) return make_cuda_raycast_renderer(scene, chosen);
    COHORT_THROW_UNLESS(chosen.device->kind == DeviceKind::kCpu,
                        "the renderer raycast draws on cpu or on a CUDA device, not on {}", to_string(*chosen.device));
    return make_raycast_renderer(scene, chosen);
  }
  COHORT_THROW_UNLESS(settings.kind == "mujoco", "the renderer `{}` is not known: raycast or mujoco", settings.kind);
  COHORT_THROW_UNLESS(!settings.device, "the renderer mujoco draws where OpenGL does, not on {}: leave the device out",
                      to_string(*settings.device));
  return make_mujoco_renderer(scene, settings);
}

}  // namespace cohort::render
