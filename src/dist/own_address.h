/// Whether a host's name means this machine.
#pragma once
#include <string>

namespace cohort::dist {

enum class AddressOwner {
  kThisMachine,  ///< one of its addresses is this machine's
  kAnother,      ///< none is
  kUnknown,      ///< the name cannot be resolved (yet), or its addresses cannot be tried
};

/// Resolves `host`, a name or an address, and tries to bind a socket there: the system lets a process bind its own
/// addresses only.
AddressOwner owner_of(const std::string& host);

/// The address of this machine, as a number, on the interface that leads to `host`; "" where it cannot be told, or is
/// one that only this machine reaches.
std::string own_address_towards(const std::string& host);

}  // namespace cohort::dist
