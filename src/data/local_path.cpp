#include "data/local_path.h"

#include <algorithm>
#include <string>

#include "core/error.h"

namespace cohort::data {

void refuse_address(const std::filesystem::path& path) {
  // A path that was joined or normalised has lost one of its slashes: "gs:/bucket".
  const std::string& text = path.native();
  const std::size_t colon = text.find(":/");
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+'; };
  if (colon == std::string::npos || colon < 2 ||
      !std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(colon), is_letter))
    return;
  std::error_code error;
  if (std::filesystem::exists(path, error)) return;
  const std::string scheme = text.substr(0, colon);
  if (scheme == "file") throw Error(format("{}: write the path without file://", text));
  const std::string copy = scheme == "gs"   ? "gsutil -m cp -r " + text + " FOLDER"
                           : scheme == "s3" ? "aws s3 cp --recursive " + text + " FOLDER"
                           : scheme == "hf" ? "huggingface-cli download --repo-type dataset"
                                            : "curl -LO " + text;
  throw Error(format("{} is an address, and only local files are read: copy the data first ({}), and name the copy",
                     text, copy));
}

}  // namespace cohort::data
