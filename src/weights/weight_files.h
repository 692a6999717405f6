/// Weights as people have them: .safetensors, PyTorch's .bin, .pt and .pth (torch_zip.h), one file or a folder in the
/// hub's layout, where an index names the files that the tensors are divided over.
///
///   for (const auto& [name, tensor] : read_weights("siglip-so400m-patch14-384").tensors) ...
#pragma once
#include <filesystem>

#include "weights/safetensors.h"

namespace cohort::weights {

/// Reads by what the file is, not by how it is called. A folder: model.safetensors, model.safetensors.index.json,
/// pytorch_model.bin, pytorch_model.bin.index.json, the first of them that is there. Throws Error naming the file and
/// what is wrong.
SafetensorsFile read_weights(const std::filesystem::path& path);

}  // namespace cohort::weights
