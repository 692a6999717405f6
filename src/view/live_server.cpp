#include "view/live_server.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "core/error.h"
#include "core/log.h"
#include "serve/websocket_server.h"
#include "sim/index.h"
#include "view/binary_document.h"
#include "view/page.h"
#include "view/pose_track.h"
#include "view/scene_document.h"

namespace cohort::view {

namespace {

using nlohmann::json;
using sim::at;
using Clock = std::chrono::steady_clock;

constexpr double kMostFps = 30;
constexpr int kFramesUnseen = 3;  // that are on the way to a page
constexpr double kMostSpeed = 16, kLeastSpeed = 0.01;
constexpr int kMostClients = 8;
constexpr double kStateInterval = 0.25, kLeastStateInterval = 0.04;  // s between lines about the state
constexpr double kMostLag = 0.25;                                    // s of simulated time that are caught up with

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

template <class T>
void put(std::string& to, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  to.append(bytes, sizeof(T));
}

/// kind 1: the scene, a zlib stream of its document.
constexpr std::uint32_t kSceneMessage = 1, kFrameMessage = 2;

}  // namespace

struct LiveServer::Impl final : serve::WebSocketHandler {
  Impl(LiveSession& looked_at, const LiveServerSettings& wanted)
      : session(looked_at), settings(wanted), token(wanted.token.empty() ? random_hex(16) : wanted.token) {
    playing = settings.playing;
    std::vector<std::int32_t> envs(at(std::min(session.scene().n_envs(), settings.most_environments)));
    std::iota(envs.begin(), envs.end(), 0);
    reader.emplace(session.scene(), envs);
    std::string message;
    put(message, kSceneMessage);
    scene = message + deflated(scene_document(session.scene(), envs));
    server.emplace(
        serve::WebSocketServerSettings{
            .host = settings.host, .port = settings.port, .max_connections = kMostClients, .max_message = kMostMessage},
        *this);
  }
  ~Impl() override { server.reset(); }

  // ---- in the server's thread

  bool trusted_host(const std::string& host) const {
    const std::string name = name_of_host(host), port = host.substr(name.size());
    // It goes into the page's text.
    if (port.find_first_not_of("0123456789", 1) != std::string::npos || (!port.empty() && port[0] != ':')) return false;
    if (name == "127.0.0.1" || name == "localhost" || name == "[::1]" || name == settings.host) return true;
    // Served to others, it has any of this machine's addresses; a name may be led here by another site.
    const bool to_others = settings.host != "127.0.0.1" && settings.host != "localhost" && settings.host != "::1";
    return to_others && !name.empty() && name.find_first_not_of("0123456789.") == std::string::npos;
  }
  bool has_token(const std::string& target) const {
    const std::size_t begin = target.find("token=");
    return begin != std::string::npos && same(target.substr(begin + 6, target.find('&', begin) - begin - 6), token);
  }

  std::optional<serve::HttpAnswer> answer(const serve::HttpRequest& request) override {
    if (!trusted_host(request.host))
      return serve::HttpAnswer{403, "text/plain", "This name is none of this machine's.\n"};
    if (request.target != "/" && !request.target.starts_with("/?"))
      return serve::HttpAnswer{404, "text/plain", "There is one page here: /\n"};
    if (!has_token(request.target))
      return serve::HttpAnswer{403, "text/plain",
                               "Not without the token: take the whole address that `cohort view` prints.\n"};
    return serve::HttpAnswer{
        200, "text/html; charset=utf-8",
        served_page(session.title(), "ws://" + request.host + "/socket?token=" + token, random_hex(16))};
  }

  bool admits(const serve::HttpRequest& request) override {
    return request.target.starts_with("/socket?") && has_token(request.target) && trusted_host(request.host) &&
           (request.origin.empty() || request.origin == "http://" + request.host);
  }

  std::string opened(std::uint64_t client, const std::string& peer) override {
    log::debug("{} looks", peer);
    {
      const std::lock_guard lock(mutex);
      clients[client] = {};
      inbox.emplace_back(client, "");  // what it is told at first is said by the session's thread
    }
    woken.notify_one();
    return scene;
  }

  void message(std::uint64_t client, std::string bytes, bool) override {
    {
      const std::lock_guard lock(mutex);
      Client& c = clients[client];
      const Clock::time_point now = Clock::now();
      c.tokens = std::min(kMostMessagesASecond,
                          c.tokens + kMostMessagesASecond * std::chrono::duration<double>(now - c.last).count());
      c.last = now;
      if (c.tokens < 1) {
        if (!std::exchange(c.cut, true)) server->fail(client, R"({"error": "too many messages"})");
        return;
      }
      c.tokens -= 1;
      inbox.emplace_back(client, std::move(bytes));
    }
    woken.notify_one();
  }

  void closed(std::uint64_t client, const std::string&) override {
    const std::lock_guard lock(mutex);
    clients.erase(client);
  }

  // ---- in the session's thread

  json about() {
    json joints = json::array(), controls = json::array();
    const sim::ModelInfo& info = session.scene().info();
    for (std::size_t i = 0; i < info.joints.size(); ++i) {
      const sim::JointInfo& j = info.joints[i];
      if (j.type != sim::JointType::kHinge && j.type != sim::JointType::kSlide) continue;
      const double reach = j.type == sim::JointType::kHinge ? 3.1416 : 1;
      joints.push_back({{"index", i},
                        {"name", j.name},
                        {"qpos", j.qpos},
                        {"low", j.limited ? j.range[0] : -reach},
                        {"high", j.limited ? j.range[1] : reach}});
    }
    for (const sim::ActuatorInfo& a : info.actuators)
      controls.push_back({{"index", a.ctrl},
                          {"name", a.name},
                          {"low", a.limited ? a.range[0] : -1.0},
                          {"high", a.limited ? a.range[1] : 1.0}});
    return {
        {"kind", "about"},  {"title", session.title()}, {"period", session.period()}, {"curves", session.curve_names()},
        {"joints", joints}, {"controls", controls},     {"actors", session.actors()}};
  }

  json state() {
    const std::vector<float> qpos = session.scene().get_qpos(sim::Indices{env}),
                             ctrl = session.scene().info().nu > 0 ? session.scene().get_ctrl(sim::Indices{env})
                                                                  : std::vector<float>{};
    const auto finite = [](std::vector<float> v) {
      for (float& x : v)
        if (!std::isfinite(x)) x = 0;
      return v;
    };
    return {{"kind", "state"},
            {"playing", playing},
            {"speed", speed},
            {"time", session.time()},
            {"status", session.status()},
            {"actor", session.actor()},
            {"env", env},
            {"byHand", session.takes_controls()},
            {"qpos", finite(qpos)},
            {"ctrl", finite(ctrl)}};
  }

  std::string frame() {
    reader->read(pos, quat);
    const PackedPoses packed = pack_poses(pos, quat);
    std::string out;
    put(out, kFrameMessage);
    put(out, static_cast<float>(session.time()));
    for (const double x : packed.low) put(out, static_cast<float>(x));
    for (const double x : packed.high) put(out, static_cast<float>(x));
    const std::vector<float> curves = session.curve_values(env);
    put(out, static_cast<std::uint32_t>(curves.size()));
    for (const float x : curves) put(out, x);
    out.append(reinterpret_cast<const char*>(packed.values.data()), 2 * packed.values.size());
    return out;
  }

  /// What {"do": ...} says. Throws Error and JSON's errors, before anything is changed.
  void obey(const json& m) {
    const auto what = m.at("do").get<std::string>();
    const auto index = [&](const char* name) {
      const json& value = m.at(name);
      COHORT_THROW_UNLESS(value.is_number_integer() && value.get<std::int64_t>() >= 0, "{} must be a number from 0 on",
                          name);
      return static_cast<std::size_t>(value.get<std::int64_t>());
    };
    const auto number = [&](const char* name) {
      const auto value = m.at(name).get<double>();
      COHORT_THROW_UNLESS(std::isfinite(value) && std::abs(value) < 1e9, "{} must be a number", name);
      return value;
    };
    if (what == "play") {
      playing = true, behind = 0;
    } else if (what == "pause") {
      playing = false;
    } else if (what == "step") {
      playing = false;
      session.step();
    } else if (what == "reset") {
      session.reset(index("seed"));
    } else if (what == "speed") {
      speed = std::clamp(number("value"), kLeastSpeed, kMostSpeed);
    } else if (what == "actor") {
      session.choose_actor(index("value"));
    } else if (what == "env") {
      const std::size_t wanted = index("value");
      COHORT_THROW_UNLESS(wanted < reader->envs().size(), "there is no environment {} here", wanted);
      env = static_cast<std::int32_t>(wanted);
    } else if (what == "joint") {
      COHORT_THROW_UNLESS(!playing, "joints are set while it does not play: pause first");
      session.set_joint(env, index("index"), static_cast<float>(number("value")));
    } else if (what == "control") {
      session.set_control(env, index("index"), static_cast<float>(number("value")));
    } else {
      throw Error(format("`{}` cannot be done", what.substr(0, 40)));
    }
  }

  std::string applied(const std::string& message) {
    try {
      if (message.size() > kMostMessage) throw Error("a message that is too long");
      obey(json::parse(message));
      changed = true;
      return "";
    } catch (const std::exception& e) {
      return json{{"kind", "error"}, {"text", e.what()}}.dump(-1, ' ', false, json::error_handler_t::replace);
    }
  }

  void take_messages() {
    std::deque<std::pair<std::uint64_t, std::string>> messages;
    {
      const std::lock_guard lock(mutex);
      messages.swap(inbox);
    }
    for (const auto& [client, text] : messages) {
      if (text.empty()) {
        server->send_text(client, about().dump(-1, ' ', false, json::error_handler_t::replace));
        changed = true;
        continue;
      }
      if (text == R"({"do":"seen"})") {
        const std::lock_guard lock(mutex);
        if (const auto found = clients.find(client); found != clients.end())
          found->second.unseen = std::max(0, found->second.unseen - 1);
        continue;
      }
      if (const std::string said = applied(text); !said.empty()) server->send_text(client, said);
    }
  }

  void send_to_all(const std::string& bytes, bool is_text) {
    const std::lock_guard lock(mutex);
    for (auto& [client, c] : clients) {
      if (is_text) {
        server->send_text(client, bytes);
      } else if (c.unseen < kFramesUnseen) {
        ++c.unseen;
        server->send(client, bytes);
      }
    }
  }

  bool watched() {
    const std::lock_guard lock(mutex);
    return !clients.empty();
  }

  void run(const std::function<bool()>& stop) {
    Clock::time_point last = Clock::now(), last_frame = last, last_state = last;
    double frame_bytes = 0;
    while (!stop()) {
      take_messages();
      const Clock::time_point now = Clock::now();
      const auto since = [&](Clock::time_point t) { return std::chrono::duration<double>(now - t).count(); };
      const bool going = playing && watched();
      if (going) behind = std::min(behind + speed * since(last), kMostLag * std::max(1.0, speed));
      last = now;
      bool stepped = false;
      // Messages are looked at between steps that take long.
      for (const Clock::time_point begin = Clock::now(); going && behind >= session.period();) {
        session.step();
        behind -= session.period();
        stepped = true;
        if (std::chrono::duration<double>(Clock::now() - begin).count() > 0.02) break;
      }
      moved = moved || stepped || changed;
      const double interval = std::max(1 / kMostFps, frame_bytes / kMostPoseBytes);
      if (moved && since(last_frame) >= interval) {
        const std::string bytes = frame();
        frame_bytes = static_cast<double>(bytes.size());
        send_to_all(bytes, false);
        last_frame = now;
        moved = false;
      }
      if (since(last_state) >= (changed ? kLeastStateInterval : kStateInterval) && (changed || going)) {
        send_to_all(state().dump(), true);
        last_state = now;
        changed = false;
      }
      std::unique_lock lock(mutex);
      if (inbox.empty()) woken.wait_for(lock, std::chrono::milliseconds(going || moved || changed ? 4 : 50));
    }
  }

  struct Client {
    double tokens = kMostMessagesASecond;
    Clock::time_point last = Clock::now();
    int unseen = 0;
    bool cut = false;
  };

  LiveSession& session;
  LiveServerSettings settings;
  std::string token, scene;
  std::optional<PoseReader> reader;
  std::vector<float> pos, quat;
  bool playing = true, changed = false, moved = true;
  double speed = 1, behind = 0;  ///< s of simulated time that are due
  std::int32_t env = 0;          ///< whose curves, joints and controls are shown

  std::mutex mutex;
  std::condition_variable woken;
  std::map<std::uint64_t, Client> clients;
  std::deque<std::pair<std::uint64_t, std::string>> inbox;
  std::optional<serve::WebSocketServer> server;
};

LiveServer::LiveServer(LiveSession& session, const LiveServerSettings& settings)
    : impl_(std::make_unique<Impl>(session, settings)) {}
LiveServer::~LiveServer() = default;
int LiveServer::port() const {
  return impl_->server->port();
}
std::string LiveServer::address() const {
  const std::string host = impl_->settings.host == "0.0.0.0" ? "127.0.0.1" : impl_->settings.host;
  return format("http://{}:{}/?token={}", host, port(), impl_->token);
}
const std::string& LiveServer::token() const {
  return impl_->token;
}
void LiveServer::run(const std::function<bool()>& stop) {
  impl_->run(stop);
}
std::string LiveServer::apply(const std::string& message) {
  return impl_->applied(message);
}

}  // namespace cohort::view
