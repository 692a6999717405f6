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
                           : scheme == "hf" ? "hf download --repo-type dataset OWNER/NAME --local-dir FOLDER"
                                            : "curl -LO " + text;
  throw Error(format("{} is an address, and only local files are read: copy the data first ({}), and name the copy",
                     text, copy));
}

std::string hub_hint(const std::filesystem::path& path) {
  const std::string& text = path.native();
  const std::size_t slash = text.find('/');
  // OWNER/NAME: a path of two parts that is no file's.
  if (slash == std::string::npos || slash == 0 || slash + 1 >= text.size() ||
      text.find('/', slash + 1) != std::string::npos || text.front() == '.' || path.has_extension())
    return "";
  // What lies in a folder that is there is a path.
  std::error_code error;
  if (std::filesystem::is_directory(text.substr(0, slash), error)) return "";
  return format(
      "; if it is a data set of the Hugging Face hub: hf download --repo-type dataset {} --local-dir {}, then "
      "name the folder {}",
      text, text.substr(slash + 1), text.substr(slash + 1));
}

void need_local_path(const std::filesystem::path& path, const std::string& what) {
  refuse_address(path);
  std::error_code error;
  COHORT_THROW_UNLESS(std::filesystem::exists(path, error), "there is no {} {}{}", what, path.string(), hub_hint(path));
}

}  // namespace cohort::data
