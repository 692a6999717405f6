#include "sim/model_file.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <unistd.h>

#include "core/format.h"

namespace cohort::sim {

namespace fs = std::filesystem;

std::string root_element(std::string_view xml) {
  const auto skip_behind = [&](std::string_view end) {
    const std::size_t at = xml.find(end);
    xml.remove_prefix(at == std::string_view::npos ? xml.size() : at + end.size());
  };
  for (;;) {
    const std::size_t begin = xml.find('<');
    if (begin == std::string_view::npos) return "";
    xml.remove_prefix(begin);
    if (xml.starts_with("<?")) {
      skip_behind("?>");
    } else if (xml.starts_with("<!--")) {
      skip_behind("-->");
    } else if (xml.starts_with("<!")) {
      // A document type may hold declarations in brackets.
      skip_behind(xml.find('[') < xml.find('>') ? "]>" : ">");
    } else {
      return std::string(xml.substr(1, xml.find_first_of(" \t\r\n/>", 1) - 1));
    }
  }
}

bool is_urdf(const fs::path& file) {
  constexpr std::size_t kBegin = 1 << 16;  // licences in comments are shorter
  std::error_code ignored;
  if (fs::is_regular_file(file, ignored)) {
    std::string begin(kBegin, '\0');
    std::ifstream in(file, std::ios::binary);
    in.read(begin.data(), static_cast<std::streamsize>(begin.size()));
    begin.resize(static_cast<std::size_t>(in.gcount()));
    const std::string root = root_element(begin);
    if (root == "robot" || root == "mujoco") return root == "robot";
  }
  std::string suffix = file.extension().string();
  std::transform(suffix.begin(), suffix.end(), suffix.begin(), [](unsigned char c) { return std::tolower(c); });
  return suffix == ".urdf";
}

std::string why_unreadable(const fs::path& file) {
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (status.type() == fs::file_type::not_found) return format("there is no file `{}`", file.string());
  if (error) return format("`{}` cannot be read: {}", file.string(), error.message());
  if (fs::is_directory(status)) return format("`{}` is a folder, no file", file.string());
  if (!fs::is_regular_file(status)) return format("`{}` is no regular file", file.string());
  if (access(file.c_str(), R_OK) != 0) return format("`{}` cannot be read: {}", file.string(), std::strerror(errno));
  return "";
}

fs::path find_in_package(const std::string& uri, const fs::path& folder) {
  const std::string path = uri.substr(std::string("package://").size());
  const std::size_t slash = path.find('/');
  std::error_code ignored;
  for (fs::path above = fs::absolute(folder, ignored).lexically_normal();; above = above.parent_path()) {
    if (slash != std::string::npos && above.filename() == path.substr(0, slash)) {
      const fs::path inside = above / path.substr(slash + 1);
      if (fs::is_regular_file(inside, ignored)) return inside;
    }
    if (fs::is_regular_file(above / path, ignored)) return above / path;
    if (above == above.parent_path()) return {};
  }
}

}  // namespace cohort::sim
