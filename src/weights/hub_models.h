/// Models by the names that Hugging Face's hub has for them, in the cache that its programs keep: nothing is downloaded.
///
///   find_hub_model("--text-encoder", "google/t5-v1_1-xxl")   -> .../models--google--t5-v1_1-xxl/snapshots/3db67ab1...
#pragma once
#include <filesystem>
#include <string>

namespace cohort::weights {

/// A local file or folder of that name; else the snapshot of it in the cache that $HF_HUB_CACHE (or
/// $HUGGINGFACE_HUB_CACHE) names, $HF_HOME/hub, or ~/.cache/huggingface/hub: the one that refs/main names, else the
/// newest. Throws Error naming `flag` and the command that downloads it.
std::filesystem::path find_hub_model(const std::string& flag, const std::string& name);

}  // namespace cohort::weights
