/// The name of a policy server, as `--policy` takes it.
///
///   if (is_server_url(who)) connect(parse_url(who));       // ws://10.0.0.7:8000
///
/// What stands before the colon is the protocol: ws:// openpi's, vla-eval:// that of AllenAI's harness.
#pragma once
#include <string>

namespace cohort::serve {

/// ws://HOST:PORT/PATH or vla-eval://HOST:PORT/PATH; without a port 8000, openpi's, without a path "/".
struct ServerUrl {
  std::string host, port, path;
  std::string scheme;  ///< "ws" or "vla-eval"
  std::string text;    ///< as it was given
};
/// Whether a text means a server rather than a file.
bool is_server_url(const std::string& text);
/// Throws Error for what is none, and for wss://.
ServerUrl parse_url(const std::string& text);

}  // namespace cohort::serve
