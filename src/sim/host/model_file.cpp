#include "sim/host/model_file.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include <unistd.h>

#include "core/config.h"
#include "core/files.h"
#include "core/format.h"
#include "core/placeholder_file.h"
#include "formats/xml_elements.h"

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
  if (const std::string fault = placeholder_fault(file); !fault.empty()) return format("`{}` {}", file.string(), fault);
  return "";
}

namespace {

void add_height_fields(std::string_view xml, const fs::path& folder, std::set<fs::path>& seen,
                       std::vector<HeightFieldSize>& to) {
  for (const XmlElement& e : xml_elements(xml)) {
    if (e.name == "hfield") {
      const auto number = [&e](const char* key) { return std::strtod(e.attribute(key).c_str(), nullptr); };
      to.push_back({e.attribute("name"), number("nrow"), number("ncol")});
    }
    if (e.name != "include") continue;
    const fs::path file = folder / e.attribute("file");
    if (seen.insert(file).second && why_unreadable(file).empty()) {
      add_height_fields(read_file(file), folder, seen, to);
    }
  }
}

}  // namespace

std::string placeholder_asset(std::string_view xml, const fs::path& folder) {
  std::vector<std::string> texts{std::string(xml)};
  std::set<fs::path> seen;
  std::vector<fs::path> folders{folder}, named;
  for (std::size_t t = 0; t < texts.size(); ++t)
    for (const XmlElement& e : xml_elements(texts[t])) {
      if (e.name == "compiler")
        for (const char* key : {"meshdir", "texturedir", "assetdir"})
          if (const std::string below = e.attribute(key); !below.empty()) folders.push_back(folder / below);
      if (e.name == "mesh" || e.name == "texture" || e.name == "hfield" || e.name == "skin")
        if (const std::string file = e.attribute("file"); !file.empty()) named.emplace_back(file);
      const fs::path part = e.name == "include" ? folder / e.attribute("file") : fs::path();
      if (const std::string fault = part.empty() ? "" : placeholder_fault(part); !fault.empty())
        return format("`{}` {}", part.lexically_normal().string(), fault);
      if (!part.empty() && seen.insert(part).second && why_unreadable(part).empty()) texts.push_back(read_file(part));
    }
  for (const fs::path& file : named)
    for (const fs::path& place : folders)
      if (const std::string fault = placeholder_fault(place / file); !fault.empty())
        return format("`{}` {}", (place / file).lexically_normal().string(), fault);
  return "";
}

std::vector<HeightFieldSize> height_field_sizes(std::string_view xml, const fs::path& folder) {
  std::set<fs::path> seen;
  std::vector<HeightFieldSize> sizes;
  add_height_fields(xml, folder, seen, sizes);
  return sizes;
}

namespace {

/// Where packages lie besides a model's own folders: ROS', its second version's, and Gazebo's two variables. Each is a
/// list of folders with colons between.
std::vector<fs::path> package_roots() {
  std::vector<fs::path> roots;
  for (const auto& [variable, below] : {std::pair{"ROS_PACKAGE_PATH", ""}, std::pair{"AMENT_PREFIX_PATH", "share"},
                                        std::pair{"GZ_SIM_RESOURCE_PATH", ""}, std::pair{"GAZEBO_MODEL_PATH", ""}}) {
    const char* value = std::getenv(variable);
    std::istringstream list(value == nullptr ? "" : value);
    for (std::string folder; std::getline(list, folder, ':');) {
      if (!folder.empty()) roots.push_back(below[0] == '\0' ? fs::path(folder) : fs::path(folder) / below);
    }
  }
  return roots;
}

/// The folders that may be the package `name` for a file in `folder`, the nearest first.
std::vector<fs::path> package_folders(const std::string& name, const fs::path& folder) {
  std::vector<fs::path> places, found;
  for (fs::path above = folder;; above = above.parent_path()) {
    places.push_back(above);
    if (above == above.parent_path()) break;
  }
  for (fs::path& root : package_roots()) places.push_back(std::move(root));
  std::error_code ignored;
  for (const fs::path& place : places) {
    if (place.filename() == name && fs::is_directory(place, ignored)) found.push_back(place);
    if (fs::is_directory(place / name, ignored)) found.push_back(place / name);
  }
  return found;
}

/// "%20" and the like as the bytes they mean.
std::string percent_decode(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    const char* digits = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() && std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      bytes += static_cast<char>(byte);
      i += 2;
    } else {
      bytes += text[i];
    }
  }
  return bytes;
}

MeshPath in_package(const std::string& uri, const std::string& path, const fs::path& folder) {
  const std::size_t slash = path.find('/');
  std::error_code ignored;
  // Some files leave the package out.
  for (fs::path above = folder; slash == std::string::npos; above = above.parent_path()) {
    if (fs::is_regular_file(above / path, ignored)) return {above / path, ""};
    if (above == above.parent_path()) break;
  }
  const std::string name = path.substr(0, slash), rest = slash == std::string::npos ? "" : path.substr(slash + 1);
  const std::vector<fs::path> packages = package_folders(name, folder);
  for (const fs::path& package : packages) {
    if (fs::is_regular_file(package / rest, ignored)) return {package / rest, ""};
  }
  if (!packages.empty()) {
    return {"", format("mesh `{}`: the package is {}, but {}", uri, packages.front().string(),
                       what_is_missing(packages.front() / rest))};
  }
  return {"",
          format("mesh `{}`: neither {} nor a folder above it is the package `{}` or holds it, nor does a folder in "
                 "ROS_PACKAGE_PATH, AMENT_PREFIX_PATH, GZ_SIM_RESOURCE_PATH or GAZEBO_MODEL_PATH; name the "
                 "package's folder in one of these, or write the path of the mesh relative to the URDF file",
                 uri, folder.string(), name)};
}

}  // namespace

std::string what_is_missing(const fs::path& file) {
  const fs::path whole = fs::absolute(file).lexically_normal();
  fs::path there;
  std::error_code ignored;
  for (const fs::path& part : whole) {
    if (fs::exists(there / part, ignored)) {
      there /= part;
      continue;
    }
    std::vector<std::string> names;
    for (fs::directory_iterator entry(there, ignored), end; !ignored && entry != end; entry.increment(ignored)) {
      names.push_back(entry->path().filename().string());
    }
    const std::string near = config::nearest(part.string(), names);
    return format("{} holds no `{}`{}", there.string(), part.string(),
                  near.empty() ? "" : format("; is `{}` meant?", near));
  }
  const std::string trouble = why_unreadable(whole);
  return trouble.empty() ? format("`{}` is there", whole.string()) : trouble;
}

MeshPath resolve_mesh(const std::string& uri, const fs::path& folder) {
  const std::size_t colon = uri.find(":/");
  if (colon == std::string::npos) return {uri, ""};
  const std::string scheme = uri.substr(0, colon);
  std::string path = uri.substr(colon + 1);
  if (path.starts_with("//")) path.erase(0, 2);
  const fs::path here = fs::absolute(folder).lexically_normal();
  if (scheme == "package" || scheme == "model") return in_package(uri, path, here);
  if (scheme != "file") {
    return {"", format("mesh `{}`: `{}` is not known here; package://NAME/..., model://NAME/..., file:///... and paths "
                       "relative to the URDF file are",
                       uri, scheme + ":")};
  }
  if (path.starts_with("localhost/")) path.erase(0, std::string("localhost").size());
  std::error_code ignored;
  for (const std::string& name : {path, percent_decode(path)}) {
    if (fs::is_regular_file(name, ignored)) return {name, ""};
  }
  return {"", format("mesh `{}`: {}", uri,
                     path.starts_with("/") ? what_is_missing(percent_decode(path))
                                           : "a file URI has a whole path behind `file://`, file:///home/... say")};
}

}  // namespace cohort::sim
