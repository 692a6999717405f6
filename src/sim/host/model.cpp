#include "sim/host/model.h"

#include <string_view>
#include <type_traits>

#include "core/error.h"
#include "core/files.h"
#include "sim/archive.h"
#include "sim/host/model_arrays.h"
#include "sim/host/model_check.h"
#include "sim/host/visual_model.h"
#include "sim/host/visual_model_file.h"

namespace cohort::sim {

namespace {

constexpr std::string_view kMagic = "COHORTMD";
constexpr std::uint32_t kVersion = 27;

}  // namespace

template <class Action, class T>
requires std::is_same_v<std::remove_const_t<T>, LinkInfo>
void for_each_member(Action& io, T& x) {
  io(x.name), io(x.parent), io(x.first_dof), io(x.dof_count), io(x.mocap), io(x.mass);
}
template <class Action, class T>
requires std::is_same_v<std::remove_const_t<T>, JointInfo>
void for_each_member(Action& io, T& x) {
  io(x.name), io(x.type), io(x.link), io(x.qpos), io(x.dof), io(x.limited), io(x.range);
  io(x.axis), io(x.pos);
}
template <class Action, class T>
requires std::is_same_v<std::remove_const_t<T>, ActuatorInfo>
void for_each_member(Action& io, T& x) {
  io(x.name), io(x.kind), io(x.ctrl), io(x.ctrl_count), io(x.dof), io(x.gear), io(x.limited), io(x.range);
  io(x.moves), io(x.restoring), io(x.force_range);
  io(x.servo), io(x.hold), io(x.holds_at_once);
}
template <class Action, class T>
requires std::is_same_v<std::remove_const_t<T>, SensorInfo>
void for_each_member(Action& io, T& x) {
  io(x.name), io(x.type), io(x.address), io(x.size);
}
template <class Action, class T>
requires std::is_same_v<std::remove_const_t<T>, GeomInfo>
void for_each_member(Action& io, T& x) {
  io(x.name), io(x.type), io(x.link);
}
template <class Action, class T>
requires std::is_same_v<std::remove_const_t<T>, SiteInfo>
void for_each_member(Action& io, T& x) {
  io(x.name), io(x.link), io(x.pos), io(x.quat);
}
template <class Action, class T>
requires std::is_same_v<std::remove_const_t<T>, KeyframeInfo>
void for_each_member(Action& io, T& x) {
  io(x.name), io(x.time), io(x.qpos), io(x.qvel), io(x.act), io(x.ctrl), io(x.mocap_pos), io(x.mocap_quat);
  io(x.hold), io(x.hold_later);
}

template <class Action, class T>
requires std::is_same_v<std::remove_const_t<T>, EntityInfo>
void for_each_member(Action& io, T& x) {
  io(x.name), io(x.links), io(x.geoms);
}

template <class Action, class T>
requires std::is_same_v<std::remove_const_t<T>, CameraOptions>
void for_each_member(Action& io, T& x) {
  io(x.name), io(x.pos), io(x.lookat), io(x.fov), io(x.width), io(x.height);
}

template <class Action, class T>
requires std::is_same_v<std::remove_const_t<T>, ModelInfo>
void for_each_member(Action& io, T& i) {
  io(i.name), io(i.nq), io(i.nv), io(i.nu), io(i.na), io(i.nmocap), io(i.nsensordata), io(i.timestep);
  io(i.integrator), io(i.solver), io(i.cone), io(i.libccd), io(i.links), io(i.joints), io(i.actuators), io(i.sensors),
      io(i.geoms);
  io(i.sites), io(i.keyframes), io(i.parts), io(i.entities), io(i.qpos0), io(i.mocap_pos0), io(i.mocap_quat0),
      io(i.content);
  io(i.cameras);
}

template <class Action, class T>
requires std::is_same_v<std::remove_const_t<T>, Model>
void for_each_member(Action& io, T& m) {
  io(m.info), io(m.sizes);
  for_each_array([&](const auto& array) { io(m.*array.items); });
}

ModelView Model::view() const {
  ModelView v = sizes;
  for_each_array([&](const auto& array) {
    if (array.pointer) v.*array.pointer = (this->*array.items).data();
  });
  return v;
}

std::string to_string(std::span<const Unsupported> list) {
  std::string text;
  for (const Unsupported& u : list) {
    if (!text.empty()) text += ", ";
    text += u.name.empty() ? u.feature : format("{} `{}`", u.feature, u.name);
  }
  return text;
}

std::string taken_otherwise(const ModelInfo& info) {
  std::string text;
  if (info.solver == "PGS") {
    text =
        "the model asks for the solver PGS: the batched engine finds the same solution by Newton's method, where PGS "
        "mostly ends before it has got there";
  }
  if (info.libccd) {
    text +=
        std::string(text.empty() ? "" : "; ") +
        "the model asks for libccd (nativeccd=\"disable\"): the batched engine has one search between convex shapes, "
        "its own, whose contacts are as deep";
  }
  return text;
}

void save_model(const Model& model, const std::filesystem::path& path, const VisualModel* seen) {
  BytesWriter writer;
  writer(model);
  std::string file = part_of_file(kMagic, kVersion, sizeof(ModelView), writer.bytes);
  if (seen != nullptr) file += visual_model_bytes(*seen);
  write_file_atomically(path, file);
}

std::string_view behind_model(std::string_view file, const std::string& name) {
  PartHeader header{};
  COHORT_THROW_UNLESS(read_part_header(file, header), "{} is no compiled model: it is cut off", name);
  COHORT_THROW_UNLESS(is_part(header, kMagic), "{} is no compiled model", name);
  COHORT_THROW_UNLESS(
      header.version == kVersion && header.record_bytes == sizeof(ModelView),
      "{} was written by another version of Cohort (format {}, this one reads {}): compile the model again", name,
      header.version, kVersion);
  COHORT_THROW_UNLESS(header.bytes <= file.size() - sizeof header, "{} is damaged: its checksum does not fit", name);
  return file.substr(sizeof header + header.bytes);
}

Model load_model(const std::filesystem::path& path) {
  const std::string file = read_file(path);
  const std::string_view seen = behind_model(file, path.string());
  check_visual_bytes(seen, path.string());
  PartHeader header{};
  read_part_header(file, header);
  const std::string_view bytes = std::string_view(file).substr(sizeof header, header.bytes);
  COHORT_THROW_UNLESS(header.checksum == part_checksum(bytes), "{} is damaged: its checksum does not fit",
                      path.string());
  Model model;
  BytesReader reader(bytes, path.string());
  reader(model);
  COHORT_THROW_UNLESS(reader.at_end(), "{} is damaged: {} bytes", path.string(), file.size());
  try {
    check_model(model);
  } catch (const Error& e) {
    throw Error(format("{} is damaged: {}; compile the model again", path.string(), e.what()));
  }
  return model;
}

}  // namespace cohort::sim
