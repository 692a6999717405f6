/// What a scene looks like that no MJCF file has lit: URDF files and shapes say nothing of light, sky and ground.
///
///   mjsGeom* ground = mjs_addGeom(world, ...);
///   give_checker(spec, ground);     // squares of half a metre
///   add_sky_and_light(spec);        // once
///
/// It changes pictures, nothing that moves.
#pragma once
#include "sim/host/import/library.h"

namespace cohort::sim::mj {

/// A gradient as sky, and a light from above that casts shadows, beside the camera's own.
void add_sky_and_light(mjSpec* spec);

/// Squares of 0.5 m in two greys; the geom's own colour is not used.
void give_checker(mjSpec* spec, mjsGeom* plane);

}  // namespace cohort::sim::mj
