// Scene: poses and velocities of links, forces on them, contacts.
#include <array>
#include <cmath>

#include "core/error.h"
#include "sim/host/scene.h"
#include "sim/index.h"

namespace cohort::sim {

namespace {

struct Vec {
  double x = 0, y = 0, z = 0;
  friend Vec operator+(Vec a, Vec b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
  friend Vec operator-(Vec a, Vec b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
  friend Vec operator*(double s, Vec a) { return {s * a.x, s * a.y, s * a.z}; }
  friend Vec cross(Vec a, Vec b) { return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; }
};
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

/// What a unit velocity of a dof gives a link: velocity of its origin, and angular velocity, in the world.
struct Column {
  Vec linear{}, angular{};
};

/// A row of an array of floats, whatever its layout.
struct Floats {
  const float* first;
  double operator[](int i) const { return static_cast<double>(first[i]); }
  Vec vec(int i) const { return {(*this)[i], (*this)[i + 1], (*this)[i + 2]}; }
  Quat quat(int i) const { return Quat{(*this)[i], vec(i + 1)}.unit(); }
};

/// Calls visit(dof, column) for the dofs that move the link: its own from the last to the first, then its parent's, and
/// so on. A link's joints act one after the other: each turns (or moves) what the later ones have not turned yet, so
/// they are undone from the last to the first.
template <class Visit>
void jacobian_columns(const ModelInfo& m, const std::vector<std::vector<int>>& joints_of, int link, Floats qpos,
                      Floats pos, Floats quat, const Visit& visit) {
  const Vec x = pos.vec(3 * link);
  for (int b = link; b > 0; b = m.links[at(b)].parent) {
    Quat turn = quat.quat(4 * b);
    Vec origin = pos.vec(3 * b);
    const auto spin = [&](int dof, Vec axis, Vec anchor) { visit(dof, Column{cross(axis, x - anchor), axis}); };
    for (auto j = joints_of[at(b)].rbegin(); j != joints_of[at(b)].rend(); ++j) {
      const JointInfo& joint = m.joints[at(*j)];
      constexpr Vec kAxes[3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
      if (joint.type == JointType::kFree) {
        for (int k = 0; k < 3; ++k) visit(joint.dof + k, Column{kAxes[k], {}});
        for (int k = 0; k < 3; ++k) spin(joint.dof + 3 + k, turn.rotate(kAxes[k]), origin);
        continue;
      }
      const double moved = qpos[joint.qpos] - m.qpos0[at(joint.qpos)];
      const Vec axis = turn.rotate(vec(joint.axis));
      if (joint.type == JointType::kSlide) {
        visit(joint.dof, Column{axis, {}});
        origin = origin - moved * axis;
        continue;
      }
      const Vec anchor = origin + turn.rotate(vec(joint.pos));
      const bool ball = joint.type == JointType::kBall;
      for (int k = 0; k < (ball ? 3 : 1); ++k) spin(joint.dof + k, ball ? turn.rotate(kAxes[k]) : axis, anchor);
      const Quat own = ball ? qpos.quat(joint.qpos) : Quat{std::cos(moved / 2), std::sin(moved / 2) * vec(joint.axis)};
      turn = turn * own.inverse();
      origin = anchor - turn.rotate(vec(joint.pos));
    }
  }
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

template <class Visit>
void SceneParts::visit_columns(const Indices& links, const Indices& envs, const Visit& visit) const {
  const ModelInfo& m = scene_->info();
  const Scene::Selection of = scene_->select(own_links(links), static_cast<int>(m.links.size()), "link", envs, 1);
  std::vector<std::vector<int>> joints_of(m.links.size());
  for (std::size_t j = 0; j < m.joints.size(); ++j) joints_of[at(m.joints[j].link)].push_back(static_cast<int>(j));
  const Indices rows(of.envs);
  const std::vector<float> pos = scene_->get_links_pos({}, rows), quat = scene_->get_links_quat({}, rows),
                           q = scene_->get_qpos(rows), v = scene_->get_qvel(rows);
  for (std::size_t e = 0; e < of.envs.size(); ++e) {
    const auto row = [e](const std::vector<float>& all, std::size_t width) { return Floats{all.data() + e * width}; };
    const Floats qvel = row(v, at(m.nv));
    for (std::size_t i = 0; i < of.items.size(); ++i) {
      jacobian_columns(m, joints_of, of.items[i], row(q, at(m.nq)), row(pos, 3 * m.links.size()),
                       row(quat, 4 * m.links.size()),
                       [&](int dof, const Column& column) { visit(e * of.items.size() + i, dof, column, qvel[dof]); });
    }
  }
}

std::vector<float> SceneParts::links_velocity(const Indices& links, const Indices& envs, bool angular) const {
  const std::size_t count = own_links(links).resolve(static_cast<int>(scene_->info().links.size()), "link").size() *
                            envs.resolve(scene_->n_envs(), "environment").size();
  std::vector<Vec> sums(count);
  visit_columns(links, envs, [&](std::size_t row, int, const Column& column, double speed) {
    sums[row] = sums[row] + speed * (angular ? column.angular : column.linear);
  });
  std::vector<float> values;
  values.reserve(3 * count);
  for (const Vec& sum : sums)
    for (const double x : {sum.x, sum.y, sum.z}) values.push_back(static_cast<float>(x));
  return values;
}

std::vector<float> SceneParts::get_links_vel(const Indices& links, const Indices& envs) const {
  return links_velocity(links, envs, false);
}
std::vector<float> SceneParts::get_links_ang(const Indices& links, const Indices& envs) const {
  return links_velocity(links, envs, true);
}

std::vector<float> SceneParts::get_links_jacobian(const Indices& links, const Indices& envs) const {
  const std::vector<std::int32_t> dofs = own_dofs({}).resolve(scene_->info().nv, "dof");
  std::vector<int> column_of(at(scene_->info().nv), -1);
  for (std::size_t i = 0; i < dofs.size(); ++i) column_of[at(dofs[i])] = static_cast<int>(i);
  const std::size_t count = own_links(links).resolve(static_cast<int>(scene_->info().links.size()), "link").size() *
                            envs.resolve(scene_->n_envs(), "environment").size();
  std::vector<float> values(6 * count * dofs.size());
  visit_columns(links, envs, [&](std::size_t row, int dof, const Column& column, double) {
    if (column_of[at(dof)] < 0) return;  // another entity's, which bears this one
    float* to = &values[6 * row * dofs.size() + at(column_of[at(dof)])];
    for (const Vec& part : {column.linear, column.angular})
      for (const double x : {part.x, part.y, part.z}) *to = static_cast<float>(x), to += dofs.size();
  });
  return values;
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
