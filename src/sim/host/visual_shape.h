/// The shapes of what is seen; in a header of its own for kernels.
#pragma once

namespace cohort::sim {

enum class VisualShape : int { kPlane, kHeightField, kSphere, kCapsule, kEllipsoid, kCylinder, kBox, kMesh };

}  // namespace cohort::sim
