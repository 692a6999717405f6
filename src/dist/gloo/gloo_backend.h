/// Gloo: collectives on CPU tensors over TCP.
#pragma once
#include <chrono>
#include <string>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace cohort::dist {

/// False where the build had no Gloo headers; then make_gloo_backend throws Error.
bool has_gloo();

/// Connects to all other ranks through `store`. The connections use `address`, one of this machine's, unless
/// GLOO_SOCKET_IFNAME names an interface; "" leaves the choice to Gloo (the host name's address). `timeout` holds for every collective. Throws LibTorch's exceptions.
c10::intrusive_ptr<c10d::Backend> make_gloo_backend(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                                    int world_size, std::chrono::milliseconds timeout,
                                                    const std::string& address);

}  // namespace cohort::dist
