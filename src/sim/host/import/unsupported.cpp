#include "sim/host/import/unsupported.h"

#include <algorithm>
#include <set>

#include "core/format.h"
#include "sim/host/import/handle.h"
#include "sim/host/import/numbers.h"
#include "sim/kernels/lane/pair_kernels.h"

namespace cohort::sim::mj {

namespace {

constexpr const char* kGeomNames[] = {"plane",    "height field", "sphere", "capsule", "ellipsoid",
                                      "cylinder", "box",          "mesh",   "SDF"};

class Finder {
 public:
  explicit Finder(const mjModel& m) : m_(m) {}

  std::vector<Unsupported> run() {
    options();
    elements_of_options();
    fluid();
    joints();
    if (!(m_.opt.disableflags & (mjDSBL_CONTACT | mjDSBL_CONSTRAINT))) contacts();
    equalities();
    tendons();
    actuators();
    if (!(m_.opt.disableflags & mjDSBL_SENSOR)) sensors();
    for (const std::string& number : numbers_beyond_single(m_)) add("number beyond single precision: " + number);
    return std::move(found_);
  }

 private:
  void add(const std::string& feature, const char* name = "", int index = -1) {
    std::string label = name;
    if (label.empty() && index >= 0) label = "#" + std::to_string(index);
    found_.push_back({feature, label});
  }
  const char* name(const int* addresses, int i) const { return m_.names + addresses[i]; }
  static bool zero(const mjtNum* values, int n) {
    return std::all_of(values, values + n, [](mjtNum v) { return v == 0; });
  }

  void options() {
    const mjOption& o = m_.opt;
    if (o.integrator == mjINT_IMPLICIT) add("integrator implicit");
    if (o.integrator == mjINT_DISCRETE) add("integrator discrete");
    const struct {
      int bit;
      const char* text;
    } enables[] = {{mjENBL_OVERRIDE, "contact override"},
                   {mjENBL_SLEEP, "sleeping"},
                   {mjENBL_DIAGEXACT, "exact diagonal of the constraint inertia"},
                   {mjENBL_IPC, "IPC contacts"},
                   {mjENBL_SPECULATIVE, "speculative contacts"}};
    for (const auto& e : enables) {
      if (o.enableflags & e.bit) add(e.text);
    }
  }

  /// Elements with a setting that a flag or a count of the whole model tells of.
  void elements_of_options() {
    for (int i = 0; i < m_.nflex; ++i) add("flex", name(m_.name_flexadr, i), i);
    for (int i = 0; i < m_.nplugin; ++i) {
      const mjpPlugin* plugin = mjp_getPluginAtSlot(m_.plugin[i]);
      add(std::string("plugin ") + (plugin ? plugin->name : ""), name(m_.name_pluginadr, i), i);
    }
    for (int g = 0; g < m_.ngeom; ++g) {
      if (!zero(m_.geom_surfacevel + 6 * g, 6)) add("surface velocity of geom", name(m_.name_geomadr, g), g);
      if (m_.geom_adhesion[g] != 0) add("adhesive contact of geom", name(m_.name_geomadr, g), g);
    }
    for (int i = 0; i < m_.npair; ++i) {
      if (m_.pair_adhesion[i] != 0) add("adhesive contact of pair", name(m_.name_pairadr, i), i);
    }
    for (int i = 0; i < m_.nactuator; ++i) {
      const int group = m_.actuator_group[i];
      if (group >= 0 && group < 31 && (m_.opt.disableactuator >> group & 1) != 0) {
        add(format("disabled actuator group {}, of actuator", group), name(m_.name_actuatoradr, i), i);
      }
    }
  }

  void fluid() {
    if (m_.opt.density != 0 || m_.opt.viscosity != 0) {
      for (int g = 0; g < m_.ngeom; ++g) {
        if (m_.geom_fluid[mjNFLUID * g] > 0) add("ellipsoid fluid model of geom", name(m_.name_geomadr, g), g);
      }
    }
  }

  void joints() {
    for (int j = 0; j < m_.njnt; ++j) {
      const char* n = name(m_.name_jntadr, j);
      const int type = m_.jnt_type[j], dof = m_.jnt_dofadr[j];
      const int dofs = kJointDofs[type];
      const bool rotates = type == mjJNT_FREE || type == mjJNT_BALL;
      if (!zero(m_.jnt_stiffnesspoly + mjNPOLY * j, mjNPOLY)) add("nonlinear spring on joint", n, j);
      if (!zero(m_.dof_dampingpoly + mjNPOLY * dof, mjNPOLY * dofs)) add("nonlinear damping on joint", n, j);
      if (m_.jnt_plasticadr[j] >= 0) add("plastic spring on joint", n, j);
      if (m_.jnt_actuatorid[j] >= 0) add("actuator damping or armature on joint", n, j);
      if (rotates && m_.jnt_actfrclimited[j]) add("actuator force limit on a ball or free joint", n, j);
    }
  }

  void contacts() {
    // One line per combination of types: a model may have thousands of pairs.
    std::set<std::pair<int, int>> seen;
    for_each_candidate_pair(m_, [&](const CandidatePair& p) {
      const int t1 = m_.geom_type[p.geom1], t2 = m_.geom_type[p.geom2];
      if (!seen.insert({t1, t2}).second || pair_kernel(t1, t2) >= 0) return;
      const std::string a = name(m_.name_geomadr, p.geom1), b = name(m_.name_geomadr, p.geom2);
      found_.push_back(
          {std::string("contact of ") + kGeomNames[t1] + " and " + kGeomNames[t2],
           (a.empty() ? "#" + std::to_string(p.geom1) : a) + " - " + (b.empty() ? "#" + std::to_string(p.geom2) : b)});
    });
    if (is_searched(m_)) search_options();
  }

  /// Our search goes as far as MuJoCo's does by default; farther it need not go in single precision.
  void search_options() {
    constexpr double kTolerance = 1e-6;
    constexpr int kIterations = 35;
    const mjOption& o = m_.opt;
    if (o.ccd_tolerance > kTolerance) {
      add(format("ccd_tolerance {}, larger than the default {}", o.ccd_tolerance, kTolerance));
    }
    if (o.ccd_iterations < kIterations) {
      add(format("ccd_iterations {}, fewer than the default {}", o.ccd_iterations, kIterations));
    }
  }

  void equalities() {
    if (m_.opt.disableflags & (mjDSBL_EQUALITY | mjDSBL_CONSTRAINT)) return;
    for (int i = 0; i < m_.neq; ++i) {
      const char* n = name(m_.name_eqadr, i);
      const int type = m_.eq_type[i];
      if (type != mjEQ_CONNECT && type != mjEQ_WELD && type != mjEQ_JOINT && type != mjEQ_TENDON) {
        add("equality of a flex", n, i);
      }
    }
  }

  void tendons() {
    for (int t = 0; t < m_.ntendon; ++t) {
      const char* n = name(m_.name_tendonadr, t);
      if (m_.tendon_plasticadr[t] >= 0) add("plastic spring of tendon", n, t);
      if (!zero(m_.tendon_stiffnesspoly + mjNPOLY * t, mjNPOLY) ||
          !zero(m_.tendon_dampingpoly + mjNPOLY * t, mjNPOLY)) {
        add("nonlinear spring or damper of tendon", n, t);
      }
      if (m_.tendon_actuatorid[t] >= 0) add("actuator damping or armature on tendon", n, t);
    }
  }

  void actuators() {
    for (int i = 0; i < m_.nactuator; ++i) {
      const char* n = name(m_.name_actuatoradr, i);
      const int trn = m_.actuator_trntype[i];
      if (trn != mjTRN_JOINT && trn != mjTRN_JOINTINPARENT && trn != mjTRN_TENDON && trn != mjTRN_SITE &&
          trn != mjTRN_SLIDERCRANK && trn != mjTRN_BODY) {
        add("actuator on a relative orientation", n, i);
      }
      const int dyn = m_.actuator_dyntype[i], gain = m_.actuator_gaintype[i], bias = m_.actuator_biastype[i];
      if (dyn == mjDYN_DCMOTOR || gain == mjGAIN_DCMOTOR || bias == mjBIAS_DCMOTOR) {
        add("DC motor", n, i);
      } else if (gain == mjGAIN_PID || dyn == mjDYN_PID) {
        add("PID actuator", n, i);
      } else if (dyn == mjDYN_USER || gain == mjGAIN_USER || bias == mjBIAS_USER) {
        add("user-defined actuator", n, i);
      } else if (gain == mjGAIN_SO3 || bias == mjBIAS_SO3) {
        add("orientation actuator", n, i);
      } else if (m_.actuator_ctrlnum[i] != 1) {
        add("actuator without exactly one control", n, i);
      } else if (m_.actuator_actnum[i] > 1) {
        add("actuator with several activations", n, i);
      }
    }
  }

  void sensors() {
    for (int i = 0; i < m_.nsensor; ++i) {
      const char* n = name(m_.name_sensoradr, i);
      const int type = m_.sensor_type[i], fields = m_.sensor_intprm[mjNSENS * i];
      if (sensor_kind(type) < 0) {
        add(std::string("sensor ") + sensor_type(type), n, i);
      } else if (tells_distance(type)) {
        for_each_distance(m_, i, [&](int g1, int g2, bool) {
          if (distance_kernel(m_.geom_type[g1], m_.geom_type[g2]) >= 0) return;
          add(format("sensor {} of {} and {}", sensor_type(type), kGeomNames[m_.geom_type[g1]],
                     kGeomNames[m_.geom_type[g2]]),
              n, i);
        });
      } else if (type == mjSENS_RANGEFINDER) {
        if (m_.sensor_objtype[i] != mjOBJ_SITE) add("rangefinder of a camera's image", n, i);
        if (fields >> mjRAYDATA_NORMAL & 1) add("rangefinder that tells a surface's normal", n, i);
        for (int g = 0; g < m_.ngeom; ++g) {
          const int shape = m_.geom_type[g];
          if (shape == mjGEOM_SDF && stops_rays(m_, g) && m_.geom_bodyid[g] != m_.site_bodyid[m_.sensor_objid[i]]) {
            add(format("rangefinder that may meet a {}", kGeomNames[shape]), n, i);
            break;
          }
        }
      } else if ((m_.sensor_objtype[i] == mjOBJ_CAMERA && m_.cam_mode[m_.sensor_objid[i]] != 0) ||
                 (m_.sensor_reftype[i] == mjOBJ_CAMERA && m_.sensor_refid[i] >= 0 &&
                  m_.cam_mode[m_.sensor_refid[i]] != 0)) {
        add("sensor of a camera that tracks", n, i);
      }
    }
  }

  const mjModel& m_;
  std::vector<Unsupported> found_;
};

}  // namespace

int pair_kernel(int type1, int type2) {
  const struct {
    int type1, type2, kernel;
  } known[] = {{mjGEOM_PLANE, mjGEOM_SPHERE, kPlaneSphere},
               {mjGEOM_PLANE, mjGEOM_CAPSULE, kPlaneCapsule},
               {mjGEOM_PLANE, mjGEOM_BOX, kPlaneBox},
               {mjGEOM_PLANE, mjGEOM_ELLIPSOID, kPlaneEllipsoid},
               {mjGEOM_PLANE, mjGEOM_CYLINDER, kPlaneCylinder},
               {mjGEOM_SPHERE, mjGEOM_SPHERE, kSphereSphere},
               {mjGEOM_SPHERE, mjGEOM_CAPSULE, kSphereCapsule},
               {mjGEOM_SPHERE, mjGEOM_BOX, kSphereBox},
               {mjGEOM_SPHERE, mjGEOM_CYLINDER, kSphereCylinder},
               {mjGEOM_CAPSULE, mjGEOM_CAPSULE, kCapsuleCapsule},
               {mjGEOM_CAPSULE, mjGEOM_BOX, kCapsuleBox},
               {mjGEOM_BOX, mjGEOM_BOX, kBoxBox}};
  for (const auto& k : known) {
    if (k.type1 == type1 && k.type2 == type2) return k.kernel;
  }
  const auto convex = [](int type) { return type >= mjGEOM_SPHERE && type <= mjGEOM_MESH; };
  if (type1 == mjGEOM_PLANE && type2 == mjGEOM_MESH) return kPlaneMesh;
  if (type1 == mjGEOM_HFIELD && convex(type2)) return kHeightFieldConvex;
  if (convex(type1) && convex(type2)) return kConvexConvex;
  return -1;
}

void for_each_candidate_pair(const mjModel& m, const std::function<void(const CandidatePair&)>& take) {
  std::set<std::pair<int, int>> explicit_pairs;
  const auto push = [&](int g1, int g2, int pair) {
    if (m.geom_type[g1] > m.geom_type[g2]) std::swap(g1, g2);
    // Two planes, or a plane and a height field, never touch in MuJoCo.
    if (m.geom_type[g2] == mjGEOM_PLANE || (m.geom_type[g1] <= mjGEOM_HFIELD && m.geom_type[g2] <= mjGEOM_HFIELD))
      return;
    take({g1, g2, pair});
  };
  for (int k = 0; k < m.npair; ++k) {
    push(m.pair_geom1[k], m.pair_geom2[k], k);
    explicit_pairs.insert(std::minmax(m.pair_geom1[k], m.pair_geom2[k]));
  }
  std::set<int> excluded(m.exclude_signature, m.exclude_signature + m.nexclude);
  for (int b1 = 0; b1 < m.nbody; ++b1) {
    for (int b2 = b1 + 1; b2 < m.nbody; ++b2) {
      const int w1 = m.body_weldid[b1], w2 = m.body_weldid[b2];
      const int p1 = m.body_weldid[m.body_parentid[w1]], p2 = m.body_weldid[m.body_parentid[w2]];
      if (w1 == w2 || (m.body_dofnum[w1] == 0 && m.body_dofnum[w2] == 0)) continue;
      if (!(m.opt.disableflags & mjDSBL_FILTERPARENT) && w1 != 0 && w2 != 0 && (w1 == p2 || w2 == p1)) continue;
      if (excluded.count((b1 << 16) + b2)) continue;
      for (int g1 = m.body_geomadr[b1]; g1 < m.body_geomadr[b1] + m.body_geomnum[b1]; ++g1) {
        for (int g2 = m.body_geomadr[b2]; g2 < m.body_geomadr[b2] + m.body_geomnum[b2]; ++g2) {
          if (!(m.geom_contype[g1] & m.geom_conaffinity[g2]) && !(m.geom_contype[g2] & m.geom_conaffinity[g1]))
            continue;
          if (explicit_pairs.count(std::minmax(g1, g2))) continue;
          push(g1, g2, -1);
        }
      }
    }
  }
}

bool tells_distance(int sensor) {
  return sensor == mjSENS_GEOMDIST || sensor == mjSENS_GEOMNORMAL || sensor == mjSENS_GEOMFROMTO;
}

int distance_kernel(int type1, int type2) {
  const int kernel = pair_kernel(type1, type2);
  return kernel == kBoxBox ? kConvexConvex : kernel;
}

void for_each_distance(const mjModel& m, int sensor, const std::function<void(int, int, bool)>& take) {
  const auto geoms_of = [&](int type, int id) {
    return type == mjOBJ_GEOM ? std::pair(id, id + 1)
                              : std::pair(m.body_geomadr[id], m.body_geomadr[id] + m.body_geomnum[id]);
  };
  const auto [begin1, end1] = geoms_of(m.sensor_objtype[sensor], m.sensor_objid[sensor]);
  const auto [begin2, end2] = geoms_of(m.sensor_reftype[sensor], m.sensor_refid[sensor]);
  for (int g1 = begin1; g1 < end1; ++g1) {
    for (int g2 = begin2; g2 < end2; ++g2) {
      const bool swapped = m.geom_type[g1] > m.geom_type[g2];
      take(swapped ? g2 : g1, swapped ? g1 : g2, swapped);
    }
  }
}

bool is_searched(const mjModel& m) {
  if (m.opt.disableflags & (mjDSBL_CONTACT | mjDSBL_CONSTRAINT)) return false;
  bool searched = false;
  for_each_candidate_pair(m, [&](const CandidatePair& p) {
    const int kernel = pair_kernel(m.geom_type[p.geom1], m.geom_type[p.geom2]);
    searched = searched || kernel == kConvexConvex || kernel == kHeightFieldConvex;
  });
  return searched;
}

int sensor_kind(int type) {
  switch (type) {
    case mjSENS_CLOCK:
      return kSensorClock;
    case mjSENS_JOINTPOS:
      return kSensorJointPos;
    case mjSENS_JOINTVEL:
      return kSensorJointVel;
    case mjSENS_BALLQUAT:
      return kSensorBallQuat;
    case mjSENS_BALLANGVEL:
      return kSensorBallVel;
    case mjSENS_TENDONPOS:
      return kSensorTendonPos;
    case mjSENS_TENDONVEL:
      return kSensorTendonVel;
    case mjSENS_ACTUATORPOS:
      return kSensorActuatorPos;
    case mjSENS_ACTUATORVEL:
      return kSensorActuatorVel;
    case mjSENS_ACTUATORFRC:
      return kSensorActuatorForce;
    case mjSENS_JOINTACTFRC:
      return kSensorJointActuatorForce;
    case mjSENS_TENDONACTFRC:
      return kSensorTendonActuatorForce;
    case mjSENS_FRAMEPOS:
      return kSensorFramePos;
    case mjSENS_FRAMEQUAT:
      return kSensorFrameQuat;
    case mjSENS_FRAMEXAXIS:
    case mjSENS_FRAMEYAXIS:
    case mjSENS_FRAMEZAXIS:
      return kSensorFrameAxis;
    case mjSENS_FRAMELINVEL:
      return kSensorFrameLinVel;
    case mjSENS_FRAMEANGVEL:
      return kSensorFrameAngVel;
    case mjSENS_FRAMELINACC:
      return kSensorFrameLinAcc;
    case mjSENS_FRAMEANGACC:
      return kSensorFrameAngAcc;
    case mjSENS_ACCELEROMETER:
      return kSensorAccelerometer;
    case mjSENS_GYRO:
      return kSensorGyro;
    case mjSENS_VELOCIMETER:
      return kSensorVelocimeter;
    case mjSENS_MAGNETOMETER:
      return kSensorMagnetometer;
    case mjSENS_FORCE:
      return kSensorForce;
    case mjSENS_TORQUE:
      return kSensorTorque;
    case mjSENS_TOUCH:
      return kSensorTouch;
    case mjSENS_RANGEFINDER:
      return kSensorRangefinder;
    case mjSENS_CONTACT:
      return kSensorContact;
    case mjSENS_SUBTREECOM:
      return kSensorSubtreeCom;
    case mjSENS_SUBTREELINVEL:
      return kSensorSubtreeLinVel;
    case mjSENS_SUBTREEANGMOM:
      return kSensorSubtreeAngMom;
    case mjSENS_JOINTLIMITPOS:
    case mjSENS_TENDONLIMITPOS:
      return kSensorLimitPos;
    case mjSENS_JOINTLIMITVEL:
    case mjSENS_TENDONLIMITVEL:
      return kSensorLimitVel;
    case mjSENS_JOINTLIMITFRC:
    case mjSENS_TENDONLIMITFRC:
      return kSensorLimitForce;
    case mjSENS_CAMPROJECTION:
      return kSensorCamProjection;
    case mjSENS_GEOMDIST:
      return kSensorDistance;
    case mjSENS_GEOMNORMAL:
      return kSensorNormal;
    case mjSENS_GEOMFROMTO:
      return kSensorFromTo;
    default:
      return -1;
  }
}

bool is_delayed(const mjModel& m, int actuator) {
  return m.actuator_historyadr[actuator] >= 0 && m.actuator_delay[actuator] > 0;
}

bool stops_rays(const mjModel& m, int geom) {
  const int material = m.geom_matid[geom];
  return (material < 0 ? m.geom_rgba[4 * geom + 3] : m.mat_rgba[4 * material + 3]) != 0;
}

std::vector<Unsupported> find_unsupported(const mjModel& m) {
  return Finder(m).run();
}

}  // namespace cohort::sim::mj
