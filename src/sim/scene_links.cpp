// Scene: poses and velocities of links, forces on them, contacts.
#include <array>
#include <cmath>

#include "core/error.h"
#include "sim/index.h"
#include "sim/scene.h"

namespace cohort::sim {

namespace {

struct Vec {
  double x = 0, y = 0, z = 0;
  friend Vec operator+(Vec a, Vec b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
  friend Vec operator-(Vec a, Vec b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
  friend Vec operator*(double s, Vec a) { return {s * a.x, s * a.y, s * a.z}; }
};
Vec cross(Vec a, Vec b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
Vec vec(const std::array<double, 3>& a) {
  return {a[0], a[1], a[2]};
}

struct Quat {
  double w = 1;
  Vec v{};
  Quat unit() const {
    const double n = std::sqrt(w * w + v.x * v.x + v.y * v.y + v.z * v.z);
    return n > 0 ? Quat{w / n, 1 / n * v} : Quat{};
  }
  Quat inverse() const { return {w, -1 * v}; }
  Vec rotate(Vec a) const { return a + 2 * cross(v, cross(v, a) + w * a); }
};
Quat operator*(const Quat& a, const Quat& b) {
  return {a.w * b.w - (a.v.x * b.v.x + a.v.y * b.v.y + a.v.z * b.v.z), a.w * b.v + b.w * a.v + cross(a.v, b.v)};
}

/// Velocity of a link's origin, and its angular velocity, in the world.
struct Motion {
  Vec linear{}, angular{};
};

/// A row of an array of floats, whatever its layout.
struct Floats {
  const float* first;
  double operator[](int i) const { return static_cast<double>(first[i]); }
  Vec vec(int i) const { return {(*this)[i], (*this)[i + 1], (*this)[i + 2]}; }
  Quat quat(int i) const { return Quat{(*this)[i], vec(i + 1)}.unit(); }
};

/// From the links' poses and the dofs' velocities, down the tree. A link's joints act one after the other: each turns
/// (or moves) what the later ones have not turned yet, so they are undone from the last to the first.
std::vector<Motion> motions(const ModelInfo& m, const std::vector<std::vector<int>>& joints_of, Floats qpos,
                            Floats qvel, Floats pos, Floats quat) {
  std::vector<Motion> motion(m.links.size());
  for (std::size_t b = 1; b < m.links.size(); ++b) {
    const int parent = m.links[b].parent, link = static_cast<int>(b);
    Motion& here = motion[b];
    const Vec x = pos.vec(3 * link);
    here.angular = motion[at(parent)].angular;
    here.linear = motion[at(parent)].linear + cross(here.angular, x - pos.vec(3 * parent));
    Quat turn = quat.quat(4 * link);
    Vec origin = x;
    for (auto j = joints_of[b].rbegin(); j != joints_of[b].rend(); ++j) {
      const JointInfo& joint = m.joints[at(*j)];
      if (joint.type == JointType::kFree) {
        here.linear = qvel.vec(joint.dof);
        here.angular = turn.rotate(qvel.vec(joint.dof + 3));
        continue;
      }
      const double moved = qpos[joint.qpos] - m.qpos0[at(joint.qpos)];
      const Vec axis = turn.rotate(vec(joint.axis));
      if (joint.type == JointType::kSlide) {
        here.linear = here.linear + qvel[joint.dof] * axis;
        origin = origin - moved * axis;
        continue;
      }
      const Vec anchor = origin + turn.rotate(vec(joint.pos));
      const bool ball = joint.type == JointType::kBall;
      const Vec spin = ball ? turn.rotate(qvel.vec(joint.dof)) : qvel[joint.dof] * axis;
      here.angular = here.angular + spin;
      here.linear = here.linear + cross(spin, x - anchor);
      const Quat own = ball ? qpos.quat(joint.qpos) : Quat{std::cos(moved / 2), std::sin(moved / 2) * vec(joint.axis)};
      turn = turn * own.inverse();
      origin = anchor - turn.rotate(vec(joint.pos));
    }
  }
  return motion;
}

}  // namespace

std::vector<float> SceneParts::get_links_pos(const Indices& links, const Indices& envs) const {
  const Scene::Selection from =
      scene_->select(own_links(links), static_cast<int>(scene_->info().links.size()), "link", envs, 3);
  return scene_->read(scene_->derived(Field::kLinkPos), from);
}
std::vector<float> SceneParts::get_links_quat(const Indices& links, const Indices& envs) const {
  const Scene::Selection from =
      scene_->select(own_links(links), static_cast<int>(scene_->info().links.size()), "link", envs, 4);
  return scene_->read(scene_->derived(Field::kLinkQuat), from);
}

std::vector<float> SceneParts::links_velocity(const Indices& links, const Indices& envs, bool angular) const {
  const ModelInfo& m = scene_->info();
  const Scene::Selection of = scene_->select(own_links(links), static_cast<int>(m.links.size()), "link", envs, 3);
  std::vector<std::vector<int>> joints_of(m.links.size());
  for (std::size_t j = 0; j < m.joints.size(); ++j) joints_of[at(m.joints[j].link)].push_back(static_cast<int>(j));
  const Indices rows(of.envs);
  const std::vector<float> pos = scene_->get_links_pos({}, rows), quat = scene_->get_links_quat({}, rows),
                           q = scene_->get_qpos(rows), v = scene_->get_qvel(rows);
  std::vector<float> values;
  values.reserve(of.per_env() * of.envs.size());
  for (std::size_t e = 0; e < of.envs.size(); ++e) {
    const auto row = [e](const std::vector<float>& all, std::size_t width) { return Floats{all.data() + e * width}; };
    const std::vector<Motion> motion = motions(m, joints_of, row(q, at(m.nq)), row(v, at(m.nv)),
                                               row(pos, 3 * m.links.size()), row(quat, 4 * m.links.size()));
    for (std::int32_t link : of.items) {
      const Vec& is = angular ? motion[at(link)].angular : motion[at(link)].linear;
      for (double x : {is.x, is.y, is.z}) values.push_back(static_cast<float>(x));
    }
  }
  return values;
}

std::vector<float> SceneParts::get_links_vel(const Indices& links, const Indices& envs) const {
  return links_velocity(links, envs, false);
}
std::vector<float> SceneParts::get_links_ang(const Indices& links, const Indices& envs) const {
  return links_velocity(links, envs, true);
}

void Scene::set_links_force(std::span<const float> wrench, const Indices& links, const Indices& envs) {
  need_built();
  write(engine_->host_view(Field::kXfrcApplied, Access::kWrite),
        select(links, static_cast<int>(info().links.size()), "link", envs, 6), wrench);
}

void Scene::set_mocap(Field field, int components, std::span<const float> values, const Indices& links,
                      const Indices& envs) {
  const ModelInfo& m = info();
  Selection to = select(links, static_cast<int>(m.links.size()), "link", envs, components);
  for (std::int32_t& link : to.items) {
    COHORT_THROW_UNLESS(m.links[at(link)].mocap >= 0, "link {} (`{}`) is no mocap body: its joints move it", link,
                        m.links[at(link)].name);
    link = m.links[at(link)].mocap;
  }
  write(engine_->host_view(field, Access::kWrite), to, values);
}
void Scene::set_mocap_pos(std::span<const float> pos, const Indices& links, const Indices& envs) {
  set_mocap(Field::kMocapPos, 3, pos, links, envs);
}
void Scene::set_mocap_quat(std::span<const float> quat, const Indices& links, const Indices& envs) {
  set_mocap(Field::kMocapQuat, 4, quat, links, envs);
}

std::vector<Contact> SceneParts::get_contacts(const Indices& envs) const {
  const int geoms = static_cast<int>(scene_->info().geoms.size());
  std::vector<bool> mine(at(geoms), false);
  for (const std::int32_t geom : own_geoms({}).resolve(geoms, "geom")) mine[at(geom)] = true;
  std::vector<Contact> found;
  for (const std::int32_t env : envs.resolve(scene_->n_envs(), "environment")) {
    for (Contact& contact : scene_->engine().contacts(env)) {
      if (!mine[at(contact.geom1)] && !mine[at(contact.geom2)]) continue;
      contact.env = env;
      found.push_back(contact);
    }
  }
  return found;
}

}  // namespace cohort::sim
