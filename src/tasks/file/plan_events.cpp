#include <algorithm>

#include "core/error.h"
#include "core/format.h"
#include "tasks/file/angles.h"
#include "tasks/file/ik_action.h"
#include "tasks/file/patterns.h"
#include "tasks/file/plan_reader.h"

namespace cohort::tasks {

using config::Json;
using config::JsonSection;
using terms::Expr;
using terms::Graph;
using terms::Op;

std::array<Range, 6> PlanReader::six_of(JsonSection& s, const std::string& key) {
  std::array<Range, 6> all;
  s.in(key, [&](JsonSection& r) {
    for (std::size_t i = 0; i < 6; ++i) {
      all[i] = take_range(r, kSix[i]);
      if (key == "pose_range" && i >= 3) check_angles(all[i], key + "." + kSix[i]);
    }
  });
  return all;
}

int PlanReader::entity_of(JsonSection& s) const {
  std::string name = robot_;
  s.take("entity", name);
  const auto& all = plan_.model.entities;
  const auto entity = std::ranges::find(all, name, &TaskModel::Entity::name);
  std::vector<std::string> names;
  for (const TaskModel::Entity& e : all) names.push_back(e.name);
  COHORT_THROW_UNLESS(entity != all.end(), "there is no entity '{}'; there is {}", name, join(names, ", "));
  return static_cast<int>(entity - all.begin());
}

void PlanReader::read_events(JsonSection& events, Quantities& names) {
  each(events, [&](const std::string& name, const Json& value) {
    JsonSection s(value, events.path() + "." + name, wrong_);
    std::string type = name;
    s.take("type", type);
    static const std::vector<std::string> kTypes{"reset_root_state_uniform", "reset_joints_by_offset",
                                                 "reset_joints_by_scale",    "push_by_setting_velocity",
                                                 "place_on_ground",          "place_frame_uniform"};
    if (type == "push_by_setting_velocity") return read_push(name, s, names);
    if (is_randomization(type)) {
      std::vector<sim::EntityInfo> entities;
      for (const TaskModel::Entity& e : plan_.model.entities) entities.push_back({e.name, e.links, e.geoms});
      plan_.randomizations.push_back(read_randomization(s, name, plan_.model.info, entities, robot_));
      return;
    }
    ResetEvent event{.name = name};
    if (type == "reset_root_state_uniform") {
      event.kind = ResetEvent::kBase;
      event.entity = entity_of(s);
      event.pose = six_of(s, "pose_range"), event.velocity = six_of(s, "velocity_range");
      const TaskModel::Entity& entity = plan_.model.entities[static_cast<std::size_t>(event.entity)];
      COHORT_THROW_UNLESS(entity.free_qpos >= 0 || entity.mocap >= 0, "{} is fixed: it begins where the scene has it",
                          entity.name);
      COHORT_THROW_UNLESS(entity.free_qpos >= 0 || !s.has("velocity_range"), "{} is a marker: it has no velocity",
                          entity.name);
    } else if (type == "reset_joints_by_offset" || type == "reset_joints_by_scale") {
      const bool offset = type == "reset_joints_by_offset";
      event.kind = offset ? ResetEvent::kJointsByOffset : ResetEvent::kJointsByScale;
      event.joints = names.joints(texts_of(s, "joints", {}));
      event.position = take_range(s, "position_range", offset ? Range{0, 0} : Range{1, 1});
      event.speed = take_range(s, "velocity_range");
      for (const int j : event.joints)
        if (offset && plan_.model.info.joints[static_cast<std::size_t>(j)].type == sim::JointType::kHinge)
          check_angles(event.position, "position_range");
    } else if (type == "place_frame_uniform") {
      event.kind = ResetEvent::kFrame;
      std::string site, link;
      s.take("site", site), s.take("link", link);
      COHORT_THROW_UNLESS(site.empty() != link.empty(), "needs `site` or `link`: the frame that it puts somewhere");
      event.frame = ik_frame(plan_.model.info, site.empty() ? link : site, link.empty());
      event.joints = joints_moving(event.frame, s, names);
      event.pose = six_of(s, "pose_range");
      const FramePose begin = pose_at_start(event.frame);
      event.frame_pos = begin.pos, event.frame_quat = begin.quat;
    } else if (type == "place_on_ground") {
      event.kind = ResetEvent::kOnGround;
      event.entity = entity_of(s);
      const TaskModel::Entity& entity = plan_.model.entities[static_cast<std::size_t>(event.entity)];
      COHORT_THROW_UNLESS(entity.free_qpos >= 0, "{} is fixed: it begins where the scene has it", entity.name);
      std::vector<std::string> links;
      for (const int link : entity.links) links.push_back(plan_.model.info.links[static_cast<std::size_t>(link)].name);
      for (const int i : match_names(links, texts_of(s, "links", {".*"}), "link"))
        event.links.push_back(entity.links[static_cast<std::size_t>(i)]);
      std::vector<double> point{0, 0, 0};
      s.take("point", point), s.take("clearance", event.clearance);
      COHORT_THROW_UNLESS(point.size() == 3, "point needs three numbers, m, in the link's frame");
      std::ranges::copy(point, event.point.begin());
    } else {
      std::vector<std::string> types = kTypes;
      for (const RandomizationKind& kind : randomization_kinds()) types.emplace_back(kind.name);
      const std::string near = config::nearest(type, types);
      throw Error(format("there is no event '{}'{}; there are {}", type,
                         near.empty() ? "" : format(", did you mean '{}'?", near), join(types, ", ")));
    }
    plan_.resets.push_back(std::move(event));
  });
}

void PlanReader::read_push(const std::string& name, JsonSection& s, Quantities& names) {
  Graph& g = names.graph();
  const std::string place = "events." + name;
  const TaskModel::Entity& entity = plan_.model.entities[static_cast<std::size_t>(entity_of(s))];
  COHORT_THROW_UNLESS(entity.free_dof >= 0, "{} is fixed: it cannot be pushed", entity.name);
  const std::array<Range, 6> ranges = six_of(s, "velocity_range");
  const Expr anew = timer(names, place, take_range(s, "interval_range_s", {10, 15}), take_range(s, "first_range_s"));
  const Expr now = g.binary(Op::kAnd, anew, g.unary(Op::kNot, g.started(names.step())));
  pushes_.push_back(now);
  std::vector<Expr> parts;
  for (std::size_t i = 0; i < 6; ++i) parts.push_back(drawn(g, place + "." + kSix[i], ranges[i]));
  const Expr turn = g.rotate(names.of_entity(entity, "quaternion"), g.join({parts[3], parts[4], parts[5]}), true);
  std::vector<int> dofs;
  for (int i = 0; i < 6; ++i) dofs.push_back(entity.free_dof + i);
  const int array = names.array({ArrayPlace::kField, static_cast<int>(sim::Field::kQvel)});
  const Expr before = g.load(array, dofs);
  const Expr change = g.join({parts[0], parts[1], parts[2], turn});
  g.store_where(now, array, entity.free_dof, g.add(before, change));
}

}  // namespace cohort::tasks
