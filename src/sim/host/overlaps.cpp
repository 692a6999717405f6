#include "sim/host/overlaps.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "core/format.h"

namespace cohort::sim {

std::string describe_overlaps(const ModelInfo& info, std::span<const Contact> contacts) {
  constexpr std::size_t kNamed = 5;
  struct Pair {
    double depth = 0;
    int geom1 = 0, geom2 = 0;
  };
  std::map<std::pair<int, int>, Pair> deepest;  // by links
  for (const Contact& c : contacts) {
    if (!(-c.distance > kOverlap)) continue;
    Pair& pair = deepest[std::minmax(c.link1, c.link2)];
    if (-c.distance > pair.depth) pair = {-c.distance, c.geom1, c.geom2};
  }
  if (deepest.empty()) return "";
  std::vector<Pair> pairs;
  for (const auto& [links, pair] : deepest) pairs.push_back(pair);
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.depth > b.depth; });
  const auto name = [&](int geom) {
    const GeomInfo& g = info.geoms[static_cast<std::size_t>(geom)];
    const std::string& link = info.links[static_cast<std::size_t>(g.link)].name;
    const std::string own = g.name.empty() ? format("geom {}", geom) : format("geom `{}`", g.name);
    if (g.link == 0) return format("the world's {}", own);
    return link.empty() ? format("link {} ({})", g.link, own) : format("`{}`", link);
  };
  std::string list;
  for (std::size_t i = 0; i < std::min(pairs.size(), kNamed); ++i) {
    list += format("{}{} and {} by {:.2g} m", i == 0 ? "" : ", ", name(pairs[i].geom1), name(pairs[i].geom2),
                   pairs[i].depth);
  }
  if (pairs.size() > kNamed) list += format(" and {} more pairs", pairs.size() - kNamed);
  // Ready to be typed, where the deepest is of two links that have names.
  std::string remedy = "LINK:LINK";
  for (const Pair& pair : pairs) {
    const auto link = [&](int geom) {
      return info.links[static_cast<std::size_t>(info.geoms[static_cast<std::size_t>(geom)].link)].name;
    };
    if (link(pair.geom1).empty() || link(pair.geom2).empty()) continue;
    if (info.geoms[static_cast<std::size_t>(pair.geom1)].link == 0) continue;
    if (info.geoms[static_cast<std::size_t>(pair.geom2)].link == 0) continue;
    remedy = link(pair.geom1) + ":" + link(pair.geom2);
    break;
  }
  return format(
      "where it starts, {} pair{} of links overlap{}: {}; the first steps throw them apart. Start elsewhere, or leave "
      "pairs out that are not to collide: --exclude {} (SceneOptions::exclude), an SRDF file's "
      "<disable_collisions> (--srdf), <contact><exclude/></contact> in MJCF",
      pairs.size(), pairs.size() == 1 ? "" : "s", pairs.size() == 1 ? "s" : "", list, remedy);
}

}  // namespace cohort::sim
