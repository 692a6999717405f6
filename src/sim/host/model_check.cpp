// Every index and size of a model against the array that it points into.
#include "sim/host/model_check.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "core/error.h"
#include "sim/host/model_arrays.h"
#include "sim/kernels/lane/pair_kernels.h"

namespace cohort::sim {

namespace {

/// Says which record is wrong, then refuses the model. Numbers are long long, so that sums do not overflow.
class Checker {
 public:
  explicit Checker(const Model& m) : m_(m), v_(m.sizes) {}

  void run() {
    sizes();
    information();
    bodies();
    dofs();
    tendons();
    actuators();
    delays();
    meshes();
    geoms();
    pairs();
    runs_of_pairs();
    constraints();
    sensors();
  }

 private:
  using Number = long long;

  /// The record that the next checks are about.
  void at(const char* what, std::size_t index) { what_ = what, index_ = index; }
  void require(bool fine, const char* field, Number value) const {
    COHORT_THROW_UNLESS(fine, "{} {}: {} is {}, which cannot be", what_, index_, field, value);
  }
  /// least <= value < count
  void index(const char* field, Number value, Number count, Number least = 0) const {
    require(value >= least && value < count, field, value);
  }
  /// [first, first + count) lies in [0, size)
  void range(const char* field, Number first, Number count, Number size) const {
    require(count >= 0 && first >= 0 && first + count <= size, field, first);
  }
  void equal(const char* field, Number value, Number wanted) const { require(value == wanted, field, value); }
  template <class T>
  static Number size(const std::vector<T>& items) {
    return static_cast<Number>(items.size());
  }
  /// Indices of a body, of a link.
  void body(int b) const { index("body", b, v_.nbody, -1); }
  void link(const char* field, int l) const { index(field, l, v_.nlink); }
  void rows(int first, int count) const { range("first_dof", first, count, v_.nrowdof); }

  void sizes() {
    at("size", 0);
    for_each_array([&](const auto& array) {
      if (!array.count) return;
      const Number count = v_.*array.count;
      const Number wanted = array.per * count + array.more;
      COHORT_THROW_UNLESS(count >= 0 && size(m_.*array.items) == wanted, "{} has {} items where its model says {}",
                          array.name, (m_.*array.items).size(), wanted);
    });
    const struct {
      const char* name;
      Number value, wanted;
    } same[] = {{"nq", v_.nq, size(m_.info.qpos0)},
                {"nmocap", 3 * Number{v_.nmocap}, size(m_.info.mocap_pos0)},
                {"nmocap", 4 * Number{v_.nmocap}, size(m_.info.mocap_quat0)},
                {"nlink", v_.nlink, size(m_.info.links)},
                {"pair_window", size(m_.pair_window),
                 v_.npair > 0 ? (Number{v_.npair} + kPairsAtOnce - 1) / kPairsAtOnce + 1 : 0},
                {"piece_start", size(m_.piece_start), v_.npiece > 0 ? Number{v_.npiece} + 1 : size(m_.piece_start)},
                {"nfilegeom", v_.nfilegeom, size(m_.info.geoms)},
                {"nq", v_.nq, m_.info.nq},
                {"nv", v_.nv, m_.info.nv},
                {"nu", v_.nu, m_.info.nu},
                {"na", v_.na, m_.info.na},
                {"nmocap", v_.nmocap, m_.info.nmocap},
                {"nsensordata", v_.nsensordata, m_.info.nsensordata},
                {"varies", v_.varies, 0},
                {"counted", v_.counted, 0},
                {"row_space", v_.row_space, 0},
                {"contact_capacity", v_.contact_capacity, 0}};
    for (const auto& s : same) equal(s.name, s.value, s.wanted);
    for (const int n : {v_.nu, v_.na, v_.nsensordata}) require(n >= 0, "a number", n);
    index("nseparation", v_.nseparation, kMostSeparations + 1);
    const int integrator = v_.option.integrator;
    require(integrator == kEuler || integrator == kRk4 || integrator == kImplicitFast, "integrator", integrator);
    COHORT_THROW_UNLESS(v_.option.timestep > 0 && std::isfinite(v_.option.timestep), "its timestep is {} s",
                        v_.option.timestep);
  }

  void information() {
    const ModelInfo& info = m_.info;
    for (std::size_t i = 0; i < info.links.size(); ++i) {
      const LinkInfo& l = info.links[i];
      at("link", i);
      index("parent", l.parent, std::max<Number>(static_cast<Number>(i), 1), -1);
      if (l.dof_count != 0) range("first_dof", l.first_dof, l.dof_count, v_.nv);
      index("mocap", l.mocap, v_.nmocap, -1);
    }
    for (std::size_t i = 0; i < info.joints.size(); ++i) {
      const JointInfo& j = info.joints[i];
      at("joint", i);
      const int type = static_cast<int>(j.type);
      index("type", type, 4);
      link("link", j.link);
      range("qpos", j.qpos, kJointQpos[type], v_.nq);
      range("dof", j.dof, kJointDofs[type], v_.nv);
    }
    for (std::size_t i = 0; i < info.actuators.size(); ++i) {
      const ActuatorInfo& a = info.actuators[i];
      at("actuator", i);
      index("kind", static_cast<int>(a.kind), 4);
      if (a.ctrl_count != 0) range("ctrl", a.ctrl, a.ctrl_count, v_.nu);
      index("dof", a.dof, v_.nv, -1);
      for (const int dof : a.moves) index("moves", dof, v_.nv);
    }
    for (std::size_t i = 0; i < info.sensors.size(); ++i) {
      at("sensor", i);
      range("address", info.sensors[i].address, info.sensors[i].size, v_.nsensordata);
    }
    for (std::size_t i = 0; i < info.geoms.size(); ++i) {
      at("geom", i);
      link("link", info.geoms[i].link);
    }
    for (std::size_t i = 0; i < info.keyframes.size(); ++i) {
      const KeyframeInfo& k = info.keyframes[i];
      at("keyframe", i);
      equal("size of qpos", size(k.qpos), v_.nq);
      equal("size of qvel", size(k.qvel), v_.nv);
      equal("size of act", size(k.act), v_.na);
      equal("size of ctrl", size(k.ctrl), v_.nu);
      equal("size of mocap_pos", size(k.mocap_pos), 3 * Number{v_.nmocap});
      equal("size of mocap_quat", size(k.mocap_quat), 4 * Number{v_.nmocap});
      equal("size of hold", size(k.hold), size(info.actuators));
      equal("size of hold_later", size(k.hold_later), size(info.actuators));
    }
    for (std::size_t i = 0; i < info.entities.size(); ++i) {
      at("entity", i);
      for (const int l : info.entities[i].links) link("link", l);
      for (const int g : info.entities[i].geoms) index("geom", g, v_.nfilegeom);
    }
  }

  void bodies() {
    for (std::size_t i = 0; i < m_.body.size(); ++i) {
      const BodyRecord& b = m_.body[i];
      at("body", i);
      index("kind", b.kind, kBodyMocap + 1);
      index("parent", b.parent, static_cast<Number>(i), -1);
      index("root", b.root, static_cast<Number>(i) + 1);
      if (b.dof_count != 0) range("first_dof", b.first_dof, b.dof_count, v_.nv);
      if (b.kind == kBodyJoints) {
        range("first_joint", b.first_joint, b.joint_count, v_.njnt);
        equal("dof_count", b.dof_count, b.joint_count);
      } else {
        equal("joint_count", b.joint_count, 0);
        equal("dof_count", b.dof_count, b.kind == kBodyFree ? 6 : b.kind == kBodyBall ? 3 : 0);
      }
      if (b.kind == kBodyFree) range("qpos", b.qpos, 7, v_.nq);
      if (b.kind == kBodyBall) range("qpos", b.qpos, 4, v_.nq);
      if (b.kind == kBodyMocap) index("mocap", b.mocap, v_.nmocap);
    }
    for (std::size_t i = 0; i < m_.joint.size(); ++i) {
      const JointRecord& j = m_.joint[i];
      at("hinge or slide", i);
      index("body", j.body, v_.nbody);
      index("qpos", j.qpos, v_.nq);
      index("dof", j.dof, v_.nv);
      index("axis_kind", j.axis_kind, kAxisAny + 1);
    }
    for (std::size_t i = 0; i < m_.link.size(); ++i) at("link", i), body(m_.link[i].body);
    for (std::size_t i = 0; i < m_.frame.size(); ++i) at("frame", i), body(m_.frame[i].body);
    for (std::size_t i = 0; i < m_.fluid.size(); ++i) {
      at("link in a fluid", i);
      index("body", m_.fluid[i].body, v_.nbody);
      link("link", m_.fluid_link[i]);
    }
  }

  void dofs() {
    for (std::size_t i = 0; i < m_.dof.size(); ++i) {
      at("dof", i);
      const auto d = static_cast<Number>(i);
      index("body", m_.dof[i].body, v_.nbody);
      index("parent", m_.dof[i].parent, d, -1);
      range("pattern", m_.pattern_start[i], Number{m_.pattern_start[i + 1]} - m_.pattern_start[i], size(m_.pattern));
      range("below", m_.below_start[i], Number{m_.below_start[i + 1]} - m_.below_start[i], size(m_.below));
      require(m_.pattern_start[i] < m_.pattern_start[i + 1] &&
                  m_.pattern[static_cast<std::size_t>(m_.pattern_start[i + 1]) - 1] == d,
              "pattern", m_.pattern_start[i]);
      for (int k = m_.pattern_start[i]; k < m_.pattern_start[i + 1]; ++k) {
        index("pattern", m_.pattern[static_cast<std::size_t>(k)], d + 1);
      }
      for (int k = m_.below_start[i]; k < m_.below_start[i + 1]; ++k) {
        const int below = m_.below[static_cast<std::size_t>(k)];
        index("below", below, v_.nv, d + 1);
        require(below == d + 1 + (k - m_.below_start[i]), "below", below);
      }
    }
    at("row", 0);
    for (const int d : m_.row_dof) index("dof", d, v_.nv);
  }

  void tendons() {
    for (std::size_t i = 0; i < m_.wrap.size(); ++i) {
      at("wrap", i);
      index("qpos", m_.wrap[i].qpos, v_.nq, -1);
      index("dof", m_.wrap[i].dof, v_.nv);
    }
    for (std::size_t i = 0; i < m_.tendon.size(); ++i) {
      const TendonRecord& t = m_.tendon[i];
      at("tendon", i);
      range("first_wrap", t.first_wrap, t.wrap_count, v_.nwrap);
      if (t.spatial == 0) summed(t.first_wrap, t.wrap_count);
      range("first_segment", t.first_segment, t.segment_count, v_.nsegment);
      for (int k = t.first_segment; k < t.first_segment + t.segment_count; ++k) {
        range("first_move", m_.segment[static_cast<std::size_t>(k)].first_move, t.wrap_count, size(m_.segment_move));
      }
    }
    for (std::size_t i = 0; i < m_.segment.size(); ++i) {
      const SegmentRecord& s = m_.segment[i];
      at("segment of a tendon", i);
      index("shape", s.shape, kAroundCylinder + 1);
      index("site1", s.site1, v_.nframe);
      index("site2", s.site2, v_.nframe);
      index("geom", s.geom, v_.nframe, s.shape == kStraight ? -1 : 0);
      link("link1", s.link1);
      link("link2", s.link2);
      index("geom_link", s.geom_link, v_.nlink, s.shape == kStraight ? -1 : 0);
      index("side_kind", s.side_kind, kSideMoves + 1);
      index("side", s.side, v_.nframe, s.side_kind == kSideNone ? -1 : 0);
    }
  }
  /// Wraps whose coordinates are added up.
  void summed(int first, int count) const {
    for (int k = first; k < first + count; ++k) index("qpos", m_.wrap[static_cast<std::size_t>(k)].qpos, v_.nq);
  }

  void actuators() {
    for (std::size_t i = 0; i < m_.actuator.size(); ++i) {
      const ActuatorRecord& a = m_.actuator[i];
      at("actuator", i);
      index("ctrl", a.ctrl, v_.nu);
      index("dynamics", a.dynamics, kDynamicsMuscle + 1);
      index("muscle", a.muscle, v_.nmuscle, a.dynamics == kDynamicsMuscle ? 0 : -1);
      index("act", a.act, v_.na, a.dynamics == kDynamicsNone ? -1 : 0);
      index("transmission", a.transmission, kTransmissionContacts + 1);
      range("first_wrap", a.first_wrap, a.wrap_count, v_.nwrap);
      index("tendon", a.tendon, v_.ntendon, a.transmission == kTransmissionTendon ? 0 : -1);
      index("reference", a.reference, v_.nframe, -1);
      index("gain_values", a.gain_values, 4);
      index("bias_values", a.bias_values, 4);
      switch (a.transmission) {
        case kTransmissionSum:
          require(a.wrap_count > 0, "wrap_count", a.wrap_count);
          summed(a.first_wrap, a.wrap_count);
          break;
        case kTransmissionTendon:
          equal("wrap_count", a.wrap_count, m_.tendon[static_cast<std::size_t>(a.tendon)].wrap_count);
          break;
        case kTransmissionSite:
          index("target", a.target, v_.nframe);
          break;
        case kTransmissionSliderCrank:
          index("target", a.target, v_.nframe);
          index("reference", a.reference, v_.nframe);
          break;
        case kTransmissionContacts:
          link("target", a.target);
          require(v_.keep_contacts != 0 && v_.adhesion != 0, "adhesion", v_.adhesion);
          equal("wrap_count", a.wrap_count, v_.nv);
          for (int k = 0; k < a.wrap_count; ++k) {
            equal("dof of a wrap", m_.wrap[static_cast<std::size_t>(a.first_wrap + k)].dof, k);
          }
          break;
        default:
          range("target", a.target, 4, v_.nq);
          equal("wrap_count", a.wrap_count, a.transmission == kTransmissionBall ? 3 : 6);
      }
    }
  }

  void delays() {
    Number rows = 0;
    for (std::size_t i = 0; i < m_.delay.size(); ++i) {
      const DelayRecord& r = m_.delay[i];
      at("delay", i);
      index("channel", r.channel, r.sensor != 0 ? v_.nsensordata : v_.nu);
      if (r.sensor != 0) require(v_.delayed_sensors != 0, "delayed_sensors", v_.delayed_sensors);
      require(r.count > 0, "count", r.count);
      if (r.halves == 0) {
        equal("first_row", r.first_row, rows);
        rows += r.count;
      } else {
        require(r.halves <= 2 && r.halves > 0, "halves", r.halves);
        equal("first_row", r.first_row + r.count, rows);
      }
      require(r.taps > 0 && r.taps <= 4, "taps", r.taps);
      for (int k = 0; k < r.taps; ++k) require(r.lag[k] > 0 && r.lag[k] <= r.count, "lag", r.lag[k]);
    }
    for (std::size_t i = 0; i < m_.interval.size(); ++i) {
      const IntervalRecord& r = m_.interval[i];
      at("interval", i);
      range("address", r.address, r.dim, v_.nsensordata);
      require(v_.delayed_sensors != 0, "delayed_sensors", v_.delayed_sensors);
      equal("first_row", r.first_row, rows);
      require(r.count > 0, "count", r.count);
      rows += 1 + Number{r.count} * (1 + r.dim);
    }
    what_ = "delays";
    equal("nhistory", v_.nhistory, rows);
  }

  void meshes() {
    const auto value = [&](Number k) { return m_.mesh_edge[static_cast<std::size_t>(k)]; };
    // For each of so many items where its list begins, from `first` on; lists of numbers below `most` that -1 ends.
    const auto lists = [&](const char* field, int first, int items, int most) {
      range(field, first, items, size(m_.mesh_edge));
      for (int v = 0; v < items; ++v) {
        Number k = Number{first} + value(Number{first} + v);
        for (;; ++k) {
          index(field, k, size(m_.mesh_edge));
          if (value(k) == -1) break;
          index(field, value(k), most);
        }
      }
    };
    for (std::size_t i = 0; i < m_.mesh.size(); ++i) {
      const MeshRecord& r = m_.mesh[i];
      at("mesh", i);
      require(r.vertex_count > 0, "vertex_count", r.vertex_count);
      const Number blocks = (Number{r.vertex_count} + kVertexBlock - 1) / kVertexBlock;
      range("first_vertex", r.first_vertex, 3 * kVertexBlock * blocks, size(m_.mesh_vertex));
      if (r.first_edge != -1) lists("first_edge", r.first_edge, r.vertex_count, r.vertex_count);
      range("first_face", r.first_face, r.face_count, size(m_.mesh_face));
      if (r.face_count > 0) lists("first_vertex_face", r.first_vertex_face, r.vertex_count, r.face_count);
      for (int f = r.first_face; f < r.first_face + r.face_count; ++f) {
        const FaceRecord& face = m_.mesh_face[static_cast<std::size_t>(f)];
        require(face.corner_count > 0, "corner_count", face.corner_count);
        range("first_corner", face.first_corner, face.corner_count, size(m_.mesh_edge));
        for (int k = 0; k < face.corner_count; ++k) index("corner", value(face.first_corner + k), r.vertex_count);
      }
      range("first_direction", r.first_direction, 3 * Number{r.direction_count}, size(m_.mesh_direction));
      range("first_side", r.first_side, r.side_count, size(m_.mesh_side));
      for (int s = r.first_side; s < r.first_side + r.side_count; ++s) {
        const SideRecord& side = m_.mesh_side[static_cast<std::size_t>(s)];
        index("begin", side.begin, r.vertex_count);
        index("end", side.end, r.vertex_count);
        index("left", side.left, r.face_count);
        index("right", side.right, r.face_count);
      }
    }
    for (std::size_t i = 0; i < m_.height_field.size(); ++i) {
      const HeightFieldRecord& h = m_.height_field[i];
      at("height field", i);
      require(h.rows > 1, "rows", h.rows);
      require(h.cols > 1, "cols", h.cols);
      range("first", h.first, Number{h.rows} * h.cols, size(m_.height));
    }
    for (std::size_t i = 0; i < m_.ray_mesh.size(); ++i) {
      at("mesh for rays", i);
      range("first", m_.ray_mesh[i].first, m_.ray_mesh[i].count, size(m_.ray_chunk));
    }
    for (std::size_t i = 0; i < m_.ray_chunk.size(); ++i) {
      at("chunk of a mesh for rays", i);
      range("first", m_.ray_chunk[i].first, m_.ray_chunk[i].count, size(m_.ray_triangle) / 9);
    }
  }

  void geoms() {
    const auto both = [&](const GeomRecord& g) {
      body(g.body);
      index("shape", g.shape, kMesh + 1);
      link("link", g.link);
      index("id", g.id, v_.nfilegeom);
    };
    for (std::size_t i = 0; i < m_.geom.size(); ++i) {
      const GeomRecord& g = m_.geom[i];
      at("geom", i);
      both(g);
      if (g.shape == kMesh) index("data", g.data, v_.nmesh);
      if (g.shape == kHeightField) index("data", g.data, v_.nheightfield);
    }
    for (std::size_t i = 0; i < m_.ray_geom.size(); ++i) {
      at("geom for rays", i);
      both(m_.ray_geom[i]);
      index("data", m_.ray_geom[i].data, size(m_.ray_mesh), -1);
    }
  }

  void pairs() {
    for (std::size_t i = 0; i < m_.pair.size(); ++i) {
      const PairRecord& p = m_.pair[i];
      at("pair of geoms", i);
      index("geom1", p.geom1, v_.ngeom);
      index("geom2", p.geom2, v_.ngeom);
      const GeomRecord &g1 = m_.geom[static_cast<std::size_t>(p.geom1)],
                       &g2 = m_.geom[static_cast<std::size_t>(p.geom2)];
      const auto convex = [](const GeomRecord& g) { return g.shape >= kSphere; };
      const auto simple = [](const GeomRecord& g) { return g.shape != kMesh && g.shape != kHeightField; };
      require(p.kernel == kConvexConvex        ? convex(g1) && convex(g2)
              : p.kernel == kPlaneMesh         ? g1.shape == kPlane && g2.shape == kMesh
              : p.kernel == kHeightFieldConvex ? g1.shape == kHeightField && convex(g2)
                                               : is_pair_kernel(p.kernel) && simple(g1) && simple(g2),
              "kernel", p.kernel);
      equal("max_contacts", p.max_contacts, most_contacts(p.kernel, v_.option.deepest_only != 0));
      require(p.dim == 1 || p.dim == 3 || p.dim == 4 || p.dim == 6, "dim", p.dim);
      index("friction_from", p.friction_from, 4);
      rows(p.first_dof, p.dof_count);
      if (p.by_axes != 0) {
        const auto faces = [&](const GeomRecord& g) {
          return g.shape == kMesh && m_.mesh[static_cast<std::size_t>(g.data)].face_count > 0;
        };
        const bool field = p.kernel == kHeightFieldConvex && (faces(g2) || g2.shape == kBox);
        require(field || (p.kernel == kConvexConvex && faces(g2) &&
                          (g1.shape == kSphere || are_lane_polytopes(g1, g2, m_.mesh.data(), m_.mesh_face.data()))),
                "by_axes", p.by_axes);
      }
      if (p.as_before != 0) {
        require(i > 0, "as_before", p.as_before);
        const PairRecord& q = m_.pair[i - 1];
        require(q.dof_count == p.dof_count && q.dim == p.dim &&
                    m_.geom[static_cast<std::size_t>(q.geom1)].body == g1.body &&
                    m_.geom[static_cast<std::size_t>(q.geom2)].body == g2.body,
                "as_before", p.as_before);
      }
      const PairBoundRecord& b = m_.pair_bound[i];
      equal("geom1 of its bound", b.geom1, p.geom1);
      equal("geom2 of its bound", b.geom2, p.geom2);
      index("root1", b.root1, v_.nbody, -1);
      index("root2", b.root2, v_.nbody, -1);
      index("separation", b.separation, v_.nseparation, -1);
      index("look", b.look, kLookAtRound + 1);
      const bool swapped = b.root1 > b.root2;
      equal("low", m_.pair_spheres[i].low, 3 * Number{swapped ? b.geom2 : b.geom1});
      equal("high", m_.pair_spheres[i].high, 3 * Number{swapped ? b.geom1 : b.geom2});
      require(m_.pair_spheres[i].square == b.bound * b.bound, "square", m_.pair_spheres[i].square);
    }
  }

  void runs_of_pairs() {
    Number next = 0;  // pair that no run has yet
    std::size_t window = 0;
    for (std::size_t i = 0; i < m_.pair_run.size(); ++i) {
      at("run of pairs", i);
      const PairRunRecord& r = m_.pair_run[i];
      equal("first", r.first, next);
      if (next % kPairsAtOnce == 0 && next < v_.npair) equal("pair_window", m_.pair_window[window++], Number(i));
      require(r.count > 0 && r.count <= v_.npair - next && (next + r.count - 1) / kPairsAtOnce == next / kPairsAtOnce,
              "count", r.count);
      index("geom", r.geom, v_.ngeom);
      require(r.look == kLookAtPlane || r.look == kLookAtSpheres, "look", r.look);
      for (const Number end = next + r.count; next < end; ++next) {
        const PairBoundRecord& b = m_.pair_bound[static_cast<std::size_t>(next)];
        equal("look of its pair", b.look == kLookAtPlane, r.look == kLookAtPlane);
        require(std::min(b.root1, b.root2) == r.low && std::max(b.root1, b.root2) == r.high, "low", r.low);
      }
      require(!(r.bound > 0) || (v_.tree_boxes != 0 && r.look != kLookAtPlane && r.low >= 0), "bound", r.bound);
    }
    at("size", 0);
    equal("pairs of runs", next, v_.npair);
    if (v_.npair > 0) equal("pair_window", m_.pair_window.back(), v_.npairrun);
  }

  void constraints() {
    const auto of_tendon = [&](const char* field, int tendon, int count) {
      index(field, tendon, v_.ntendon);
      equal("dof_count", count, m_.tendon[static_cast<std::size_t>(tendon)].wrap_count);
    };
    for (std::size_t i = 0; i < m_.limit.size(); ++i) {
      const LimitRecord& l = m_.limit[i];
      at("limit", i);
      index("kind", l.kind, 3);
      rows(l.first_dof, l.dof_count);
      if (l.kind == 2) {
        of_tendon("index", l.index, l.dof_count);
      } else {
        range("index", l.index, l.kind == 1 ? 4 : 1, v_.nq);
        equal("dof_count", l.dof_count, l.kind == 1 ? 3 : 1);
      }
    }
    for (std::size_t i = 0; i < m_.friction.size(); ++i) {
      const FrictionRecord& f = m_.friction[i];
      at("friction loss", i);
      rows(f.first_dof, f.dof_count);
      if (f.tendon != -1) {
        of_tendon("tendon", f.tendon, f.dof_count);
      } else {
        equal("dof_count", f.dof_count, 1);
      }
    }
    for (std::size_t i = 0; i < m_.equality.size(); ++i) {
      const EqualityRecord& e = m_.equality[i];
      at("equality", i);
      index("kind", e.kind, kEqualityTendon + 1);
      rows(e.first_dof, e.dof_count);
      if (e.kind == kEqualityConnect || e.kind == kEqualityWeld) {
        index("frame1", e.frame1, v_.nframe);
        index("frame2", e.frame2, v_.nframe);
        link("link1", e.link1);
        link("link2", e.link2);
        continue;
      }
      const Number objects = e.kind == kEqualityTendon ? Number{v_.ntendon} : size(m_.info.joints);
      index("object1", e.object1, objects);
      index("object2", e.object2, objects, -1);
      range("first_wrap1", e.first_wrap1, e.wrap_count1, v_.nwrap);
      range("first_wrap2", e.first_wrap2, e.wrap_count2, v_.nwrap);
      equal("dof_count", e.dof_count, Number{e.wrap_count1} + e.wrap_count2);
      if (e.kind == kEqualityJoint) summed(e.first_wrap1, e.wrap_count1), summed(e.first_wrap2, e.wrap_count2);
    }
  }

  /// Values that a sensor has; of Contact, of one of its contacts.
  static int values_of(const SensorRecord& s) {
    constexpr int kOfContact[] = {1, 3, 3, 1, 3, 3, 3, 3, 3}, kOfRange[] = {1, 3, 3, 3, 3, 1};
    const auto sum = [&](std::span<const int> sizes) {
      int values = 0;
      for (std::size_t f = 0; f < sizes.size(); ++f) values += s.fields >> f & 1 ? sizes[f] : 0;
      return values;
    };
    switch (s.kind) {
      case kSensorContact:
        return sum(kOfContact);
      case kSensorRangefinder:
        return sum(kOfRange);
      case kSensorBallQuat:
      case kSensorFrameQuat:
        return 4;
      case kSensorClock:
      case kSensorJointPos:
      case kSensorJointVel:
      case kSensorTendonPos:
      case kSensorTendonVel:
      case kSensorActuatorPos:
      case kSensorActuatorVel:
      case kSensorActuatorForce:
      case kSensorJointActuatorForce:
      case kSensorTendonActuatorForce:
      case kSensorTouch:
      case kSensorLimitPos:
      case kSensorLimitVel:
      case kSensorLimitForce:
      case kSensorDistance:
        return 1;
      case kSensorFromTo:
        return 6;
      case kSensorCamProjection:
        return 2;
      default:
        return 3;
    }
  }

  void sensors() {
    for (std::size_t i = 0; i < m_.piece.size(); ++i) {
      at("piece of a sensor", i);
      body(m_.piece[i].body);
      range("piece_start", m_.piece_start[i], Number{m_.piece_start[i + 1]} - m_.piece_start[i], size(m_.piece_link));
    }
    for (const int l : m_.piece_link) link("piece_link", l);
    for (std::size_t i = 0; i < m_.distance.size(); ++i) {
      at("pair of a distance", i);
      const PairRecord& p = m_.distance[i].pair;
      index("geom1", p.geom1, v_.ngeom);
      index("geom2", p.geom2, v_.ngeom);
      require(is_pair_kernel(p.kernel) && p.kernel != kBoxBox, "kernel", p.kernel);
      equal("max_contacts", p.max_contacts, most_contacts(p.kernel, false));
      equal("by_axes", p.by_axes, 0);
    }
    for (std::size_t i = 0; i < m_.sensor.size(); ++i) {
      at("sensor", i);
      sensor(m_.sensor[i]);
    }
  }
  void sensor(const SensorRecord& s) {
    index("kind", s.kind, kSensorFromTo + 1);
    range("address", s.address, s.dim, v_.nsensordata);
    const int values = values_of(s);
    require(s.kind == kSensorContact ? values > 0 && s.dim % values == 0 : s.dim == values, "dim", s.dim);
    bool needs_frame = false, needs_reference = s.kind == kSensorCamProjection, needs_pairs = false,
         needs_matches = false, needs_accelerations = false;
    switch (s.kind) {
      case kSensorClock:
        break;
      case kSensorJointPos:
        index("index", s.index, v_.nq);
        break;
      case kSensorBallQuat:
        range("index", s.index, 4, v_.nq);
        break;
      case kSensorJointVel:
      case kSensorJointActuatorForce:
        index("index", s.index, v_.nv);
        break;
      case kSensorBallVel:
        range("index", s.index, 3, v_.nv);
        break;
      case kSensorTendonPos:
      case kSensorTendonVel:
      case kSensorTendonActuatorForce:
        index("index", s.index, v_.ntendon);
        break;
      case kSensorActuatorPos:
      case kSensorActuatorVel:
      case kSensorActuatorForce:
        index("index", s.index, v_.nact);
        break;
      case kSensorLimitPos:
      case kSensorLimitVel:
      case kSensorLimitForce:
        index("index", s.index, v_.nlimit, -1);
        break;
      case kSensorForce:
      case kSensorTorque:
        needs_frame = needs_matches = needs_accelerations = true;
        break;
      case kSensorTouch:
        needs_frame = needs_pairs = true;
        break;
      case kSensorContact:
        needs_pairs = true;
        needs_frame = s.shape >= 0;
        index("reduce", s.reduce, kReduceNetForce + 1);
        break;
      case kSensorSubtreeCom:
      case kSensorSubtreeLinVel:
      case kSensorSubtreeAngMom:
        break;
      case kSensorDistance:
      case kSensorNormal:
      case kSensorFromTo:
        range("first_distance", s.first_distance, s.distance_count, v_.ndistance);
        break;
      case kSensorFrameAxis:
        needs_frame = true;
        index("index", s.index, 3);
        break;
      case kSensorAccelerometer:
      case kSensorFrameLinAcc:
      case kSensorFrameAngAcc:
        needs_frame = needs_accelerations = true;
        break;
      default:
        needs_frame = true;
    }
    index("frame", s.frame, v_.nframe, needs_frame ? 0 : -1);
    index("reference", s.reference, v_.nframe, needs_reference ? 0 : -1);
    range("first_piece", s.first_piece, s.piece_count, v_.npiece);
    if (needs_pairs || needs_matches) {
      require(v_.keep_contacts != 0, "keep_contacts", v_.keep_contacts);
      const Number more = needs_matches ? Number{v_.neq} + v_.nlink : 0;
      range("first_match", s.first_match, v_.npair + more, v_.nmatch);
    }
    if (needs_accelerations) require(v_.accelerations != 0, "accelerations", v_.accelerations);
  }

  const Model& m_;
  const ModelView& v_;
  const char* what_ = "";
  std::size_t index_ = 0;
};

}  // namespace

void check_model(const Model& model) {
  Checker(model).run();
}

}  // namespace cohort::sim
