/// The protocol of openpi's src/openpi/serving/websocket_policy_server.py and openpi_client/websocket_client_policy.py, with
/// RoboArena's words (roboarena/policy_server.py) in it, and OmniGibson's variant
/// (omnigibson/learning/utils/network_utils.py): {"action": (width)}, one at a time, and no answer to a reset.
#pragma once
#include <memory>

#include "serve/client_protocol.h"
#include "serve/server_protocol.h"

namespace cohort::serve {

std::unique_ptr<ServerProtocol> make_openpi_server_protocol();
std::unique_ptr<ServerProtocol> make_omnigibson_server_protocol();
std::unique_ptr<ClientProtocol> make_openpi_client_protocol();

}  // namespace cohort::serve
