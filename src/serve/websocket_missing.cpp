// Stands in for WebSocket in a build without Boost.
#include "core/error.h"
#include "serve/websocket_client.h"
#include "serve/websocket_server.h"

namespace cohort::serve {
namespace {

[[noreturn]] void without_boost() {
  throw Error(
      "this build reaches no policy server and is none: it was made without Boost; install libboost-dev (scripts/setup "
      "does), and build again");
}

}  // namespace

struct WebSocketServer::Impl {};
WebSocketServer::WebSocketServer(const WebSocketServerSettings&, WebSocketHandler&) {
  without_boost();
}
WebSocketServer::~WebSocketServer() = default;
int WebSocketServer::port() const {
  without_boost();
}
void WebSocketServer::send(std::uint64_t, std::string) {}
void WebSocketServer::send_text(std::uint64_t, std::string) {}
void WebSocketServer::fail(std::uint64_t, std::string) {}
void WebSocketServer::stop() {}

class ClientThread {};
std::shared_ptr<ClientThread> make_client_thread() {
  without_boost();
}
struct WebSocketClient::Connection {};
WebSocketClient::WebSocketClient(std::shared_ptr<ClientThread>, const ServerUrl&, double, std::size_t) {
  without_boost();
}
WebSocketClient::~WebSocketClient() = default;
void WebSocketClient::send(std::string) {}
WebSocketClient::Message WebSocketClient::receive(double) {
  without_boost();
}

}  // namespace cohort::serve
