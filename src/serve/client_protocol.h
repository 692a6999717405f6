/// How this program talks to a policy server: a small file for each protocol. One object is one connection.
///
///   const std::unique_ptr<ClientProtocol> protocol = client_protocol(url);
///   const ServerInfo info = protocol->greet(connection, 10);
///   protocol->begin(connection, "close the drawer", 7);
///   connection.send(protocol->observation(message, "close the drawer"));
///   const Value answer = protocol->actions(connection.receive(60));
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "serve/observation.h"
#include "serve/server_url.h"
#include "serve/value.h"
#include "serve/websocket_client.h"

namespace cohort::serve {

class ClientProtocol {
 public:
  virtual ~ClientProtocol() = default;
  /// Exchanges who both are, within so many seconds. Throws Error where the other is no such server.
  virtual ServerInfo greet(WebSocketClient& connection, double seconds) = 0;
  /// Whether a connection holds one episode only: the next one takes a new connection.
  virtual bool one_episode() const = 0;
  /// An episode begins.
  virtual void begin(WebSocketClient& connection, const std::string& instruction, std::uint64_t seed) = 0;
  /// What is sent to ask for actions: numbers and pictures by name, (height, width, 3) uint8.
  virtual std::string observation(Map seen, const std::string& instruction) = 0;
  /// What was answered, without what the protocol wraps it in. Throws Error with what the server says of an error of its
  /// own, and for what cannot be read.
  virtual Value actions(const WebSocketClient::Message& message) = 0;
};

/// That of the address's scheme.
std::unique_ptr<ClientProtocol> client_protocol(const ServerUrl& url);

/// unpack() whose errors say that it was an answer.
Value unpack_answer(const std::string& bytes);
/// The end of a long text: a traceback's end says most.
std::string last_lines(const std::string& text);

}  // namespace cohort::serve
