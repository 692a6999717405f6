/// The pages that look at a server, and what they send: no more of it than a person can click.
#pragma once
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace cohort::view {

inline constexpr std::size_t kMostMessage = 4096;    ///< bytes
inline constexpr double kMostMessagesASecond = 240;  ///< of a page; more end its connection
inline constexpr int kMostPages = 8;

/// All functions may be called from any thread.
class PageClients {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Taken : std::uint8_t { kKept, kTooMany, kCutBefore };

  /// Its first message is "": for who greets it.
  void opened(std::uint64_t client) {
    {
      const std::lock_guard lock(mutex_);
      clients_[client] = {};
      inbox_.emplace_back(client, "");
    }
    woken_.notify_one();
  }
  Taken message(std::uint64_t client, std::string bytes) {
    {
      const std::lock_guard lock(mutex_);
      Client& c = clients_[client];
      const Clock::time_point now = Clock::now();
      c.tokens = std::min(kMostMessagesASecond,
                          c.tokens + kMostMessagesASecond * std::chrono::duration<double>(now - c.last).count());
      c.last = now;
      if (c.tokens < 1) return std::exchange(c.cut, true) ? Taken::kCutBefore : Taken::kTooMany;
      c.tokens -= 1;
      inbox_.emplace_back(client, std::move(bytes));
    }
    woken_.notify_one();
    return Taken::kKept;
  }
  void closed(std::uint64_t client) {
    const std::lock_guard lock(mutex_);
    clients_.erase(client);
  }
  std::deque<std::pair<std::uint64_t, std::string>> take() {
    std::deque<std::pair<std::uint64_t, std::string>> out;
    const std::lock_guard lock(mutex_);
    out.swap(inbox_);
    return out;
  }
  bool any() {
    const std::lock_guard lock(mutex_);
    return !clients_.empty();
  }
  void wait(std::chrono::milliseconds most) {
    std::unique_lock lock(mutex_);
    if (inbox_.empty()) woken_.wait_for(lock, most);
  }
  /// The client has seen a frame.
  void seen(std::uint64_t client) {
    const std::lock_guard lock(mutex_);
    if (const auto found = clients_.find(client); found != clients_.end())
      found->second.unseen = std::max(0, found->second.unseen - 1);
  }
  /// send(client) for each.
  template <class Send>
  void each(const Send& send) {
    const std::lock_guard lock(mutex_);
    for (const auto& [client, c] : clients_) send(client);
  }
  /// Only those that have seen all but most_unseen of what was sent so.
  template <class Send>
  void each_ready(int most_unseen, const Send& send) {
    const std::lock_guard lock(mutex_);
    for (auto& [client, c] : clients_)
      if (c.unseen < most_unseen) ++c.unseen, send(client);
  }

 private:
  struct Client {
    double tokens = kMostMessagesASecond;
    Clock::time_point last = Clock::now();
    int unseen = 0;
    bool cut = false;
  };
  std::mutex mutex_;
  std::condition_variable woken_;
  std::map<std::uint64_t, Client> clients_;
  std::deque<std::pair<std::uint64_t, std::string>> inbox_;
};

}  // namespace cohort::view
