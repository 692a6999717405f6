#include "serve/websocket_server.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>
#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "core/error.h"

namespace cohort::serve {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace ws = beast::websocket;
using tcp = asio::ip::tcp;
using beast::error_code;

constexpr auto kHandshake = std::chrono::seconds(30);
constexpr std::size_t kMostAnswers = 64;                              // that a client has not read
constexpr std::size_t kHeaderBytes = 16 << 10, kBodyBytes = 4 << 10;  // of the handshake's request

class ServedConnection;

/// What connections share. In the server's thread only.
struct Hub {
  WebSocketServerSettings settings;
  WebSocketHandler* handler = nullptr;
  std::map<std::uint64_t, std::shared_ptr<ServedConnection>> open;
  int sockets = 0;
  std::uint64_t next = 0;
};

class ServedConnection : public std::enable_shared_from_this<ServedConnection> {
 public:
  ServedConnection(tcp::socket socket, Hub& hub) : stream_(std::move(socket)), hub_(hub) { ++hub_.sockets; }
  ~ServedConnection() { --hub_.sockets; }

  void begin() {
    error_code ignored;
    auto& tcp_stream = beast::get_lowest_layer(stream_);
    const auto end = tcp_stream.socket().remote_endpoint(ignored);
    if (!ignored) peer_ = end.address().to_string() + ":" + std::to_string(end.port());
    tcp_stream.socket().set_option(tcp::no_delay(true), ignored);
    parser_.emplace();
    parser_->header_limit(kHeaderBytes);
    parser_->body_limit(kBodyBytes);
    tcp_stream.expires_after(kHandshake);
    http::async_read(tcp_stream, buffer_, *parser_,
                     [self = shared_from_this()](error_code error, std::size_t) { self->requested(error); });
  }

  void send(std::string bytes, bool is_text) {
    if (closing_) return;
    if (out_.size() >= kMostAnswers) return beast::get_lowest_layer(stream_).close();
    out_.emplace_back(std::move(bytes), is_text);
    if (out_.size() == 1) write();
  }

  /// When what is to be sent has been sent.
  void close(ws::close_code code, const std::string& reason) {
    if (closing_) return;
    closing_ = ws::close_reason(code, reason.substr(0, 120));
    if (out_.empty()) say_goodbye();
  }

  std::uint64_t client = 0;

 private:
  void requested(error_code error) {
    if (error) return;  // whoever it was has not spoken HTTP, or has gone
    const auto& request = parser_->get();
    if (request.target() == "/healthz") return answer(http::status::ok, "OK\n");
    const auto header = [&](http::field field) { return std::string(request[field]); };
    const HttpRequest asked{std::string(request.target()), header(http::field::host), header(http::field::origin)};
    if (!ws::is_upgrade(request)) {
      if (request.method() == http::verb::get)
        if (std::optional<HttpAnswer> page = hub_.handler->answer(asked))
          return answer(static_cast<http::status>(page->status), std::move(page->body), page->type);
      return answer(
          http::status::upgrade_required,
          "This is a policy server: openpi's clients reach it by WebSocket, ws://HOST:PORT. GET /healthz says "
          "whether it is there.\n");
    }
    if (!hub_.handler->admits(asked))
      return answer(http::status::forbidden,
                    asked.origin.empty() ? "Not without the token.\n" : "Not for web pages.\n");
    if (static_cast<int>(hub_.open.size()) >= hub_.settings.max_connections)
      return answer(http::status::service_unavailable, "This server takes " +
                                                           std::to_string(hub_.settings.max_connections) +
                                                           " connections at a time (--max-connections); close one.\n");
    if (buffer_.size() > 0)
      return answer(http::status::bad_request, "A client waits for the end of the handshake before it sends.\n");
    beast::get_lowest_layer(stream_).expires_never();
    ws::stream_base::timeout timeout{};
    timeout.handshake_timeout = kHandshake;
    timeout.idle_timeout = std::chrono::milliseconds(static_cast<std::int64_t>(hub_.settings.silence * 1000));
    timeout.keep_alive_pings = true;
    stream_.set_option(timeout);
    stream_.read_message_max(hub_.settings.max_message);
    stream_.async_accept(request, [self = shared_from_this()](error_code e) {
      if (!e) self->accepted();
    });
  }

  void answer(http::status status, std::string text, const std::string& type = "text/plain") {
    auto response = std::make_shared<http::response<http::string_body>>(status, parser_->get().version());
    response->set(http::field::content_type, type);
    response->set(http::field::cache_control, "no-store");
    response->set("Referrer-Policy", "no-referrer");
    response->set("X-Content-Type-Options", "nosniff");
    response->keep_alive(false);
    response->body() = std::move(text);
    response->prepare_payload();
    http::async_write(beast::get_lowest_layer(stream_), *response,
                      [self = shared_from_this(), response](error_code, std::size_t) {
                        error_code ignored;
                        beast::get_lowest_layer(self->stream_).socket().shutdown(tcp::socket::shutdown_send, ignored);
                      });
  }

  void accepted() {
    parser_.reset();
    client = hub_.next++;
    hub_.open[client] = shared_from_this();
    if (std::string greeting = hub_.handler->opened(client, peer_); !greeting.empty())
      send(std::move(greeting), /*is_text=*/false);
    read();
  }

  void read() {
    stream_.async_read(buffer_, [self = shared_from_this()](error_code error, std::size_t) {
      if (error) return self->gone(error);
      std::string bytes = beast::buffers_to_string(self->buffer_.data());
      self->buffer_.consume(self->buffer_.size());
      if (!self->closing_) self->hub_.handler->message(self->client, std::move(bytes), self->stream_.got_text());
      self->read();
    });
  }

  void write() {
    stream_.text(out_.front().second);
    stream_.async_write(asio::buffer(out_.front().first), [self = shared_from_this()](error_code error, std::size_t) {
      if (error) return;  // the reading side says that it is over
      self->out_.pop_front();
      if (!self->out_.empty()) return self->write();
      if (self->closing_) self->say_goodbye();
    });
  }

  void say_goodbye() {
    stream_.async_close(*closing_, [self = shared_from_this()](error_code) {});
  }

  void gone(error_code error) {
    if (hub_.open.erase(client) == 0) return;
    std::string reason = "closed";
    if (error == ws::error::message_too_big || error == ws::error::buffer_overflow)
      reason = "it sent a message of more than " + format_bytes(static_cast<double>(hub_.settings.max_message));
    else if (error != ws::error::closed && error != asio::error::eof && error != asio::error::connection_reset &&
             error != asio::error::operation_aborted)
      reason = error.message();
    hub_.handler->closed(client, reason);
  }

  ws::stream<beast::tcp_stream> stream_;
  Hub& hub_;
  std::string peer_ = "unknown";
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::deque<std::pair<std::string, bool>> out_;  // to be sent, and whether as text
  std::optional<ws::close_reason> closing_;
};

}  // namespace

struct WebSocketServer::Impl {
  Impl(const WebSocketServerSettings& settings, WebSocketHandler& handler) : acceptor(context), goodbye(context) {
    hub.settings = settings;
    hub.handler = &handler;
    const std::string place = settings.host + ":" + std::to_string(settings.port);
    error_code error;
    const auto found = tcp::resolver(context).resolve(settings.host, std::to_string(settings.port),
                                                      tcp::resolver::passive | tcp::resolver::numeric_service, error);
    COHORT_THROW_UNLESS(!error && !found.empty(),
                        "cannot serve on {}: no address of this name ({}); --host takes an "
                        "address of this machine, 127.0.0.1 or 0.0.0.0",
                        place, error.message());
    const tcp::endpoint end = found.begin()->endpoint();
    acceptor.open(end.protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(end, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    COHORT_THROW_UNLESS(
        error != asio::error::address_in_use,
        "cannot serve on {}: another program uses the port; choose another with --port, or --port 0 for "
        "one that is free",
        place);
    COHORT_THROW_UNLESS(!error, "cannot serve on {}: {}; --host takes an address of this machine, 127.0.0.1 or 0.0.0.0",
                        place, error.message());
    port = acceptor.local_endpoint().port();
    accept();
    thread = std::thread([this] { context.run(); });
  }

  void accept() {
    acceptor.async_accept([this](error_code error, tcp::socket socket) {
      if (!acceptor.is_open()) return;
      // Far more than will be served are not even heard.
      if (!error && hub.sockets < 2 * hub.settings.max_connections + 16)
        std::make_shared<ServedConnection>(std::move(socket), hub)->begin();
      if (error == asio::error::no_descriptors) {  // until some are given back
        goodbye.expires_after(std::chrono::milliseconds(100));
        return goodbye.async_wait([this](error_code) { accept(); });
      }
      accept();
    });
  }

  template <class Body>
  void with(std::uint64_t client, Body body) {
    asio::post(context, [this, client, body = std::move(body)]() mutable {
      const auto found = hub.open.find(client);
      if (found != hub.open.end()) body(*found->second);
    });
  }

  void stop() {
    if (!thread.joinable()) return;
    asio::post(context, [this] {
      error_code ignored;
      acceptor.close(ignored);
      for (const auto& [client, connection] : hub.open)
        connection->close(ws::close_code::going_away, "the server ends");
      goodbye.expires_after(std::chrono::seconds(2));
      goodbye.async_wait([this](error_code error) {
        if (!error) context.stop();
      });
      wait_for_the_last();
    });
    thread.join();
    hub.open.clear();
  }

  void wait_for_the_last() {
    if (hub.open.empty()) return context.stop();
    asio::post(context, [this] {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      wait_for_the_last();
    });
  }

  Hub hub;  // before the context, whose handlers hold connections
  asio::io_context context{1};
  tcp::acceptor acceptor;
  asio::steady_timer goodbye;
  int port = 0;
  std::thread thread;
};

WebSocketServer::WebSocketServer(const WebSocketServerSettings& settings, WebSocketHandler& handler)
    : impl_(std::make_unique<Impl>(settings, handler)) {}
WebSocketServer::~WebSocketServer() {
  stop();
}
int WebSocketServer::port() const {
  return impl_->port;
}
void WebSocketServer::send(std::uint64_t client, std::string bytes) {
  impl_->with(client, [bytes = std::move(bytes)](ServedConnection& c) mutable { c.send(std::move(bytes), false); });
}
void WebSocketServer::send_text(std::uint64_t client, std::string text) {
  impl_->with(client, [text = std::move(text)](ServedConnection& c) mutable { c.send(std::move(text), true); });
}
void WebSocketServer::fail(std::uint64_t client, std::string text) {
  impl_->with(client, [text = std::move(text)](ServedConnection& c) mutable {
    c.send(std::move(text), true);
    c.close(ws::close_code::internal_error, "an error; the message before this says which");
  });
}
void WebSocketServer::stop() {
  impl_->stop();
}

}  // namespace cohort::serve
