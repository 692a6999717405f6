/// Box against box and capsule against box.
#pragma once
#include "sim/collide/queued.h"

namespace cohort::sim::collide {

int box_box(const QueuedShape& s1, const QueuedShape& s2, double reach, QueuedContact* out);
int capsule_box(const QueuedShape& s1, const QueuedShape& s2, double reach, QueuedContact* out);

}  // namespace cohort::sim::collide
