/// The protocol of AllenAI's vla-evaluation-harness (PyPI: vla-eval 0.8.0; vla_eval/protocol/messages.py, numpy_codec.py,
/// image_codec.py, connection.py, model_servers/serve.py): messages {type, payload, seq, timestamp} in msgpack, where type is
/// hello, observation, action, episode_start, episode_end or error.
///
///   client: hello {harness_version, protocol_version: 1}    server: the same, with model_server and observation_params
///   client: episode_start {task: {...}}                      server: nothing
///   client: observation {images: {camera: (height, width, 3) uint8}, task_description, states, ...}
///                                                            server: action {actions: (width)}, or error {error: text}
///   client: episode_end {...}                                server: nothing
///
/// Arrays are {"__ndarray__": true, data, dtype, shape}; pictures of its runner are PNG or JPEG, {"__image__": true, format, data,
/// shape}. An answer repeats its question's seq. An error does not end the connection.
///
/// What a policy sees is found by its name: a picture among `images`, an observation called state or states in whichever of
/// the two there is, the instruction in `task_description`.
#pragma once
#include <memory>

#include "serve/client_protocol.h"
#include "serve/server_protocol.h"

namespace cohort::serve {

/// Pictures with more pixels than this are refused.
inline constexpr std::int64_t kMostVlaEvalPixels = std::int64_t{1} << 24;

std::unique_ptr<ServerProtocol> make_vla_eval_server_protocol();
std::unique_ptr<ClientProtocol> make_vla_eval_client_protocol();

}  // namespace cohort::serve
