/// Checkpoints as they are read: everything that a training needs to go on as if it had never stopped, and a policy to
/// act. train/checkpoint_writer.h writes them.
///
///   const CheckpointContent content = read_checkpoint("outputs/push_t/latest/checkpoints/last");
///   load_weights(*module, content.model, content.model_aliases, "last");
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "weights/checkpoint_folder.h"
#include "weights/named_tensors.h"
#include "weights/trainer_state.h"

namespace cohort::weights {

struct CheckpointContent {
  TrainerState state;
  NamedTensors model;
  std::map<std::string, std::string> model_aliases;  ///< names of tied weights, see distinct()
  NamedTensors ema;                                  ///< empty: none is kept
  NamedTensors optimizer;
  NamedTensors random;             ///< "rank_<r>.cpu", "rank_<r>.cuda": generator states, uint8
  std::string dataset_statistics;  ///< JSON text; empty: none
  bool is_best = false;            ///< only for writing
};

/// What is read: all that a training needs, or what a policy needs that acts (state, weights, average, statistics).
enum class CheckpointParts { kAll, kWeights };

/// Reads a checkpoint folder. Tensors are mapped, not copied. Throws Error naming the file and what is wrong: a missing
/// or truncated file, one whose checksum is another than when it was written (checksums.h), one that belongs to another
/// checkpoint, or a folder that another program wrote.
CheckpointContent read_checkpoint(const std::filesystem::path& path, CheckpointParts parts = CheckpointParts::kAll);

struct ResumePoint {
  std::filesystem::path path;
  CheckpointContent content;
};

/// What `resume` asks for. "none"; "auto": the last whole checkpoint in `folder`, or nothing when there is none; or a
/// path: of a checkpoint, which must be readable, or of a run or its folder of checkpoints, which stand for their last
/// whole one. A damaged one is passed over with a warning that says why.
std::optional<ResumePoint> find_resume_point(const std::string& resume, const std::filesystem::path& folder,
                                             CheckpointParts parts = CheckpointParts::kAll);

}  // namespace cohort::weights
