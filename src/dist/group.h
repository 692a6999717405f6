/// The processes of a job, and their collectives: Gloo for CPU tensors, NCCL for CUDA tensors, in one c10d process
/// group.
#pragma once
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/array_view.h"
#include "core/error.h"
#include "rank/environment.h"

namespace c10d {
class ProcessGroup;
}

namespace cohort::dist {

struct GroupOptions {
  /// For finding the store and the other ranks, ms.
  std::chrono::milliseconds store_timeout = std::chrono::minutes(5);
  /// For one collective on CPU tensors, ms. A rank that is this late counts as lost.
  std::chrono::milliseconds collective_timeout = std::chrono::minutes(30);
  /// This process's device. A CUDA device adds NCCL.
  DeviceId device{};
};

enum class Reduction { kSum, kMean, kMax, kMin };

/// Every member function that communicates must be called by all ranks in the same order, and blocks until its result
/// is there. They throw Error naming the operation and what probably happened (which rank died, which one is late);
/// afterwards the group is failed: further calls throw at once, and the destructor waits for nobody.
class Group {
 public:
  /// Joins the job of `env`. Throws Error. With one process no network is used.
  static std::shared_ptr<Group> create(const rank::Environment& env, const GroupOptions& options = {});
  /// close(), with a limit of 30 s and warnings instead of exceptions; skipped after a failure or while an exception
  /// passes.
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const;
  int world_size() const;
  const rank::Environment& environment() const;
  const GroupOptions& options() const;

  /// In place, element by element. kMean needs a floating-point tensor. Any layout and shape, equal on all ranks.
  void all_reduce(at::Tensor& tensor, Reduction reduction = Reduction::kSum);
  /// In place: all ranks get root's values.
  void broadcast(at::Tensor& tensor, int root = 0);
  /// One tensor per rank, in rank order. Sizes may differ between ranks in the first dimension only.
  std::vector<at::Tensor> all_gather(const at::Tensor& tensor);
  /// Small objects as bytes, in rank order.
  std::vector<std::string> all_gather_bytes(const std::string& bytes);
  /// root's bytes on all ranks.
  std::string broadcast_bytes(const std::string& bytes, int root = 0);
  /// Waits for all ranks; `timeout` other than the group's only with Gloo.
  void barrier(std::optional<std::chrono::milliseconds> timeout = std::nullopt);

  /// Barrier, then leaves the group: after it no rank still needs another one. Further calls throw.
  void close();

  /// For LibTorch's own classes (Reducer, hooks). Python's default group of the same job has the same keys, so that C++
  /// and Python ranks may mix.
  const c10::intrusive_ptr<c10d::ProcessGroup>& process_group() const;

  /// Turns an exception of LibTorch that came out of a collective run on process_group() into an Error that says what
  /// probably happened, and marks the group as failed. `operation` completes "while ...": "all-reduce of gradients".
  /// `waited`: for how long the operation ran, where that is known, and how long it might (the group's time limit,
  /// unless it had one of its own).
  struct Waited {
    std::chrono::steady_clock::duration time;
    std::optional<std::chrono::milliseconds> limit;
  };
  Error explain(const std::exception& problem, const std::string& operation,
                std::optional<Waited> waited = std::nullopt);
  /// True when the text is that of a failed collective rather than of a mistake in the model.
  static bool is_communication_failure(const std::exception& problem);
  bool failed() const;
  /// What failed() is about; "" where nothing failed.
  const std::string& failure() const;

  /// After a failure: gives up the connections and everything else of the process group, of which nobody else may hold
  /// a part any more (a Reducer, a Work): another rank that waits for this one is only then released. Calls throw until
  /// rejoin().
  void leave();
  /// After leave(), when the launcher has called all ranks together: connects again. Throws Error, after which the
  /// group has failed again. `limit` holds for the connections alone.
  void rejoin(int generation, std::chrono::milliseconds limit);

  /// All ranks are processes of Cohort that see each other in one process table, as far as this rank could read.
  bool on_one_machine() const;
  /// Whether a rank of this machine is seen to have ended. Not collective; takes microseconds.
  bool a_rank_has_ended() const;

 private:
  Group();
  void connect(std::chrono::milliseconds store_timeout);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::dist
