/// Who may reach a page that a program serves: the token of its address, a Host that is this machine, and no other site's
/// page.
#pragma once
#include <optional>
#include <string>

#include "serve/websocket_server.h"

namespace cohort::view {

struct PageGate {
  std::string host = "127.0.0.1";  ///< that it is served on
  std::string token{};             ///< of the address

  /// token: "": one that nobody guesses is made.
  PageGate(std::string host, const std::string& token);

  /// The header Host names this machine's loopback address, or the one that is served on; anything that it says can
  /// stand in the page's text.
  bool trusted_host(const std::string& host) const;
  bool has_token(const std::string& target) const;
  /// The page with this title, or why not. shows: as of served_page().
  serve::HttpAnswer answer(const serve::HttpRequest& request, const std::string& title, const std::string& shows) const;
  /// Whether a handshake is let in.
  bool admits(const serve::HttpRequest& request) const;
  std::string address(int port) const;  ///< with the token
};

}  // namespace cohort::view
