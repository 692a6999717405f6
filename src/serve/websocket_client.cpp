#include "serve/websocket_client.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/websocket.hpp>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace cohort::serve {
namespace {

std::chrono::milliseconds duration_of(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

}  // namespace

class ClientThread {
 public:
  ClientThread() : work_(context.get_executor()), thread_([this] { context.run(); }) {}
  ~ClientThread() {
    // Goodbyes of clients that have just gone are under way.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    work_.reset();
    while (!context.stopped() && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    context.stop();
    thread_.join();
  }
  ClientThread(const ClientThread&) = delete;
  ClientThread& operator=(const ClientThread&) = delete;

  boost::asio::io_context context{1};

 private:
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::thread thread_;
};

std::shared_ptr<ClientThread> make_client_thread() {
  return std::make_shared<ClientThread>();
}

struct WebSocketClient::Connection : std::enable_shared_from_this<WebSocketClient::Connection> {
  using tcp = boost::asio::ip::tcp;
  using error_code = boost::beast::error_code;
  enum class State { kConnecting, kOpen, kOver };

  explicit Connection(boost::asio::io_context& context) : resolver(context), stream(context) {}

  void begin(const ServerUrl& url, double seconds, std::size_t max_message) {
    namespace ws = boost::beast::websocket;
    stream.read_message_max(max_message);
    stream.set_option(ws::stream_base::timeout{duration_of(seconds), ws::stream_base::none(), false});
    boost::beast::get_lowest_layer(stream).expires_after(duration_of(seconds));
    resolver.async_resolve(url.host, url.port, [self = shared_from_this(), url, seconds](error_code error, auto found) {
      if (error) return self->over(error.message(), true);
      boost::beast::get_lowest_layer(self->stream)
          .async_connect(found, [self, url](error_code e, const tcp::endpoint&) {
            if (e) return self->over(e.message(), true);
            self->handshake(url);
          });
    });
  }

  void handshake(const ServerUrl& url) {
    error_code ignored;
    auto& lowest = boost::beast::get_lowest_layer(stream);
    lowest.expires_never();
    lowest.socket().set_option(tcp::no_delay(true), ignored);
    stream.async_handshake(url.host + ":" + url.port, url.path, [self = shared_from_this()](error_code error) {
      if (error == boost::beast::websocket::error::upgrade_declined)
        return self->over("it refused the connection: no WebSocket server, or one that takes no more clients", false);
      if (error) return self->over("it is no WebSocket server (" + error.message() + ")", false);
      {
        const std::lock_guard lock(self->mutex);
        self->state = State::kOpen;
      }
      self->changed.notify_all();
      self->read();
    });
  }

  void read() {
    stream.async_read(buffer, [self = shared_from_this()](error_code error, std::size_t) {
      if (error) {
        const std::string why(self->stream.reason().reason.c_str());
        return self->over(error == boost::beast::websocket::error::closed
                              ? "it closed the connection" + (why.empty() ? "" : ": " + why)
                              : "the connection ended: " + error.message(),
                          false);
      }
      {
        const std::lock_guard lock(self->mutex);
        self->in.push_back({boost::beast::buffers_to_string(self->buffer.data()), self->stream.got_text()});
      }
      self->buffer.consume(self->buffer.size());
      self->changed.notify_all();
      self->read();
    });
  }

  void write(Message message) {
    out.push_back(std::move(message));
    if (out.size() == 1) write_first();
  }
  void write_first() {
    stream.binary(!out.front().is_text);
    stream.async_write(boost::asio::buffer(out.front().bytes),
                       [self = shared_from_this()](error_code error, std::size_t) {
                         if (error) return;  // the reading side says so
                         self->out.pop_front();
                         if (!self->out.empty()) self->write_first();
                       });
  }

  void close() {
    resolver.cancel();
    if (stream.is_open())
      stream.async_close(boost::beast::websocket::close_code::normal, [self = shared_from_this()](error_code) {});
    else
      boost::beast::get_lowest_layer(stream).cancel();
  }

  void over(const std::string& why, bool nobody) {
    {
      const std::lock_guard lock(mutex);
      state = State::kOver;
      reason = why;
      nobody_there = nobody;
    }
    changed.notify_all();
  }

  tcp::resolver resolver;
  boost::beast::websocket::stream<boost::beast::tcp_stream> stream;
  boost::beast::flat_buffer buffer;
  std::deque<Message> out;  // in the thread

  std::mutex mutex;  // of what follows
  std::condition_variable changed;
  State state = State::kConnecting;
  std::string reason;
  bool nobody_there = false;
  std::deque<Message> in;
};

WebSocketClient::WebSocketClient(std::shared_ptr<ClientThread> thread, const ServerUrl& url, double seconds,
                                 std::size_t max_message)
    : thread_(std::move(thread)), connection_(std::make_shared<Connection>(thread_->context)) {
  boost::asio::post(thread_->context,
                    [c = connection_, url, seconds, max_message] { c->begin(url, seconds, max_message); });
  std::unique_lock lock(connection_->mutex);
  const bool settled = connection_->changed.wait_for(
      lock, duration_of(seconds), [&] { return connection_->state != Connection::State::kConnecting; });
  if (settled && connection_->state == Connection::State::kOpen) return;
  const bool nobody = !settled || connection_->nobody_there;
  const std::string reason = settled ? connection_->reason : "nothing answers";
  lock.unlock();
  boost::asio::post(thread_->context, [c = connection_] { c->close(); });
  if (nobody) throw NoServer(reason);
  throw Error(reason);
}

WebSocketClient::~WebSocketClient() {
  boost::asio::post(thread_->context, [c = connection_] { c->close(); });
}

void WebSocketClient::send(std::string bytes) {
  boost::asio::post(thread_->context, [c = connection_, bytes = std::move(bytes)]() mutable {
    c->write({std::move(bytes), false});
  });
}

void WebSocketClient::send_text(std::string text) {
  boost::asio::post(thread_->context, [c = connection_, text = std::move(text)]() mutable {
    c->write({std::move(text), true});
  });
}

WebSocketClient::Message WebSocketClient::receive(double seconds) {
  std::unique_lock lock(connection_->mutex);
  const bool settled = connection_->changed.wait_for(lock, duration_of(seconds), [&] {
    return !connection_->in.empty() || connection_->state == Connection::State::kOver;
  });
  COHORT_THROW_UNLESS(settled, "no answer within {:g} s", seconds);
  COHORT_THROW_UNLESS(!connection_->in.empty(), "{}", connection_->reason);
  Message message = std::move(connection_->in.front());
  connection_->in.pop_front();
  return message;
}

}  // namespace cohort::serve
