/// What the batched engine lacks for a model. Part of import.cpp's contract: a setting is used there, has no effect, or
/// is here.
#pragma once
#include <functional>
#include <vector>

#include "sim/host/import/library.h"
#include "sim/host/model.h"

namespace cohort::sim::mj {

std::vector<Unsupported> find_unsupported(const mjModel& m);

/// Two geoms that may touch.
struct CandidatePair {
  int geom1, geom2;  ///< ordered by geom type
  int pair;          ///< explicit pair, or -1
};
/// Every pair that MuJoCo's filters by weld, parent, exclusion and bit mask leave, and the explicit pairs; always in
/// the same order.
void for_each_candidate_pair(const mjModel& m, const std::function<void(const CandidatePair&)>& take);

/// Narrow phase of a pair of geom types (type1 <= type2), or -1.
int pair_kernel(int type1, int type2);
/// Whether a sensor tells how far geoms are apart.
bool tells_distance(int sensor);
/// Narrow phase that finds the distance of a pair of geom types (type1 <= type2), or -1: boxes that are apart are searched.
int distance_kernel(int type1, int type2);
/// take(g1, g2, swapped) for every pair of geoms of such a sensor, ordered by their types; swapped: g1 is the second's.
void for_each_distance(const mjModel& m, int sensor, const std::function<void(int, int, bool)>& take);
/// Whether some pair that may touch has no narrow phase in closed form: a search between convex shapes finds contacts.
bool is_searched(const mjModel& m);
/// SensorKind of a type of MuJoCo's, or -1.
int sensor_kind(int type);
/// Whether an actuator's controls act later: a history without a delay changes nothing.
bool is_delayed(const mjModel& m, int actuator);
/// True for a geom that a ray does not pass through.
bool stops_rays(const mjModel& m, int geom);

}  // namespace cohort::sim::mj
