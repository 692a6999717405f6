/// A WebSocket server (RFC 6455) for a few clients that send a message and wait for its answer. Boost.Beast, in a thread of
/// its own, which reads all the time, so that pings are answered while a message is worked on.
///
///   WebSocketServer server({.port = 8000}, handler);   // listens; handler.message() is called from the server's thread
///   server.send(client, bytes);                        // from any thread
///   server.stop();
///
/// GET /healthz is answered with 200 "OK", other requests that are no WebSocket handshake with what the handler says, or
/// 426. Handshakes of web pages (they carry an Origin) are refused with 403 unless the handler admits them, those beyond
/// max_connections with 503.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace cohort::serve {

struct WebSocketServerSettings {
  std::string host = "127.0.0.1";                   ///< an address of this machine; 0.0.0.0: all
  int port = 8000;                                  ///< 0: one that is free
  int max_connections = 64;                         ///< at a time
  std::size_t max_message = std::size_t{64} << 20;  ///< bytes; a longer one ends its connection
  double silence = 300;                             ///< s without a sign of life (pings are sent) that end a connection
};

/// What a browser or a client asks for.
struct HttpRequest {
  std::string target;  ///< "/socket?token=..."
  std::string host;    ///< of the header Host
  std::string origin;  ///< of the header Origin, which web pages' requests carry; "" without one
};
struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8", body;
};

class WebSocketHandler {
 public:
  virtual ~WebSocketHandler() = default;
  /// Called from the server's thread, as those below. The answer to a GET; nothing: there are only handshakes here.
  virtual std::optional<HttpAnswer> answer(const HttpRequest&) { return {}; }
  /// Whether a handshake is let in; without this, all but web pages'.
  virtual bool admits(const HttpRequest& request) { return request.origin.empty(); }
  /// All are called from the server's thread, and must not block. opened() comes before and closed() behind everything
  /// else of a client; `peer`: "10.0.0.7:41234". What opened() gives is sent to it first, binary; empty: nothing.
  virtual std::string opened(std::uint64_t client, const std::string& peer) = 0;
  virtual void message(std::uint64_t client, std::string bytes, bool is_text) = 0;
  virtual void closed(std::uint64_t client, const std::string& reason) = 0;
};

class WebSocketServer {
 public:
  /// Throws Error where host or port cannot be had, with the remedy.
  WebSocketServer(const WebSocketServerSettings& settings, WebSocketHandler& handler);
  ~WebSocketServer();
  WebSocketServer(const WebSocketServer&) = delete;
  WebSocketServer& operator=(const WebSocketServer&) = delete;

  int port() const;
  /// Nothing happens where the client has gone.
  void send(std::uint64_t client, std::string bytes);
  void send_text(std::uint64_t client, std::string text);
  /// A text, then the end of the connection (1011): how openpi's server reports an error.
  void fail(std::uint64_t client, std::string text);
  /// Tells every client that the server goes (1001), and ends after at most two seconds. No handler is called afterwards.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::serve
