/// The messages between the agents of an elastic job and the server of its rendezvous, and what may stand in them.
///
/// Conversation (signed_message.h): the server says {"hello": "cohort-rendezvous 1", "challenge": digits}, unsigned.
/// The client answers {"do": "join", "job": ..., "node": ..., "host": ..., "ranks": ..., "nonce": digits}, then
/// {"do": "beat" | "ready" | "leave" | "state"}, {"do": "finished", "round": n} or {"do": "failed" | "lost", "round": n,
/// "code": ..., "what": ...} (of "failed" also "again": whether it may help to start again; of "lost" also "own_step": at
/// which step its rank ended by itself), {"do": "waits", "round": n,
/// "recovery": k} or {"do": "cannot", "round": n, "what": ...}.
/// The server says {"is": "beat"} every second, {"is": "round", "round": n, "node_rank": ..., "nodes": ...,
/// "first_rank": ..., "world_size": ..., "store_address": ..., "store_port": ..., "restarts": ..., "recovery": ...},
/// {"is": "recover", "number": k, "why": ..., "restarts": ...}, {"is": "go", "number": k}, {"is": "gather", "why": ...},
/// {"is": "end", "code": ..., "why": ...}, {"is": "refused", "why": ...} or {"is": "state", "state": {...}}.
///
/// A job may have several endpoints, each with a server. Nodes meet at one that is active: the first of them, until its
/// host is lost. Others answer a join with {"is": "standby"}, until somebody comes who was at the one that was lost, and
/// says so: "past": {"round": ..., "nodes": ..., "restarts": ..., "recovery": ..., "certain": ...}. A join with
/// "ack": true is answered with {"is": "joined"}. Where the user numbers the nodes, a join has a "number".
/// While ranks recover from memory, a join is answered with {"is": "later"}: whoever asked comes again.
///
/// A signature says who wrote a message, not that it makes sense (another version may have): both sides read it by
/// these.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace cohort::launch {

inline constexpr int kMostRanks = 100000;        ///< of one node, and nodes of a job
inline constexpr int kMostCount = 1 << 30;       ///< of rounds, restarts, recoveries
inline constexpr std::size_t kMostWords = 4096;  ///< bytes of what an agent says of a failure

/// All of these throw Error where the message is another one.

/// A JSON object.
nlohmann::json parse_message(std::string_view text);
/// A text of at most `most` bytes. Control characters other than line ends and tabs, which would steer the terminal that
/// shows it, become '?'.
std::string text_in(const nlohmann::json& message, const char* name, std::size_t most);
/// An integer between the two.
int number_in(const nlohmann::json& message, const char* name, int least, int most);
/// `otherwise`: where there is none.
bool flag_in(const nlohmann::json& message, const char* name, bool otherwise);

/// What a server says to an agent that has joined, or wants to: of a known kind, whole, with numbers that fit each
/// other and texts as text_in has them, and nothing else.
nlohmann::json parse_told(std::string_view text);

}  // namespace cohort::launch
