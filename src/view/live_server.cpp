#include "view/live_server.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/error.h"
#include "core/json_text.h"
#include "core/log.h"
#include "serve/websocket_server.h"
#include "sim/index.h"
#include "view/binary_document.h"
#include "view/page_clients.h"
#include "view/page_gate.h"
#include "view/pose_track.h"
#include "view/scene_document.h"
#include "view/shown_looks.h"

namespace cohort::view {

namespace {

using nlohmann::json;
using sim::at;
using Clock = std::chrono::steady_clock;

constexpr double kMostFps = 30;
constexpr int kFramesUnseen = 3;  // that are on the way to a page
constexpr double kMostSpeed = 16, kLeastSpeed = 0.01;
constexpr double kStateInterval = 0.25, kLeastStateInterval = 0.04;  // s between lines about the state
constexpr double kLookInterval = 2;                                  // s between looks at who may act
constexpr std::size_t kMostContacts = 256, kContactFloats = 12;
constexpr std::size_t kMostContactEnvs = 16;  // whose contacts are drawn where all environments are
constexpr double kMostLag = 0.25;             // s of simulated time that are caught up with

template <class T>
void put(std::string& to, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  to.append(bytes, sizeof(T));
}

/// kind 1: the scene, a zlib stream of its document.
/// kind 5: looks of environments, a zlib stream of a BinaryDocument; 3 and 4: data_server.cpp.
constexpr std::uint32_t kSceneMessage = 1, kFrameMessage = 2, kLooksMessage = 5;

}  // namespace

struct LiveServer::Impl final : serve::WebSocketHandler {
  Impl(LiveSession& looked_at, const LiveServerSettings& wanted)
      : session(looked_at), settings(wanted), gate(wanted.host, wanted.token) {
    playing = settings.playing;
    std::vector<std::int32_t> envs(at(std::min(session.scene().n_envs(), settings.most_environments)));
    std::iota(envs.begin(), envs.end(), 0);
    reader.emplace(session.scene(), envs);
    looks.emplace(session.scene(), envs);
    std::string message;
    put(message, kSceneMessage);
    scene = message + deflated(scene_document(session.scene(), envs));
    server.emplace(
        serve::WebSocketServerSettings{
            .host = settings.host, .port = settings.port, .max_connections = kMostPages, .max_message = kMostMessage},
        *this);
  }
  ~Impl() override { server.reset(); }

  // ---- in the server's thread

  std::optional<serve::HttpAnswer> answer(const serve::HttpRequest& request) override {
    return gate.answer(request, session.title(), "scene");
  }
  bool admits(const serve::HttpRequest& request) override { return gate.admits(request); }
  std::string opened(std::uint64_t client, const std::string& peer) override {
    log::debug("{} looks", peer);
    clients.opened(client);
    return scene;
  }
  void message(std::uint64_t client, std::string bytes, bool) override {
    if (clients.message(client, std::move(bytes)) == PageClients::Taken::kTooMany)
      server->fail(client, R"({"error": "too many messages"})");
  }
  void closed(std::uint64_t client, const std::string&) override { clients.closed(client); }

  // ---- in the session's thread

  json about() {
    json joints = json::array(), floating = json::array(), controls = json::array();
    const sim::ModelInfo& info = session.scene().info();
    for (std::size_t i = 0; i < info.joints.size(); ++i) {
      const sim::JointInfo& j = info.joints[i];
      if (j.type == sim::JointType::kFree) floating.push_back({{"index", i}, {"link", j.link}});
      if (j.type != sim::JointType::kHinge && j.type != sim::JointType::kSlide) continue;
      const double reach = j.type == sim::JointType::kHinge ? 3.1416 : 1;
      joints.push_back({{"index", i},
                        {"name", j.name},
                        {"qpos", j.qpos},
                        {"link", j.link},
                        {"slides", j.type == sim::JointType::kSlide},
                        {"axis", j.axis},
                        {"pos", j.pos},
                        {"limited", j.limited},
                        {"low", j.limited ? j.range[0] : -reach},
                        {"high", j.limited ? j.range[1] : reach}});
    }
    for (const sim::ActuatorInfo& a : info.actuators)
      controls.push_back({{"index", a.ctrl},
                          {"name", a.name},
                          {"low", a.limited ? a.range[0] : -1.0},
                          {"high", a.limited ? a.range[1] : 1.0}});
    json commands = json::array();
    const std::vector<tasks::CommandShape> all = session.commands();
    for (const tasks::CommandShape& c : all)
      for (std::size_t i = 0; i < c.parts.size(); ++i)
        commands.push_back({{"index", commands.size()},
                            {"name", all.size() > 1 ? c.name + " " + c.parts[i] : c.parts[i]},
                            {"low", c.low[i]},
                            {"high", c.high[i]}});
    return {{"kind", "about"},
            {"title", session.title()},
            {"period", session.period()},
            {"curves", session.curve_names()},
            {"joints", joints},
            {"floating", floating},
            {"controls", controls},
            {"commands", commands},
            {"actors", session.actors()}};
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
            {"commands", finite(session.command_values(env))},
            {"commanded", session.is_commanded(env)},
            {"contacts", contacts},
            {"byHand", session.takes_controls()},
            {"qpos", finite(qpos)},
            {"ctrl", finite(ctrl)}};
  }

  /// Environments that are told, and whose contacts are drawn.
  std::vector<std::int32_t> chosen() const { return all_envs ? reader->envs() : std::vector<std::int32_t>{env}; }

  /// Of each contact: environment, both links, position (m), normal, force (N) on the second link, in the world.
  std::vector<float> contact_rows() {
    std::vector<float> out;
    if (!contacts) return out;
    std::vector<std::int32_t> envs = chosen();
    if (envs.size() > kMostContactEnvs) envs.resize(kMostContactEnvs);
    for (const sim::Contact& c : session.scene().get_contacts(sim::Indices(envs))) {
      if (out.size() == kMostContacts * kContactFloats) break;
      for (const int x : {c.env, c.link1, c.link2}) out.push_back(static_cast<float>(x));
      for (const auto* v : {&c.pos, &c.normal, &c.force})
        for (const double x : *v) out.push_back(std::isfinite(x) ? static_cast<float>(x) : 0.0f);
    }
    return out;
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
    const std::vector<float> touching = contact_rows();
    put(out, static_cast<std::uint32_t>(curves.size()));
    put(out, static_cast<std::uint32_t>(touching.size() / kContactFloats));
    for (const float x : touching) put(out, x);
    for (const float x : curves) put(out, x);
    out.append(reinterpret_cast<const char*>(packed.values.data()), 2 * packed.values.size());
    return out;
  }

  std::string looks_message(const std::vector<OwnLook>& those) {
    BinaryDocument doc;
    doc.text["looks"] = looks_json(those, doc);
    std::string out;
    put(out, kLooksMessage);
    return out + deflated(doc.bytes());
  }

  /// What {"do": ...} says; the answer to who said it, if there is one. Throws Error and JSON's errors, before anything is
  /// changed.
  json obey(const json& m) {
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
    // Of which environment a joint is: that of the message, or the chosen one.
    const auto whose = [&] {
      const std::size_t one = m.contains("env") ? index("env") : at(env);
      COHORT_THROW_UNLESS(one < reader->envs().size(), "there is no environment {} here", one);
      COHORT_THROW_UNLESS(!playing, "joints are set while it does not play: pause first");
      return static_cast<std::int32_t>(one);
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
      const bool every = m.at("value") == -1;
      const std::size_t wanted = every ? 0 : index("value");
      COHORT_THROW_UNLESS(wanted < reader->envs().size(), "there is no environment {} here", wanted);
      env = static_cast<std::int32_t>(wanted), all_envs = every;
    } else if (what == "contacts") {
      contacts = m.at("value").get<bool>();
    } else if (what == "joint") {
      session.set_joint(whose(), index("index"), static_cast<float>(number("value")));
    } else if (what == "grab") {
      const std::int32_t one = whose();
      const std::size_t joint = index("index");
      return {{"kind", "grabbed"}, {"env", one}, {"index", joint}, {"value", session.joint_value(one, joint)}};
    } else if (what == "place") {
      const auto place = m.at("value").get<std::array<float, 3>>();
      for (const float x : place) COHORT_THROW_UNLESS(std::abs(x) < 1e6f, "value must be three numbers of metres");
      session.set_place(whose(), index("index"), place);
    } else if (what == "control") {
      session.set_control(env, index("index"), static_cast<float>(number("value")));
    } else if (what == "command") {
      session.set_command(chosen(), index("index"), static_cast<float>(number("value")));
    } else if (what == "release") {
      session.release_commands(chosen());
    } else {
      throw Error(format("`{}` cannot be done", what.substr(0, 40)));
    }
    return nullptr;
  }

  std::string applied(const std::string& message) {
    try {
      if (message.size() > kMostMessage) throw Error("a message that is too long");
      const json said = obey(parse_json<json>(message));
      changed = true;
      return said.is_null() ? "" : json_text(said);
    } catch (const std::exception& e) {
      return json_text(json{{"kind", "error"}, {"text", e.what()}}, -1, BadUtf8::kReplaced);
    }
  }

  void take_messages() {
    for (const auto& [client, text] : clients.take()) {
      if (text.empty()) {
        server->send_text(client, json_text(about(), -1, BadUtf8::kReplaced));
        if (const std::vector<OwnLook> all = looks->all(); !all.empty()) server->send(client, looks_message(all));
        changed = true;
        continue;
      }
      if (text == R"({"do":"seen"})") {
        clients.seen(client);
        continue;
      }
      if (const std::string said = applied(text); !said.empty()) server->send_text(client, said);
    }
  }

  void send_to_all(const std::string& bytes, bool is_text) {
    if (is_text)
      clients.each([&](std::uint64_t client) { server->send_text(client, bytes); });
    else
      clients.each_ready(kFramesUnseen, [&](std::uint64_t client) { server->send(client, bytes); });
  }

  void run(const std::function<bool()>& stop) {
    Clock::time_point last = Clock::now(), last_frame = last, last_state = last, last_look = last;
    double frame_bytes = 0;
    while (!stop()) {
      take_messages();
      const Clock::time_point now = Clock::now();
      const auto since = [&](Clock::time_point t) { return std::chrono::duration<double>(now - t).count(); };
      if (since(last_look) >= kLookInterval && clients.any()) {
        last_look = now;
        if (session.look_again()) {
          changed = true;
          send_to_all(json_text(json{{"kind", "actors"}, {"actors", session.actors()}}, -1, BadUtf8::kReplaced), true);
        }
      }
      const bool going = playing && clients.any();
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
        if (const std::vector<OwnLook> others = looks->changed(); !others.empty() && clients.any()) {
          const std::string said = looks_message(others);
          frame_bytes += static_cast<double>(said.size());
          clients.each([&](std::uint64_t client) { server->send(client, said); });
        }
        send_to_all(bytes, false);
        last_frame = now;
        moved = false;
      }
      if (since(last_state) >= (changed ? kLeastStateInterval : kStateInterval) && (changed || going)) {
        send_to_all(json_text(state()), true);
        last_state = now;
        changed = false;
      }
      clients.wait(std::chrono::milliseconds(going || moved || changed ? 4 : 50));
    }
  }

  LiveSession& session;
  LiveServerSettings settings;
  PageGate gate;
  std::string scene;
  std::optional<PoseReader> reader;
  std::optional<ShownLooks> looks;
  std::vector<float> pos, quat;
  bool playing = true, changed = false, moved = true, contacts = false;
  bool all_envs = true;
  double speed = 1, behind = 0;  ///< s of simulated time that are due
  std::int32_t env = 0;          ///< whose curves, joints and controls are shown

  PageClients clients;
  std::optional<serve::WebSocketServer> server;
};

LiveServer::LiveServer(LiveSession& session, const LiveServerSettings& settings)
    : impl_(std::make_unique<Impl>(session, settings)) {}
LiveServer::~LiveServer() = default;
int LiveServer::port() const {
  return impl_->server->port();
}
std::string LiveServer::address() const {
  return impl_->gate.address(port());
}
const std::string& LiveServer::token() const {
  return impl_->gate.token;
}
void LiveServer::run(const std::function<bool()>& stop) {
  impl_->run(stop);
}
std::string LiveServer::apply(const std::string& message) {
  return impl_->applied(message);
}

}  // namespace cohort::view
