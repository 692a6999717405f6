/// A WebSocket client (RFC 6455) that sends a message and waits for its answer. Boost.Beast, whose thread reads all the time,
/// so that a server's pings are answered while nobody waits.
///
///   auto thread = make_client_thread();                    // of as many connections as there are
///   WebSocketClient client(thread, parse_url("ws://10.0.0.7:8000"), {});
///   client.send(bytes);
///   const WebSocketClient::Message answer = client.receive(60);
#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "core/error.h"
#include "serve/server_url.h"

namespace cohort::serve {

/// There is no server there, or none yet.
class NoServer : public Error {
 public:
  using Error::Error;
};

class ClientThread;
std::shared_ptr<ClientThread> make_client_thread();

class WebSocketClient {
 public:
  struct Message {
    std::string bytes;
    bool is_text = false;
  };

  /// Connects. Throws NoServer where nobody listens, Error for who is no WebSocket server, in `seconds` at most.
  WebSocketClient(std::shared_ptr<ClientThread> thread, const ServerUrl& url, double seconds,
                  std::size_t max_message = std::size_t{256} << 20);
  /// Says that it goes.
  ~WebSocketClient();
  WebSocketClient(const WebSocketClient&) = delete;
  WebSocketClient& operator=(const WebSocketClient&) = delete;

  void send(std::string bytes);
  /// Of a protocol whose messages are texts.
  void send_text(std::string text);
  /// The next message. Throws Error where the connection ends, or none has come after `seconds`, without the server's name.
  Message receive(double seconds);

 private:
  struct Connection;
  std::shared_ptr<ClientThread> thread_;
  std::shared_ptr<Connection> connection_;
};

}  // namespace cohort::serve
