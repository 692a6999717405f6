#include "serve/client_protocol.h"

#include "core/error.h"
#include "serve/msgpack.h"
#include "serve/openpi_protocol.h"
#include "serve/vla_eval_protocol.h"

namespace cohort::serve {

std::unique_ptr<ClientProtocol> client_protocol(const ServerUrl& url) {
  return url.scheme == "vla-eval" ? make_vla_eval_client_protocol() : make_openpi_client_protocol();
}

Value unpack_answer(const std::string& bytes) {
  try {
    return unpack(bytes);
  } catch (const Error& e) {
    throw Error(format("its answer cannot be read: {}", e.what()));
  }
}

std::string last_lines(const std::string& text) {
  constexpr std::size_t kMost = 2000;
  return text.size() <= kMost ? text : "..." + text.substr(text.size() - kMost);
}

}  // namespace cohort::serve
