/// A policy behind another stack's names and forms of LIBERO's observations (policy/libero_convention.h).
///
///   auto seen = shown_as("lerobot-libero", load("act_folder"));        // plays LIBERO's tasks here
///   auto served = answering("vla-eval-libero", load("outputs/run"));   // its clients send what vla-eval's LIBERO shows
#pragma once
#include <memory>
#include <string>

#include "policy/policy.h"

namespace cohort::policy {

/// A policy that learnt, or is asked, by the convention: it is shown LIBERO's observations by it, and what it answers is given
/// to LIBERO's robot. Throws Error where it sees something that the convention does not have, or another width.
std::unique_ptr<Policy> shown_as(const std::string& convention, std::unique_ptr<Policy> policy);

/// A policy that learnt from LIBERO's own observations (robot0_eef_pos, ee_ori, agentview_rgb, ...): it sees the
/// convention's, from which those are made. Throws Error naming the observation that cannot be made of them.
std::unique_ptr<Policy> answering(const std::string& convention, std::unique_ptr<Policy> policy);

}  // namespace cohort::policy
