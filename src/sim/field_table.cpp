#include "sim/field_table.h"

#include "core/error.h"
#include "sim/engine.h"

namespace cohort::sim {

namespace {

using M = ModelInfo;
using D = DataView;

int one(const M&) {
  return 1;
}
int nv(const M& m) {
  return m.nv;
}
template <int N>
int links(const M& m) {
  return N * static_cast<int>(m.links.size());
}

/// By the fields' numbers.
constexpr FieldTraits kTable[kFieldCount] = {
    {"qpos", [](const M& m) { return m.nq; }, &D::qpos},
    {"qvel", nv, &D::qvel},
    {"act", [](const M& m) { return m.na; }, &D::act},
    {"warmstart", nv, &D::warmstart},
    {"time", one, &D::time},
    {"ctrl", [](const M& m) { return m.nu; }, &D::ctrl},
    {"qfrc_applied", nv, &D::applied},
    {"xfrc_applied", links<6>, &D::link_force},
    {"mocap_pos", [](const M& m) { return 3 * m.nmocap; }, &D::mocap_pos},
    {"mocap_quat", [](const M& m) { return 4 * m.nmocap; }, &D::mocap_quat},
    {"qacc", nv, &D::qacc},
    {"link_pos", links<3>, &D::link_pos},
    {"link_quat", links<4>, &D::link_quat},
    {"sensors", [](const M& m) { return m.nsensordata; }, &D::sensors},
    {"link_com", links<3>, &D::link_com},
    {"link_inertia", links<10>, &D::link_inertia},
    {"link_velocity", links<6>, &D::link_velocity},
    {"link_force", links<6>, &D::link_external},
    {"qfrc_actuator", nv, &D::qfrc_actuator},
    {"qfrc_constraint", nv, &D::qfrc_constraint},
    {"link_twist", links<6>, &D::link_twist},
    {"geom_force", [](const M& m) { return 6 * static_cast<int>(m.geoms.size()); }, &D::geom_force},
    {"status", one, nullptr, &D::status},
    {"contact_count", one, nullptr, &D::contact_count},
    {"solver_iterations", one, nullptr, &D::iterations},
};

}  // namespace

const FieldTraits& traits(Field field) {
  COHORT_CHECK(field >= Field::kQpos && field < Field::kFieldCount, "no such field");
  return kTable[static_cast<int>(field)];
}

const char* field_name(Field field) {
  return traits(field).name;
}

bool is_state(Field field) {
  return field < Field::kQacc || field == Field::kStatus;
}

int field_size(const ModelInfo& info, Field field) {
  return traits(field).size(info);
}

}  // namespace cohort::sim
