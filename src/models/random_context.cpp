#include "models/random_context.h"

#include <torch/types.h>

#include "core/error.h"

namespace cohort::models {
namespace {
thread_local RandomContext current;
thread_local bool is_set = false;
}  // namespace

const RandomContext& random_context() {
  COHORT_CHECK(is_set, "a layer asked for randomness, but no RandomContextGuard stands around this forward pass");
  return current;
}

bool has_random_context() {
  return is_set;
}

RandomContextGuard::RandomContextGuard(RandomContext context) : former_(current), had_former_(is_set) {
  current = std::move(context);
  is_set = true;
}

RandomContextGuard::~RandomContextGuard() {
  current = former_;
  is_set = had_former_;
}

}  // namespace cohort::models
