#include "serve/observation.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cohort_version.h"
#include "core/error.h"
#include "core/observation_names.h"

namespace cohort::serve {
namespace {

constexpr std::int64_t kMostFrames = 1024;  // of one message
constexpr std::int64_t kMostSide = 16384;   // px of a picture
constexpr std::size_t kMostUnseen = 8;      // pictures that are named though the policy does not look at them

/// "(3) float32", "(height, width, 3) uint8".
std::string wanted_text(const policy::Observation& o) {
  if (!o.picture) return shape_text(o.shape) + " float32";
  return "(height, width, 3) uint8";
}

/// What the policy sees, for messages. `instruction`: the client's word for what is to be done.
std::string all_wanted(const policy::Spec& info, const std::string& instruction) {
  std::string text;
  for (const policy::Observation& o : info.observations)
    text += format("{}'{}' {}", text.empty() ? "" : ", ", o.name, wanted_text(o));
  if (info.instructed) text += format("{}'{}', a text", text.empty() ? "" : ", ", instruction);
  return text;
}

/// Of the maps within a message, which nothing is looked for in.
std::string nested_text(const Map& message) {
  for (const Entry& entry : message)
    if (const Map* inside = std::get_if<Map>(&entry.value.of); inside != nullptr && !inside->empty())
      return format(". What lies in the map '{}' is not looked at: send each thing under a name of its own, as '{}/{}'",
                    entry.key.substr(0, 60), entry.key.substr(0, 60), inside->front().key.substr(0, 60));
  return "";
}

std::string keys_text(const Map& message) {
  std::string text;
  std::size_t shown = 0;
  for (const Entry& entry : message) {
    if (++shown > 12) return text + format(" and {} more", message.size() - 12);
    text += format("{}'{}'", text.empty() ? "" : ", ", entry.key.substr(0, 60));
  }
  return text.empty() ? "nothing" : text;
}

bool is_picture(const Entry& entry) {
  const NumpyArray* array = std::get_if<NumpyArray>(&entry.value.of);
  return array != nullptr && array->shape.size() >= 3;
}

/// Null where there is none. Throws Error where two things are called so: it would be chance which of them is seen.
const Value* find_observation(const Map& message, const policy::Observation& o, const policy::Spec& info) {
  std::vector<const Entry*> found;
  for (const Entry& entry : message) {
    const bool same = o.picture ? same_camera(entry.key, o.name) : same_observation(entry.key, o.name);
    const auto is_its_name = [&](const policy::Observation& other) { return other.name == entry.key; };
    if (entry.key == o.name || (same && std::none_of(info.observations.begin(), info.observations.end(), is_its_name)))
      found.push_back(&entry);
  }
  // `wrist` may be numbers where `wrist_image` is a camera.
  if (found.size() > 1 && o.picture &&
      std::any_of(found.begin(), found.end(), [](const auto* e) { return is_picture(*e); }))
    std::erase_if(found, [](const Entry* entry) { return !is_picture(*entry); });
  if (found.empty()) return nullptr;
  COHORT_THROW_UNLESS(found.size() == 1,
                      "the message has '{}' and '{}', and either may be the observation '{}': send one of them",
                      found[0]->key.substr(0, 60), found[1]->key.substr(0, 60), o.name);
  return &found[0]->value;
}

/// One observation: how many moments, or robots, it holds, and its numbers or pictures.
struct Stacked {
  std::int64_t frames = 1;
  bool stacked = false;        // it has a dimension for them
  std::vector<float> numbers;  // (frames, width)
  const NumpyArray* picture = nullptr;
};

[[noreturn]] void refuse(const policy::Observation& o, const Value& value, const std::string& remedy) {
  throw Error(format("the observation '{}' is {}, but must be {}{}", o.name, describe(value), wanted_text(o),
                     remedy.empty() ? "" : ": " + remedy));
}

/// What the numbers of an array are. Throws Error naming the observation.
ElementKind kind_of(const policy::Observation& o, const NumpyArray& array) {
  try {
    return element_kind(array.dtype);
  } catch (const Error& error) {
    throw Error(format("the observation '{}': {}", o.name, error.what()));
  }
}

/// How to send a picture of another type or shape; empty where nothing is known.
std::string picture_remedy(const std::vector<std::int64_t>& shape, ElementKind kind) {
  const bool stands = shape.size() == 3 || shape.size() == 4;
  const bool channels_first = stands && shape.back() != 3 && shape[shape.size() - 3] == 3;
  const std::string picture = channels_first ? "numpy.moveaxis(picture, -3, -1)" : "picture";
  const char* of = channels_first ? " with its channels first" : "";
  if (kind.kind == 'f') return format("send (255 * {}).astype(numpy.uint8) of one between 0 and 1{}", picture, of);
  if (kind.kind != 'u' || kind.size != 1)
    return format("send {}.astype(numpy.uint8) of one between 0 and 255{}", picture, of);
  if (channels_first) return format("send {} of one{}", picture, of);
  if (shape.size() == 2) return "send numpy.stack([picture] * 3, axis=-1) of a grey one";
  if (stands && shape.back() == 1) return "send numpy.repeat(picture, 3, axis=-1) of a grey one";
  if (stands && shape.back() == 4) return "send picture[..., :3] of one with transparency";
  return "";
}

Stacked read_picture(const policy::Observation& o, const Value& value) {
  const NumpyArray* array = std::get_if<NumpyArray>(&value.of);
  if (array == nullptr)
    refuse(o, value, std::get_if<Bytes>(&value.of) ? "send the decoded picture, a NumPy array" : "send a NumPy array");
  const std::vector<std::int64_t>& shape = array->shape;
  const ElementKind kind = kind_of(o, *array);
  if (kind.kind != 'u' || kind.size != 1 || (shape.size() != 3 && shape.size() != 4) || shape.back() != 3)
    refuse(o, value, picture_remedy(shape, kind));
  Stacked read;
  read.picture = array;
  read.stacked = shape.size() == 4;
  read.frames = read.stacked ? shape[0] : 1;
  for (std::size_t i = shape.size() - 3; i < shape.size(); ++i)
    if (shape[i] < 1 || shape[i] > kMostSide)
      refuse(o, value, format("send a picture with sides of 1 to {} px", kMostSide));
  return read;
}

Stacked read_numbers(const policy::Observation& o, const Value& value) {
  Stacked read;
  std::vector<std::int64_t> shape;
  if (const NumpyArray* array = std::get_if<NumpyArray>(&value.of)) {
    kind_of(o, *array);
    shape = array->shape;
    read.numbers = to_floats(*array);
  } else {
    List alone{value};
    const List* list = std::get_if<List>(&value.of);
    if (list == nullptr) list = &alone;
    for (const Value& item : *list) {
      if (const auto* n = std::get_if<double>(&item.of))
        read.numbers.push_back(static_cast<float>(*n));
      else if (const auto* whole = std::get_if<std::int64_t>(&item.of))
        read.numbers.push_back(static_cast<float>(*whole));
      else if (const auto* flag = std::get_if<bool>(&item.of))
        read.numbers.push_back(*flag ? 1.0f : 0.0f);
      else
        refuse(o, value, "send a NumPy array");
    }
    if (list != &alone) shape.push_back(std::ssize(*list));
  }
  const std::int64_t width = o.shape.at(0);
  const auto count = std::ssize(read.numbers);
  read.stacked = shape.size() == 2;
  if (read.stacked)
    read.frames = shape[0];
  else if (shape.size() > 2 || (shape.empty() && width != 1))
    refuse(o, value, "");
  // How many frames are too few or too many is said for numbers and pictures alike, where they are put together.
  if (count != read.frames * width || (read.stacked && shape[1] != width))
    refuse(o, value, read.stacked ? format("one more dimension counts moments or robots, (N, {})", width) : "");
  for (std::int64_t i = 0; i < count; ++i)
    COHORT_THROW_UNLESS(std::isfinite(read.numbers[static_cast<std::size_t>(i)]),
                        "number {} of the observation '{}' is {}: send finite numbers", i % width, o.name,
                        read.numbers[static_cast<std::size_t>(i)]);
  return read;
}

/// A dimension in front of all observations counts robots: the policy has no use for several moments.
bool counts_robots(const policy::Spec& info) {
  return info.frames == 1 && !info.remembers;
}

/// Arrays with two dimensions more are robots and moments.
void refuse_robots_and_moments(const policy::Observation& o, const Value& value, const policy::Spec& info) {
  const NumpyArray* array = std::get_if<NumpyArray>(&value.of);
  if (array == nullptr || array->shape.size() != (o.picture ? 5u : 3u)) return;
  throw Error(format("the observation '{}' has the shape {}: {}", o.name, shape_text(array->shape),
                     counts_robots(info)
                         ? "the policy looks at one moment, so one dimension in front, of robots, is taken, not two"
                         : "the policy looks at several moments or remembers them, and answers one robot on a "
                           "connection: let each robot have a connection of its own"));
}

/// The frames that a message holds, into `request`.
void read_frames(const Map& message, const policy::Spec& info, const std::string& instruction, Request& request) {
  std::vector<Moment>& frames = request.frames;
  const std::string* first = nullptr;
  std::vector<const Value*> seen;
  bool stacked = false;
  for (const policy::Observation& o : info.observations) {
    const Value* value = find_observation(message, o, info);
    COHORT_THROW_UNLESS(value != nullptr, "the message lacks the observation '{}'; it has {}. The policy sees {}{}",
                        o.name, keys_text(message), all_wanted(info, instruction), nested_text(message));
    refuse_robots_and_moments(o, *value, info);
    const Stacked read = o.picture ? read_picture(o, *value) : read_numbers(o, *value);
    COHORT_THROW_UNLESS(read.frames >= 1 && read.frames <= kMostFrames,
                        "the observation '{}' holds {} {}: 1 to {} are taken", o.name, read.frames,
                        counts_robots(info) ? "robots" : "moments", kMostFrames);
    seen.push_back(value);
    stacked = stacked || read.stacked;
    const auto count = static_cast<std::size_t>(read.frames);
    if (first == nullptr) {
      first = &o.name;
      frames.resize(count);
    }
    COHORT_THROW_UNLESS(frames.size() == count, "the observation '{}' holds {} {} and '{}' {}: all must hold as many",
                        o.name, count, counts_robots(info) ? "robots" : "moments", *first, frames.size());
    for (std::size_t i = 0; i < count; ++i) {
      if (!o.picture) {
        const auto width = static_cast<std::ptrdiff_t>(o.shape[0]);
        const auto row = read.numbers.begin() + static_cast<std::ptrdiff_t>(i) * width;
        frames[i].numbers.insert(frames[i].numbers.end(), row, row + width);
        continue;
      }
      const std::vector<std::int64_t>& shape = read.picture->shape;
      Picture& picture = frames[i].pictures.emplace_back();
      picture.height = shape[shape.size() - 3];
      picture.width = shape[shape.size() - 2];
      picture.rgb.resize(read.picture->data.size() / count);
      std::memcpy(picture.rgb.data(), read.picture->data.data() + i * picture.rgb.size(), picture.rgb.size());
    }
  }
  for (const Entry& entry : message)
    if (is_picture(entry) && std::get<NumpyArray>(entry.value.of).dtype == "|u1" &&
        request.unseen_pictures.size() < kMostUnseen && std::find(seen.begin(), seen.end(), &entry.value) == seen.end())
      request.unseen_pictures.push_back(entry.key.substr(0, 60));
  request.robots = stacked && counts_robots(info);
  if (!request.robots) return;
  for (const Moment& frame : frames)
    for (std::size_t camera = 0; camera < frame.pictures.size(); ++camera)
      COHORT_CHECK(frame.pictures[camera].rgb.size() == frames.front().pictures[camera].rgb.size(),
                   "an array's pictures have several sizes");
}

/// A truth value, a whole number or an array of one; None is false. A reset that is not understood would leave the policy in
/// the episode before.
bool is_true(const Value* value, const char* key) {
  if (value == nullptr || std::holds_alternative<std::monostate>(value->of)) return false;
  if (const bool* flag = std::get_if<bool>(&value->of)) return *flag;
  if (const auto* n = std::get_if<std::int64_t>(&value->of)) return *n != 0;
  if (const auto* array = std::get_if<NumpyArray>(&value->of); array != nullptr && is_number(array->dtype))
    if (const std::vector<float> numbers = to_floats(*array); numbers.size() == 1) return numbers[0] != 0;
  throw Error(format("'{}' is {}, but must be true or false", key, describe(*value)));
}

std::string text_of(const Value* value, const std::string& otherwise = "") {
  const std::string* text = value != nullptr ? std::get_if<std::string>(&value->of) : nullptr;
  return text != nullptr ? *text : otherwise;
}

std::int64_t whole_of(const Value* value, std::int64_t otherwise) {
  const auto* n = value != nullptr ? std::get_if<std::int64_t>(&value->of) : nullptr;
  return n != nullptr && *n >= 1 ? *n : otherwise;
}

}  // namespace

std::optional<std::uint64_t> read_seed(const Map& message) {
  const Value* seed = find(message, "seed");
  if (seed == nullptr || std::holds_alternative<std::monostate>(seed->of)) return std::nullopt;
  if (const auto* n = std::get_if<std::int64_t>(&seed->of)) return static_cast<std::uint64_t>(*n);
  if (const auto* n = std::get_if<std::uint64_t>(&seed->of)) return *n;
  throw Error(format("'seed' is {}, but must be a whole number", describe(*seed)));
}

Request read_request(const Value& message, const policy::Spec& info, const std::string& instruction) {
  const Map* map = std::get_if<Map>(&message.of);
  COHORT_THROW_UNLESS(map != nullptr, "the message is {}, but must be a map of observations: {}", describe(message),
                      all_wanted(info, instruction));
  Request request;
  const std::string endpoint = text_of(find(*map, "endpoint"));
  request.roboarena = !endpoint.empty();
  COHORT_THROW_UNLESS(endpoint.empty() || endpoint == "infer" || endpoint == "reset",
                      "the message's endpoint is '{}': infer and reset are known", endpoint.substr(0, 60));
  request.reset = endpoint == "reset" || is_true(find(*map, "reset"), "reset");
  request.seed = read_seed(*map);
  if (const Value* prompt = find(*map, instruction)) {
    const std::string* text = std::get_if<std::string>(&prompt->of);
    if (info.instructed)
      COHORT_THROW_UNLESS(text != nullptr, "'{}' is {}, but must be a text: what is to be done", instruction,
                          describe(*prompt));
    if (text != nullptr) request.prompt = *text;
  }
  const bool observes =
      std::any_of(info.observations.begin(), info.observations.end(),
                  [&](const policy::Observation& o) { return find_observation(*map, o, info) != nullptr; });
  if (endpoint != "reset" && (observes || !request.reset)) read_frames(*map, info, instruction, request);
  return request;
}

Value metadata_of(const policy::Spec& info) {
  Map observations;
  for (const policy::Observation& o : info.observations) {
    List shape;
    for (const std::int64_t n : o.shape) shape.push_back({n});
    Map about{{"shape", {std::move(shape)}}, {"dtype", {std::string(o.picture ? "uint8" : "float32")}}};
    if (!o.elements.empty()) {
      List elements;
      for (const std::string& element : o.elements) elements.push_back({element});
      about.push_back({"names", {std::move(elements)}});
    }
    observations.push_back({o.name, {std::move(about)}});
  }
  List names;
  for (const std::string& name : info.action_fields.empty() ? info.action_names : info.action_fields)
    names.push_back({name});
  Map actions{{"names", {std::move(names)}},
              {"width", {info.action_width}},
              {"chunk", {info.chunk}},
              {"execute", {info.chunk}}};
  Value frequency;
  if (info.control_frequency > 0) frequency = {info.control_frequency};
  return {Map{{"server", {std::string("cohort " COHORT_VERSION)}},
              {"policy", {info.summary}},
              {"observations", {std::move(observations)}},
              {"prompt", {info.instructed}},
              {"actions", {std::move(actions)}},
              {"frames", {info.frames}},
              {"remembers", {info.remembers}},
              {"batch", {counts_robots(info)}},
              {"stride", {info.stride}},
              {"control_frequency", std::move(frequency)},
              {"renderer", {info.renderer}}}};
}

ServerInfo server_info(const Value& metadata) {
  ServerInfo info;
  info.cohort = text_of(find(metadata, "server")).starts_with("cohort ");
  policy::Spec& policy = info.policy;
  policy.chunk = 0;
  if (!info.cohort) return info;
  policy.summary = text_of(find(metadata, "policy"));
  policy.renderer = text_of(find(metadata, "renderer"));
  const Value *observations = find(metadata, "observations"), *actions = find(metadata, "actions");
  const Map* named = observations != nullptr ? std::get_if<Map>(&observations->of) : nullptr;
  COHORT_THROW_UNLESS(named != nullptr && actions != nullptr, "the metadata lack observations or actions");
  for (const Entry& entry : *named) {
    policy::Observation o{.name = entry.key, .shape = {}};
    o.picture = text_of(find(entry.value, "dtype")) == "uint8";
    const Value* shape = find(entry.value, "shape");
    const List* sizes = shape != nullptr ? std::get_if<List>(&shape->of) : nullptr;
    COHORT_THROW_UNLESS(sizes != nullptr, "the metadata lack the shape of '{}'", entry.key);
    for (const Value& size : *sizes) {
      const auto* n = std::get_if<std::int64_t>(&size.of);
      o.shape.push_back(n != nullptr ? *n : -1);
    }
    COHORT_THROW_UNLESS(o.shape.size() == (o.picture ? 3u : 1u), "the metadata give '{}' the shape {}", entry.key,
                        shape_text(o.shape));
    if (const Value* names = find(entry.value, "names"))
      if (const List* list = std::get_if<List>(&names->of))
        for (const Value& name : *list) o.elements.push_back(text_of(&name));
    policy.observations.push_back(std::move(o));
  }
  policy.instructed = is_true(find(metadata, "prompt"), "prompt");
  policy.action_width = whole_of(find(*actions, "width"), 0);
  policy.chunk = whole_of(find(*actions, "execute"), 0);
  policy.frames = whole_of(find(metadata, "frames"), 1);
  policy.remembers = is_true(find(metadata, "remembers"), "remembers");
  policy.stride = whole_of(find(metadata, "stride"), 1);
  if (const Value* hertz = find(metadata, "control_frequency"))
    if (const auto* n = std::get_if<double>(&hertz->of)) policy.control_frequency = *n;
  return info;
}

}  // namespace cohort::serve
