/// Serves a page of recorded episodes: which there are, what is in them and what is wrong with them, as it is found out
/// while a page looks.
///
///   DataServer server(session, {.port = 0});
///   std::puts(server.address().c_str());
///   server.run([&] { return told_to_end(); });
///
/// A message of a page is a JSON object of at most kMostMessage bytes: {"do": "episode", "which": 3} is answered with its
/// curves, {"do": "pictures", "which": 3, "first": 0, "count": 8} with pictures of its cameras, {"do": "filter", "rules":
/// ["min_steps(16)"]} with the episodes that pass. Others are answered with an error. Who gets in: view/page_gate.h.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "view/data_page.h"

namespace cohort::view {

/// A set of episodes, from 0 on.
class DataSession {
 public:
  virtual ~DataSession() = default;
  virtual std::string title() const = 0;
  /// What is known without opening episodes: {"summary": text, "numbers": [...], "steps": [...], "problems": [...]}.
  virtual nlohmann::json about() = 0;
  virtual std::int64_t episodes() const = 0;
  /// Its curves, and its cameras with the steps of their pictures, without these. Throws Error.
  virtual DataEpisode episode(std::int64_t which) = 0;
  /// Pictures [first, first + count) of each camera's steps, as many as there are. Throws Error.
  virtual std::vector<DataCamera> pictures(std::int64_t which, std::size_t first, std::size_t count) = 0;
  /// Those that pass all rules. Throws Error, naming the rule at fault.
  virtual std::vector<std::int64_t> filtered(const std::vector<std::string>& rules) = 0;
  /// Reads one episode more, for statistics. False: all are read.
  virtual bool read_on() = 0;
  /// What has been found out of episodes [since, read), and of all read ones: {"read": 12, "rows": [[instruction, [problem,
  /// ...]], ...], "statistics": [{"name", "elements", "min", "max", "mean", "std"}, ...]}.
  virtual nlohmann::json found(std::int64_t since) = 0;
};

struct DataServerSettings {
  std::string host = "127.0.0.1";
  int port = 0;         ///< 0: one that is free
  std::string token{};  ///< "": one that nobody guesses is made
};

class DataServer {
 public:
  /// Throws Error where host or port cannot be had. The session must outlive it.
  DataServer(DataSession& session, const DataServerSettings& settings);
  ~DataServer();
  DataServer(const DataServer&) = delete;
  DataServer& operator=(const DataServer&) = delete;

  int port() const;
  std::string address() const;  ///< with the token
  /// Answers pages until stop() is true, and reads on meanwhile; that is asked every few milliseconds.
  void run(const std::function<bool()>& stop);
  /// One message of a page. Gives the bytes of what is answered: a JSON text, or a binary message. Never throws.
  std::string apply(const std::string& message);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::view
