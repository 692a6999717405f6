// Searches over two polytopes that begin where the last one ended: the contacts are those of a search from nothing, to
// the last bit, however the shapes move.
#include <cstring>

#include <gtest/gtest.h>

#include "block.h"
#include "core/format.h"
#include "core/philox.h"
#include "sim/collide/queued.h"
#include "sim/kernels/farthest.h"

namespace cohort::sim {
namespace {

/// Points on an ellipsoid, of which some are pressed onto flat sides.
std::string stone(std::uint64_t seed, int points, double flat) {
  const RandomStream random(seed, RandomPurpose::kTest, 1, 0);
  std::string text;
  for (int k = 0; k < points; ++k) {
    double p[3];
    for (int i = 0; i < 3; ++i) p[i] = static_cast<double>(random.normal(static_cast<std::uint64_t>(3 * k + i)));
    mju_normalize3(p);
    const double size[3] = {0.2, 0.12, 0.15};
    for (int i = 0; i < 3; ++i) text += format("{:.6f} ", size[i] * std::max(-flat, std::min(flat, p[i])));
  }
  return text;
}

/// The corners of a finger whose front has two slopes and whose back is round. Two that face each other at one height
/// have edges that are parallel, and depths that are the same along two normals.
std::string finger() {
  std::string text;
  for (const double y : {-0.1, 0.1}) {
    for (const double z : {-0.1, 0.0, 0.1}) text += format("{} {} {} ", z == 0 ? 0.1 : 0.07, y, z);
    for (int k = 0; k < 16; ++k) {
      const double angle = 0.1 + 2.94 * k / 15;
      text += format("{:.6f} {} {:.6f} ", 0.05 - 0.12 * std::sin(angle), 0.9 * y, 0.1 * std::cos(angle));
    }
  }
  return text;
}

struct Scene {
  const char* name;
  const char *first, *second;
  bool only_slides = false;  ///< in a plane of both shapes' axes, half a turn about an axis from each other
};
const Scene kScenes[] = {{"stones", "type='mesh' mesh='a'", "type='mesh' mesh='b'"},
                         {"box_and_stone", "type='box' size='0.1 0.16 0.13'", "type='mesh' mesh='b'"},
                         {"blocks", "type='mesh' mesh='block'", "type='mesh' mesh='block'"},
                         {"fingers", "type='mesh' mesh='finger'", "type='mesh' mesh='finger'", true}};

test::Pair pair_of(const Scene& s) {
  return test::Pair(test::compile_xml(
      "<mujoco><asset><mesh name='a' vertex='" + stone(1, 60, 0.7) + "'/><mesh name='b' vertex='" + stone(2, 90, 2.0) +
      "'/><mesh name='block' vertex='" + stone(3, 150, 0.62) + "'/><mesh name='finger' vertex='" + finger() +
      "'/></asset><worldbody><body><freejoint/><geom " + s.first + "/></body><body pos='0.25 0 0'><freejoint/><geom " +
      s.second + "/></body></worldbody></mujoco>"));
}

struct Found {
  int count;
  QueuedContact contact[kMaxPairContacts];
};

class SearchStarts : public ::testing::TestWithParam<Scene> {
 protected:
  Found search(SearchStart* start) const {
    Found out{};
    double apart[3];
    const PairRecord& pair = pair_.view.pair[0];
    out.count = queued_narrow_phase(pair_.view, pair.kernel, shape_[0], shape_[1], 0.0, farthest_function<ScalarLane>(),
                                    out.contact, apart, start);
    return out;
  }
  /// Positions and rotations in single precision, as the lanes give them.
  void pose(int k, const double* pos, const double* quat) {
    double rot[9];
    mju_quat2Mat(rot, quat);
    for (int i = 0; i < 3; ++i) shape_[k].pos[i] = static_cast<double>(static_cast<float>(pos[i]));
    for (int i = 0; i < 9; ++i) shape_[k].rot[i] = static_cast<double>(static_cast<float>(rot[i]));
  }
  bool known(const SearchStart& s) const { return s.point[0] != kNoPoint; }

  test::Pair pair_ = pair_of(GetParam());
  QueuedShape shape_[2] = {{pair_.view.geom + pair_.view.pair[0].geom1, {}, {}},
                           {pair_.view.geom + pair_.view.pair[0].geom2, {}, {}}};
};

TEST_P(SearchStarts, ChangeNoBitOfAnyContact) {
  ASSERT_TRUE(remembers_start(*shape_[0].geom, *shape_[1].geom, pair_.view.pair[0]));
  int touched = 0, warm = 0;
  for (std::uint64_t walk = 0; walk < 60; ++walk) {
    SearchStart start{{kNoPoint}, 0, {}};
    const RandomStream random(5, RandomPurpose::kTest, walk, 0);
    std::uint64_t drawn = 0;
    const auto draw = [&] { return static_cast<double>(random.normal(drawn++)); };
    double pos[2][3] = {{0, 0, 0}, {0.12 + 0.05 * draw(), 0.05 * draw(), 0.05 * draw()}};
    double quat[2][4] = {{1, 0, 0, 0}, {1, 0, 0, 0}};
    // Every third walk begins with all axes parallel and only slides at first.
    const bool slides = GetParam().only_slides;
    if (walk % 3 != 0 && !slides) {
      for (auto& q : quat) {
        for (double& x : q) x = draw();
        mju_normalize4(q);
      }
    }
    const std::size_t about = walk % 3, across = walk / 3 % 3;
    if (slides) {
      quat[1][0] = 0, quat[1][1 + about] = 1;
      std::swap(pos[1][0], pos[1][(across + 1 + walk / 9 % 2) % 3]);
    }
    const double pace = walk % 2 == 0 ? 1e-3 : 1e-2;
    for (int step = 0; step < 60; ++step) {
      for (int k = 0; k < 2; ++k) {
        for (double& x : pos[k]) x += pace * draw();
        if (slides) pos[k][across] = 0;
        double turn[3];
        for (double& x : turn) x = (slides || (walk % 3 == 0 && step < 20) ? 0.0 : 5.0) * pace * draw();
        mju_quatIntegrate(quat[k], turn, 1.0);
        pose(k, pos[k], quat[k]);
      }
      const bool begins_somewhere = known(start);
      const Found cold = search(nullptr), again = search(&start);
      ASSERT_EQ(again.count, cold.count) << "walk " << walk << ", step " << step;
      for (int k = 0; k < cold.count; ++k) {
        ASSERT_EQ(std::memcmp(&again.contact[k], &cold.contact[k], sizeof(QueuedContact)), 0)
            << "walk " << walk << ", step " << step << ", contact " << k << ": " << again.contact[k].dist << " m, not "
            << cold.contact[k].dist;
      }
      touched += cold.count > 0;
      warm += begins_somewhere && known(start);
    }
  }
  EXPECT_GT(touched, 1000);
  // Otherwise nothing was compared.
  EXPECT_GT(warm, touched / 2);
}

TEST_P(SearchStarts, OfAnotherStateLeadNowhere) {
  const double pos[2][3] = {{0, 0, 0}, {0.1, 0.02, 0}}, quat[4] = {0.9, 0.1, 0.3, 0.2};
  for (int k = 0; k < 2; ++k) pose(k, pos[k], quat);
  const Found cold = search(nullptr);
  const RandomStream random(6, RandomPurpose::kTest, 0, 0);
  for (std::uint64_t k = 0; k < 300; ++k) {
    // What a damaged file may hold.
    SearchStart start;
    auto* bytes = reinterpret_cast<unsigned char*>(&start);
    for (std::size_t i = 0; i < sizeof start; ++i) {
      bytes[i] = static_cast<unsigned char>(256 * random.uniform(k * sizeof start + i));
    }
    if (k % 2 == 0) {
      // Vertices that exist: points that enclose nothing in particular.
      for (unsigned& point : start.point) point &= 0x00070007u;
    }
    const Found found = search(&start);
    ASSERT_EQ(found.count, cold.count);
    for (int i = 0; i < cold.count; ++i) EXPECT_EQ(found.contact[i].dist, cold.contact[i].dist);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, SearchStarts, ::testing::ValuesIn(kScenes),
                         [](const auto& scene) { return scene.param.name; });

/// Of a set's pairs, those that are asked for in every step keep their starts, whatever came before them; and of one
/// pair more than there are places, most do.
TEST(StartPlaces, OfPairsThatAreSearchedInEveryStepAreTheirs) {
  for (const int live : {kStartWays, kStartWays + 1}) {
    std::vector<SearchStartSet> places(2);
    const sim::SearchStarts starts{places.data(), 2, {}};
    const auto ask = [&](int pair) {
      SearchStart* const start = starts.place(0, pair % kMostSeparations, pair);
      const bool kept = start->point[0] == static_cast<unsigned>(pair);
      start->point[0] = static_cast<unsigned>(pair);
      return kept;
    };
    for (int pair = 1000; pair < 1200; ++pair) ask(pair);  // once, and never again
    int kept = 0;
    constexpr int kSteps = 20, kSettled = 4;
    for (int step = 0; step < kSteps; ++step) {
      for (int k = 0; k < live; ++k) kept += ask(2 * k) && step >= kSettled;
    }
    EXPECT_GE(kept, (kSteps - kSettled) * (live == kStartWays ? live : live - 2)) << live;
  }
}

}  // namespace
}  // namespace cohort::sim
