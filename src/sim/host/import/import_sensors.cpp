// Sensors: frames, masses below a site, which contacts count.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "sim/host/import/importer.h"
#include "sim/host/import/unsupported.h"
#include "sim/kernels/lane/pair_kernels.h"

namespace cohort::sim::mj {

namespace {

/// How a sensor's object takes part in one side of a contact, as MuJoCo's contact sensor defines it.
bool side_matches(const mjModel& m, int geom, int type, int id) {
  if (type == mjOBJ_UNKNOWN || type == mjOBJ_SITE) return true;
  if (type == mjOBJ_GEOM) return id == geom;
  int body = m.geom_bodyid[geom];
  while (type == mjOBJ_XBODY && body > id) body = m.body_parentid[body];
  return body == id;
}

int contact_match(const mjModel& m, int g1, int g2, int type1, int id1, int type2, int id2) {
  const bool first_first = side_matches(m, g1, type1, id1), first_second = side_matches(m, g2, type1, id1);
  const bool second_first = side_matches(m, g1, type2, id2), second_second = side_matches(m, g2, type2, id2);
  if ((!first_first && !first_second) || (!second_first && !second_second)) return 0;
  if (type1 == mjOBJ_UNKNOWN && type2 == mjOBJ_UNKNOWN) return 1;
  if (type2 == mjOBJ_UNKNOWN) return first_first ? 1 : -1;
  if (type1 == mjOBJ_UNKNOWN) return second_second ? 1 : -1;
  if (first_first && second_second) return 1;
  return first_second && second_first ? -1 : 0;
}

}  // namespace

int Importer::add_object_frame(int type, int id) {
  const double unmoved[3] = {0, 0, 0}, unturned[4] = {1, 0, 0, 0};
  switch (type) {
    case mjOBJ_BODY:
      return add_frame(id, m_.body_ipos + 3 * id, m_.body_iquat + 4 * id);
    case mjOBJ_GEOM:
      return add_frame(m_.geom_bodyid[id], m_.geom_pos + 3 * id, m_.geom_quat + 4 * id);
    case mjOBJ_SITE:
      return add_site(id);
    case mjOBJ_CAMERA:
      return add_frame(m_.cam_bodyid[id], m_.cam_pos + 3 * id, m_.cam_quat + 4 * id);
    default:
      return add_frame(id, unmoved, unturned);
  }
}

bool Importer::in_subtree(int link, int root) const {
  while (link > root) link = m_.body_parentid[link];
  return link == root;
}

std::pair<int, int> Importer::subtree_pieces(int link) {
  std::map<int, MassSum> sums;
  std::map<int, std::vector<int>> links;
  // Links without mass, too: an environment may give them one.
  for (int b = std::max(link, 1); b < m_.nbody; ++b) {
    if (!in_subtree(b, link)) continue;
    add_mass(sums[body_of_[at(b)]], b);
    links[body_of_[at(b)]].push_back(b);
  }
  const int first = static_cast<int>(out_.piece.size());
  if (out_.piece_start.empty()) out_.piece_start.push_back(0);
  for (const auto& [body, sum] : sums) {
    out_.piece_link.insert(out_.piece_link.end(), links[body].begin(), links[body].end());
    out_.piece_start.push_back(static_cast<int>(out_.piece_link.size()));
    BodyRecord whole{};
    finish_mass(whole, sum);
    PieceRecord r{};
    r.body = body;
    r.mass = whole.mass;
    std::copy_n(whole.com, 3, r.com);
    std::copy_n(whole.inertia, 6, r.inertia);
    out_.piece.push_back(r);
  }
  return {first, static_cast<int>(sums.size())};
}

template <class Match>
int Importer::pair_matches(Match match) {
  std::map<int, int> geom_of;
  for (const auto& [geom, index] : geom_index_) geom_of[index] = geom;
  const int first = static_cast<int>(out_.sensor_match.size());
  for (const PairRecord& p : out_.pair) out_.sensor_match.push_back(match(geom_of.at(p.geom1), geom_of.at(p.geom2)));
  return first;
}

SensorRecord Importer::sensor(int i) {
  SensorRecord r{};
  const int type = m_.sensor_type[i], object = m_.sensor_objid[i], object_type = m_.sensor_objtype[i];
  r.kind = sensor_kind(type);
  r.address = m_.sensor_adr[i];
  r.dim = m_.sensor_dim[i];
  r.positive = m_.sensor_datatype[i] == mjDATATYPE_POSITIVE;
  const bool real = m_.sensor_datatype[i] == mjDATATYPE_REAL;
  r.cutoff = real || r.positive ? f32(std::max(0.0, m_.sensor_cutoff[i])) : 0;
  r.frame = r.reference = r.shape = -1;
  const auto site_shape = [&](int site) {
    r.shape = m_.site_type[site];
    put(r.size, m_.site_size + 3 * site, 3);
  };
  switch (r.kind) {
    case kSensorClock:
      break;
    case kSensorJointPos:
    case kSensorBallQuat:
      r.index = m_.jnt_qposadr[object];
      break;
    case kSensorJointVel:
    case kSensorBallVel:
    case kSensorJointActuatorForce:
      r.index = m_.jnt_dofadr[object];
      break;
    case kSensorTendonPos:
    case kSensorTendonVel:
    case kSensorTendonActuatorForce:
    case kSensorActuatorPos:
    case kSensorActuatorVel:
    case kSensorActuatorForce:
      r.index = object;
      break;
    case kSensorLimitPos:
    case kSensorLimitVel:
    case kSensorLimitForce: {
      const bool tendon = object_type == mjOBJ_TENDON;
      r.index = -1;
      for (std::size_t k = 0; k < out_.limit.size(); ++k) {
        const LimitRecord& limit = out_.limit[k];
        if ((limit.kind == 2) == tendon && limit.index == (tendon ? object : m_.jnt_qposadr[object])) {
          r.index = static_cast<int>(k);
        }
      }
      break;
    }
    case kSensorSubtreeCom:
    case kSensorSubtreeLinVel:
    case kSensorSubtreeAngMom:
      std::tie(r.first_piece, r.piece_count) = subtree_pieces(object);
      break;
    case kSensorContact:
      r.fields = m_.sensor_intprm[mjNSENS * i];
      r.reduce = m_.sensor_intprm[mjNSENS * i + 1];
      r.first_match = pair_matches([&](int g1, int g2) {
        return contact_match(m_, g1, g2, object_type, object, m_.sensor_reftype[i], m_.sensor_refid[i]);
      });
      if (object_type == mjOBJ_SITE) {
        r.frame = add_site(object);
        site_shape(object);
      }
      break;
    case kSensorDistance:
    case kSensorNormal:
    case kSensorFromTo:
      r.cutoff = f32(m_.sensor_cutoff[i]);
      r.first_distance = static_cast<int>(out_.distance.size());
      for_each_distance(m_, i, [&](int g1, int g2, bool swapped) {
        DistanceRecord d{};
        d.pair.geom1 = add_geom(g1);
        d.pair.geom2 = add_geom(g2);
        d.pair.kernel = distance_kernel(m_.geom_type[g1], m_.geom_type[g2]);
        d.pair.max_contacts = most_contacts(d.pair.kernel, false);
        d.pair.margin = r.cutoff;
        d.swapped = swapped ? 1 : 0;
        out_.distance.push_back(d);
        ++r.distance_count;
      });
      break;
    default:
      r.frame = add_object_frame(object_type, object);
      if (m_.sensor_refid[i] >= 0) r.reference = add_object_frame(m_.sensor_reftype[i], m_.sensor_refid[i]);
  }
  if (r.kind == kSensorFrameAxis) r.index = type - mjSENS_FRAMEXAXIS;
  if (r.kind == kSensorCamProjection) {
    const int camera = m_.sensor_refid[i];
    const int* pixels = m_.cam_resolution + 2 * camera;
    const float *intrinsic = m_.cam_intrinsic + 4 * camera, *size = m_.cam_sensorsize + 2 * camera;
    const double by_angle = 0.5 / std::tan(m_.cam_fovy[camera] * mjPI / 360) * pixels[1];
    const bool measured = size[0] != 0 && size[1] != 0;
    for (int k = 0; k < 2; ++k) {
      // x points right on the image and y down; the camera looks along -z.
      const double focal = measured ? double{intrinsic[k]} / double{size[k]} * pixels[k] : by_angle;
      r.image[k] = f32(k == 0 ? -focal : focal);
      r.image[2 + k] = f32(pixels[k] / 2.0);
    }
  }
  if (r.kind == kSensorTouch || r.kind == kSensorForce || r.kind == kSensorTorque || r.kind == kSensorRangefinder) {
    r.link = m_.site_bodyid[object];
  }
  if (r.kind == kSensorRangefinder) r.fields = m_.sensor_intprm[mjNSENS * i];
  if (r.kind == kSensorTouch) {
    site_shape(object);
    r.first_match = pair_matches([&](int g1, int g2) {
      return m_.geom_bodyid[g2] == r.link ? 1 : m_.geom_bodyid[g1] == r.link ? -1 : 0;
    });
  }
  if (r.kind == kSensorForce || r.kind == kSensorTorque) {
    std::tie(r.first_piece, r.piece_count) = subtree_pieces(r.link);
    if (r.link == 0) r.piece_count = 0;  // nothing pulls at the world
    const auto inside = [&](int link) { return r.link > 0 && in_subtree(link, r.link) ? 1 : 0; };
    r.first_match =
        pair_matches([&](int g1, int g2) { return inside(m_.geom_bodyid[g2]) - inside(m_.geom_bodyid[g1]); });
    for (const EqualityRecord& e : out_.equality) {
      const bool frames = e.kind == kEqualityConnect || e.kind == kEqualityWeld;
      const int end1 = inside(e.link1), end2 = inside(e.link2);
      out_.sensor_match.push_back(!frames ? 0 : end1 + end2 == 2 ? kMatchBoth : end1 - end2);
    }
    for (int b = 0; b < m_.nbody; ++b) out_.sensor_match.push_back(inside(b));
  }
  return r;
}

int Importer::add_ray_mesh(int g) {
  using Corners = std::array<Vec3, 3>;
  std::vector<Corners> triangles;
  const int data = m_.geom_dataid[g];
  if (m_.geom_type[g] == mjGEOM_MESH) {
    const auto corner = [&](int v) {
      const float* x = m_.mesh_vert + 3 * (m_.mesh_vertadr[data] + v);
      return Vec3{x[0], x[1], x[2]};
    };
    for (int f = m_.mesh_faceadr[data]; f < m_.mesh_faceadr[data] + m_.mesh_facenum[data]; ++f) {
      const int* face = m_.mesh_face + 3 * f;
      triangles.push_back({corner(face[0]), corner(face[1]), corner(face[2])});
    }
  } else {
    // The surface, the walls below its edges, and the box under it.
    const int rows = m_.hfield_nrow[data], cols = m_.hfield_ncol[data];
    const mjtNum* size = m_.hfield_size + 4 * data;
    const auto top = [&](int r, int c) {
      return Vec3{size[0] * (2.0 * c / (cols - 1) - 1), size[1] * (2.0 * r / (rows - 1) - 1),
                  size[2] * m_.hfield_data[m_.hfield_adr[data] + r * cols + c]};
    };
    const auto quad = [&](const Vec3& a, const Vec3& b, const Vec3& c, const Vec3& d) {
      triangles.push_back({a, b, c});
      triangles.push_back({a, c, d});
    };
    const auto at_height = [](Vec3 x, double z) { return Vec3{x[0], x[1], z}; };
    for (int r = 0; r + 1 < rows; ++r) {
      for (int c = 0; c + 1 < cols; ++c) quad(top(r, c), top(r, c + 1), top(r + 1, c + 1), top(r + 1, c));
    }
    const auto wall = [&](const Vec3& a, const Vec3& b) { quad(at_height(a, 0), at_height(b, 0), b, a); };
    for (int c = 0; c + 1 < cols; ++c) wall(top(0, c), top(0, c + 1)), wall(top(rows - 1, c), top(rows - 1, c + 1));
    for (int r = 0; r + 1 < rows; ++r) wall(top(r, 0), top(r + 1, 0)), wall(top(r, cols - 1), top(r + 1, cols - 1));
    const Vec3 corner[4] = {top(0, 0), top(0, cols - 1), top(rows - 1, cols - 1), top(rows - 1, 0)};
    for (double z : {0.0, -size[3]}) {
      quad(at_height(corner[0], z), at_height(corner[1], z), at_height(corner[2], z), at_height(corner[3], z));
    }
    for (std::size_t i = 0; i < 4; ++i) {
      const Vec3 &a = corner[i], &b = corner[(i + 1) % 4];
      quad(at_height(a, -size[3]), at_height(b, -size[3]), at_height(b, 0), at_height(a, 0));
    }
  }
  constexpr std::size_t kChunk = 32;  // neighbours in the file are neighbours in space
  RayMeshRecord mesh{static_cast<int>(out_.ray_chunk.size()), 0};
  for (std::size_t first = 0; first < triangles.size(); first += kChunk) {
    const std::size_t end = std::min(first + kChunk, triangles.size());
    RayChunkRecord chunk{};
    chunk.first = static_cast<int>(out_.ray_triangle.size() / 9);
    chunk.count = static_cast<int>(end - first);
    Vec3 low = triangles[first][0], high = low;
    for (std::size_t k = first; k < end; ++k) {
      for (const Vec3& x : triangles[k]) {
        for (std::size_t i = 0; i < 3; ++i) low[i] = std::min(low[i], x[i]), high[i] = std::max(high[i], x[i]);
      }
      for (std::size_t c = 0; c < 3; ++c) {
        for (std::size_t i = 0; i < 3; ++i) {
          out_.ray_triangle.push_back(f32(triangles[k][c][i] - (c == 0 ? 0 : triangles[k][0][i])));
        }
      }
    }
    double squared = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      chunk.centre[i] = f32((low[i] + high[i]) / 2);
      squared += (high[i] - low[i]) * (high[i] - low[i]) / 4;
    }
    // A little more, so that no rounding leaves out what a lane of its own would have met.
    chunk.radius = f32(std::sqrt(squared) * 1.001 + 1e-4);
    out_.ray_chunk.push_back(chunk);
    ++mesh.count;
  }
  out_.ray_mesh.push_back(mesh);
  return static_cast<int>(out_.ray_mesh.size()) - 1;
}

/// A reading before the reset was at the phase, which is no later than the reset and not 0: then a period earlier.
void Importer::add_interval(int i) {
  const int* history = m_.sensor_history + 2 * i;
  const double phase = m_.sensor_interval[2 * i + 1];
  IntervalRecord r{};
  r.address = m_.sensor_adr[i];
  r.dim = m_.sensor_dim[i];
  r.first_row = out_.sizes.nhistory;
  r.interpolation = history[1];
  const double period = in_steps(m_.sensor_interval[2 * i]);
  r.period = f32(period);
  r.start = phase == 0 ? r.period : f32(in_steps(-phase));
  r.lag = f32(in_steps(m_.sensor_delay[i]));
  // No more than what the delay looks at: with a cubic, one reading beyond its two, and all of them at most a period
  // and a step apart.
  r.count = std::min(history[0], m_.sensor_delay[i] > 0 ? static_cast<int>(r.lag / period) + 4 : 1);
  out_.sizes.nhistory += 1 + r.count * (1 + r.dim);
  out_.sizes.delayed_sensors = 1;
  out_.interval.push_back(r);
}

void Importer::sensors() {
  bool range = false;
  for (int i = 0; i < m_.nsensor; ++i) {
    const SensorRecord r = sensor(i);
    out_.sensor.push_back(r);
    if (m_.sensor_historyadr[i] >= 0 && m_.sensor_interval[2 * i] > 0) {
      add_interval(i);
    } else if (m_.sensor_historyadr[i] >= 0 && m_.sensor_delay[i] > 0) {
      out_.sizes.delayed_sensors = 1;
      for (int k = 0; k < r.dim; ++k) add_delays(1, r.address + k, m_.sensor_delay[i], m_.sensor_history + 2 * i);
    }
    range |= r.kind == kSensorRangefinder;
    out_.sizes.keep_contacts |=
        r.kind == kSensorTouch || r.kind == kSensorContact || r.kind == kSensorForce || r.kind == kSensorTorque;
    out_.sizes.accelerations |= r.kind == kSensorForce || r.kind == kSensorTorque || r.kind == kSensorAccelerometer ||
                                r.kind == kSensorFrameLinAcc || r.kind == kSensorFrameAngAcc;
  }
  for (int g = 0; g < m_.ngeom && range; ++g) {
    const int shape = m_.geom_type[g];
    if (!stops_rays(m_, g) || shape == mjGEOM_SDF) continue;
    GeomRecord r = geom(g);
    if (shape == mjGEOM_MESH || shape == mjGEOM_HFIELD) r.data = add_ray_mesh(g);
    out_.ray_geom.push_back(r);
  }
}

}  // namespace cohort::sim::mj
