/// Writes a training's checkpoints (weights/checkpoint.h reads them) beside the training.
///
///   CheckpointWriter writer(weights::CheckpointFolder("outputs/run/checkpoints"), /*keep=*/3);
///   writer.save(content);   // returns when the tensors have been copied
///   writer.finish();        // throws Error when the disk was full
#pragma once
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "weights/checkpoint.h"

namespace cohort::train {

/// Writes checkpoints in a thread of its own. save() returns when the tensors have been copied to buffers on the host,
/// which are kept and used again; it waits for the checkpoint before. An error of the thread (a full disk) is thrown by
/// the next call.
class CheckpointWriter {
 public:
  /// keep: number of checkpoints that are left, 0 for all; best ones stay in addition.
  /// links: a folder that shows each checkpoint under its own name by a link; empty: none does.
  CheckpointWriter(weights::CheckpointFolder folder, std::int64_t keep, std::filesystem::path links = {});
  /// Finishes the checkpoint that is being written; an error goes to the log.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Takes a copy of the tensors, which may change as soon as this returns.
  void save(const weights::CheckpointContent& content);
  /// The error of an earlier save, once; empty when there is none.
  std::string take_error();
  /// Throws Error when an earlier save failed.
  void check();
  /// Waits until nothing is being written any more.
  void wait();
  /// Waits, and throws Error when a save failed.
  void finish();

  const weights::CheckpointFolder& folder() const { return folder_; }

 private:
  void run();
  void write(const weights::CheckpointContent& content) const;
  weights::NamedTensors capture(const weights::NamedTensors& live, std::map<std::string, at::Tensor>& buffers);

  weights::CheckpointFolder folder_;
  std::int64_t keep_;
  std::filesystem::path links_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool busy_ = false;  // the thread has a checkpoint to write
  bool stop_ = false;
  std::string error_;
  weights::CheckpointContent pending_;
  std::map<std::string, at::Tensor> model_buffers_, ema_buffers_, optimizer_buffers_, random_buffers_;
  std::set<c10::DeviceIndex> copied_from_;  ///< devices of pending_, whose copies are under way
  std::thread thread_;
};

}  // namespace cohort::train
