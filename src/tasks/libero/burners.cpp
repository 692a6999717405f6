#include "tasks/libero/burners.h"

#include <algorithm>

#include "core/error.h"
#include "core/format.h"
#include "tasks/libero/scene_text.h"

namespace cohort::tasks::libero {
namespace {

constexpr double kOn = 0.5;  // rad of the knob

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
  const SceneFolder& folder = simulation_.folder();
  scene_ = std::make_unique<sim::Scene>(sim::SceneOptions{.engine = sim::EngineKind::kMujoco});
  scene_->add_entity(sim::Mjcf{.file = "", .xml = with_sites_shown(scene_text(folder), sites_, folder.path)}, "libero");
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
