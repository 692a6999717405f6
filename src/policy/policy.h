/// What acts: a trained policy, wherever its weights lie. It says what it must be shown, and answers with actions.
///
///   const std::unique_ptr<Policy> policy = load("outputs/push/latest");            // registry.h
///   const std::unique_ptr<Session> session = policy->session({.control_period = 0.05});
///   session->begin(environments, seeds, "close the drawer");                       // at the start of episodes
///   const auto chunks = session->act(environments, frame);                         // of each environment (rows, action width)
///
/// actor/policy_actor.h lets one act in a task, serve/policy_server.h serves one. policies/acting_policy.h makes one of a
/// checkpoint of `cohort train policy` or `rdt`, rl/ppo_policy.h of one of `cohort train ppo`, serve/remote_policy.h of a
/// policy server's address.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/array_view.h"

namespace cohort::policy {

/// An observation that a policy sees.
struct Observation {
  std::string name;                        ///< as its data had it: "observation/eef_pos"
  std::vector<std::int64_t> shape;         ///< (width) of numbers, (height, width, 3) of pictures; -1: any
  bool picture = false;                    ///< uint8; else numbers, float32
  std::vector<std::string> elements = {};  ///< what the numbers are called, where the data say it; else empty
  bool doubles = false;                    ///< a server is sent them as float64
};

/// What a policy learnt in, as far as it says so.
struct LearntTask {
  std::string name;                             ///< empty: it does not say
  std::map<std::string, std::string> settings;  ///< by key, the engine among them
  std::string remedy;                           ///< what to type for the same; may be empty
};

struct Spec {
  std::string summary;   ///< a line: which checkpoint, weights, parameters
  std::string identity;  ///< that and the settings on which its actions depend
  std::vector<Observation> observations;
  /// It does not say what it sees: it is shown all numbers, all pictures that there are, under the names that they have
  /// there (SessionSettings::observations), but for those in `unseen`.
  bool all_numbers = false, all_pictures = false;
  std::vector<std::string> unseen;
  std::string lacking;                       ///< what to do where there is not what it sees; mostly empty
  bool instructed = false;                   ///< it must be told what to do
  std::int64_t action_width = 0;             ///< 0: it does not say
  std::vector<std::string> action_fields;    ///< as its data called them; empty: it does not say
  std::vector<std::string> action_names;     ///< of the components, where there are no fields
  std::vector<std::string> one_way_actions;  ///< those that it gives as they were trained, and why; mostly empty
  std::int64_t chunk = 1;                    ///< actions of an answer, one for each control step; 0: it does not say
  std::int64_t frames = 1;                   ///< moments that it looks at, the last ones
  bool remembers = false;                    ///< beside those, what it saw before them: it must see every moment
  std::int64_t stride = 1;                   ///< control steps from one of the moments to the next
  double control_frequency = 0;              ///< Hz; 0: it does not know
  /// What it asks of whoever shows it observations, by vla-eval's names (observation_params): send_wrist_image.
  std::map<std::string, bool> wishes;
  std::string renderer;  ///< what drew the pictures that it learnt from; empty: not known
  LearntTask learnt;
  bool exact = true;  ///< an environment's actions are the same bits whichever others it acts for
};

/// What n environments see at one moment.
struct Frame {
  /// (n, width): the observations of numbers side by side, in the order of the spec (of SessionSettings, where the spec
  /// does not say), as the data hold them.
  std::span<const float> low_dim;
  /// One view for each observation of pictures: (n, height, width, 3) uint8 on the CPU, of any size.
  std::span<const ArrayView> images;
  /// What each environment is told to do. Empty, or a text that is empty: as before. A policy that takes no instructions
  /// leaves them alone.
  std::vector<std::string> instructions = {};
};

/// Where a policy acts.
struct SessionSettings {
  double control_period = 0;              ///< s between actions; 0: not known
  std::vector<Observation> observations;  ///< what there is, for policies that do not say what they see
  std::int64_t action_width = 0;          ///< likewise of what they give
  std::string task;                       ///< its name, for messages
};

/// The environments of one who asks: what they have seen, and what the policy remembers of it. Used by one thread at a
/// time. Environments are numbered as one likes.
class Session {
 public:
  virtual ~Session() = default;
  /// An episode begins in each of these environments: what was seen before is forgotten. What is drawn at random in it is
  /// keyed by its seed; two environments at a time must not have the same.
  virtual void begin(std::span<const std::int32_t> environments, std::span<const std::uint64_t> seeds,
                     const std::string& instruction) = 0;
  /// A moment at which nothing is asked. It is one of those that the policy looks at (Spec::stride).
  virtual void see(std::span<const std::int32_t> environments, const Frame& frame) = 0;
  /// The next actions of each environment after this moment: (rows, action width), one for each control step, never empty.
  virtual std::vector<std::vector<float>> act(std::span<const std::int32_t> environments, const Frame& frame) = 0;
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual const Spec& spec() const = 0;
  /// Sessions share the weights and nothing else. They must not outlive the policy. Throws Error where the policy cannot act
  /// there: it learnt no such frequency, or sees another number of numbers.
  virtual std::unique_ptr<Session> session(const SessionSettings& settings) = 0;
};

}  // namespace cohort::policy
