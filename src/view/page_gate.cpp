#include "view/page_gate.h"

#include <random>

#include "core/format.h"
#include "view/page.h"

namespace cohort::view {

namespace {

std::string random_hex(int bytes) {
  std::random_device device;
  std::string out;
  for (int i = 0; i < bytes; ++i) out += format("{:02x}", device() & 255u);
  return out;
}

/// In a time that does not depend on where they differ.
bool same(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return false;
  unsigned different = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    different |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return different == 0;
}

std::string name_of_host(const std::string& host) {
  if (host.starts_with("[")) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

}  // namespace

PageGate::PageGate(std::string served_on, const std::string& wanted)
    : host(std::move(served_on)), token(wanted.empty() ? random_hex(16) : wanted) {}

bool PageGate::trusted_host(const std::string& named) const {
  const std::string name = name_of_host(named), port = named.substr(name.size());
  // It goes into the page's text.
  if (port.find_first_not_of("0123456789", 1) != std::string::npos || (!port.empty() && port[0] != ':')) return false;
  if (name == "127.0.0.1" || name == "localhost" || name == "[::1]" || name == host) return true;
  // Served to others, it has any of this machine's addresses; a name may be led here by another site.
  const bool to_others = host != "127.0.0.1" && host != "localhost" && host != "::1";
  return to_others && !name.empty() && name.find_first_not_of("0123456789.") == std::string::npos;
}

bool PageGate::has_token(const std::string& target) const {
  const std::size_t begin = target.find("token=");
  return begin != std::string::npos && same(target.substr(begin + 6, target.find('&', begin) - begin - 6), token);
}

serve::HttpAnswer PageGate::answer(const serve::HttpRequest& request, const std::string& title,
                                   const std::string& shows) const {
  if (!trusted_host(request.host)) return {403, "text/plain", "This name is none of this machine's.\n"};
  if (request.target != "/" && !request.target.starts_with("/?"))
    return {404, "text/plain", "There is one page here: /\n"};
  if (!has_token(request.target))
    return {403, "text/plain", "Not without the token: take the whole address that `cohort view` prints.\n"};
  return {200, "text/html; charset=utf-8",
          served_page(title, "ws://" + request.host + "/socket?token=" + token, random_hex(16), shows)};
}

bool PageGate::admits(const serve::HttpRequest& request) const {
  return request.target.starts_with("/socket?") && has_token(request.target) && trusted_host(request.host) &&
         (request.origin.empty() || request.origin == "http://" + request.host);
}

std::string PageGate::address(int port) const {
  return format("http://{}:{}/?token={}", host == "0.0.0.0" ? "127.0.0.1" : host, port, token);
}

}  // namespace cohort::view
