#include "tasks/libero/scene_text.h"

#include <span>

#include "core/error.h"
#include "core/files.h"
#include "core/format.h"

namespace cohort::tasks::libero {
namespace {

std::string numbers(std::span<const double> values) {
  std::string text;
  for (const double value : values) text += format("{}{}", text.empty() ? "" : " ", value);
  return text;
}

void place_camera(std::string& xml, const std::string& camera, const SceneFolder::CameraPose& pose,
                  const std::filesystem::path& folder) {
  for (std::size_t at = xml.find("<camera "); at != std::string::npos; at = xml.find("<camera ", at + 1)) {
    const std::size_t name = xml.find(" name=\"" + camera + "\"", at);
    if (name == std::string::npos || name > xml.find('>', at)) continue;
    COHORT_THROW_UNLESS(change_attribute(xml, at, "pos", [&](const std::string&) { return numbers(pose.pos); }) &&
                            change_attribute(xml, at, "quat", [&](const std::string&) { return numbers(pose.quat); }),
                        "{}: its camera {} has no pos and quat", (folder / "scene.xml").string(), camera);
    return;
  }
  throw Error(format("{}: it has no camera {}", (folder / "scene.xml").string(), camera));
}

}  // namespace

bool change_attribute(std::string& xml, std::size_t tag, const std::string& name,
                      const std::function<std::string(const std::string&)>& changed) {
  const std::size_t end = xml.find('>', tag), start = xml.find(" " + name + "=\"", tag);
  if (start == std::string::npos || start > end) return false;
  const std::size_t first = start + name.size() + 3, last = xml.find('"', first);
  xml.replace(first, last - first, changed(xml.substr(first, last - first)));
  return true;
}

std::string scene_text(const SceneFolder& folder) {
  std::string xml = read_file(folder.path / "scene.xml");
  const std::size_t compiler = xml.find("<compiler ");
  for (const char* directory : {"meshdir", "texturedir"})
    if (compiler != std::string::npos)
      change_attribute(xml, compiler, directory, [&](const std::string& value) {
        return std::filesystem::absolute(folder.path / value).lexically_normal().string();
      });
  if (folder.agentview) place_camera(xml, "agentview", *folder.agentview, folder.path);
  return xml;
}

}  // namespace cohort::tasks::libero
