// Contacts of polytopes that the lanes compute, against the same of one environment alone in double precision.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

#include "core/format.h"
#include "core/philox.h"
#include "oracle.h"
#include "sim/host/scene.h"
#include "sim/kernels/collide/queue.h"

namespace cohort::sim {
namespace {

/// m: single precision of shapes of a few decimetres.
constexpr double kPointTolerance = 2e-6;
constexpr double kTurnTolerance = 1e-5;

struct Solid {
  const char* name;
  std::string geom, asset;
};

std::string mesh_asset(const char* name, const std::vector<std::array<double, 3>>& vertices) {
  std::string list;
  for (const auto& v : vertices) {
    for (double x : v) list += format("{:.9g} ", x);
  }
  return std::string("<asset><mesh name='") + name + "' vertex='" + list + "'/></asset>";
}

Solid mesh(const char* name, const std::vector<std::array<double, 3>>& vertices) {
  return {name, std::string("type='mesh' mesh='") + name + "'", mesh_asset(name, vertices)};
}

/// Six squares and eight triangles.
std::vector<std::array<double, 3>> cuboctahedron(double size) {
  std::vector<std::array<double, 3>> all;
  for (double x : {-size, size}) {
    for (double y : {-size, size}) all.push_back({x, y, 0}), all.push_back({x, 0, y}), all.push_back({0, x, y});
  }
  return all;
}

/// A prism of ten corners.
std::vector<std::array<double, 3>> drum() {
  std::vector<std::array<double, 3>> all;
  for (int k = 0; k < 10; ++k) {
    const double a = std::numbers::pi / 5 * k + 0.1;
    for (double z : {-0.1, 0.12}) all.push_back({0.2 * std::cos(a), 0.2 * std::sin(a), z});
  }
  return all;
}

/// Corners all over an ellipsoid (on a spiral), all of them on the hull.
std::vector<std::array<double, 3>> pebble(int corners) {
  std::vector<std::array<double, 3>> all;
  for (int k = 0; k < corners; ++k) {
    const double z = 1 - (2 * k + 1.0) / corners, r = std::sqrt(1 - z * z), a = 2.399963 * k;
    all.push_back({0.2 * r * std::cos(a), 0.15 * r * std::sin(a), 0.1 * z});
  }
  return all;
}

const std::vector<Solid>& shapes() {
  static const std::vector<Solid> list{
      {"box", "type='box' size='0.1 0.2 0.15'", ""},
      mesh("tetrahedron", {{0.2, 0, -0.1}, {-0.1, 0.18, -0.12}, {-0.1, -0.2, -0.1}, {0, 0.02, 0.2}}),
      mesh("cuboctahedron", cuboctahedron(0.125)),
      mesh("pyramid", {{0.2, 0.2, -0.1}, {-0.2, 0.2, -0.1}, {-0.2, -0.2, -0.1}, {0.2, -0.2, -0.1}, {0, 0, 0.2}}),
      mesh("drum", drum()),
  };
  return list;
}

using Matrix = std::array<double, 9>;

Matrix turned(const double* quat) {
  Matrix R;
  mju_quat2Mat(R.data(), quat);
  return R;
}
Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c;
  mju_mulMatMat(c.data(), a.data(), b.data(), 3, 3, 3);
  return c;
}
/// About an axis, by an angle.
Matrix about(const double* axis, double angle) {
  double quat[4];
  mju_axisAngle2Quat(quat, axis, angle);
  return turned(quat);
}

class Draw {
 public:
  explicit Draw(std::uint64_t sample) : random_(12, RandomPurpose::kTest, sample, 0) {}
  double within(double size) { return size * (2 * static_cast<double>(random_.uniform(key_++)) - 1); }
  double normal() { return static_cast<double>(random_.normal(key_++)); }
  int below(int count) {
    return std::min(count - 1, static_cast<int>(random_.uniform(key_++) * static_cast<float>(count)));
  }
  Matrix rotation() {
    double quat[4] = {normal(), normal(), normal(), normal()};
    mju_normalize4(quat);
    return turned(quat);
  }

 private:
  RandomStream random_;
  std::uint64_t key_ = 0;
};

enum Kind { kAnyPose, kFacesNearlyParallel, kFacesParallel, kEdgeOnFace, kDeep, kKinds };

/// A pose of the second shape against the first. Both are then turned and moved together.
PairPose<float> draw_pose(const ModelView& m, Draw& draw, Kind kind) {
  const GeomRecord &g1 = m.geom[m.pair[0].geom1], &g2 = m.geom[m.pair[0].geom2];
  Matrix R = draw.rotation();
  double at[3];
  if (kind == kAnyPose || kind == kDeep) {
    for (double& x : at) x = draw.normal();
    mju_normalize3(at);
    const double distance = kind == kDeep ? 0.1 + draw.within(0.1) : 0.25 + draw.within(0.15);
    for (double& x : at) x *= distance;
  } else {
    // A face of the second on one of the first, maybe tilted.
    float n1[3], n2[3], on1[3], on2[3];
    const int f1 = draw.below(face_count_of(m, g1)), f2 = draw.below(face_count_of(m, g2));
    face_normal(n1, m, g1, f1), face_normal(n2, m, g2, f2);
    corner_of(on1, m, g1, face_corner(m, g1, f1, 0)), corner_of(on2, m, g2, face_corner(m, g2, f2, 0));
    const double a[3] = {n1[0], n1[1], n1[2]}, b[3] = {-n2[0], -n2[1], -n2[2]};
    double axis[3];
    mju_cross(axis, b, a);
    const double sine = mju_normalize3(axis);
    R = product(about(a, draw.within(3.1)), about(axis, std::atan2(sine, mju_dot3(a, b))));
    if (kind != kFacesParallel) {
      double tilt[3] = {draw.normal(), draw.normal(), draw.normal()};
      if (kind == kEdgeOnFace) {
        // About an edge of the face.
        float p[3], q[3];
        corner_of(p, m, g2, face_corner(m, g2, f2, 0)), corner_of(q, m, g2, face_corner(m, g2, f2, 1));
        const double along[3] = {q[0] - p[0], q[1] - p[1], q[2] - p[2]};
        mju_mulMatVec3(tilt, R.data(), along);
      }
      mju_normalize3(tilt);
      R = product(about(tilt, kind == kEdgeOnFace ? draw.within(0.6) : draw.within(0.1)), R);
      if (kind == kEdgeOnFace) {
        double small[3] = {draw.normal(), draw.normal(), draw.normal()};
        mju_normalize3(small);
        R = product(about(small, draw.within(0.06)), R);
      }
    }
    double corner[3], local[3] = {on2[0], on2[1], on2[2]};
    mju_mulMatVec3(corner, R.data(), local);
    for (int i = 0; i < 3; ++i) at[i] = on1[i] - corner[i] + draw.within(0.15);
    const double height =
        (at[0] + corner[0] - on1[0]) * a[0] + (at[1] + corner[1] - on1[1]) * a[1] + (at[2] + corner[2] - on1[2]) * a[2];
    const double wanted = draw.within(0.02) - 0.01;
    for (int i = 0; i < 3; ++i) at[i] += (wanted - height) * a[i];
  }
  const Matrix whole = draw.rotation();
  double moved[3];
  mju_mulMatVec3(moved, whole.data(), at);
  const Matrix R2 = product(whole, R);
  PairPose<float> pose;
  for (int i = 0; i < 9; ++i) {
    pose.rot1[i] = static_cast<float>(whole[static_cast<std::size_t>(i)]);
    pose.rot2[i] = static_cast<float>(R2[static_cast<std::size_t>(i)]);
  }
  for (int i = 0; i < 3; ++i) {
    pose.pos1[i] = static_cast<float>(draw.within(0.3));
    pose.pos2[i] = static_cast<float>(static_cast<double>(pose.pos1[i]) + moved[i]);
  }
  return pose;
}

struct Contact {
  double dist, pos[3], normal[3];
};

/// One environment alone, by a search.
std::vector<Contact> alone(const ModelView& m, const PairPose<float>& pose) {
  const PairRecord& p = m.pair[0];
  QueuedShape s1{m.geom + p.geom1, {}, {}}, s2{m.geom + p.geom2, {}, {}};
  for (int i = 0; i < 3; ++i) s1.pos[i] = pose.pos1[i], s2.pos[i] = pose.pos2[i];
  for (int i = 0; i < 9; ++i) s1.rot[i] = pose.rot1[i], s2.rot[i] = pose.rot2[i];
  QueuedContact found[kMaxPairContacts];
  double apart[3];
  const double reach = double{p.margin} + double{p.gap};
  const int count = queued_narrow_phase(m, p.kernel, s1, s2, reach, farthest_function<ScalarLane>(), found, apart);
  std::vector<Contact> all;
  for (int k = 0; k < count; ++k) {
    const QueuedContact& c = found[k];
    all.push_back({c.dist, {c.pos[0], c.pos[1], c.pos[2]}, {c.normal[0], c.normal[1], c.normal[2]}});
  }
  return all;
}

/// Those nearer than the reach; nothing else counts.
std::vector<Contact> of_lanes(const ModelView& m, const PairPose<float>& pose) {
  const PairRecord& p = m.pair[0];
  ContactPoint<float> points[kMaxPairContacts];
  const int most = queue_narrow_phase<ScalarLane>(points, m, p, pose, true, Separations{}, 0, nullptr);
  std::vector<Contact> all;
  for (int k = 0; k < most; ++k) {
    const ContactPoint<float>& c = points[k];
    if (!(c.dist < p.margin + p.gap)) continue;
    all.push_back({c.dist, {c.pos[0], c.pos[1], c.pos[2]}, {c.normal[0], c.normal[1], c.normal[2]}});
  }
  return all;
}

/// Puts MuJoCo's bodies so that their geoms have a pose, to single precision; returns the one they have.
PairPose<float> placed(test::Pair& p, const PairPose<float>& pose) {
  const ModelView& m = p.view;
  PairPose<float> out;
  for (int k = 0; k < 2; ++k) {
    const float *rot = k == 0 ? pose.rot1 : pose.rot2, *pos = k == 0 ? pose.pos1 : pose.pos2;
    const int geom = m.geom[k == 0 ? m.pair[0].geom1 : m.pair[0].geom2].id;
    double R[9], of_geom[4], of_body[4], back[4], shift[3];
    for (int i = 0; i < 9; ++i) R[i] = rot[i];
    mju_mat2Quat(of_geom, R);
    mju_negQuat(back, p.mj->geom_quat + 4 * geom);
    mju_mulQuat(of_body, of_geom, back);
    mju_rotVecQuat(shift, p.mj->geom_pos + 3 * geom, of_body);
    double* q = p.data->qpos + p.mj->jnt_qposadr[p.mj->body_jntadr[p.mj->geom_bodyid[geom]]];
    for (int i = 0; i < 3; ++i) q[i] = pos[i] - shift[i];
    for (int i = 0; i < 4; ++i) q[3 + i] = of_body[i];
  }
  mj_forward(p.mj.get(), p.data.get());
  for (int k = 0; k < 2; ++k) {
    const int geom = m.geom[k == 0 ? m.pair[0].geom1 : m.pair[0].geom2].id;
    for (int i = 0; i < 9; ++i) (k == 0 ? out.rot1 : out.rot2)[i] = static_cast<float>(p.data->geom_xmat[9 * geom + i]);
    for (int i = 0; i < 3; ++i) (k == 0 ? out.pos1 : out.pos2)[i] = static_cast<float>(p.data->geom_xpos[3 * geom + i]);
  }
  return out;
}

std::vector<Contact> mujocos(const mjData& d) {
  std::vector<Contact> all;
  for (int k = 0; k < d.ncon; ++k) {
    const mjContact& c = d.contact[k];
    all.push_back({c.dist, {c.pos[0], c.pos[1], c.pos[2]}, {c.frame[0], c.frame[1], c.frame[2]}});
  }
  return all;
}

/// Of the contacts, each against the one that is most alike: m, a turn counting as its tolerance's share of one.
double difference(const std::vector<Contact>& a, const std::vector<Contact>& b) {
  if (a.size() != b.size()) return 1;
  double worst = 0;
  for (const Contact& c : a) {
    double best = 1;
    for (const Contact& d : b) {
      double error = std::abs(c.dist - d.dist);
      for (int i = 0; i < 3; ++i) {
        error = std::max({error, std::abs(c.pos[i] - d.pos[i]),
                          std::abs(c.normal[i] - d.normal[i]) * (kPointTolerance / kTurnTolerance)});
      }
      best = std::min(best, error);
    }
    worst = std::max(worst, best);
  }
  return worst;
}

test::Pair pair_of(const Solid& first, const Solid& second, double margin) {
  return test::Pair(test::compile_xml("<mujoco>" + first.asset + (first.name == second.name ? "" : second.asset) +
                                      "<worldbody><body><freejoint/><geom " + first.geom +
                                      "/></body><body><freejoint/><geom " + second.geom + " margin='" +
                                      std::to_string(margin) + "'/></body></worldbody></mujoco>"));
}

struct Counts {
  int met = 0, differing = 0, several = 0;
};

void count(Counts& counts, const std::vector<Contact>& found, const std::vector<Contact>& expected, double tolerance) {
  if (found.empty() && expected.empty()) return;
  ++counts.met;
  counts.several += found.size() > 1;
  counts.differing += difference(expected, found) >= tolerance;
}

TEST(Polytopes, HaveTheContactsInTheLanesThatOneEnvironmentHasAlone) {
  for (std::size_t first = 0; first < shapes().size(); ++first) {
    for (std::size_t second = std::max<std::size_t>(first, 1); second < shapes().size(); ++second) {
      SCOPED_TRACE(std::string(shapes()[first].name) + " and " + shapes()[second].name);
      for (double margin : {0.0, 0.02}) {
        test::Pair p = pair_of(shapes()[first], shapes()[second], margin);
        ASSERT_EQ(p.view.pair[0].by_axes, 1);
        for (int kind = 0; kind < kKinds; ++kind) {
          Counts counts;
          for (std::uint64_t sample = 0; sample < 1000; ++sample) {
            Draw draw(sample * kKinds + static_cast<std::uint64_t>(kind));
            const PairPose<float> pose = draw_pose(p.view, draw, static_cast<Kind>(kind));
            count(counts, of_lanes(p.view, pose), alone(p.view, pose), kPointTolerance);
          }
          EXPECT_GE(counts.met, 200) << "kind " << kind;
          EXPECT_GE(counts.several, 40) << "kind " << kind;
          // Ways out of one length, features at the limit of five degrees.
          EXPECT_LE(counts.differing, counts.met / 100) << "kind " << kind << ", of " << counts.met;
        }
      }
    }
  }
}

/// m: poses are single precision.
constexpr double kMujocoTolerance = 1e-5;

TEST(Boxes, HaveMujocosContacts) {
  const Solid& box = shapes()[0];
  for (double margin : {0.0, 0.02}) {
    test::Pair p = pair_of(box, {"plank", "type='box' size='0.25 0.1 0.02'", ""}, margin);
    for (int kind = 0; kind < kKinds; ++kind) {
      Counts counts;
      for (std::uint64_t sample = 0; sample < 1000; ++sample) {
        Draw draw(sample * kKinds + static_cast<std::uint64_t>(kind));
        const PairPose<float> pose = placed(p, draw_pose(p.view, draw, static_cast<Kind>(kind)));
        count(counts, of_lanes(p.view, pose), mujocos(*p.data), kMujocoTolerance);
      }
      EXPECT_GE(counts.met, 300) << "kind " << kind;
      EXPECT_GE(counts.several, 100) << "kind " << kind;
      EXPECT_LE(counts.differing, 3) << "kind " << kind << ", of " << counts.met;
    }
  }
}

/// The vertices of a mesh that are in reach of a plane, in double: all of its contacts where no choice is made.
std::vector<Contact> vertices_in_reach(const ModelView& m, const PairPose<float>& pose) {
  const PairRecord& p = m.pair[0];
  const MeshRecord& mesh = m.mesh[m.geom[p.geom2].data];
  const double n[3] = {pose.rot1[2], pose.rot1[5], pose.rot1[8]};
  std::vector<Contact> all;
  for (int v = 0; v < mesh.vertex_count; ++v) {
    float local[3];
    mesh_vertex(local, m, mesh, v);
    double at[3], height = 0;
    for (int i = 0; i < 3; ++i) {
      at[i] = pose.pos2[i];
      for (int k = 0; k < 3; ++k) at[i] += double{pose.rot2[3 * i + k]} * double{local[k]};
      height += n[i] * (at[i] - double{pose.pos1[i]});
    }
    if (height > double{p.margin}) continue;
    Contact contact{height, {}, {n[0], n[1], n[2]}};
    for (int i = 0; i < 3; ++i) contact.pos[i] = at[i] - 0.5 * height * n[i];
    all.push_back(contact);
  }
  return all;
}

/// Largest dot product with `direction` among contacts.
double farthest_along(const std::vector<Contact>& contacts, const double* direction) {
  double most = -1e9;
  for (const Contact& c : contacts) most = std::max(most, mju_dot3(c.pos, direction));
  return most;
}

PairPose<float> over_a_plane(Draw& draw) {
  const Matrix R1 = draw.rotation(), R2 = draw.rotation();
  PairPose<float> pose;
  for (int i = 0; i < 9; ++i) {
    pose.rot1[i] = static_cast<float>(R1[static_cast<std::size_t>(i)]);
    pose.rot2[i] = static_cast<float>(R2[static_cast<std::size_t>(i)]);
  }
  const float height = static_cast<float>(0.1 + draw.within(0.1));
  for (int i = 0; i < 3; ++i) {
    pose.pos1[i] = static_cast<float>(draw.within(0.3));
    pose.pos2[i] = pose.pos1[i] + height * pose.rot1[3 * i + 2];
  }
  return pose;
}

TEST(PlaneAndMesh, TouchAtEveryVertexInReachOrAtThoseThatEncloseThem) {
  for (int corners : {30, 120}) {
    const Solid shape = mesh("pebble", pebble(corners));
    test::Pair p(test::compile_xml("<mujoco>" + shape.asset + "<worldbody><geom type='plane' size='1 1 1'/><body>" +
                                   "<freejoint/><geom " + shape.geom + " margin='0.05'/></body></worldbody></mujoco>"));
    ASSERT_EQ(p.view.pair[0].kernel, kPlaneMesh);
    Counts counts;
    int chosen = 0;
    for (std::uint64_t sample = 0; sample < 1000; ++sample) {
      Draw draw(sample);
      const PairPose<float> pose = over_a_plane(draw);
      const std::vector<Contact> found = of_lanes(p.view, pose), all = vertices_in_reach(p.view, pose);
      if (all.size() <= static_cast<std::size_t>(kSpreadKept)) {
        count(counts, found, all, kPointTolerance);
        continue;
      }
      ++chosen;
      ASSERT_GE(found.size(), 1u) << "sample " << sample;
      ASSERT_LE(found.size(), static_cast<std::size_t>(kSpreadKept)) << "sample " << sample;
      const auto deepest = [](const std::vector<Contact>& list) {
        return std::min_element(list.begin(), list.end(), [](auto& a, auto& b) { return a.dist < b.dist; })->dist;
      };
      EXPECT_NEAR(deepest(found), deepest(all), 1e-4) << "sample " << sample;
    }
    // Of the larger one nearly always some have to be chosen.
    EXPECT_GE(counts.met, corners > 100 ? 40 : 300) << corners << " corners";
    EXPECT_GE(counts.several, corners > 100 ? 40 : 200) << corners << " corners";
    EXPECT_LE(counts.differing, 2) << corners << " corners, of " << counts.met;
    if (corners > 100) EXPECT_GE(chosen, 100);
  }
}

/// A prism of 60 sides that stands flat: what is kept lies around all of it, and is the same for any order of vertices.
TEST(PlaneAndMesh, KeepCornersAllAroundAFlatBottomInAnyOrderOfTheVertices) {
  std::vector<std::array<double, 3>> round;
  for (int k = 0; k < 60; ++k) {
    const double a = std::numbers::pi / 30 * k;
    for (double z : {-0.05, 0.05}) round.push_back({0.2 * std::cos(a), 0.2 * std::sin(a), z});
  }
  const auto contacts = [&](const std::vector<std::array<double, 3>>& vertices) {
    const Solid shape = mesh("drum", vertices);
    test::Pair p(test::compile_xml("<mujoco>" + shape.asset + "<worldbody><geom type='plane' size='1 1 1'/><body>" +
                                   "<freejoint/><geom " + shape.geom + "/></body></worldbody></mujoco>"));
    // A mesh's frame is MuJoCo's choice.
    p.data->qpos[2] = 0.0495;
    mj_forward(p.mj.get(), p.data.get());
    PairPose<float> pose{};
    for (int i = 0; i < 9; ++i) {
      pose.rot1[i] = i % 4 == 0 ? 1.0f : 0.0f;
      pose.rot2[i] = static_cast<float>(p.data->geom_xmat[9 + i]);
    }
    for (int i = 0; i < 3; ++i) pose.pos2[i] = static_cast<float>(p.data->geom_xpos[3 + i]);
    return of_lanes(p.view, pose);
  };
  const std::vector<Contact> found = contacts(round);
  ASSERT_GE(found.size(), 6u);
  for (int k = 0; k < 24; ++k) {
    const double direction[3] = {std::cos(0.2618 * k), std::sin(0.2618 * k), 0};
    EXPECT_GT(farthest_along(found, direction), 0.2 * std::cos(std::numbers::pi / 7 + 0.06)) << "direction " << k;
  }
  std::reverse(round.begin(), round.end());
  const std::vector<Contact> backwards = contacts(round);
  ASSERT_EQ(backwards.size(), found.size());
  EXPECT_LT(difference(found, backwards), kPointTolerance);
}

/// A vertex of a rounded mesh lies on a face, and several of the faces around it look at that one to within five
/// degrees. In the lanes, and, on a plate of too many corners for them, in double precision.
TEST(FacesThatMeet, OfSeveralPairsTheOneThatFacesEachOtherMostIsTakenAsByMujoco) {
  std::vector<std::array<double, 3>> plate;
  for (int k = 0; k < 40; ++k) {
    const double a = std::numbers::pi / 20 * k;
    for (double z : {-0.1, 0.1}) plate.push_back({0.3 * std::cos(a), 0.3 * std::sin(a), z});
  }
  int pairs = 0;
  for (const Solid& under : {Solid{"box", "type='box' size='.3 .3 .1'", ""}, mesh("plate", plate)}) {
    for (std::uint64_t sample = 0; sample < 20; ++sample) {
      const RandomStream random(5, RandomPurpose::kTest, 0, sample);
      std::uint64_t drawn = 0;
      // A shallow tip, each side of it 1.5 to 4.5 degrees steep.
      std::vector<std::array<double, 3>> tip{{0, 0, 0}, {0.02, 0.01, 0.2}};
      for (int k = 0; k < 5; ++k) {
        const double a = 2 * std::numbers::pi / 5 * (k + 0.4 * double{random.uniform(drawn++)});
        const double steep = std::numbers::pi / 180 * (1.5 + 3 * double{random.uniform(drawn++)});
        tip.push_back({0.1 * std::cos(a), 0.1 * std::sin(a), 0.1 * std::tan(steep)});
      }
      const Solid over = mesh("tip", tip);
      const std::string xml = format(
          "<mujoco><compiler inertiafromgeom='true'/>{}{}<worldbody><geom {}/><body pos='0 0 .098'><freejoint/>"
          "<geom {}/></body></worldbody></mujoco>",
          under.asset, over.asset, under.geom, over.geom);
      std::vector<sim::Contact> found[2];
      for (const EngineKind engine : {EngineKind::kBatched, EngineKind::kMujoco}) {
        SceneOptions options;
        options.engine = engine;
        Scene scene(options);
        scene.add_entity(Mjcf{.file = "", .xml = xml});
        scene.build(1);
        found[engine == EngineKind::kMujoco] = scene.get_contacts();
      }
      SCOPED_TRACE(format("{}, sample {}", under.name, sample));
      ASSERT_FALSE(found[1].empty());
      ASSERT_EQ(found[0].size(), found[1].size());
      for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(found[0][0].normal[i], found[1][0].normal[i], 1e-4);
      ++pairs;
    }
  }
  EXPECT_EQ(pairs, 40);
}

}  // namespace
}  // namespace cohort::sim
