/// The command that learns from a data set, for a user to paste.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace cohort::cli {

/// "train", "policy", "data.paths=...": the training chooses among the set's own fields (train/jobs/own_fields.h) and says
/// which it took. Empty where the set has no field that is called an action, or nothing that a policy could see.
std::vector<std::string> train_on(const std::filesystem::path& data);

}  // namespace cohort::cli
