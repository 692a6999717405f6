#include "view/data_server.h"

#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.h"
#include "core/json_text.h"
#include "core/log.h"
#include "serve/websocket_server.h"
#include "view/binary_document.h"
#include "view/page_clients.h"
#include "view/page_gate.h"

namespace cohort::view {

namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr double kFoundInterval = 0.5;     // s between lines about what has been read
constexpr std::size_t kMostPictures = 16;  // of a camera, in an answer
/// Kinds of binary messages: live_server.cpp has 1 and 2.
constexpr std::uint32_t kEpisodeMessage = 3, kPicturesMessage = 4;

std::string text_of(const json& j) {
  return json_text(j, -1, BadUtf8::kReplaced);
}

std::string message_of(std::uint32_t kind, const std::string& bytes) {
  std::string out(sizeof kind, '\0');
  std::memcpy(out.data(), &kind, sizeof kind);
  return out + bytes;
}

}  // namespace

struct DataServer::Impl final : serve::WebSocketHandler {
  Impl(DataSession& looked_at, const DataServerSettings& settings)
      : session(looked_at), gate(settings.host, settings.token) {
    server.emplace(
        serve::WebSocketServerSettings{
            .host = settings.host, .port = settings.port, .max_connections = kMostPages, .max_message = kMostMessage},
        *this);
  }
  ~Impl() override { server.reset(); }

  // ---- in the server's thread

  std::optional<serve::HttpAnswer> answer(const serve::HttpRequest& request) override {
    return gate.answer(request, session.title(), "data");
  }
  bool admits(const serve::HttpRequest& request) override { return gate.admits(request); }
  std::string opened(std::uint64_t client, const std::string& peer) override {
    log::debug("{} looks", peer);
    clients.opened(client);
    return "";
  }
  void message(std::uint64_t client, std::string bytes, bool) override {
    if (clients.message(client, std::move(bytes)) == PageClients::Taken::kTooMany)
      server->fail(client, R"({"error": "too many messages"})");
  }
  void closed(std::uint64_t client, const std::string&) override { clients.closed(client); }

  // ---- in the session's thread

  json found(std::int64_t since) {
    json out = session.found(since);
    out["kind"] = "found", out["since"] = since;
    return out;
  }

  struct Answer {
    std::string bytes;
    bool is_text = true;
  };

  /// Throws Error and JSON's errors.
  Answer obey(const json& m) {
    const auto what = m.at("do").get<std::string>();
    const auto index = [&](const char* name, std::int64_t end) {
      const json& value = m.at(name);
      COHORT_THROW_UNLESS(
          value.is_number_integer() && value.get<std::int64_t>() >= 0 && value.get<std::int64_t>() < end,
          "{} must be a number from 0 to {}", name, end - 1);
      return value.get<std::int64_t>();
    };
    if (what == "episode") {
      const std::int64_t which = index("which", session.episodes());
      BinaryDocument doc;
      doc.text = episode_json(session.episode(which), doc);
      doc.text["which"] = which;
      return {message_of(kEpisodeMessage, deflated(doc.bytes())), false};
    }
    if (what == "pictures") {
      const std::int64_t which = index("which", session.episodes()), first = index("first", std::int64_t{1} << 30);
      const auto count = static_cast<std::size_t>(index("count", kMostPictures + 1));
      BinaryDocument doc;
      doc.text["which"] = which, doc.text["first"] = first;
      doc.text["cameras"] = cameras_json(session.pictures(which, static_cast<std::size_t>(first), count), doc);
      return {message_of(kPicturesMessage, doc.bytes()), false};
    }
    if (what == "filter") {
      const auto rules = m.at("rules").get<std::vector<std::string>>();
      return {text_of({{"kind", "filtered"}, {"episodes", session.filtered(rules)}})};
    }
    throw Error(format("`{}` cannot be done", what.substr(0, 40)));
  }

  Answer answered(const std::string& message) {
    try {
      COHORT_THROW_UNLESS(message.size() <= kMostMessage, "a message that is too long");
      return obey(parse_json<json>(message));
    } catch (const std::exception& e) {
      return {text_of({{"kind", "error"}, {"text", e.what()}})};
    }
  }

  void take_messages() {
    for (const auto& [client, text] : clients.take()) {
      if (!text.empty()) {
        const Answer said = answered(text);
        if (said.is_text)
          server->send_text(client, said.bytes);
        else
          server->send(client, said.bytes);
        continue;
      }
      json about = session.about();
      about["kind"] = "data", about["title"] = session.title();
      server->send_text(client, text_of(about));
      server->send_text(client, text_of(found(0)));
    }
  }

  void run(const std::function<bool()>& stop) {
    Clock::time_point last_found = Clock::now();
    std::int64_t read = 0, said = 0;
    bool more = true;
    while (!stop()) {
      take_messages();
      if (more && clients.any()) {
        more = session.read_on();
        read += more;
      }
      const Clock::time_point now = Clock::now();
      const bool due = std::chrono::duration<double>(now - last_found).count() >= kFoundInterval;
      if (said < read && (due || !more)) {
        const std::string text = text_of(found(said));
        clients.each([&](std::uint64_t client) { server->send_text(client, text); });
        said = read, last_found = now;
      }
      if (!more || !clients.any()) clients.wait(std::chrono::milliseconds(50));
    }
  }

  DataSession& session;
  PageGate gate;
  PageClients clients;
  std::optional<serve::WebSocketServer> server;
};

DataServer::DataServer(DataSession& session, const DataServerSettings& settings)
    : impl_(std::make_unique<Impl>(session, settings)) {}
DataServer::~DataServer() = default;
int DataServer::port() const {
  return impl_->server->port();
}
std::string DataServer::address() const {
  return impl_->gate.address(port());
}
std::string DataServer::apply(const std::string& message) {
  return impl_->answered(message).bytes;
}
void DataServer::run(const std::function<bool()>& stop) {
  impl_->run(stop);
}

}  // namespace cohort::view
