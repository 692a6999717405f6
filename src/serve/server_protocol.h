/// How the clients of a policy server talk: a small file for each protocol.
///
///   const std::unique_ptr<ServerProtocol> protocol = server_protocol("vla-eval");
///   const Request request = protocol->read(bytes, policy.spec());
///   ...
///   network.send(client, protocol->answer(request, actions, timing));
///
/// A protocol keeps nothing between messages: one object serves all clients, from any thread.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.h"
#include "serve/observation.h"
#include "serve/value.h"

namespace cohort::serve {

struct Timing {
  double infer_ms = 0;                  ///< that the policy took
  std::optional<double> last_total_ms;  ///< of the client's last message, until its answer was sent
};

struct Reply {
  std::string bytes;
  bool text = false;  ///< a text frame, not a binary one
};

class ServerProtocol {
 public:
  virtual ~ServerProtocol() = default;
  /// What a client is sent on connection; empty: it speaks first.
  virtual std::string greeting(const policy::Spec& spec) const = 0;
  /// Throws Error saying what is wrong with the message, and what to send instead.
  virtual Request read(std::string_view bytes, const policy::Spec& spec) const = 0;
  /// The key under which a client says what is to be done.
  virtual std::string instruction() const { return "prompt"; }
  /// The client sends the observations of every control step and gets one action for each; else a chunk is sent.
  virtual bool one_by_one() const = 0;
  /// To a request that shows nothing; nothing: it is not answered.
  virtual std::optional<Reply> acknowledge(const Request& request, const policy::Spec& spec) const = 0;
  /// actions: (width) where one_by_one(), else (chunk, width), of several robots (robots, chunk, width).
  virtual std::string answer(const Request& request, NumpyArray actions, const Timing& timing) const = 0;
  /// Whether an answer can hold the actions of several robots.
  virtual bool several_robots(const Request& request) const = 0;
  /// The message that tells what is wrong with `bytes`, behind which the connection goes on; nothing: it is told in a text,
  /// behind which the connection ends.
  virtual std::optional<std::string> error(std::string_view bytes, const std::string& why) const = 0;
};

/// openpi, omnigibson or vla-eval. Throws Error for another name.
std::unique_ptr<ServerProtocol> server_protocol(const std::string& name);
std::vector<std::string> server_protocol_names();

}  // namespace cohort::serve
