// The only file that includes ProcessGroupGloo.hpp. LibTorch carries its own, newer Gloo; the system's headers declare
// the same classes with another layout of virtual functions. That is harmless as long as nothing here makes the
// compiler emit ProcessGroupGloo::GlooStore (tests/dist/gloo_vtable_test.sh).
#include "dist/gloo/gloo_backend.h"

#include <cstdlib>

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

namespace cohort::dist {

bool has_gloo() {
  return true;
}

c10::intrusive_ptr<c10d::Backend> make_gloo_backend(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                                    int world_size, std::chrono::milliseconds timeout,
                                                    const std::string& address) {
  using Gloo = c10d::ProcessGroupGloo;
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  c10::intrusive_ptr<Gloo::Options> options;
  if (!address.empty() && (interface == nullptr || *interface == '\0')) {
    options = Gloo::Options::create(timeout);
    options->devices.push_back(Gloo::createDeviceForHostname(address));
  } else {
    options = Gloo::Options::create_default(timeout);
  }
  options->group_name = std::string("0");
  return c10::make_intrusive<Gloo>(store, rank, world_size, options);
}

}  // namespace cohort::dist
