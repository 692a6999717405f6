/// Files as torch.save() writes them, for programs that read them with torch.load(weights_only=True): a zip archive of a
/// pickle and the raw bytes of each tensor (torch_zip.h reads them).
///
///   write_torch_file("lang_embed_0.pt", {{"", embedding}});                                // a tensor alone
///   write_torch_file("handover.pt", {{"embeddings", embedding}}, {{"instruction", text}});   // a dictionary
///
/// Formats: PyTorch's docs/source/notes/serialization, CPython's Lib/pickletools.py (protocol 2), APPNOTE.TXT 6.3.9.
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "weights/named_tensors.h"

namespace cohort::weights {

/// Tensors of floats or int64, with texts before them. A single tensor called "" without texts is written alone. The
/// file appears whole or not at all; equal input gives equal bytes. Throws Error for other element types, for 4 GiB and
/// more, and with path and reason where the file cannot be written.
void write_torch_file(const std::filesystem::path& path, const NamedTensors& tensors,
                      const std::map<std::string, std::string>& texts = {});

}  // namespace cohort::weights
