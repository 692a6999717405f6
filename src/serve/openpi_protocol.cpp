#include "serve/openpi_protocol.h"

#include <utility>

#include "core/error.h"
#include "serve/msgpack.h"

namespace cohort::serve {
namespace {

class OpenpiServer final : public ServerProtocol {
 public:
  explicit OpenpiServer(bool omnigibson) : omnigibson_(omnigibson) {}

  std::string greeting(const policy::Spec& spec) const override { return pack(metadata_of(spec)); }
  Request read(std::string_view bytes, const policy::Spec& spec) const override {
    return read_request(unpack(bytes), spec);
  }
  bool one_by_one() const override { return omnigibson_; }
  bool several_robots(const Request& request) const override { return !omnigibson_ && !request.roboarena; }

  std::optional<Reply> acknowledge(const Request& request, const policy::Spec&) const override {
    if (request.roboarena) return Reply{"reset successful", true};
    if (omnigibson_) return {};
    return Reply{pack({Map{{"reset", {true}}}})};
  }

  std::string answer(const Request& request, NumpyArray actions, const Timing& timing) const override {
    if (request.roboarena) return pack({std::move(actions)});
    Map times{{"infer_ms", {timing.infer_ms}}};
    if (timing.last_total_ms) times.push_back({"prev_total_ms", {*timing.last_total_ms}});
    return pack(
        {Map{{omnigibson_ ? "action" : "actions", {std::move(actions)}}, {"server_timing", {std::move(times)}}}});
  }

  std::optional<std::string> error(std::string_view, const std::string&) const override { return {}; }

 private:
  bool omnigibson_;
};

class OpenpiClient final : public ClientProtocol {
 public:
  ServerInfo greet(WebSocketClient& connection, double seconds) override {
    const WebSocketClient::Message message = connection.receive(seconds);
    COHORT_THROW_UNLESS(!message.is_text, "it answers: {}", last_lines(message.bytes));
    const ServerInfo info = server_info(unpack(message.bytes));
    cohort_ = info.cohort;
    return info;
  }
  bool one_episode() const override { return !cohort_; }
  void begin(WebSocketClient&, const std::string&, std::uint64_t seed) override {
    seed_ = seed;
    fresh_ = true;
  }
  std::string observation(Map seen, const std::string& instruction) override {
    seen.push_back({"prompt", {instruction}});
    if (cohort_ && fresh_) {
      seen.push_back({"reset", {true}});
      seen.push_back({"seed", {seed_}});
    }
    fresh_ = false;
    return pack({std::move(seen)});
  }
  Value actions(const WebSocketClient::Message& message) override {
    COHORT_THROW_UNLESS(!message.is_text, "it refuses the observation: {}", last_lines(message.bytes));
    return unpack_answer(message.bytes);
  }

 private:
  std::uint64_t seed_ = 0;
  bool cohort_ = false, fresh_ = true;
};

}  // namespace

std::unique_ptr<ServerProtocol> make_openpi_server_protocol() {
  return std::make_unique<OpenpiServer>(false);
}
std::unique_ptr<ServerProtocol> make_omnigibson_server_protocol() {
  return std::make_unique<OpenpiServer>(true);
}
std::unique_ptr<ClientProtocol> make_openpi_client_protocol() {
  return std::make_unique<OpenpiClient>();
}

}  // namespace cohort::serve
