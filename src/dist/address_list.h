/// What getaddrinfo() answers.
#pragma once
#include <netdb.h>

namespace cohort::dist {

struct AddressList {
  AddressList() = default;
  AddressList(const AddressList&) = delete;
  AddressList& operator=(const AddressList&) = delete;
  ~AddressList() {
    if (first != nullptr) freeaddrinfo(first);
  }
  addrinfo* first = nullptr;
};

}  // namespace cohort::dist
