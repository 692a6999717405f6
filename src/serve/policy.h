/// A policy as it is served: what it must be shown, and what it answers.
///
///   std::unique_ptr<Session> session = policy.new_session();     // of a connection
///   session->begin(seed);                                        // at the start of an episode
///   const std::vector<float> chunk = session->act(frames, "close the drawer");   // (info().chunk, action width)
///
/// policies/served_policy.h makes one of a trained policy, rl/served_ppo.h one of a run of `cohort train ppo`.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace cohort::serve {

/// An observation that a policy needs.
struct ObservationInfo {
  std::string name;                        ///< as its data had it: "observation/eef_pos"
  std::vector<std::int64_t> shape;         ///< (width) of numbers, (height, width, 3) of pictures; -1: any
  bool picture = false;                    ///< uint8; else numbers
  std::vector<std::string> elements = {};  ///< what the numbers are called, where the data say it; else empty
};

struct PolicyInfo {
  std::string summary;  ///< a line: which checkpoint, weights, parameters
  std::vector<ObservationInfo> observations;
  bool prompt = false;                    ///< it must be told what to do
  std::vector<std::string> action_names;  ///< fields of the data, or components
  std::int64_t action_width = 0;
  std::int64_t chunk = 1;        ///< actions of an answer, one for each control step
  std::int64_t frames = 1;       ///< observations that it looks at, the last ones
  bool remembers = false;        ///< beside those, what it saw before them: it must see every moment
  std::int64_t stride = 1;       ///< control steps from one of them to the next
  double control_frequency = 0;  ///< Hz; 0: it does not know
  std::string renderer;          ///< what drew the pictures that it learnt from; empty: the data do not say
};

struct Picture {
  std::int64_t height = 0, width = 0;
  std::vector<std::uint8_t> rgb;  ///< (height, width, 3)
};

/// What was seen at one moment.
struct Frame {
  std::vector<float> numbers;     ///< of the observations that are no pictures, side by side, in the order of info()
  std::vector<Picture> pictures;  ///< likewise
};

/// What is kept of one client: the frames and the memory of its episode. Used by one thread at a time.
class Session {
 public:
  virtual ~Session() = default;
  /// An episode begins: what was seen before is forgotten. What is drawn at random in it is keyed by `seed`, as in
  /// `cohort evaluate`.
  virtual void begin(std::uint64_t seed) = 0;
  /// What was seen at a moment at which nothing is asked.
  virtual void see(const Frame& frame, const std::string& prompt) = 0;
  /// The actions after the last frame; those before it are what was seen since the last call, oldest first. Never empty.
  virtual std::vector<float> act(std::span<const Frame> frames, const std::string& prompt) = 0;
  /// The actions of several robots, each of which sees one of the frames: one behind the other. Only asked of policies
  /// that look at one moment and remember nothing.
  virtual std::vector<float> act_each(std::span<const Frame> robots, const std::string& prompt) = 0;
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual const PolicyInfo& info() const = 0;
  /// Sessions share the weights and nothing else. They must not outlive the policy.
  virtual std::unique_ptr<Session> new_session() = 0;
};

}  // namespace cohort::serve
