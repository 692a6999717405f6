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

}  // namespace cohort::dist
