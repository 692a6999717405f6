// Stands in for gloo_backend.cpp where the build found no Gloo headers.
#include "core/error.h"
#include "dist/gloo/gloo_backend.h"

namespace cohort::dist {

bool has_gloo() {
  return false;
}

c10::intrusive_ptr<c10d::Backend> make_gloo_backend(const c10::intrusive_ptr<c10d::Store>&, int, int,
                                                    std::chrono::milliseconds, const std::string&) {
  throw Error(
      "this build has no Gloo, so that several processes cannot share CPU tensors; install libgloo-dev and build "
      "again");
}

}  // namespace cohort::dist
