#include "sim/host/import/numbers.h"

#include <cmath>
#include <limits>
#include <string_view>
#include <type_traits>

#include <mujoco/mjxmacro.h>

#include "core/format.h"

namespace cohort::sim::mj {

namespace {

constexpr std::size_t kMost = 5;

bool ends_with_one_of(std::string_view text, std::initializer_list<std::string_view> ends) {
  for (const std::string_view end : ends) {
    if (text.ends_with(end)) return true;
  }
  return false;
}

/// "geom `floor`", "dof 3 of joint `hip`", "geom #2".
std::string element(const mjModel& m, std::string_view rows, mjtSize row) {
  const struct {
    std::string_view rows;
    const char* kind;
    const int* names;
  } kinds[] = {{"nbody", "body", m.name_bodyadr},       {"njnt", "joint", m.name_jntadr},
               {"ngeom", "geom", m.name_geomadr},       {"nsite", "site", m.name_siteadr},
               {"nmesh", "mesh", m.name_meshadr},       {"nhfield", "height field", m.name_hfieldadr},
               {"npair", "pair", m.name_pairadr},       {"neq", "equality", m.name_eqadr},
               {"ntendon", "tendon", m.name_tendonadr}, {"nactuator", "actuator", m.name_actuatoradr},
               {"nsensor", "sensor", m.name_sensoradr}, {"nkey", "keyframe", m.name_keyadr}};
  for (const auto& k : kinds) {
    if (k.rows != rows) continue;
    const std::string name = m.names + k.names[row];
    return format("{} {}", k.kind, name.empty() ? "#" + std::to_string(row) : "`" + name + "`");
  }
  if (rows == "nv") return element(m, "njnt", m.dof_jntid[row]);
  return format("{} #{}", rows.substr(1), row);
}

/// Calls look(field, rows' name, rows, columns, values) for the numbers that move something.
template <class Look>
void for_each_field(const mjModel& model, Look look) {
  [[maybe_unused]] const mjModel* m = &model;
  MJMODEL_POINTERS_PREAMBLE(m)
#define X(type, name, rows, columns)                                             \
  if constexpr (std::is_same_v<type, mjtNum>) {                                  \
    look(#name, #rows, model.rows, static_cast<mjtSize>(columns),                \
         reinterpret_cast<const mjtNum*>(static_cast<const void*>(model.name))); \
  }
#define XNV X
  X(mjtNum, qpos0, nq, 1)
  X(mjtNum, qpos_spring, nq, 1)
  MJMODEL_POINTERS_BODY
  MJMODEL_POINTERS_JOINT
  MJMODEL_POINTERS_DOF
  MJMODEL_POINTERS_GEOM
  MJMODEL_POINTERS_SITE
  MJMODEL_POINTERS_PAIR
  MJMODEL_POINTERS_EQUALITY
  MJMODEL_POINTERS_TENDON
  X(mjtNum, wrap_prm, nwrap, 1)
  MJMODEL_POINTERS_ACTUATOR
  MJMODEL_POINTERS_SENSOR
  X(mjtNum, hfield_size, nhfield, 4)
  X(mjtNum, key_time, nkey, 1)
  X(mjtNum, key_qpos, nkey, m->nq)
  X(mjtNum, key_qvel, nkey, m->nv)
  X(mjtNum, key_act, nkey, m->na)
  X(mjtNum, key_mpos, nkey, m->nmocap * 3)
  X(mjtNum, key_mquat, nkey, m->nmocap * 4)
  X(mjtNum, key_ctrl, nkey, m->nu)
#undef XNV
#undef X
}

/// Calls look(name, count, values) for the options.
template <class Look>
void for_each_option(const mjModel& model, Look look) {
#define X(type, name, count) \
  if constexpr (std::is_same_v<type, mjtNum>) look(#name, count, reinterpret_cast<const mjtNum*>(&model.opt.name));
#define XVEC X
  MJOPTION_FIELDS
#undef XVEC
#undef X
}

/// What the compiler works out from other fields.
bool is_derived(std::string_view field) {
  return field == "body_margin" || field == "body_subtreemass" || field == "dof_length" ||
         ends_with_one_of(field, {"0", "aabb", "rbound", "lengthrange"});
}

/// bad(field, value); of what is derived only where there is nothing else.
template <class Bad>
std::vector<std::string> find(const mjModel& m, Bad bad) {
  std::vector<std::string> found;
  for_each_option(m, [&](std::string_view name, int count, const mjtNum* values) {
    for (int i = 0; i < count && found.size() < kMost; ++i) {
      if (bad(name, values[i])) found.push_back(format("option {} is {}", name, values[i]));
    }
  });
  for (const bool derived : {false, true}) {
    if (!found.empty()) break;
    for_each_field(m, [&](std::string_view field, std::string_view rows, mjtSize n, mjtSize columns, const mjtNum* v) {
      if (is_derived(field) != derived || field.ends_with("_user")) return;
      for (mjtSize i = 0; i < n * columns && found.size() < kMost; ++i) {
        if (!bad(field, v[i])) continue;
        const std::size_t underscore = field.find('_');
        found.push_back(format("{}: its {} is {}", element(m, rows, i / columns),
                               underscore == field.npos ? field : field.substr(underscore + 1), v[i]));
        i += columns - 1 - i % columns;  // one of an element's is enough
      }
    });
  }
  return found;
}

}  // namespace

std::vector<std::string> impossible_numbers(const mjModel& m) {
  return find(m, [](std::string_view field, double value) {
    return std::isnan(value) || (std::isinf(value) && !ends_with_one_of(field, {"range", "cutoff", "yield"}));
  });
}

std::vector<std::string> numbers_beyond_single(const mjModel& m) {
  return find(m, [](std::string_view field, double value) {
    const bool weight = field == "body_mass" || field == "body_inertia";
    return (std::isfinite(value) && std::abs(value) > std::numeric_limits<float>::max()) ||
           (weight && value > 0 && value < std::numeric_limits<float>::min());
  });
}

}  // namespace cohort::sim::mj
