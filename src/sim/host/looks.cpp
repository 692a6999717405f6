#include "sim/host/looks.h"

#include <algorithm>

#include "sim/host/visual_model.h"
#include "sim/index.h"

namespace cohort::sim {

const char* look_name(Look look) {
  constexpr const char* kNames[kLookCount] = {"geom_rgba",      "camera_pos", "camera_turn",   "camera_fovy",
                                              "light_pos",      "light_dir",  "light_ambient", "light_diffuse",
                                              "light_specular", "geom_pos",   "geom_quat",     "geom_size"};
  return kNames[static_cast<int>(look)];
}

Looks::Looks(std::shared_ptr<const VisualModel> model, int n_envs) : model_(std::move(model)), n_(n_envs) {}

std::vector<float> Looks::model_values(Look look) const {
  std::vector<float> all;
  const auto add = [&](const auto& numbers) {
    for (const auto x : numbers) all.push_back(static_cast<float>(x));
  };
  for (const VisualGeom& geom : model_->geoms) {
    if (geom.id < 0) continue;
    if (look == Look::kGeomRgba) add(geom.rgba);
    if (look == Look::kGeomPos) add(geom.pos);
    if (look == Look::kGeomQuat) add(geom.quat);
    if (look == Look::kGeomSize) add(geom.size);
  }
  for (const VisualCamera& camera : model_->cameras) {
    const bool com = camera.tracking == VisualTracking::kTrackCom,
               follows = com || camera.tracking == VisualTracking::kTrack;
    if (look == Look::kCameraPos) add(com ? camera.pos_com0 : follows ? camera.pos0 : camera.pos);
    if (look == Look::kCameraTurn) add(std::array<float, 3>{});
    if (look == Look::kCameraFovy) all.push_back(static_cast<float>(camera.fovy));
  }
  for (const VisualLight& light : model_->lights) {
    const bool com = light.tracking == VisualTracking::kTrackCom,
               follows = com || light.tracking == VisualTracking::kTrack;
    if (look == Look::kLightPos) add(com ? light.pos_com0 : follows ? light.pos0 : light.pos);
    if (look == Look::kLightDir) add(follows ? light.dir0 : light.dir);
    if (look == Look::kLightAmbient) add(light.ambient);
    if (look == Look::kLightDiffuse) add(light.diffuse);
    if (look == Look::kLightSpecular) add(light.specular);
  }
  return all;
}

int Looks::size(Look look) const {
  const auto geoms = [this] {
    return static_cast<int>(std::ranges::count_if(model_->geoms, [](const VisualGeom& g) { return g.id >= 0; }));
  };
  switch (look) {
    case Look::kGeomRgba:
    case Look::kGeomQuat:
      return 4 * geoms();
    case Look::kGeomPos:
    case Look::kGeomSize:
      return 3 * geoms();
    case Look::kCameraFovy:
      return static_cast<int>(model_->cameras.size());
    case Look::kCameraPos:
    case Look::kCameraTurn:
      return 3 * static_cast<int>(model_->cameras.size());
    default:
      return 3 * static_cast<int>(model_->lights.size());
  }
}

ArrayView Looks::values(Look look) {
  std::vector<float>& own = values_[at(static_cast<int>(look))];
  if (own.empty()) {
    const std::vector<float> model = model_values(look);
    for (int env = 0; env < n_; ++env) own.insert(own.end(), model.begin(), model.end());
  }
  return make_view(own.data(), {n_, size(look)});
}

bool Looks::any() const {
  return std::ranges::any_of(values_, [](const auto& values) { return !values.empty(); });
}

const float* Looks::of(Look look, int env) const {
  return values_[at(static_cast<int>(look))].data() + at(env) * at(size(look));
}

}  // namespace cohort::sim
