/// Serves the page of a LiveSession, and what is done on it: poses over a WebSocket, messages back.
///
///   LiveServer server(session, {.port = 0});
///   std::puts(server.address().c_str());           // http://127.0.0.1:40123/?token=3f...
///   server.run([&] { return told_to_end(); });     // until that is true
///
/// Who reaches it needs the token of the address. The header Host must name this machine's loopback address (or the
/// address that is served on), and a page's Origin must be that Host: another site's page cannot talk to it.
///
/// A message of a page is a JSON object of at most kMostMessage bytes: {"do": "play"}, "pause", "step", "reset" with
/// "seed", "speed" with "value", "actor", "env" (-1: all), "contacts" (whether they are sent), "joint", "control" and
/// "command" with "index" and "value", "place" (of a free joint's body) with "index" and three numbers, "grab" with "index"
/// (answered with the joint's value), "release" (commands are drawn again), "seen" (a frame has been drawn: the next may
/// come). "joint", "place" and "grab" may name an "env". Others are answered with an error and change nothing.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "view/live_session.h"
#include "view/page_clients.h"

namespace cohort::view {

inline constexpr double kMostPoseBytes = 200'000;  ///< a second, to each page

struct LiveServerSettings {
  std::string host = "127.0.0.1";
  int port = 0;  ///< 0: one that is free
  int most_environments = 64;
  bool playing = true;
  std::string token{};  ///< "": one that nobody guesses is made
};

class LiveServer {
 public:
  /// Throws Error where host or port cannot be had. The session must outlive it.
  LiveServer(LiveSession& session, const LiveServerSettings& settings);
  ~LiveServer();
  LiveServer(const LiveServer&) = delete;
  LiveServer& operator=(const LiveServer&) = delete;

  int port() const;
  std::string address() const;  ///< with the token
  const std::string& token() const;

  /// Steps the session in its own time while a page looks, and answers pages, until stop() is true; that is asked every
  /// few milliseconds.
  void run(const std::function<bool()>& stop);
  /// One message of a page. Gives what is answered, JSON text; "" for nothing. Never throws.
  std::string apply(const std::string& message);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::view
