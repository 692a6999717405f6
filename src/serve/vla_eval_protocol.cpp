#include "serve/vla_eval_protocol.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <string_view>
#include <utility>

#include "cohort_version.h"
#include "core/error.h"
#include "core/observation_names.h"
#include "data/images/codec.h"
#include "serve/msgpack.h"

namespace cohort::serve {
namespace {

constexpr std::int64_t kProtocolVersion = 1;

std::string pack_message(const char* type, Map payload, std::int64_t sequence) {
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return pack(
      {Map{
          {"type", {std::string(type)}}, {"payload", {std::move(payload)}}, {"seq", {sequence}}, {"timestamp", {now}}}},
      ArrayKeys::kTexts);
}

struct Message {
  std::string type;
  Map payload;
  std::int64_t sequence = 0;
};

Message open_message(Value value) {
  Map* map = std::get_if<Map>(&value.of);
  COHORT_THROW_UNLESS(map != nullptr, "the message is {}, but vla-eval's are maps of type, payload, seq and timestamp",
                      describe(value));
  Message message;
  for (Entry& entry : *map) {
    if (entry.key == "type")
      if (const auto* text = std::get_if<std::string>(&entry.value.of)) message.type = *text;
    if (entry.key == "seq")
      if (const auto* n = std::get_if<std::int64_t>(&entry.value.of)) message.sequence = *n;
    if (entry.key == "payload")
      if (auto* payload = std::get_if<Map>(&entry.value.of)) message.payload = std::move(*payload);
  }
  const Value* payload = find(*map, "payload");
  COHORT_THROW_UNLESS(payload == nullptr || std::holds_alternative<Map>(payload->of) ||
                          std::holds_alternative<std::monostate>(payload->of),
                      "the message's payload is {}, but must be a map", describe(*payload));
  for (const char* key : {"type", "payload", "seq", "timestamp"})
    COHORT_THROW_UNLESS(find(*map, key) != nullptr,
                        "the message lacks '{}': vla-eval's have type, payload, seq and timestamp; openpi's clients "
                        "are served with --protocol openpi",
                        key);
  return message;
}

/// A picture as vla-eval's image_codec.py packs it: {"__image__": true, format, data, shape} -> (height, width, 3) uint8.
NumpyArray picture(const std::string& name, const Map& packed) {
  const Value *format_name = find(packed, "format"), *data = find(packed, "data");
  const auto* kind = format_name != nullptr ? std::get_if<std::string>(&format_name->of) : nullptr;
  const auto* bytes = data != nullptr ? std::get_if<Bytes>(&data->of) : nullptr;
  COHORT_THROW_UNLESS(kind != nullptr && bytes != nullptr, "the picture '{}' lacks its format or its data", name);
  if (*kind == "raw") {
    NumpyArray array{.dtype = "|u1", .shape = {}, .data = bytes->data};
    std::int64_t elements = 1;
    const Value* shape = find(packed, "shape");
    const List* sizes = shape != nullptr ? std::get_if<List>(&shape->of) : nullptr;
    for (std::size_t i = 0; sizes != nullptr && i < sizes->size(); ++i) {
      const auto* n = std::get_if<std::int64_t>(&(*sizes)[i].of);
      array.shape.push_back(n != nullptr ? *n : -1);
      elements = array.shape.back() < 0 || array.shape.back() > (1 << 16) || elements < 0 || elements > (1 << 30)
                     ? -1
                     : elements * array.shape.back();
    }
    COHORT_THROW_UNLESS(array.shape.size() == 3 && elements == std::ssize(array.data),
                        "the picture '{}' has the shape {} and {} bytes", name, shape_text(array.shape),
                        array.data.size());
    return array;
  }
  COHORT_THROW_UNLESS(*kind == "png" || *kind == "jpeg",
                      "the picture '{}' has the format '{}': raw, png and jpeg are known", name, kind->substr(0, 40));
  try {
    const data::Image header = data::image_header(bytes->data);
    COHORT_THROW_UNLESS(header.height * header.width <= kMostVlaEvalPixels, "it has {} x {} px: {} at most",
                        header.height, header.width, kMostVlaEvalPixels);
    data::Image image;
    data::decode_image(bytes->data, 3, image);
    return byte_array({image.height, image.width, 3}, image.pixels);
  } catch (const Error& e) {
    throw Error(format("the picture '{}' cannot be read: {}", name, e.what()));
  }
}

constexpr const char* kInstruction = "task_description";

/// An observation without its nesting: pictures by camera, no words of openpi's protocol.
Map flat_observation(Map payload, const policy::Spec& spec) {
  Map flat;
  for (Entry& entry : payload) {
    if (entry.key == "images") {
      Map* cameras = std::get_if<Map>(&entry.value.of);
      COHORT_THROW_UNLESS(cameras != nullptr, "'images' is {}, but must be a map of pictures by camera",
                          describe(entry.value));
      for (Entry& camera : *cameras) {
        if (const Map* packed = std::get_if<Map>(&camera.value.of);
            packed != nullptr && find(*packed, "__image__") != nullptr)
          flat.push_back({camera.key, {picture(camera.key, *packed)}});
        else
          flat.push_back(std::move(camera));
      }
    } else if (entry.key != "endpoint" && entry.key != "reset" && entry.key != "seed" && entry.key != "prompt") {
      flat.push_back(std::move(entry));
    }
  }
  // LIBERO's benchmark there sends `states`, others `state`.
  for (const policy::Observation& o : spec.observations) {
    const std::string bare = bare_observation(o.name);
    if (o.picture || (bare != "state" && bare != "states")) continue;
    if (std::any_of(flat.begin(), flat.end(), [&](const Entry& e) { return same_observation(e.key, o.name); }))
      continue;
    for (Entry& entry : flat)
      if (entry.key == "state" || entry.key == "states") entry.key = bare;
  }
  return flat;
}

class VlaEvalServer final : public ServerProtocol {
 public:
  std::string greeting(const policy::Spec&) const override { return ""; }
  std::string instruction() const override { return kInstruction; }
  bool one_by_one() const override { return true; }
  bool several_robots(const Request&) const override { return false; }

  Request read(std::string_view bytes, const policy::Spec& spec) const override {
    Message message = open_message(unpack(bytes));
    Request request;
    if (message.type == "observation") {
      request = read_request({flat_observation(std::move(message.payload), spec)}, spec, kInstruction);
      COHORT_THROW_UNLESS(!request.robots && request.frames.size() == 1,
                          "the observations hold {} moments or robots: vla-eval's are of one robot at one moment",
                          request.frames.size());
    } else if (message.type == "hello") {
      request.greeting = true;
    } else if (message.type == "episode_start") {
      request.reset = true;
      request.seed = read_seed(message.payload);
    } else {
      COHORT_THROW_UNLESS(message.type == "episode_end" || message.type == "error",
                          "the message's type is '{}': hello, episode_start, observation and episode_end are known",
                          message.type.substr(0, 40));
    }
    request.sequence = message.sequence;
    return request;
  }

  std::optional<Reply> acknowledge(const Request& request, const policy::Spec& spec) const override {
    if (!request.greeting) return {};
    Map payload{{"harness_version", {std::string("cohort " COHORT_VERSION)}},
                {"protocol_version", {kProtocolVersion}},
                {"model_server", {spec.summary}},
                {"capabilities", {Map{}}}};
    // What the benchmark there is to show: constructor arguments of its classes, which drop those that they do not know.
    std::map<std::string, bool> wishes = spec.wishes;
    const auto cameras = std::count_if(spec.observations.begin(), spec.observations.end(),
                                       [](const policy::Observation& o) { return o.picture; });
    if (cameras > 1) wishes["send_wrist_image"] = true;
    if (cameras < std::ssize(spec.observations)) wishes["send_state"] = true;
    Map asked;
    for (const auto& [key, value] : wishes) asked.push_back({key, {value}});
    if (!asked.empty()) payload.push_back({"observation_params", {std::move(asked)}});
    return Reply{pack_message("hello", std::move(payload), request.sequence)};
  }

  std::string answer(const Request& request, NumpyArray actions, const Timing&) const override {
    return pack_message("action", {{"actions", {std::move(actions)}}}, request.sequence);
  }

  std::optional<std::string> error(std::string_view bytes, const std::string& why) const override {
    std::int64_t sequence = 0;
    try {
      sequence = open_message(unpack(bytes)).sequence;
    } catch (const Error&) {  // it is what the client is told about
    }
    return pack_message("error", {{"error", {why}}}, sequence);
  }
};

class VlaEvalClient final : public ClientProtocol {
 public:
  ServerInfo greet(WebSocketClient& connection, double seconds) override {
    connection.send(pack_message(
        "hello",
        {{"harness_version", {std::string("cohort " COHORT_VERSION)}}, {"protocol_version", {kProtocolVersion}}},
        ++sequence_));
    const WebSocketClient::Message received = connection.receive(seconds);
    COHORT_THROW_UNLESS(!received.is_text, "it answers: {}", last_lines(received.bytes));
    const Value value = unpack_answer(received.bytes);
    COHORT_THROW_UNLESS(find(value, "actions") == nullptr && find(value, "type") != nullptr,
                        "its first message has no type: a server of openpi's protocol is named ws://HOST:PORT");
    const Message message = open_message(value);
    COHORT_THROW_UNLESS(message.type == "hello", "it answers hello with {}", message.type.substr(0, 40));
    const Value* version = find(message.payload, "protocol_version");
    const auto* number = version != nullptr ? std::get_if<std::int64_t>(&version->of) : nullptr;
    COHORT_THROW_UNLESS(number != nullptr && *number == kProtocolVersion,
                        "its protocol_version is {}, but {} is spoken here", number != nullptr ? *number : 0,
                        kProtocolVersion);
    ServerInfo info;
    info.policy.chunk = 0;
    if (const Value* name = find(message.payload, "model_server"))
      if (const auto* text = std::get_if<std::string>(&name->of)) info.policy.summary = *text;
    if (const Value* wishes = find(message.payload, "observation_params"))
      if (const Map* map = std::get_if<Map>(&wishes->of))
        for (const Entry& entry : *map) {
          if (const auto* flag = std::get_if<bool>(&entry.value.of)) info.policy.wishes[entry.key] = *flag;
        }
    return info;
  }

  bool one_episode() const override { return false; }

  void begin(WebSocketClient& connection, const std::string& instruction, std::uint64_t seed) override {
    if (in_episode_) connection.send(pack_message("episode_end", {{"steps", {asked_}}}, ++sequence_));
    in_episode_ = true;
    asked_ = 0;
    connection.send(
        pack_message("episode_start", {{"task", {Map{{"name", {instruction}}}}}, {"seed", {seed}}}, ++sequence_));
  }

  std::string observation(Map seen, const std::string& instruction) override {
    Map cameras, payload;
    for (Entry& entry : seen) {
      const NumpyArray* array = std::get_if<NumpyArray>(&entry.value.of);
      const bool is_picture = array != nullptr && array->shape.size() == 3 && array->dtype == "|u1";
      if (is_picture)
        cameras.push_back({bare_camera(entry.key), std::move(entry.value)});
      else
        payload.push_back({bare_observation(entry.key), std::move(entry.value)});
    }
    payload.push_back({"images", {std::move(cameras)}});
    payload.push_back({kInstruction, {instruction}});
    ++asked_;
    return pack_message("observation", std::move(payload), ++sequence_);
  }

  Value actions(const WebSocketClient::Message& received) override {
    COHORT_THROW_UNLESS(!received.is_text, "it answers: {}", last_lines(received.bytes));
    Message message = open_message(unpack_answer(received.bytes));
    if (message.type == "error") {
      const Value* said = find(message.payload, "error");
      const auto* text = said != nullptr ? std::get_if<std::string>(&said->of) : nullptr;
      throw Error(
          format("it refuses the observation: {}", text != nullptr ? last_lines(*text) : "it does not say why"));
    }
    COHORT_THROW_UNLESS(message.type == "action", "it answers an observation with '{}'", message.type.substr(0, 40));
    COHORT_THROW_UNLESS(message.sequence == sequence_, "it answers message {}, but {} was asked last", message.sequence,
                        sequence_);
    return {std::move(message.payload)};
  }

 private:
  std::int64_t sequence_ = 0, asked_ = 0;
  bool in_episode_ = false;
};

}  // namespace

std::unique_ptr<ServerProtocol> make_vla_eval_server_protocol() {
  return std::make_unique<VlaEvalServer>();
}
std::unique_ptr<ClientProtocol> make_vla_eval_client_protocol() {
  return std::make_unique<VlaEvalClient>();
}

}  // namespace cohort::serve
