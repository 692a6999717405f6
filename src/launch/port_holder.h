/// Who uses a port of this machine, for messages.
#pragma once
#include <string>

namespace cohort::launch {

/// "pid 123 (python3)": the process that listens on the TCP port, else one that has a socket bound to it; another
/// `cohort launch` that has the port reserved (PortReservation) counts. "" where none is found: on a system without
/// /proc, in another container, or a process of another user. Format: proc(5), /proc/net/tcp and /proc/net/unix.
std::string port_holder(int port);

}  // namespace cohort::launch
