/// Weights that torch.save() wrote (.bin, .pt, .pth, .ckpt): a zip archive of a pickle (pickle.h) and a record of raw
/// bytes per storage. Nothing in the file is executed.
///
///   for (const auto& [name, tensor] : read_torch_zip("pytorch_model.bin").tensors) ...
#pragma once
#include <filesystem>

#include "weights/safetensors.h"

namespace cohort::weights {

/// Whether the file begins as torch.save() begins one: a zip archive, or the format before PyTorch 1.6.
bool is_torch_file(const std::filesystem::path& path);

/// The tensors of a state dict, by name. A checkpoint that holds it beside other things: its "module" (DeepSpeed),
/// "state_dict" or "model"; a file that holds a tensor alone gives it the name "". Texts
/// beside them are the metadata; what else is no tensor is left out. The file is mapped as read_safetensors() maps its
/// own; tensors that share memory in the file do so here. Throws Error naming the file and what is wrong: the old format, a
/// truncated archive, a compressed record, a record that is missing or too short, whatever Pickle refuses.
SafetensorsFile read_torch_zip(const std::filesystem::path& path);

}  // namespace cohort::weights
