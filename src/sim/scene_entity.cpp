// Entities: what a scene does, by an entity's own links, dofs and geoms.
#include <algorithm>

#include "core/config.h"
#include "core/error.h"
#include "sim/index.h"
#include "sim/scene.h"

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
  return scene_->built() ? scene_->entities_[index_].name : scene_->declarations_[index_].name;
}
std::span<const std::int32_t> Entity::links() const {
  scene_->need_built();
  return scene_->entities_[index_].links;
}
std::span<const std::int32_t> Entity::dofs() const {
  scene_->need_built();
  return scene_->entity_dofs_[index_];
}
std::span<const std::int32_t> Entity::geoms() const {
  scene_->need_built();
  return scene_->entities_[index_].geoms;
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

Indices Entity::global(std::span<const std::int32_t> members, const Indices& local, const char* what) const {
  std::vector<std::int32_t> which = local.resolve(static_cast<int>(members.size()), what);
  for (std::int32_t& i : which) i = members[at(i)];
  return Indices(std::move(which));
}
Indices Entity::every_link() const {
  return Indices(std::vector<std::int32_t>(links().begin(), links().end()));
}
int Entity::base() const {
  COHORT_THROW_UNLESS(!links().empty(), "entity `{}` is part of the world: it has no link", name());
  return links()[0];
}
int Entity::base_qpos() const {
  for (const JointInfo& joint : scene_->info().joints) {
    if (joint.link == base() && joint.type == JointType::kFree) return joint.qpos;
  }
  return -1;
}

void Entity::control_dofs_position(std::span<const float> target, const Indices& d, const Indices& envs) {
  scene_->control_dofs_position(target, global(dofs(), d, "dof"), envs);
}
void Entity::control_dofs_velocity(std::span<const float> target, const Indices& d, const Indices& envs) {
  scene_->control_dofs_velocity(target, global(dofs(), d, "dof"), envs);
}
void Entity::control_dofs_force(std::span<const float> force, const Indices& d, const Indices& envs) {
  scene_->control_dofs_force(force, global(dofs(), d, "dof"), envs);
}
void Entity::set_dofs_kp(std::span<const float> kp, const Indices& d, const Indices& envs) {
  scene_->set_dofs_kp(kp, global(dofs(), d, "dof"), envs);
}
void Entity::set_dofs_kv(std::span<const float> kv, const Indices& d, const Indices& envs) {
  scene_->set_dofs_kv(kv, global(dofs(), d, "dof"), envs);
}
void Entity::set_dofs_force_range(std::span<const float> lower, std::span<const float> upper, const Indices& d,
                                  const Indices& envs) {
  scene_->set_dofs_force_range(lower, upper, global(dofs(), d, "dof"), envs);
}
void Entity::set_dofs_position(std::span<const float> position, const Indices& d, const Indices& envs) {
  scene_->set_dofs_position(position, global(dofs(), d, "dof"), envs);
}
void Entity::set_dofs_velocity(std::span<const float> velocity, const Indices& d, const Indices& envs) {
  scene_->set_dofs_velocity(velocity, global(dofs(), d, "dof"), envs);
}
std::vector<float> Entity::get_dofs_position(const Indices& d, const Indices& envs) const {
  return scene_->get_dofs_position(global(dofs(), d, "dof"), envs);
}
std::vector<float> Entity::get_dofs_velocity(const Indices& d, const Indices& envs) const {
  return scene_->get_dofs_velocity(global(dofs(), d, "dof"), envs);
}

std::vector<float> Entity::get_links_pos(const Indices& envs) const {
  return scene_->get_links_pos(every_link(), envs);
}
std::vector<float> Entity::get_links_quat(const Indices& envs) const {
  return scene_->get_links_quat(every_link(), envs);
}
std::vector<float> Entity::get_links_vel(const Indices& envs) const {
  return scene_->get_links_vel(every_link(), envs);
}
std::vector<float> Entity::get_links_ang(const Indices& envs) const {
  return scene_->get_links_ang(every_link(), envs);
}
std::vector<float> Entity::get_pos(const Indices& envs) const {
  return scene_->get_links_pos({base()}, envs);
}
std::vector<float> Entity::get_quat(const Indices& envs) const {
  return scene_->get_links_quat({base()}, envs);
}
std::vector<float> Entity::get_vel(const Indices& envs) const {
  return scene_->get_links_vel({base()}, envs);
}
std::vector<float> Entity::get_ang(const Indices& envs) const {
  return scene_->get_links_ang({base()}, envs);
}

void Entity::set_pos(std::span<const float> pos, const Indices& envs) {
  const LinkInfo& link = scene_->info().links[at(base())];
  if (link.mocap >= 0) return scene_->set_mocap_pos(pos, {base()}, envs);
  COHORT_THROW_UNLESS(base_qpos() >= 0, "entity `{}` stands still: its base has no free joint", name());
  scene_->write_qpos(base_qpos(), 3, pos, envs);
}
void Entity::set_quat(std::span<const float> quat, const Indices& envs) {
  const LinkInfo& link = scene_->info().links[at(base())];
  if (link.mocap >= 0) return scene_->set_mocap_quat(quat, {base()}, envs);
  COHORT_THROW_UNLESS(base_qpos() >= 0, "entity `{}` stands still: its base has no free joint", name());
  scene_->write_qpos(base_qpos() + 3, 4, quat, envs);
}

std::vector<Contact> Entity::get_contacts(const Indices& envs) const {
  std::vector<Contact> all = scene_->get_contacts(envs);
  const auto mine = [this](int geom) { return std::find(geoms().begin(), geoms().end(), geom) != geoms().end(); };
  std::erase_if(all, [&](const Contact& c) { return !mine(c.geom1) && !mine(c.geom2); });
  return all;
}

double Entity::mass() const {
  double sum = 0;
  for (std::int32_t link : links()) sum += scene_->info().links[at(link)].mass;
  return sum;
}
void Entity::set_links_mass(std::span<const float> mass, const Indices& l, const Indices& envs) {
  scene_->set_links_mass(mass, global(links(), l, "link"), envs);
}
void Entity::set_geoms_friction(std::span<const float> friction, const Indices& g, const Indices& envs) {
  scene_->set_geoms_friction(friction, global(geoms(), g, "geom"), envs);
}
void Entity::set_dofs_armature(std::span<const float> armature, const Indices& d, const Indices& envs) {
  scene_->set_dofs_armature(armature, global(dofs(), d, "dof"), envs);
}
void Entity::set_dofs_damping(std::span<const float> damping, const Indices& d, const Indices& envs) {
  scene_->set_dofs_damping(damping, global(dofs(), d, "dof"), envs);
}

}  // namespace cohort::sim
