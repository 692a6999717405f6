// Sensors: frames, masses below a site, which contacts count.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "sim/mujoco/importer.h"
#include "sim/mujoco/unsupported.h"

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
  for (int b = link; b < m_.nbody; ++b) {
    if (in_subtree(b, link) && m_.body_mass[b] > 0) add_mass(sums[body_of_[at(b)]], b);
  }
  const int first = static_cast<int>(out_.piece.size());
  for (const auto& [body, sum] : sums) {
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
    default:
      r.frame = add_object_frame(object_type, object);
      if (m_.sensor_refid[i] >= 0) r.reference = add_object_frame(m_.sensor_reftype[i], m_.sensor_refid[i]);
  }
  if (r.kind == kSensorFrameAxis) r.index = type - mjSENS_FRAMEXAXIS;
  if (r.kind == kSensorTouch || r.kind == kSensorForce || r.kind == kSensorTorque || r.kind == kSensorRangefinder) {
    r.link = m_.site_bodyid[object];
  }
  if (r.kind == kSensorTouch) {
    site_shape(object);
    r.first_match = pair_matches([&](int g1, int g2) {
      return m_.geom_bodyid[g2] == r.link ? 1 : m_.geom_bodyid[g1] == r.link ? -1 : 0;
    });
  }
  if (r.kind == kSensorForce || r.kind == kSensorTorque) {
    std::tie(r.first_piece, r.piece_count) = subtree_pieces(r.link);
    const auto inside = [&](int link) { return in_subtree(link, r.link) ? 1 : 0; };
    r.first_match =
        pair_matches([&](int g1, int g2) { return inside(m_.geom_bodyid[g2]) - inside(m_.geom_bodyid[g1]); });
    for (const EqualityRecord& e : out_.equality) {
      const bool frames = e.kind == kEqualityConnect || e.kind == kEqualityWeld;
      out_.sensor_match.push_back(frames ? inside(e.link1) - inside(e.link2) : 0);
    }
    for (int b = 0; b < m_.nbody; ++b) out_.sensor_match.push_back(inside(b));
  }
  return r;
}

void Importer::sensors() {
  bool range = false;
  for (int i = 0; i < m_.nsensor; ++i) {
    const SensorRecord r = sensor(i);
    out_.sensor.push_back(r);
    range |= r.kind == kSensorRangefinder;
    out_.sizes.keep_contacts |=
        r.kind == kSensorTouch || r.kind == kSensorContact || r.kind == kSensorForce || r.kind == kSensorTorque;
    out_.sizes.accelerations |= r.kind == kSensorForce || r.kind == kSensorTorque || r.kind == kSensorAccelerometer ||
                                r.kind == kSensorFrameLinAcc || r.kind == kSensorFrameAngAcc;
  }
  for (int g = 0; g < m_.ngeom && range; ++g) {
    const int shape = m_.geom_type[g];
    if (stops_rays(m_, g) && shape != mjGEOM_MESH && shape != mjGEOM_HFIELD && shape != mjGEOM_SDF) {
      out_.ray_geom.push_back(geom(g));
    }
  }
}

}  // namespace cohort::sim::mj
