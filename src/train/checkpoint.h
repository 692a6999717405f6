/// Checkpoints: everything that a training needs to go on as if it had never stopped.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "train/checkpoint_folder.h"
#include "train/named_tensors.h"
#include "train/trainer_state.h"

namespace cohort::train {

struct CheckpointContent {
  TrainerState state;
  NamedTensors model;
  std::map<std::string, std::string> model_aliases;  ///< names of tied weights, see distinct()
  NamedTensors ema;                                  ///< empty: none is kept
  NamedTensors optimizer;
  NamedTensors random;             ///< "rank_<r>.cpu", "rank_<r>.cuda_<i>": generator states, uint8
  std::string dataset_statistics;  ///< JSON text; empty: none
  bool is_best = false;            ///< only for writing
};

/// Reads a checkpoint folder. Tensors are mapped, not copied. Throws Error naming the file and what is wrong: a missing
/// or truncated file, one that belongs to another checkpoint, or a folder that another program wrote.
CheckpointContent read_checkpoint(const std::filesystem::path& path);

struct ResumePoint {
  std::filesystem::path path;
  CheckpointContent content;
};

/// What `resume` asks for: "none"; "auto": the last whole checkpoint in `folder`, or nothing when there is none (a
/// damaged one is passed over with a warning that says why); else the path of a checkpoint, or of a folder of
/// checkpoints, which must be readable.
std::optional<ResumePoint> find_resume_point(const std::string& resume, const std::filesystem::path& folder);

/// Writes checkpoints in a thread of its own. save() returns when the tensors have been copied to buffers on the host,
/// which are kept and used again; it waits for the checkpoint before. An error of the thread (a full disk) is thrown by
/// the next call.
class CheckpointWriter {
 public:
  /// keep: number of checkpoints that are left, 0 for all; best ones stay in addition.
  CheckpointWriter(CheckpointFolder folder, std::int64_t keep);
  /// Finishes the checkpoint that is being written; an error goes to the log.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Takes a copy of the tensors, which may change as soon as this returns.
  void save(const CheckpointContent& content);
  /// The error of an earlier save, once; empty when there is none.
  std::string take_error();
  /// Throws Error when an earlier save failed.
  void check();
  /// Waits until nothing is being written any more.
  void wait();
  /// Waits, and throws Error when a save failed.
  void finish();

  const CheckpointFolder& folder() const { return folder_; }

 private:
  void run();
  void write(const CheckpointContent& content) const;
  NamedTensors capture(const NamedTensors& live, std::map<std::string, at::Tensor>& buffers);

  CheckpointFolder folder_;
  std::int64_t keep_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool busy_ = false;  // the thread has a checkpoint to write
  bool stop_ = false;
  std::string error_;
  CheckpointContent pending_;
  std::map<std::string, at::Tensor> model_buffers_, ema_buffers_, optimizer_buffers_, random_buffers_;
  bool copies_in_flight_ = false;
  std::thread thread_;
};

}  // namespace cohort::train
