/// The key-value store through which the ranks of a job find each other: c10d's TCPStore, hosted by rank 0 or by an
/// agent.
#pragma once
#include <chrono>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "rank/environment.h"

namespace cohort::dist {

/// Opens the store of the environment and waits until all ranks have joined it. Rank 0 hosts it, on loopback when the
/// job has one node, unless an agent does. `timeout` holds for joining and, afterwards, for every wait on a key; a
/// warning names what is waited for after 10 s, then every minute. Throws Error naming address, time waited and remedy;
/// on rank 0 at once where MASTER_ADDR is another machine's address.
c10::intrusive_ptr<c10d::Store> open_store(const rank::Environment& env, std::chrono::milliseconds timeout);

/// Address at which this process reaches the store: loopback when rank 0 hosts it on this node.
std::string store_host(const rank::Environment& env);

}  // namespace cohort::dist
