#include "serve/server_protocol.h"

#include <utility>

#include "core/error.h"
#include "serve/openpi_protocol.h"
#include "serve/vla_eval_protocol.h"

namespace cohort::serve {
namespace {

struct Named {
  const char* name;
  std::unique_ptr<ServerProtocol> (*make)();
};
constexpr Named kProtocols[] = {{"openpi", make_openpi_server_protocol},
                                {"omnigibson", make_omnigibson_server_protocol},
                                {"vla-eval", make_vla_eval_server_protocol}};

}  // namespace

std::unique_ptr<ServerProtocol> server_protocol(const std::string& name) {
  for (const Named& one : kProtocols)
    if (name == one.name) return one.make();
  throw Error(format("--protocol {}: known are {}", name, join(server_protocol_names(), ", ")));
}

std::vector<std::string> server_protocol_names() {
  std::vector<std::string> names;
  for (const Named& one : kProtocols) names.emplace_back(one.name);
  return names;
}

}  // namespace cohort::serve
