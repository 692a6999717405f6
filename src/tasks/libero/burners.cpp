#include "tasks/libero/burners.h"

#include <algorithm>
#include <functional>

#include "core/error.h"
#include "core/files.h"
#include "core/format.h"

namespace cohort::tasks::libero {
namespace {

constexpr double kOn = 0.5;  // rad of the knob

/// Replaces the value of an attribute within the tag that begins at `tag`; false where it has none.
bool change_attribute(std::string& xml, std::size_t tag, const std::string& name,
                      const std::function<std::string(const std::string&)>& changed) {
  const std::size_t end = xml.find('>', tag), start = xml.find(" " + name + "=\"", tag);
  if (start == std::string::npos || start > end) return false;
  const std::size_t first = start + name.size() + 3, last = xml.find('"', first);
  xml.replace(first, last - first, changed(xml.substr(first, last - first)));
  return true;
}

}  // namespace

std::string with_sites_shown(std::string xml, const std::vector<std::string>& sites,
                             const std::filesystem::path& folder) {
  for (const std::string& site : sites) {
    bool shown = false;
    for (std::size_t at = xml.find("<site "); at != std::string::npos && !shown; at = xml.find("<site ", at + 1)) {
      const std::size_t name = xml.find(" name=\"" + site + "\"", at);
      if (name == std::string::npos || name > xml.find('>', at)) continue;
      shown = change_attribute(
          xml, at, "rgba", [](const std::string& rgba) { return rgba.substr(0, rgba.find_last_of(' ') + 1) + "1"; });
    }
    COHORT_THROW_UNLESS(shown, "{}: it has no site {} with a colour", (folder / "scene.xml").string(), site);
  }
  const std::size_t compiler = xml.find("<compiler ");
  for (const char* directory : {"meshdir", "texturedir"})
    if (compiler != std::string::npos)
      change_attribute(xml, compiler, directory, [&](const std::string& value) {
        return std::filesystem::absolute(folder / value).lexically_normal().string();
      });
  return xml;
}

Burners::Burners(const Simulation& simulation) : simulation_(simulation) {
  for (const auto& [name, thing] : simulation.folder().things) {
    if (thing.burner.empty()) continue;
    sites_.push_back(thing.burner);
    for (const std::string& joint : thing.joints)
      knobs_.push_back(simulation.frames().joint_at(simulation.frames().joint(joint)).qpos);
  }
}

bool Burners::lit(std::span<const double> qpos) const {
  return std::any_of(knobs_.begin(), knobs_.end(), [&](std::size_t knob) { return qpos[knob] >= kOn; });
}

void Burners::build(const render::RendererSettings& settings) {
  const std::filesystem::path& folder = simulation_.folder().path;
  scene_ = std::make_unique<sim::Scene>(sim::SceneOptions{.engine = sim::EngineKind::kMujoco});
  scene_->add_entity(sim::Mjcf{.file = "", .xml = with_sites_shown(read_file(folder / "scene.xml"), sites_, folder)},
                     "libero");
  scene_->build(simulation_.n_envs());
  scene_->view(sim::Field::kQpos);
  renderer_ = render::make_renderer(*scene_, settings);
}

void Burners::draw(const std::string& camera, std::span<const std::int32_t> envs,
                   const render::RendererSettings& settings, ArrayView rgb) {
  if (!scene_) build(settings);
  const ArrayView view = scene_->engine().view(sim::Field::kQpos);
  for (const std::int32_t env : envs) {
    const std::span<const double> seen = simulation_.seen(env).poses_qpos;
    std::copy(seen.begin(), seen.end(), static_cast<double*>(view.data) + env * view.strides[0]);
  }
  renderer_->render(renderer_->camera(camera), envs, {.rgb = rgb});
}

}  // namespace cohort::tasks::libero
