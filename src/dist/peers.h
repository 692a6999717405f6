/// Who the other ranks are, as far as needed to say which of them died.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace cohort::dist {

struct Peer {
  int rank = 0;
  long pid = 0;
  std::string host;    ///< host name, boot id and pid namespace: equal exactly when two processes share a process table
  std::string device;  ///< UUID of its GPU, or "-"
};

class Peers {
 public:
  /// Publishes this process under a key of its own, beside those of the process group.
  Peers(c10::intrusive_ptr<c10d::Store> store, int rank, int restart, const std::string& device);

  /// Reads who has published by now. Python ranks never do. Never throws; keeps what it had when the store does not
  /// answer.
  void refresh();

  /// Ranks on this host whose process has ended (or is a zombie). Looks again for up to `patience`, since a broken
  /// connection is seen before the process is gone.
  std::vector<Peer> dead(std::chrono::milliseconds patience) const;

  /// All `world_size` ranks have published, from one host and one process table.
  bool on_one_machine(int world_size) const;

  /// Two ranks on one GPU, which NCCL refuses: "ranks 0 and 1 both use GPU-..."; empty when there are none. Containers
  /// on one host count too: a UUID is unique.
  std::string shared_device() const;

 private:
  c10::intrusive_ptr<c10d::Store> store_;
  std::string key_;
  int rank_;
  std::string host_;
  std::vector<Peer> known_;
};

}  // namespace cohort::dist
