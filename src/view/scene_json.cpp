#include "view/scene_json.h"

#include "render/camera_pose.h"

namespace cohort::view {

using nlohmann::json;

namespace {

const char* name_of(render::Mount mount) {
  switch (mount) {
    case render::Mount::kFixed:
      return "fixed";
    case render::Mount::kTrack:
      return "track";
    case render::Mount::kTrackCom:
      return "trackcom";
    case render::Mount::kTargetBody:
      return "targetbody";
    case render::Mount::kTargetBodyCom:
      return "targetbodycom";
  }
  return "fixed";
}

}  // namespace

json light_json(const render::LightRecord& r) {
  return {{"directional", r.directional != 0},
          {"shadow", r.shadow != 0},
          {"attenuation", numbers(r.attenuation)},
          {"cosCutoff", number(static_cast<double>(r.cos_cutoff))},
          {"exponent", number(static_cast<double>(r.exponent))},
          {"ambient", numbers(r.ambient)},
          {"diffuse", numbers(r.diffuse)},
          {"specular", numbers(r.specular)}};
}

json light_json(const render::LightSource& l) {
  json out = light_json(l.record);
  out["mount"] = name_of(l.mount), out["link"] = l.link, out["target"] = l.target;
  out["pos"] = numbers(l.pos), out["dir"] = numbers(l.dir);
  out["pos0"] = numbers(l.mount == render::Mount::kTrackCom ? l.pos_com0 : l.pos0), out["dir0"] = numbers(l.dir0);
  return out;
}

json camera_json(const sim::VisualCamera& c) {
  const render::CameraRecord r = render::record_of(c);
  return {{"name", c.name},
          {"mount", name_of(r.mount)},
          {"link", r.link},
          {"target", r.target},
          {"pos", numbers(r.pos)},
          {"rot", numbers(r.rot)},
          {"pos0", numbers(r.mount == render::Mount::kTrackCom ? r.pos_com0 : r.pos0)},
          {"mat0", numbers(r.mat0)},
          {"orthographic", c.orthographic},
          {"fovy", number(c.fovy)},
          {"sensor", numbers(c.sensor_size)},
          {"intrinsic", numbers(c.intrinsic)}};
}

}  // namespace cohort::view
