#include "launch/error_file.h"

#include <array>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"

namespace cohort::launch {
namespace fs = std::filesystem;
using ErrorJson = nlohmann::ordered_json;

void write_error_file(const std::string& message) noexcept {
  try {
    const char* path = std::getenv("TORCHELASTIC_ERROR_FILE");
    std::error_code ignored;
    if (!path || !*path || fs::exists(path, ignored)) return;
    std::array<char, 256> host{};
    ::gethostname(host.data(), host.size() - 1);
    const char* rank = std::getenv("RANK");
    ErrorJson json;
    json["message"]["message"] = message;
    // torchrun reads the time as a text of whole seconds.
    json["message"]["extraInfo"]["timestamp"] = std::to_string(std::time(nullptr));
    json["rank"] = rank ? rank : "";
    json["host"] = host.data();
    // A message may quote bytes of a file that are no UTF-8.
    write_file_atomically(path, json_text(json, 2, BadUtf8::kReplaced));
  } catch (...) {
    // The message itself is on its way to standard error; losing the copy must not hide it.
  }
}

std::optional<ErrorFile> read_error_file(const fs::path& path) {
  std::error_code missing;
  const auto written = fs::last_write_time(path, missing);
  if (missing) return std::nullopt;
  ErrorFile error;
  error.written = written;
  try {
    const std::string text = read_file(path);
    const ErrorJson json = parse_json<ErrorJson>(text);
    const ErrorJson& message = json.at("message");
    if (message.is_string()) {
      error.message = message.get<std::string>();
    } else {
      error.message = message.value("message", "");
      if (message.contains("extraInfo")) error.traceback = message["extraInfo"].value("py_callstack", "");
    }
    if (json.contains("host") && json["host"].is_string()) error.host = json["host"].get<std::string>();
  } catch (const std::exception& e) {
    error.message = format("(its error file {} cannot be understood: {})", path.string(), e.what());
  }
  return error;
}

}  // namespace cohort::launch
