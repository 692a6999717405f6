// Entities: their own links, dofs and geoms, and where they are among the scene's.
#include <algorithm>

#include "core/config.h"
#include "core/error.h"
#include "sim/host/scene.h"
#include "sim/index.h"

namespace cohort::sim {

namespace {

/// Position in `members` of what the entity's file names `wanted`; the scene's name begins with the entity's.
template <class Things>
int local_index(const Things& things, std::span<const std::int32_t> members, const std::string& entity,
                const std::string& wanted, const char* what) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::string& name = things[at(members[i])].name;
    if (name == wanted || name == entity + "/" + wanted) return static_cast<int>(i);
    if (!name.empty()) names.push_back(name.starts_with(entity + "/") ? name.substr(entity.size() + 1) : name);
  }
  const std::string near = config::nearest(wanted, names);
  throw Error(
      format("entity `{}` has no {} named `{}`{}", entity, what, wanted,
             near.empty() ? format(" (it has {} named ones)", names.size()) : format("; is `{}` meant?", near)));
}

}  // namespace

const std::string& Entity::name() const {
  return scene_->built() ? scene_->entities_[entity_].name : scene_->declarations_[entity_].name;
}
std::span<const std::int32_t> Entity::links() const {
  scene_->need_built();
  return scene_->entities_[entity_].links;
}
std::span<const std::int32_t> Entity::dofs() const {
  scene_->need_built();
  return scene_->entity_dofs_[entity_];
}
std::span<const std::int32_t> Entity::geoms() const {
  scene_->need_built();
  return scene_->entities_[entity_].geoms;
}

int Entity::link(const std::string& wanted) const {
  return local_index(scene_->info().links, links(), name(), wanted, "link");
}
int Entity::geom(const std::string& wanted) const {
  return local_index(scene_->info().geoms, geoms(), name(), wanted, "geom");
}
Indices Entity::dofs_of_joint(const std::string& wanted) const {
  const ModelInfo& m = scene_->info();
  std::vector<std::int32_t> joints;
  for (std::size_t j = 0; j < m.joints.size(); ++j) {
    if (std::find(links().begin(), links().end(), m.joints[j].link) != links().end()) {
      joints.push_back(static_cast<std::int32_t>(j));
    }
  }
  const JointInfo& joint = m.joints[at(joints[at(local_index(m.joints, joints, name(), wanted, "joint"))])];
  const auto first = static_cast<std::int32_t>(std::find(dofs().begin(), dofs().end(), joint.dof) - dofs().begin());
  std::vector<std::int32_t> found;
  for (int k = 0; k < kJointDofs[static_cast<int>(joint.type)]; ++k) found.push_back(first + k);
  return Indices(std::move(found));
}

namespace {

/// Of `members`; all of the scene's, `count`, where there are none.
Indices scene_indices(const std::vector<std::int32_t>* members, int count, const Indices& local, const char* what) {
  std::vector<std::int32_t> which = local.resolve(members ? static_cast<int>(members->size()) : count, what);
  for (std::int32_t& i : which) i = members ? (*members)[at(i)] : i;
  return Indices(std::move(which));
}

}  // namespace

Indices SceneParts::own_dofs(const Indices& dofs) const {
  scene_->need_built();
  return scene_indices(entity_ == kWholeScene ? nullptr : &scene_->entity_dofs_[entity_], scene_->info().nv, dofs,
                       "dof");
}
Indices SceneParts::own_links(const Indices& links) const {
  scene_->need_built();
  return scene_indices(entity_ == kWholeScene ? nullptr : &scene_->entities_[entity_].links,
                       static_cast<int>(scene_->info().links.size()), links, "link");
}
Indices SceneParts::own_geoms(const Indices& geoms) const {
  scene_->need_built();
  return scene_indices(entity_ == kWholeScene ? nullptr : &scene_->entities_[entity_].geoms,
                       static_cast<int>(scene_->info().geoms.size()), geoms, "geom");
}

int Entity::base() const {
  COHORT_THROW_UNLESS(!links().empty(), "entity `{}` is part of the world: it has no link", name());
  return 0;
}
int Entity::base_qpos() const {
  for (const JointInfo& joint : scene_->info().joints) {
    if (joint.link == links()[at(base())] && joint.type == JointType::kFree) return joint.qpos;
  }
  throw Error(format("entity `{}` stands still: its base has no free joint", name()));
}

std::vector<float> Entity::get_pos(const Indices& envs) const {
  return get_links_pos(base(), envs);
}
std::vector<float> Entity::get_quat(const Indices& envs) const {
  return get_links_quat(base(), envs);
}
std::vector<float> Entity::get_vel(const Indices& envs) const {
  return get_links_vel(base(), envs);
}
std::vector<float> Entity::get_ang(const Indices& envs) const {
  return get_links_ang(base(), envs);
}

void Entity::set_pos(std::span<const float> pos, const Indices& envs) {
  const std::int32_t link = links()[at(base())];
  if (scene_->info().links[at(link)].mocap >= 0) return scene_->set_mocap_pos(pos, link, envs);
  scene_->write_qpos(base_qpos(), 3, pos, envs);
}
void Entity::set_quat(std::span<const float> quat, const Indices& envs) {
  const std::int32_t link = links()[at(base())];
  if (scene_->info().links[at(link)].mocap >= 0) return scene_->set_mocap_quat(quat, link, envs);
  scene_->write_qpos(base_qpos() + 3, 4, quat, envs);
}

double Entity::mass() const {
  double sum = 0;
  for (std::int32_t link : links()) sum += scene_->info().links[at(link)].mass;
  return sum;
}

}  // namespace cohort::sim
