/// error.json: how a rank tells the agent why it failed. The path is in TORCHELASTIC_ERROR_FILE; the format is the one
/// of torch/distributed/elastic/multiprocessing/errors/error_handler.py, so that a rank of ours works under torchrun
/// and a Python rank with @record works under our agent.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

namespace cohort::launch {

struct ErrorFile {
  std::string message;    ///< "RuntimeError: boom"
  std::string traceback;  ///< "" when there is none
  std::string host;       ///< ours add rank and host
  std::filesystem::file_time_type written{};
};

/// Writes {"message": {"message": ..., "extraInfo": {"timestamp": ...}}, "rank": ..., "host": ...} to the file that
/// TORCHELASTIC_ERROR_FILE names; does nothing without that variable or when the file is there already (the first error
/// is the cause). Never throws: it is called while an exception is on its way to the user.
void write_error_file(const std::string& message) noexcept;

/// Reads either form, {"message": {...}} or {"message": "text", "timestamp": ...}. Nothing when there is no file; a
/// file that cannot be understood gives a message that says so.
std::optional<ErrorFile> read_error_file(const std::filesystem::path& path);

}  // namespace cohort::launch
