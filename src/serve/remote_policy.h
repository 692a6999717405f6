/// A policy server as a Policy: policy::load("ws://10.0.0.7:8000"), or "vla-eval://10.0.0.7:8000". Each environment has a connection, so that histories which
/// a server keeps of its clients are each of one environment.
///
/// `cohort serve` is told each episode's beginning and seed and, where its policy looks at several moments, what was seen
/// since the last answer: episodes are then those of the policy itself, bit for bit. Another server of openpi's protocol gets a
/// new connection for each episode. Servers other than `cohort serve` are shown all observations and pictures of a task under
/// the task's names, or what LoadSettings::observations says (policy/libero_convention.h).
#pragma once
#include <memory>
#include <string>

#include "policy/registry.h"

namespace cohort::serve {

/// Connects once, for what the server says of itself. Throws what PolicyClient throws, and where the server gives fewer
/// actions at a time than settings.exec_horizon.
std::unique_ptr<policy::Policy> connect_policy(const std::string& url, const policy::LoadSettings& settings);

/// policy::load() takes ws://HOST:PORT and vla-eval://HOST:PORT.
void register_remote_policies();

}  // namespace cohort::serve
