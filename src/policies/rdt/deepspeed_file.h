/// A configuration file of DeepSpeed as settings of a training: what `--deepspeed configs/zero2.json` asks for, done by
/// our own ranks.
///
///   const DeepspeedFile file = read_deepspeed_file("configs/zero2.json");
///   for (const std::string& text : file.overrides) fields.apply_override(text);
///
/// Honoured: zero_optimization.stage (0, 1, 2), bf16.enabled, fp16.enabled and its scale, gradient_clipping,
/// gradient_accumulation_steps, train_micro_batch_size_per_gpu, train_batch_size. "auto" leaves a value to the command
/// line, as under Accelerate. Format: deepspeed.ai/docs/config-json.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace cohort::policies {

struct DeepspeedFile {
  std::vector<std::string> overrides;  ///< settings, KEY=VALUE
  std::vector<std::string> notes;      ///< keys without effect here, with the reason
};

/// Throws Error where it cannot be read, and naming every key that cannot be honoured, with what to do instead.
DeepspeedFile read_deepspeed_file(const std::filesystem::path& path);

}  // namespace cohort::policies
