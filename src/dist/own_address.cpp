#include "dist/own_address.h"

#include <array>
#include <cerrno>

#include <netdb.h>
#include <sys/socket.h>

#include "dist/address_list.h"
#include "dist/store_socket.h"

namespace cohort::dist {
AddressOwner owner_of(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_DGRAM;
  AddressList list;
  // Without a service the port is 0: any that is free.
  if (getaddrinfo(host.c_str(), nullptr, &hints, &list.first) != 0) return AddressOwner::kUnknown;
  AddressOwner owner = AddressOwner::kUnknown;
  for (const addrinfo* entry = list.first; entry != nullptr; entry = entry->ai_next) {
    const OwnedSocket socket(::socket(entry->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (socket.get() < 0) continue;
    if (::bind(socket.get(), entry->ai_addr, entry->ai_addrlen) == 0) return AddressOwner::kThisMachine;
    if (errno == EADDRNOTAVAIL) owner = AddressOwner::kAnother;
  }
  return owner;
}

std::string own_address_towards(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_DGRAM;
  AddressList list;
  if (getaddrinfo(host.c_str(), "9", &hints, &list.first) != 0) return "";
  for (const addrinfo* entry = list.first; entry != nullptr; entry = entry->ai_next) {
    const OwnedSocket socket(::socket(entry->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    // Nothing is sent: the system chooses the way, and with it the address.
    if (socket.get() < 0 || ::connect(socket.get(), entry->ai_addr, entry->ai_addrlen) != 0) continue;
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    std::array<char, NI_MAXHOST> text{};
    if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0 ||
        ::getnameinfo(reinterpret_cast<const sockaddr*>(&own), size, text.data(), text.size(), nullptr, 0,
                      NI_NUMERICHOST) != 0)
      continue;
    const std::string address = text.data();
    return address.starts_with("127.") || address == "::1" ? "" : address;
  }
  return "";
}

}  // namespace cohort::dist
