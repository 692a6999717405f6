#include <algorithm>
#include <map>
#include <tuple>

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "bindings.h"
#include "core/array_view.h"
#include "formats/video_writer.h"
#include "scene_core.h"
#include "sim/host/lost_positions.h"
#include "sim/index.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace cohort::python {

namespace {

using sim::at;
using Floats = InArray<float>;
using Chosen = std::optional<InIndices>;
using FloatArray = nb::ndarray<nb::numpy, float>;

sim::Indices indices(const Chosen& chosen) {
  return chosen ? sim::Indices(vector_of(*chosen)) : sim::Indices();
}

sim::Field field_of(const std::string& name) {
  for (int i = 0; i < sim::kFieldCount; ++i)
    if (name == sim::field_name(static_cast<sim::Field>(i))) return static_cast<sim::Field>(i);
  throw Error(format("there is no field `{}`", name));
}

sim::Parameter parameter_of(const std::string& name) {
  for (int i = 0; i < sim::kParameterCount; ++i)
    if (name == sim::parameter_name(static_cast<sim::Parameter>(i))) return static_cast<sim::Parameter>(i);
  throw Error(format("there is no parameter `{}`", name));
}

/// A field in host memory, in place on a CPU; it keeps its scene alive.
nb::ndarray<nb::numpy> view(nb::object self, const std::string& name) {
  auto& core = nb::cast<SceneCore&>(self);
  const sim::Field field = field_of(name);
  const ArrayView from = without_lock([&] {
    return core.with([&](sim::Scene& scene) {
      return sim::is_derived(field) ? scene.host_view(field) : scene.engine().host_view(field, sim::Access::kRead);
    });
  });
  std::array<std::size_t, kMaxRank> shape{};
  std::array<std::int64_t, kMaxRank> strides{};
  for (std::size_t i = 0; i < at(from.rank); ++i) shape[i] = at(from.shape[i]), strides[i] = from.strides[i];
  return {from.data, at(from.rank), shape.data(), self, strides.data(), dtype_of(from.type)};
}

/// What a model file is made of, before and after the build: names without the entity's.
nb::dict description(SceneCore& core, int entity_index) {
  return core.with([&](sim::Scene& scene) {
    sim::Entity entity = core.entity(entity_index);
    const sim::ModelInfo& info = scene.info();
    const std::string prefix = entity.name() + "/";
    const auto local = [&](const std::string& name) {
      return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
    };
    nb::list links, joints, geoms;
    const auto members = entity.links();
    for (const std::int32_t l : members) {
      const sim::LinkInfo& link = info.links[at(l)];
      links.append(nb::make_tuple(local(link.name), l, link.parent, link.mass, link.mocap, info.is_fixed(l)));
    }
    for (std::size_t j = 0; j < info.joints.size(); ++j) {
      const sim::JointInfo& joint = info.joints[j];
      if (std::find(members.begin(), members.end(), joint.link) == members.end()) continue;
      joints.append(nb::make_tuple(local(joint.name), static_cast<int>(joint.type), joint.link, joint.qpos, joint.dof,
                                   joint.limited, joint.range, static_cast<int>(j)));
    }
    for (const std::int32_t g : entity.geoms())
      geoms.append(nb::make_tuple(local(info.geoms[at(g)].name), g, info.geoms[at(g)].link));
    nb::dict d;
    d["links"] = links, d["joints"] = joints, d["geoms"] = geoms;
    return d;
  });
}

/// (name, dof, kind, gear, force range, the dofs of its joint or tendon) of each actuator of the scene.
nb::list actuators(SceneCore& core) {
  return core.with([&](sim::Scene& scene) {
    nb::list list;
    for (const sim::ActuatorInfo& a : scene.info().actuators)
      list.append(nb::make_tuple(a.name, a.dof, static_cast<int>(a.kind), a.gear, a.force_range, a.moves, a.ctrl));
    return list;
  });
}

using ActuatorTuple = std::tuple<std::string, double, double, std::optional<double>>;  ///< pattern, kp, kv, effort
using ArmatureTuple = std::tuple<std::string, double>;
using SensorTuple = std::tuple<std::string, std::string, std::string>;  ///< type, object, name

sim::ModelEdits edits_of(const std::vector<ActuatorTuple>& actuators, const std::vector<ArmatureTuple>& armatures,
                         const std::vector<SensorTuple>& sensors, bool collision, std::optional<double> friction,
                         std::optional<std::array<double, 2>> solref, std::optional<std::array<float, 4>> rgba) {
  sim::ModelEdits edits;
  for (const auto& [pattern, kp, kv, effort] : actuators) {
    sim::ActuatorEdit edit{.joints = {pattern}, .stiffness = kp, .damping = kv};
    edit.effort_limit = effort;
    edits.actuators.push_back(std::move(edit));
  }
  for (const auto& [pattern, armature] : armatures) {
    sim::JointEdit edit{.pattern = pattern};
    edit.armature = armature;
    edits.joints.push_back(std::move(edit));
  }
  for (const auto& [type, object, name] : sensors)
    edits.sensors.push_back({.type = type, .object = object, .name = name});
  if (!collision) edits.disable_collisions = {".*"};
  if (friction || solref || rgba) {
    sim::GeomEdit edit{.pattern = ".*"};
    if (friction) edit.friction = {*friction};
    if (solref) edit.solref = {(*solref)[0], (*solref)[1]};
    edit.rgba = rgba;
    edits.geoms.push_back(std::move(edit));
  }
  return edits;
}

}  // namespace

void bind_scene(nb::module_& m) {
  m.def(
      "write_video",
      [](const std::string& path,
         const nb::ndarray<const std::uint8_t, nb::ndim<4>, nb::c_contig, nb::device::cpu>& frames, double fps) {
        const auto height = static_cast<int>(frames.shape(1)), width = static_cast<int>(frames.shape(2));
        COHORT_THROW_UNLESS(frames.shape(3) == 3, "a video of pictures with {} components: 3 (rgb)", frames.shape(3));
        without_lock([&] {
          VideoWriter video(path, width, height, fps);
          const std::size_t one = at(height) * at(width) * 3;
          for (std::size_t i = 0; i < frames.shape(0); ++i) video.add({frames.data() + i * one, one});
          video.finish();
        });
      },
      "path"_a, "frames"_a, "fps"_a, "Writes (frames, height, width, 3) uint8 as H.264 into an .mp4 file.");

  nb::class_<SceneCore>(m, "Scene",
                        "Many copies of one rigid scene (docs/guide/simulate.md); cohort.gs is built on it.")
      .def(
          "__init__",
          [](SceneCore* self, double timestep, int substeps, std::array<double, 3> gravity,
             std::optional<std::string> integrator, std::optional<std::string> solver, std::optional<std::string> cone,
             std::optional<int> iterations, std::optional<double> tolerance, std::optional<int> ls_iterations,
             std::optional<double> ls_tolerance, std::optional<int> noslip_iterations,
             std::optional<double> noslip_tolerance, std::optional<double> impratio, const std::string& engine,
             const std::string& device, int threads, std::uint64_t seed, int contact_capacity,
             std::vector<std::array<std::string, 2>> exclude, bool report_stops) {
            sim::SceneOptions options;
            options.timestep = timestep;
            options.substeps = substeps;
            options.gravity = gravity;
            options.integrator = std::move(integrator);
            options.solver = std::move(solver);
            options.cone = std::move(cone);
            options.iterations = iterations;
            options.tolerance = tolerance;
            options.ls_iterations = ls_iterations;
            options.ls_tolerance = ls_tolerance;
            options.noslip_iterations = noslip_iterations;
            options.noslip_tolerance = noslip_tolerance;
            options.impratio = impratio;
            options.engine = sim::parse_engine(engine);
            options.device = parse_device(device);
            options.threads = threads;
            options.seed = seed;
            options.contact_capacity = contact_capacity;
            options.exclude = std::move(exclude);
            options.report_stops = report_stops;
            new (self) SceneCore(options);
          },
          "timestep"_a, "substeps"_a = 1, "gravity"_a = std::array<double, 3>{0, 0, -9.81}, "integrator"_a = nb::none(),
          "solver"_a = nb::none(), "cone"_a = nb::none(), "iterations"_a = nb::none(), "tolerance"_a = nb::none(),
          "ls_iterations"_a = nb::none(), "ls_tolerance"_a = nb::none(), "noslip_iterations"_a = nb::none(),
          "noslip_tolerance"_a = nb::none(), "impratio"_a = nb::none(), "engine"_a = "batched", "device"_a = "cpu",
          "threads"_a = 1, "seed"_a = 0, "contact_capacity"_a = 0,
          "exclude"_a = std::vector<std::array<std::string, 2>>{}, "report_stops"_a = false)
      .def(
          "add_model",
          [](SceneCore& core, const std::string& kind, const std::string& file, const std::string& xml,
             const std::string& name, std::array<double, 3> pos, std::array<double, 4> quat, bool fixed,
             const std::vector<ActuatorTuple>& actuators, const std::vector<ArmatureTuple>& armatures,
             const std::vector<SensorTuple>& sensors, bool remove_actuators, bool collision,
             std::optional<double> friction, std::optional<std::array<double, 2>> solref,
             std::optional<std::array<float, 4>> rgba, bool repair_inertia) {
            sim::ModelEdits edits = edits_of(actuators, armatures, sensors, collision, friction, solref, rgba);
            edits.repair_inertia = repair_inertia;
            edits.remove_actuators = remove_actuators;
            if (kind == "urdf") {
              return core.add(sim::Urdf{.file = file, .xml = xml, .pose = {pos, quat}, .fixed = fixed, .edits = edits},
                              name);
            }
            return core.add(sim::Mjcf{.file = file, .xml = xml, .pose = sim::Pose{pos, quat}, .edits = edits}, name);
          },
          "kind"_a, "file"_a, "xml"_a, "name"_a, "pos"_a, "quat"_a, "fixed"_a = false,
          "actuators"_a = std::vector<ActuatorTuple>{}, "armatures"_a = std::vector<ArmatureTuple>{},
          "sensors"_a = std::vector<SensorTuple>{}, "remove_actuators"_a = false, "collision"_a = true,
          "friction"_a = nb::none(), "solref"_a = nb::none(), "rgba"_a = nb::none(), "repair_inertia"_a = false,
          "An entity from an MJCF or URDF file or text; its index. The edits are those of sim/host/model_edits.h.")
      .def(
          "add_plane",
          [](SceneCore& core, const std::string& name, std::array<double, 3> pos, std::array<double, 4> quat,
             double friction, std::array<float, 4> rgba) {
            return core.add(sim::Plane{.pose = {pos, quat}, .friction = {friction, 0.005, 0.0001}, .rgba = rgba}, name);
          },
          "name"_a, "pos"_a, "quat"_a, "friction"_a, "rgba"_a)
      .def(
          "add_terrain",
          [](SceneCore& core, const std::string& name,
             const nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>& heights,
             std::array<double, 2> size, double height, double base, std::array<double, 3> pos, double friction) {
            sim::Terrain terrain;
            terrain.rows = static_cast<int>(heights.shape(0)), terrain.cols = static_cast<int>(heights.shape(1));
            terrain.heights.assign(heights.data(), heights.data() + heights.size());
            terrain.size = size, terrain.height = height, terrain.base = base;
            terrain.pose.pos = pos;
            terrain.friction = {friction, 0.005, 0.0001};
            return core.add(std::move(terrain), name);
          },
          "name"_a, "heights"_a, "size"_a, "height"_a, "base"_a, "pos"_a, "friction"_a,
          "A height field: (rows along y, columns along x), centred at pos in x and y.")
      .def(
          "build",
          [](SceneCore& core, int n_envs, std::array<double, 2> spacing) {
            without_lock([&] { core.with([&](sim::Scene& scene) { scene.build(n_envs, spacing); }); });
          },
          "n_envs"_a, "env_spacing"_a = std::array<double, 2>{0, 0})
      .def(
          "lost_positions",
          [](SceneCore& core, std::int64_t steps) {
            return core.with([&](sim::Scene& scene) { return sim::describe_lost_positions(scene, steps); });
          },
          "steps"_a, "What single precision may have lost of positions after so many timesteps, in words; or nothing.")
      .def_prop_ro("warnings",
                   [](SceneCore& core) {
                     return core.with([](sim::Scene& scene) {
                       return std::vector<std::string>(scene.warnings().begin(), scene.warnings().end());
                     });
                   })
      .def_prop_ro(
          "sizes",
          [](SceneCore& core) {
            return core.with([](sim::Scene& scene) {
              const sim::ModelInfo& i = scene.info();
              return nb::make_tuple(i.nq, i.nv, i.nu, static_cast<int>(i.links.size()),
                                    static_cast<int>(i.geoms.size()), i.nmocap);
            });
          },
          "(coordinates, dofs, controls, links with the world, geoms, mocap bodies)")
      .def(
          "qpos0",
          [](SceneCore& core) {
            std::vector<double> q = core.with([](sim::Scene& scene) { return scene.info().qpos0; });
            const std::size_t n = q.size();
            return owned(std::move(q), {n});
          },
          "(coordinates) of the model's default state.")
      .def("description", &description, "entity"_a)
      .def("actuators", &actuators)
      .def(
          "environment_offset",
          [](SceneCore& core, int env) {
            return core.with([&](sim::Scene& scene) { return scene.environment_offset(env); });
          },
          "env"_a, "Where a picture of several environments puts this one, (x, y) m.")
      .def("view", &view, "field"_a,
           "(environments, size) of a field, in place on a CPU; it keeps the scene alive. Read only.")
      .def(
          "step",
          [](SceneCore& core, int count) {
            without_lock([&] {
              core.with([&](sim::Scene& scene) {
                for (int i = 0; i < count; ++i) scene.step();
              });
            });
          },
          "count"_a = 1)
      .def(
          "reset",
          [](SceneCore& core, const Chosen& envs) {
            const sim::Indices which = indices(envs);
            without_lock([&] { core.with([&](sim::Scene& scene) { scene.reset(which); }); });
          },
          "envs"_a = nb::none())
      .def(
          "why_stopped",
          [](SceneCore& core, int env) { return core.with([&](sim::Scene& scene) { return scene.why_stopped(env); }); },
          "env"_a)
      .def(
          "overlaps",
          [](SceneCore& core, int env) { return core.with([&](sim::Scene& scene) { return scene.overlaps(env); }); },
          "env"_a = 0)
      .def(
          "set_qpos",
          [](SceneCore& core, const Floats& values, const InIndices& columns, const Chosen& envs) {
            // Of some columns, in these environments.
            const sim::Indices which = indices(envs);
            const std::vector<std::int32_t> items = vector_of(columns);
            without_lock([&] {
              core.with([&](sim::Scene& scene) {
                std::vector<float> q = scene.get_qpos(which);
                const std::size_t nq = at(scene.info().nq), rows = nq > 0 ? q.size() / nq : 0;
                const bool broadcast = values.size() == items.size();
                COHORT_THROW_UNLESS(broadcast || values.size() == rows * items.size(),
                                    "{} coordinates given for {} environments of {}", values.size(), rows,
                                    items.size());
                for (std::size_t r = 0; r < rows; ++r)
                  for (std::size_t i = 0; i < items.size(); ++i)
                    q[r * nq + at(items[i])] = values.data()[(broadcast ? 0 : r * items.size()) + i];
                scene.set_qpos(q, which);
              });
            });
          },
          "values"_a, "columns"_a, "envs"_a = nb::none())
      .def(
          "set_mocap",
          [](SceneCore& core, const Floats& values, int link, bool quat, const Chosen& envs) {
            const sim::Indices which = indices(envs);
            without_lock([&] {
              core.with([&](sim::Scene& scene) {
                if (quat) scene.set_mocap_quat(span_of(values), link, which);
                if (!quat) scene.set_mocap_pos(span_of(values), link, which);
              });
            });
          },
          "values"_a, "link"_a, "quat"_a, "envs"_a = nb::none())
      .def(
          "dofs",
          [](SceneCore& core, const std::string& what, const InIndices& dofs, const Chosen& envs) {
            const sim::Indices which = indices(envs), items(vector_of(dofs));
            std::vector<float> values = without_lock([&] {
              return core.with([&](sim::Scene& scene) {
                return what == "position" ? scene.get_dofs_position(items, which)
                                          : scene.get_dofs_velocity(items, which);
              });
            });
            const std::size_t n = dofs.size(), rows = n > 0 ? values.size() / n : 0;
            return owned(std::move(values), {rows, n});
          },
          "what"_a, "dofs"_a, "envs"_a = nb::none(), "(environments, dofs): `position` or `velocity`")
      .def(
          "set_dofs",
          [](SceneCore& core, const std::string& what, const Floats& values, const InIndices& dofs,
             const Chosen& envs) {
            const sim::Indices which = indices(envs), items(vector_of(dofs));
            const std::span<const float> v = span_of(values);
            without_lock([&] {
              core.with([&](sim::Scene& scene) {
                if (what == "position") return scene.set_dofs_position(v, items, which);
                if (what == "velocity") return scene.set_dofs_velocity(v, items, which);
                if (what == "control_position") return scene.control_dofs_position(v, items, which);
                if (what == "control_velocity") return scene.control_dofs_velocity(v, items, which);
                if (what == "control_force") return scene.control_dofs_force(v, items, which);
                if (what == "kp") return scene.set_dofs_kp(v, items, which);
                if (what == "kv") return scene.set_dofs_kv(v, items, which);
                throw Error(format("there is no `{}` of dofs to set", what));
              });
            });
          },
          "what"_a, "values"_a, "dofs"_a, "envs"_a = nb::none(),
          "(environments, dofs) or (dofs): position, velocity, control_position, control_velocity, control_force, kp, "
          "kv")
      .def(
          "set_force_range",
          [](SceneCore& core, const Floats& lower, const Floats& upper, const InIndices& dofs, const Chosen& envs) {
            const sim::Indices which = indices(envs);
            const std::vector<std::int32_t> items = vector_of(dofs);
            without_lock([&] {
              core.with([&](sim::Scene&) { core.set_force_range(span_of(lower), span_of(upper), items, which); });
            });
          },
          "lower"_a, "upper"_a, "dofs"_a, "envs"_a = nb::none())
      .def(
          "links",
          [](SceneCore& core, const std::string& what, const InIndices& links, const Chosen& envs) {
            const sim::Indices which = indices(envs), items(vector_of(links));
            std::vector<float> values = without_lock([&] {
              return core.with([&](sim::Scene& scene) {
                if (what == "pos") return scene.get_links_pos(items, which);
                if (what == "quat") return scene.get_links_quat(items, which);
                if (what == "vel") return scene.get_links_vel(items, which);
                if (what == "ang") return scene.get_links_ang(items, which);
                throw Error(format("there is no `{}` of links to get", what));
              });
            });
            const std::size_t n = links.size(), width = what == "quat" ? 4 : 3;
            const std::size_t rows = n > 0 ? values.size() / (n * width) : 0;
            return owned(std::move(values), {rows, n, width});
          },
          "what"_a, "links"_a, "envs"_a = nb::none(),
          "(environments, links, 3 or 4): pos, quat, vel, ang, in the world")
      .def(
          "jacobian",
          [](SceneCore& core, int link, const Chosen& envs) {
            const sim::Indices which = indices(envs);
            std::vector<float> values = without_lock(
                [&] { return core.with([&](sim::Scene& scene) { return scene.get_links_jacobian(link, which); }); });
            const std::size_t nv = core.with([](sim::Scene& scene) { return at(scene.info().nv); });
            const std::size_t rows = nv > 0 ? values.size() / (6 * nv) : 0;
            return owned(std::move(values), {rows, std::size_t{6}, nv});
          },
          "link"_a, "envs"_a = nb::none(), "(environments, 6, dofs of the scene), of the link's origin, in the world")
      .def(
          "parameter",
          [](SceneCore& core, const std::string& name, const Chosen& items, const Chosen& envs) {
            const sim::Indices which = indices(envs), columns = indices(items);
            std::size_t rows = 0;
            std::vector<float> values = without_lock([&] {
              return core.with([&](sim::Scene& scene) {
                rows = which.resolve(scene.n_envs(), "environment").size();
                return scene.get_parameter(parameter_of(name), which, columns);
              });
            });
            const std::size_t n = rows > 0 ? values.size() / rows : 0;
            return owned(std::move(values), {rows, n});
          },
          "name"_a, "items"_a = nb::none(), "envs"_a = nb::none())
      .def(
          "set_parameter",
          [](SceneCore& core, const std::string& name, const Floats& values, const Chosen& items, const Chosen& envs) {
            const sim::Indices which = indices(envs), columns = indices(items);
            without_lock([&] {
              core.with(
                  [&](sim::Scene& scene) { scene.set_parameter(parameter_of(name), span_of(values), which, columns); });
            });
          },
          "name"_a, "values"_a, "items"_a = nb::none(), "envs"_a = nb::none())
      .def(
          "set_links_force",
          [](SceneCore& core, const Floats& wrench, const InIndices& links, const Chosen& envs) {
            const sim::Indices which = indices(envs), items(vector_of(links));
            without_lock(
                [&] { core.with([&](sim::Scene& scene) { scene.set_links_force(span_of(wrench), items, which); }); });
          },
          "wrench"_a, "links"_a, "envs"_a = nb::none(),
          "(environments, links, 6) or (links, 6): N and N m at the centre of mass")
      .def(
          "sensor",
          [](SceneCore& core, const std::string& name, const Chosen& envs) {
            const sim::Indices which = indices(envs);
            std::size_t rows = 0;
            std::vector<float> values = without_lock([&] {
              return core.with([&](sim::Scene& scene) {
                rows = which.resolve(scene.n_envs(), "environment").size();
                return scene.get_sensor(name, which);
              });
            });
            const std::size_t n = rows > 0 ? values.size() / rows : 0;
            return owned(std::move(values), {rows, n});
          },
          "name"_a, "envs"_a = nb::none())
      .def(
          "links_contact_force",
          [](SceneCore& core, const Chosen& envs) {
            const sim::Indices which = indices(envs);
            std::vector<float> values =
                without_lock([&] { return core.with([&](sim::Scene&) { return core.links_contact_force(which); }); });
            const std::size_t links = core.with([](sim::Scene& scene) { return scene.info().links.size(); });
            const std::size_t rows = values.size() / (3 * links);
            return owned(std::move(values), {rows, links, std::size_t{3}});
          },
          "envs"_a = nb::none())
      .def(
          "contacts",
          [](SceneCore& core, const Chosen& envs) {
            const sim::Indices which = indices(envs);
            const std::vector<sim::Contact> found =
                without_lock([&] { return core.with([&](sim::Scene& scene) { return scene.get_contacts(which); }); });
            std::vector<std::int32_t> who;
            std::vector<float> where;
            for (const sim::Contact& c : found) {
              who.insert(who.end(), {c.env, c.geom1, c.geom2, c.link1, c.link2});
              for (const auto* v : {&c.pos, &c.normal, &c.force})
                for (const double x : *v) where.push_back(static_cast<float>(x));
              where.push_back(static_cast<float>(c.distance));
            }
            const std::size_t n = found.size();
            return nb::make_tuple(owned(std::move(who), {n, std::size_t{5}}),
                                  owned(std::move(where), {n, std::size_t{10}}));
          },
          "envs"_a = nb::none(),
          "Of all contacts: (contacts, 5) environment, geom1, geom2, link1, link2; (contacts, 10) pos, normal, force "
          "on link2, distance.")
      .def(
          "inverse_kinematics",
          [](SceneCore& core, const InIndices& links, const InIndices& dofs, const InIndices& envs,
             const Floats& points, const Floats& pos, const Floats& quat, const Floats& init,
             std::vector<std::uint8_t> with_pos, std::vector<std::uint8_t> with_quat, std::array<bool, 3> pos_mask,
             std::array<bool, 3> rot_mask, int max_samples, int max_iterations, double damping, double pos_tolerance,
             double rot_tolerance, double max_step, bool respect_limits, std::uint64_t seed) {
            SceneCore::IkRequest request{.links = vector_of(links),
                                         .dofs = vector_of(dofs),
                                         .envs = vector_of(envs),
                                         .points = span_of(points),
                                         .pos = span_of(pos),
                                         .quat = span_of(quat),
                                         .init = span_of(init),
                                         .pos_mask = pos_mask,
                                         .rot_mask = rot_mask,
                                         .with_pos = std::move(with_pos),
                                         .with_quat = std::move(with_quat)};
            request.settings = {.max_samples = max_samples,
                                .max_iterations = max_iterations,
                                .damping = damping,
                                .pos_tolerance = pos_tolerance,
                                .rot_tolerance = rot_tolerance,
                                .max_step = max_step,
                                .respect_limits = respect_limits,
                                .seed = seed};
            SceneCore::Solutions found =
                without_lock([&] { return core.with([&](sim::Scene&) { return core.inverse_kinematics(request); }); });
            const std::size_t n = request.envs.size(), targets = request.links.size();
            const std::size_t nq = n > 0 ? found.qpos.size() / n : 0;
            return nb::make_tuple(owned(std::move(found.qpos), {n, nq}),
                                  owned(std::move(found.error), {n, targets, std::size_t{6}}));
          },
          "links"_a, "dofs"_a, "envs"_a, "points"_a, "pos"_a, "quat"_a, "init"_a, "with_pos"_a, "with_quat"_a,
          "pos_mask"_a, "rot_mask"_a, "max_samples"_a, "max_iterations"_a, "damping"_a, "pos_tolerance"_a,
          "rot_tolerance"_a, "max_step"_a, "respect_limits"_a, "seed"_a)
      .def(
          "add_camera",
          [](SceneCore& core, double fov, int width, int height) {
            return without_lock(
                [&] { return core.with([&](sim::Scene&) { return core.add_camera(fov, width, height); }); });
          },
          "fov"_a, "width"_a, "height"_a)
      .def(
          "move_camera",
          [](SceneCore& core, int camera, std::array<double, 3> pos, std::array<double, 4> quat) {
            without_lock([&] { core.with([&](sim::Scene&) { core.move_camera(camera, pos, quat); }); });
          },
          "camera"_a, "pos"_a, "quat"_a, "quat: of right, up and back as columns")
      .def("set_picture", &SceneCore::set_picture, "shadows"_a, "reflections"_a)
      .def(
          "render",
          [](SceneCore& core, int camera, const InIndices& envs, int width, int height, bool rgb, bool depth,
             bool segmentation, bool normal, bool together) {
            const std::vector<std::int32_t> which = vector_of(envs);
            render::Frames f = without_lock([&] {
              return core.with([&](sim::Scene&) {
                return core.render(camera, which, width, height, {rgb, depth, segmentation, normal}, together);
              });
            });
            const std::size_t n = together ? 1 : which.size(), h = at(height), w = at(width);
            nb::list out;
            out.append(rgb ? nb::cast(owned(std::move(f.rgb), {n, h, w, std::size_t{3}})) : nb::none());
            out.append(depth ? nb::cast(owned(std::move(f.depth), {n, h, w})) : nb::none());
            out.append(segmentation ? nb::cast(owned(std::move(f.segmentation), {n, h, w})) : nb::none());
            out.append(normal ? nb::cast(owned(std::move(f.normal), {n, h, w, std::size_t{3}})) : nb::none());
            return out;
          },
          "camera"_a, "envs"_a, "width"_a, "height"_a, "rgb"_a, "depth"_a, "segmentation"_a, "normal"_a, "together"_a,
          "[rgb (n, h, w, 3) uint8, depth (n, h, w) float32 m, geoms (n, h, w) int32, normals (n, h, w, 3)], None "
          "where not wanted");
}

}  // namespace cohort::python
