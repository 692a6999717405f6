/// The files of an evaluation's videos: their names, and those that belong to a table.
///
///   for (const std::filesystem::path& file : videos_of_table("out/evaluation.json")) std::filesystem::remove(file);
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace cohort::eval {

/// "expert_seed-3_success.mp4": of the policy's name letters, digits and a few signs stay.
std::string video_name(const std::string& policy, std::uint64_t seed, bool success);

/// The videos that the evaluation of this table (its evaluation.json, or --json file) lists, as far as they lie below the
/// table's folder and have the name that an evaluation gives. Links and files that are not there any more are left out.
/// Nothing where there is no such table.
std::vector<std::filesystem::path> videos_of_table(const std::filesystem::path& table);

}  // namespace cohort::eval
