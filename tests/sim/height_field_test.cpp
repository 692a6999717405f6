// Shapes on height fields: what the lanes find against the search for one environment, and against MuJoCo C.
#include <algorithm>

#include <gtest/gtest.h>

#include "block.h"
#include "contact_comparison.h"
#include "core/format.h"
#include "sim/kernels/collide/convex/farthest.h"
#include "sim/kernels/collide/convex/queued.h"

namespace cohort::sim {
namespace {

/// Positions in single precision, over a field of two metres.
constexpr double kFieldTolerance = 1e-5;
/// Of places, m, and of the normal's components: of axes of one depth to 1e-6 the search takes any.
constexpr double kFieldPlaceTolerance = 2e-3, kFieldNormalTolerance = 1e-2;

struct Footprint {
  const char* name;
  const char* xml;
};
const Footprint kShapes[] = {{"sphere", "type='sphere' size='0.15'"},
                             {"capsule", "type='capsule' size='0.08 0.2'"},
                             {"ellipsoid", "type='ellipsoid' size='0.1 0.2 0.15'"},
                             {"cylinder", "type='cylinder' size='0.12 0.15'"},
                             {"box", "type='box' size='0.1 0.2 0.15'"},
                             {"mesh", "type='mesh' mesh='rock'"}};

/// hilly: heights differ from corner to corner; otherwise steps of level ground.
std::string scene(const Footprint& shape, bool hilly, const char* margin) {
  std::string elevation;
  for (int r = 0; r < 9; ++r) {
    for (int c = 0; c < 9; ++c) elevation += hilly ? ((5 * r + 3 * c) % 7 < 3 ? "1 " : "0 ") : c < 5 ? "0 " : "1 ";
  }
  return "<mujoco><asset><mesh name='rock' vertex='0.2 0.01 0 -0.18 0.02 0.03 0.02 0.15 0.01 0.01 -0.17 -0.02 0.03 "
         "0.01 "
         "0.12 -0.02 0.02 -0.14'/><hfield name='h' nrow='9' ncol='9' size='1 0.8 0.15 0.3' elevation='" +
         elevation + "'/></asset><worldbody><geom type='hfield' hfield='h' euler='0 8 3'/><body><freejoint/><geom " +
         shape.xml + " margin='" + margin + "'/></body></worldbody></mujoco>";
}

struct Contacts {
  int count;
  QueuedContact contact[kMaxPairContacts];
};

/// The rows of the state in p.data, in MuJoCo and in ours.
BlockSpace<ScalarLane>& rows_of_both(test::Pair& p, test::Block& block) {
  mj_forward(p.mj.get(), p.data.get());
  block.load(p.view, *p.data);
  test::smooth_dynamics(p.view, block.space.w);
  test::make_rows(p.view, block.space);
  return block.space;
}

/// The lanes' contacts in the world.
Contacts contacts_of_lanes(const test::Pair& p, const BlockSpace<ScalarLane>& b) {
  Contacts out{};
  for (int k = 0; k < b.c.count; ++k) {
    const float* kept = b.c.pool + b.c.group[k].at + layout_of(b.c.group[k]).size;
    if (b.c.group[k].pair < 0 || kept[KeptContact::kDist] >= 1e8f) continue;
    QueuedContact& c = out.contact[out.count++];
    c.dist = static_cast<double>(kept[KeptContact::kDist]);
    const float* origin = b.w.origin + 3 * p.view.body[p.view.geom[p.view.pair[0].geom2].body].root;
    for (int i = 0; i < 3; ++i) {
      c.pos[i] = static_cast<double>(kept[KeptContact::kPos + i] + origin[i]);
      c.normal[i] = static_cast<double>(kept[KeptContact::kFrame + i]);
    }
  }
  return out;
}

/// What the search finds, one prism after the other.
Contacts searched(const test::Pair& p) {
  const PairRecord& pair = p.view.pair[0];
  QueuedShape shape[2] = {{p.view.geom + pair.geom1, {}, {}}, {p.view.geom + pair.geom2, {}, {}}};
  for (QueuedShape& s : shape) {
    for (int i = 0; i < 3; ++i) s.pos[i] = p.data->geom_xpos[3 * s.geom->id + i];
    for (int i = 0; i < 9; ++i) s.rot[i] = p.data->geom_xmat[9 * s.geom->id + i];
  }
  Contacts out{};
  double apart[3];
  out.count =
      queued_narrow_phase(p.view, kHeightFieldConvex, shape[0], shape[1], static_cast<double>(pair.margin + pair.gap),
                          farthest_function<ScalarLane>(), out.contact, apart);
  return out;
}

/// By distance: one prism's contacts come in any order.
void sort(Contacts& all) {
  std::sort(all.contact, all.contact + all.count, [](const auto& a, const auto& b) { return a.dist < b.dist; });
}

std::string text(const char* whose, const Contacts& all) {
  std::string lines;
  for (const QueuedContact* c = all.contact; c < all.contact + all.count; ++c) {
    lines += format("{}: {:.6f} at {:.5f} {:.5f} {:.5f}, normal {:.5f} {:.5f} {:.5f}\n", whose, c->dist, c->pos[0],
                    c->pos[1], c->pos[2], c->normal[0], c->normal[1], c->normal[2]);
  }
  return lines;
}

double difference(const double* a, const double* b) {
  double most = 0;
  for (int i = 0; i < 3; ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

/// The state in p.data, which hovers about the ground: upright for some samples, to lie flat on the steps.
void place(test::Pair& p, std::uint64_t sample, bool level) {
  const RandomStream random(8, RandomPurpose::kTest, sample, 0);
  p.randomize(sample, 0, 0.1);
  for (int i = 0; i < 2; ++i) {
    p.data->qpos[i] = static_cast<double>(1.6f * (random.uniform(static_cast<std::uint64_t>(i)) - 0.5f));
  }
  p.data->qpos[2] = static_cast<double>(0.4f * random.uniform(2));
  if (!level) return;
  // The field's own tilt, and a turn about its normal.
  double tilt[4], turn[4];
  for (int i = 0; i < 4; ++i) tilt[i] = p.mj->geom_quat[i];
  const double angle = static_cast<double>(random.uniform(3)), axis[3] = {0, 0, 1};
  mju_axisAngle2Quat(turn, axis, sample % 2 == 0 ? angle : 0);
  mju_mulQuat(p.data->qpos + 3, tilt, turn);
  for (int i = 3; i < 7; ++i) p.data->qpos[i] = static_cast<float>(p.data->qpos[i]);
}

class OnHeightField : public ::testing::TestWithParam<std::size_t> {};

TEST_P(OnHeightField, TheLanesFindWhatTheSearchFinds) {
  const Footprint& shape = kShapes[GetParam()];
  SCOPED_TRACE(shape.name);
  for (const bool hilly : {true, false}) {
    for (const char* margin : {"0", "0.03"}) {
      SCOPED_TRACE(std::string(hilly ? "hills" : "steps") + ", margin " + margin);
      test::Pair p(test::compile_xml(scene(shape, hilly, margin)));
      p.view.keep_contacts = 1;
      test::Block block(p.view);
      int compared = 0, uncertain = 0, on_a_side = 0, elsewhere = 0;
      std::string differing;
      for (std::uint64_t sample = 0; sample < 300; ++sample) {
        place(p, sample, !hilly && sample % 3 != 0);
        Contacts ours = contacts_of_lanes(p, rows_of_both(p, block)), theirs = searched(p);
        sort(ours), sort(theirs);
        // Of many some were chosen: which is a matter of rounding.
        if (ours.count >= kSpreadKept && theirs.count >= kSpreadKept) continue;
        if (ours.count != theirs.count) {
          // One at the margin may be found in one precision and not in the other.
          double closest = -1;
          for (const Contacts* c : {&ours, &theirs}) {
            for (int k = 0; k < c->count; ++k) closest = std::max(closest, c->contact[k].dist);
          }
          const double off = std::abs(closest - static_cast<double>(p.view.pair[0].margin));
          on_a_side += off > kFieldTolerance;
          if (off > kFieldTolerance) differing += text("lanes", ours) + text("search", theirs);
          ++uncertain;
          continue;
        }
        for (int k = 0; k < ours.count; ++k) {
          const QueuedContact &a = ours.contact[k], &b = theirs.contact[k];
          EXPECT_NEAR(a.dist, b.dist, kFieldTolerance) << "sample " << sample << " contact " << k;
          elsewhere +=
              difference(a.normal, b.normal) > kFieldNormalTolerance || difference(a.pos, b.pos) > kFieldPlaceTolerance;
          ++compared;
        }
      }
      EXPECT_GE(compared, 200);
      EXPECT_LE(uncertain, 6);
      // So may a corner over a side that two prisms share be over one of them or over both.
      EXPECT_LE(on_a_side, 1) << differing;
      // Parts that lie level on each other meet in more than one point.
      if (hilly) EXPECT_LE(elsewhere, compared / 100) << "of " << compared;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, OnHeightField, ::testing::Range(std::size_t{0}, std::size(kShapes)));

/// A cell's half: three corners of the surface and those below them, in the world.
using PrismCorners = std::array<std::array<double, 3>, 6>;

/// As MuJoCo cuts a field of n x n points into prisms.
std::vector<PrismCorners> prisms(const mjModel& m, const mjData& d) {
  const int n = m.hfield_nrow[0];
  std::vector<PrismCorners> all;
  const auto corner = [&](int r, int c, bool top) {
    const double* size = m.hfield_size;
    const double local[3] = {size[0] * (2.0 * c / (n - 1) - 1), size[1] * (2.0 * r / (n - 1) - 1),
                             top ? size[2] * static_cast<double>(m.hfield_data[r * n + c]) : -size[3]};
    std::array<double, 3> x;
    mju_mulMatVec3(x.data(), d.geom_xmat, local);
    mju_addTo3(x.data(), d.geom_xpos);
    return x;
  };
  for (int r = 0; r + 1 < n; ++r) {
    for (int c = 0; c + 1 < n; ++c) {
      const int cells[2][3][2] = {{{r, c}, {r + 1, c}, {r + 1, c + 1}}, {{r, c}, {r, c + 1}, {r + 1, c + 1}}};
      for (const auto& cell : cells) {
        PrismCorners prism;
        for (std::size_t i = 0; i < 6; ++i) prism[i] = corner(cell[i % 3][0], cell[i % 3][1], i < 3);
        all.push_back(prism);
      }
    }
  }
  return all;
}

/// Signed distance of a prism and geom 1 along a direction; what no direction exceeds is their distance.
double separation(const test::Pair& p, const PrismCorners& prism, const double* direction) {
  double n[3] = {direction[0], direction[1], direction[2]}, back[3], most = -1e9;
  mju_normalize3(n);
  mju_scl3(back, n, -1);
  for (const auto& x : prism) most = std::max(most, mju_dot3(n, x.data()));
  return -test::reach_in_world(*p.mj, *p.data, 1, back) - most;
}

/// The greatest separation that a search from many directions finds.
double distance_by_search(const test::Pair& p, const PrismCorners& prism, const RandomStream& random) {
  double best = -1e9, at[3] = {0, 0, 1};
  for (std::uint64_t k = 0; k < 1200; ++k) {
    const double spread = k < 300 ? 2.0 : 0.3 * std::pow(0.99, static_cast<double>(k - 300));
    double n[3];
    for (std::uint64_t i = 0; i < 3; ++i) {
      n[i] = (k < 300 ? 0.0 : at[i]) + spread * (static_cast<double>(random.uniform(3 * k + i)) - 0.5);
    }
    const double apart = separation(p, prism, n);
    if (apart > best) best = apart, mju_copy3(at, n), mju_normalize3(at);
  }
  return best;
}

/// Whether a contact is that of a corner on a top: out along the top's normal, as far as the corner is below it, which
/// is a point of the shape.
bool is_corner_on_top(const PrismCorners& prism, const QueuedContact& c) {
  double up[3], a[3], b[3], corner[3], from[3];
  mju_sub3(a, prism[1].data(), prism[0].data()), mju_sub3(b, prism[2].data(), prism[0].data());
  mju_cross(up, a, b);
  mju_normalize3(up);
  if (std::abs(mju_dot3(up, c.normal)) < 1 - 1e-5) return false;
  mju_addScl3(corner, c.pos, c.normal, 0.5 * c.dist);
  mju_sub3(from, corner, prism[0].data());
  return std::abs(mju_dot3(from, c.normal) - c.dist) < 1e-4;
}

/// Against no engine's collisions: every contact is the best way out of some prism, or a corner's on its top, and every
/// prism that the shape is surely in has one.
TEST_P(OnHeightField, EveryContactIsTheBestWayOutOfAPrism) {
  const Footprint& shape = kShapes[GetParam()];
  SCOPED_TRACE(shape.name);
  test::Pair p(test::compile_xml(scene(shape, true, "0")));
  p.view.keep_contacts = 1;
  test::Block block(p.view);
  int contacts = 0, worse = 0, entered = 0;
  for (std::uint64_t sample = 0; sample < 40; ++sample) {
    place(p, sample, false);
    const Contacts ours = contacts_of_lanes(p, rows_of_both(p, block));
    const std::vector<PrismCorners> all = prisms(*p.mj, *p.data);
    const RandomStream random(9, RandomPurpose::kTest, sample, 0);
    std::vector<double> distance(all.size());
    int sure = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double up[3] = {p.data->geom_xmat[2], p.data->geom_xmat[5], p.data->geom_xmat[8]};
      distance[i] = separation(p, all[i], up) > 0 ? 1 : distance_by_search(p, all[i], random);
      sure += distance[i] < -2e-3;
    }
    if (ours.count < 4 || ours.count > kSpreadKept) EXPECT_GE(ours.count, sure) << "sample " << sample;
    entered += sure;
    for (int k = 0; k < ours.count; ++k) {
      const QueuedContact& c = ours.contact[k];
      // Of the prisms that have this depth along this normal, one has no better way out.
      double excess = 1e9;
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (std::abs(separation(p, all[i], c.normal) - c.dist) > 1e-4) {
          if (is_corner_on_top(all[i], c)) excess = std::min(excess, 0.0);
          continue;
        }
        excess = std::min(excess, distance[i] - c.dist);
      }
      EXPECT_LT(excess, 1e8) << "sample " << sample << ": no prism has the depth " << c.dist << " along the normal";
      worse += excess > 1e-3;
      ++contacts;
    }
  }
  EXPECT_GT(contacts, 100);
  EXPECT_GT(entered, 100);
  EXPECT_LE(worse, contacts / 100) << "of " << contacts;
}

/// Deep beside the walls of several prisms, many sides of the polytope between both are nearly coplanar.
TEST(HeightField, AnUprightCylinderInLevelGroundIsNotFoundShallow) {
  test::Pair p(test::compile_xml(scene(kShapes[3], false, "0")));
  const double place[] = {-0.776171684,  0.559905052,  0.0741954073, 0.997222185,
                          0.00182601158, 0.0697325692, 0.0261131823};
  std::copy(std::begin(place), std::end(place), p.data->qpos);
  mj_forward(p.mj.get(), p.data.get());
  const Contacts found = searched(p);
  ASSERT_EQ(found.count, 6);
  for (const QueuedContact& c : found.contact) {
    if (&c < found.contact + found.count) EXPECT_NEAR(c.dist, -0.119, 1.5e-3);
  }
}

TEST(HeightField, ABallMeetsThePrismsThatMujocosMeets) {
  test::Pair p(test::compile_xml(
      "<mujoco><asset><hfield name='h' nrow='5' ncol='6' size='1 0.8 0.3 0.1' elevation='0 1 0 0 1 0 0 0 1 0 0 0 1 0 1 "
      "0 0 "
      "1 0 0 0 1 0 0 0 1 0 0 1 0'/></asset><worldbody><geom type='hfield' hfield='h'/><body pos='0.1 0.07 "
      "0.3'><freejoint/><geom size='0.2'/></body></worldbody></mujoco>"));
  p.view.keep_contacts = 1;
  test::Block block(p.view);
  int compared = 0;
  for (std::uint64_t sample = 0; sample < 100; ++sample) {
    const RandomStream random(8, RandomPurpose::kTest, sample, 0);
    p.randomize(sample, 0, 0.1);
    for (int i = 0; i < 2; ++i) {
      p.data->qpos[i] = static_cast<double>(random.uniform(static_cast<std::uint64_t>(i)) - 0.5f);
    }
    p.data->qpos[2] = static_cast<double>(0.2f + 0.25f * random.uniform(2));
    BlockSpace<ScalarLane>& b = rows_of_both(p, block);
    if (p.data->ncon > kMaxPairContacts) continue;
    const Contacts ours = contacts_of_lanes(p, b);
    for (int k = 0; k < p.data->ncon; ++k) {
      const mjContact& c = p.data->contact[k];
      if (c.dist > -1e-4) continue;  // one that both have
      double best = 1e9;
      for (int i = 0; i < ours.count; ++i) {
        best =
            std::min(best, std::max(std::abs(ours.contact[i].dist - c.dist), difference(ours.contact[i].pos, c.pos)));
      }
      EXPECT_LT(best, 1e-3) << "sample " << sample << " contact " << k << " of " << p.data->ncon << ", depth "
                            << c.dist;
      ++compared;
    }
  }
  EXPECT_GE(compared, 100);
}

}  // namespace
}  // namespace cohort::sim
