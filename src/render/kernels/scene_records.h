/// What of a scene is the same in every picture: plain records with pointers, for a CPU and, in a device's memory, for
/// a GPU. Lengths in m.
#pragma once
#include "render/kernels/records.h"

namespace cohort::render {

/// A geom or site that is drawn. Its record lacks what the link's pose gives.
struct GeomRecord {
  InstanceRecord record;
  int link;
  int endless;             ///< a plane without end in x or y
  double pos[3];           ///< in the link's frame
  double rot[9];           ///< likewise, row-major
  double low[3], high[3];  ///< its box, in its own frame; of a plane without end meaningless
  double radius;           ///< of a ball around its own origin, as MuJoCo sorts transparent geoms by it
  double step[2];          ///< of a plane without end: it is moved by multiples of this
};

struct LinkRecord {
  int parent;
  double mass;
  double com[3];  ///< in the link's frame
};

/// How a camera or a light hangs on its link (sim::VisualTracking, MuJoCo's mjtCamLight).
enum class Mount : int { kFixed, kTrack, kTrackCom, kTargetBody, kTargetBodyCom };

struct CameraRecord {
  Mount mount;
  int link, target;
  double pos[3], rot[9];                 ///< in the link's frame; columns of the rotation: right, up, back
  double pos0[3], pos_com0[3], mat0[9];  ///< for kTrack and kTrackCom, in the world
};

struct LightSource {
  LightRecord record;  ///< lacks place and direction
  Mount mount;
  int link, target;
  double pos[3], dir[3];                 ///< in the link's frame
  double pos0[3], pos_com0[3], dir0[3];  ///< for kTrack and kTrackCom, in the world
};

struct SceneRecord {
  const GeomRecord* geom;
  int geoms;
  const int* ended;  ///< the geoms that are drawn for every environment of a picture: those that have an end
  int endeds;
  const LinkRecord* link;
  int links;
  const LightSource* light;
  int lights;     ///< with the headlight at most kMostLights
  int headlight;  ///< 1: it is the first light of a picture
  LightRecord headlight_record;
  const TextureRecord* sky;  ///< null: none
  int mirror, haze_plane;    ///< geoms; -1: none
  int quads;
  int shadows;  ///< are asked for
  int culling;  ///< 0: every ray meets every geom
  int haze;     ///< its numbers make sense
  float haze_ratio, haze_turn, haze_rgb[3];
};

/// A picture's size and frustum: m at 1 m; of an orthographic camera m.
struct LensRecord {
  int width, height;
  int orthographic;
  double left, right, bottom, top;
  double near, far;
};

/// Where a picture is seen from.
struct EyeRecord {
  double pos[3];
  double axes[9];  ///< columns: right, up, back
};

/// Tiles that an instance may touch; first > last: it is not seen.
struct TileSpan {
  int first_x, last_x, first_y, last_y;
};

}  // namespace cohort::render
