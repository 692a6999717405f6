/// An agent's connection to the rendezvous of an elastic job, with a thread that beats and listens.
///
///   ElasticLink::Absence absence;
///   auto link = ElasticLink::connect(endpoint, secret, join, absence);   // join: what elastic_messages.h calls so
///   link->say({{"do", "ready"}});
///   const std::scoped_lock lock(link->mutex);
///   while (!link->heard.empty()) ...
#pragma once
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "launch/elastic_server.h"
#include "launch/signed_message.h"

namespace cohort::launch {

class ElasticLink {
 public:
  enum class Loss {
    kNone,
    kClosed,  ///< the host's agent has ended, which its machine says
    kSilent,  ///< nothing is heard: it may be there and cut off
  };

  /// Why there is no link.
  struct Absence {
    std::string reason;
    bool certain = false;  ///< the machine is there, and nobody hosts the job on it
    bool later = false;    ///< the job is there, and its ranks are just recovering
  };

  /// Connects and joins. Null with the reason when nobody answers within kConnectTime, or the rendezvous there is on
  /// standby or takes nobody now. Throws Error when something else answers, or it knows another secret.
  static std::unique_ptr<ElasticLink> connect(const ElasticEndpoint& endpoint, const std::string& secret,
                                              nlohmann::json join, Absence& absence);
  ~ElasticLink();
  ElasticLink(const ElasticLink&) = delete;
  ElasticLink& operator=(const ElasticLink&) = delete;

  void say(const nlohmann::json& message);
  /// "the rendezvous at HOST:PORT"
  const std::string& name() const { return name_; }
  /// This machine's address on the way to the rendezvous, by which others there reach it; a number.
  std::string own_address() const;

  static constexpr auto kConnectTime = std::chrono::milliseconds(2000);
  static constexpr auto kBeat = std::chrono::milliseconds(1000);
  static constexpr auto kSilence = std::chrono::milliseconds(5000);  ///< after which it is lost; as lost_after there

  std::mutex mutex;                  ///< of what follows, and of sending
  std::deque<nlohmann::json> heard;  ///< as parse_told() has them, without beats
  std::string gone;                  ///< why there is no rendezvous any more
  Loss loss = Loss::kNone;

 private:
  ElasticLink(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  /// The next message; nothing within the time. Throws Error when the connection ends.
  bool take(std::chrono::milliseconds at_most, std::string& payload);
  void listen();
  void lose(Loss how, const std::string& why);

  int fd_;
  std::string name_;
  std::unique_ptr<Signer> signer_;
  FrameReader frames_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace cohort::launch
