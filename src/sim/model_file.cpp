#include "sim/model_file.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>

#include <unistd.h>

#include "core/files.h"
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

namespace {

/// A tag's attributes; `tag` begins behind its name.
std::map<std::string, std::string> attributes_of(std::string_view tag) {
  std::map<std::string, std::string> all;
  for (;;) {
    const std::size_t equals = tag.find_first_of("=>");
    if (equals == std::string_view::npos || tag[equals] == '>') return all;
    std::string_view name = tag.substr(0, equals);
    const std::size_t first = name.find_last_of(" \t\r\n", name.find_last_not_of(" \t\r\n"));
    name.remove_prefix(first == std::string_view::npos ? 0 : first + 1);
    name = name.substr(0, name.find_first_of(" \t\r\n"));
    const std::size_t open = tag.find_first_of("'\"", equals);
    const std::size_t close = open == std::string_view::npos ? open : tag.find(tag[open], open + 1);
    if (close == std::string_view::npos) return all;
    all.emplace(name, tag.substr(open + 1, close - open - 1));
    tag.remove_prefix(close + 1);
  }
}

void add_height_fields(std::string_view xml, const fs::path& folder, std::set<fs::path>& seen,
                       std::vector<HeightFieldSize>& to) {
  for (std::size_t at = xml.find('<'); at != std::string_view::npos; at = xml.find('<', at + 1)) {
    const std::string_view here = xml.substr(at);
    if (here.starts_with("<!--")) {
      at = xml.find("-->", at);
      if (at == std::string_view::npos) return;
      continue;
    }
    const std::string_view name = here.substr(1, here.find_first_of(" \t\r\n/>") - 1);
    if (name != "hfield" && name != "include") continue;
    const std::map<std::string, std::string> found = attributes_of(here.substr(1 + name.size()));
    const auto value = [&](const char* key) { return found.count(key) ? found.at(key) : ""; };
    if (name == "hfield") {
      const auto number = [&](const char* key) { return std::strtod(value(key).c_str(), nullptr); };
      to.push_back({value("name"), number("nrow"), number("ncol")});
      continue;
    }
    const fs::path file = folder / value("file");
    if (seen.insert(file).second && why_unreadable(file).empty()) {
      add_height_fields(read_file(file), folder, seen, to);
    }
  }
}

}  // namespace

std::vector<HeightFieldSize> height_field_sizes(std::string_view xml, const fs::path& folder) {
  std::set<fs::path> seen;
  std::vector<HeightFieldSize> sizes;
  add_height_fields(xml, folder, seen, sizes);
  return sizes;
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
