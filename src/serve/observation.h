/// Messages of clients as what a policy sees, and what a server says of its policy.
///
///   const Request request = read_request(unpack(bytes), policy.spec());
///   if (request.reset) ...                                 // an episode begins
///   for (const Moment& moment : request.frames) ...
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policy/policy.h"
#include "serve/value.h"

namespace cohort::serve {

struct Picture {
  std::int64_t height = 0, width = 0;
  std::vector<std::uint8_t> rgb;  ///< (height, width, 3)
};

/// What was seen at one moment.
struct Moment {
  std::vector<float> numbers;     ///< of the observations that are no pictures, side by side, in the order of the spec
  std::vector<Picture> pictures;  ///< likewise
};

struct Request {
  bool reset = false;                 ///< an episode begins ("reset": true, or RoboArena's "endpoint": "reset")
  std::optional<std::uint64_t> seed;  ///< of that episode ("seed")
  std::optional<std::string> prompt;
  bool roboarena = false;      ///< it has an "endpoint": answers have RoboArena's form
  bool greeting = false;       ///< it only says who the client is (vla-eval's hello)
  std::int64_t sequence = 0;   ///< vla-eval's number of the message, which its answer repeats
  std::vector<Moment> frames;  ///< oldest first; empty where nothing is observed, which only a reset may do
  bool robots = false;         ///< the frames are of as many robots at one moment, not of one robot at several
  std::vector<std::string> unseen_pictures;  ///< keys of pictures that the policy does not look at, the first eight
};

/// An observation stands under its name or one that means the same (core/observation_names.h). Numbers are NumPy arrays
/// of any type, lists or numbers; pictures are uint8. One more dimension in front, the same for all, is of several moments
/// for a policy that looks at several or remembers, and of several robots for one that looks at one moment and remembers
/// nothing. What the policy does not see is left alone. Throws Error naming the observation that is missing or has another
/// shape or type, what the policy sees, and what to send instead.
/// `instruction`: the key of the text that says what is to be done.
Request read_request(const Value& message, const policy::Spec& info, const std::string& instruction = "prompt");

/// The "seed" of a message; nothing where it has none, or None. Throws Error for what is no whole number.
std::optional<std::uint64_t> read_seed(const Map& message);

/// What a server says on connection:
/// {"server": "cohort VERSION", "policy": a line, "observations": {name: {"shape": [...], "dtype": "float32",
///  "names": [...]}},
///  "prompt": whether one is needed, "actions": {"names": [...], "width", "chunk", "execute"}, "frames", "remembers", "batch", "stride",
///  "control_frequency": Hz or None, "renderer"}.
Value metadata_of(const policy::Spec& info);

/// What a server's metadata say of its policy; empty where they are of another form.
struct ServerInfo {
  bool cohort = false;  ///< it is `cohort serve` by openpi's protocol: "reset" and "seed" are understood
  policy::Spec policy;  ///< observations empty, width and chunk 0: not said
};
/// Throws Error for metadata of `cohort serve` that are damaged.
ServerInfo server_info(const Value& metadata);

}  // namespace cohort::serve
