#include "sim/model.h"

#include <cstring>
#include <type_traits>

#include "core/error.h"
#include "core/files.h"
#include "sim/checksum.h"
#include "sim/model_check.h"
#include "sim/visual_model.h"
#include "sim/visual_model_file.h"

namespace cohort::sim {

namespace {

constexpr char kMagic[8] = {'C', 'O', 'H', 'O', 'R', 'T', 'M', 'D'};
constexpr std::uint32_t kVersion = 20;

class Saver {
 public:
  template <class T>
  void operator()(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void operator()(const std::string& text) {
    (*this)(static_cast<std::uint64_t>(text.size()));
    out_ += text;
  }
  template <class T>
  void operator()(const std::vector<T>& items) {
    (*this)(static_cast<std::uint64_t>(items.size()));
    if constexpr (std::is_trivially_copyable_v<T>) {
      out_.append(reinterpret_cast<const char*>(items.data()), items.size() * sizeof(T));
    } else {
      for (const T& item : items) visit(*this, item);
    }
  }
  std::string out_;
};

class Loader {
 public:
  Loader(const std::string& data, std::string file) : data_(data), file_(std::move(file)) {}
  template <class T>
  void operator()(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    take(&value, sizeof value);
  }
  void operator()(bool& value) {
    unsigned char byte = 0;
    take(&byte, 1);
    COHORT_THROW_UNLESS(byte <= 1, "{} is damaged: {} stands for true or false", file_, byte);
    value = byte == 1;
  }
  void operator()(std::string& text) {
    text.resize(count(1));
    take(text.data(), text.size());
  }
  template <class T>
  void operator()(std::vector<T>& items) {
    if constexpr (std::is_trivially_copyable_v<T>) {
      items.resize(count(sizeof(T)));
      take(items.data(), items.size() * sizeof(T));
    } else {
      items.resize(count(1));
      for (T& item : items) visit(*this, item);
    }
  }
  bool at_end() const { return at_ == data_.size(); }

 private:
  void take(void* to, std::size_t size) {
    COHORT_THROW_UNLESS(size <= data_.size() - at_, "{} is cut off", file_);
    if (size > 0) std::memcpy(to, data_.data() + at_, size);
    at_ += size;
  }
  std::size_t count(std::size_t unit) {
    std::uint64_t n = 0;
    take(&n, sizeof n);
    COHORT_THROW_UNLESS(n <= (data_.size() - at_) / unit, "{} is cut off", file_);
    return static_cast<std::size_t>(n);
  }
  const std::string& data_;
  std::string file_;
  std::size_t at_ = 0;
};

template <class Action, class T>
requires std::is_same_v<std::remove_const_t<T>, LinkInfo>
void visit(Action& io, T& x) {
  io(x.name), io(x.parent), io(x.first_dof), io(x.dof_count), io(x.mocap), io(x.mass);
}
template <class Action, class T>
requires std::is_same_v<std::remove_const_t<T>, JointInfo>
void visit(Action& io, T& x) {
  io(x.name), io(x.type), io(x.link), io(x.qpos), io(x.dof), io(x.limited), io(x.range);
  io(x.axis), io(x.pos);
}
template <class Action, class T>
requires std::is_same_v<std::remove_const_t<T>, ActuatorInfo>
void visit(Action& io, T& x) {
  io(x.name), io(x.kind), io(x.ctrl), io(x.ctrl_count), io(x.dof), io(x.gear), io(x.limited), io(x.range);
  io(x.moves), io(x.restoring), io(x.force_range);
  io(x.servo), io(x.hold), io(x.holds_at_once);
}
template <class Action, class T>
requires std::is_same_v<std::remove_const_t<T>, SensorInfo>
void visit(Action& io, T& x) {
  io(x.name), io(x.type), io(x.address), io(x.size);
}
template <class Action, class T>
requires std::is_same_v<std::remove_const_t<T>, GeomInfo>
void visit(Action& io, T& x) {
  io(x.name), io(x.type), io(x.link);
}
template <class Action, class T>
requires std::is_same_v<std::remove_const_t<T>, KeyframeInfo>
void visit(Action& io, T& x) {
  io(x.name), io(x.time), io(x.qpos), io(x.qvel), io(x.act), io(x.ctrl), io(x.mocap_pos), io(x.mocap_quat);
}

template <class Action, class T>
requires std::is_same_v<std::remove_const_t<T>, EntityInfo>
void visit(Action& io, T& x) {
  io(x.name), io(x.links), io(x.geoms);
}

template <class Action, class T>
requires std::is_same_v<std::remove_const_t<T>, CameraOptions>
void visit(Action& io, T& x) {
  io(x.name), io(x.pos), io(x.lookat), io(x.fov), io(x.width), io(x.height);
}

/// Every member of a model, in the order of the file.
template <class Action, class T>
requires std::is_same_v<std::remove_const_t<T>, Model>
void visit(Action& io, T& m) {
  auto& i = m.info;
  io(i.name), io(i.nq), io(i.nv), io(i.nu), io(i.na), io(i.nmocap), io(i.nsensordata), io(i.timestep);
  io(i.integrator), io(i.solver), io(i.cone), io(i.links), io(i.joints), io(i.actuators), io(i.sensors), io(i.geoms);
  io(i.keyframes), io(i.parts), io(i.entities), io(i.qpos0), io(i.mocap_pos0), io(i.mocap_quat0), io(i.content),
      io(i.cameras);
  io(m.sizes), io(m.body), io(m.joint), io(m.dof), io(m.pattern), io(m.pattern_start), io(m.below), io(m.below_start);
  io(m.link), io(m.limit), io(m.friction), io(m.wrap);
  io(m.tendon), io(m.actuator), io(m.geom), io(m.pair), io(m.pair_bound), io(m.pair_spheres), io(m.pair_run),
      io(m.pair_window), io(m.row_dof), io(m.row_sign), io(m.equality), io(m.qpos0), io(m.qpos_spring), io(m.frame),
      io(m.fluid), io(m.sensor), io(m.piece), io(m.sensor_match), io(m.ray_geom), io(m.mesh), io(m.mesh_vertex),
      io(m.mesh_edge), io(m.mesh_face), io(m.mesh_direction), io(m.mesh_side), io(m.height_field), io(m.height),
      io(m.geom_friction), io(m.stretch), io(m.stretch_move), io(m.ray_mesh), io(m.ray_chunk), io(m.ray_triangle),
      io(m.piece_start), io(m.piece_link), io(m.fluid_link);
}

struct FileHeader {
  char magic[8];
  std::uint32_t version, view_bytes;
  std::uint64_t bytes, checksum;
};

}  // namespace

ModelView Model::view() const {
  ModelView v = sizes;
  v.body = body.data();
  v.joint = joint.data();
  v.dof = dof.data();
  v.pattern = pattern.data();
  v.pattern_start = pattern_start.data();
  v.below = below.data();
  v.below_start = below_start.data();
  v.link = link.data();
  v.limit = limit.data();
  v.friction = friction.data();
  v.wrap = wrap.data();
  v.tendon = tendon.data();
  v.stretch = stretch.data();
  v.stretch_move = stretch_move.data();
  v.actuator = actuator.data();
  v.geom = geom.data();
  v.pair = pair.data();
  v.pair_bound = pair_bound.data();
  v.pair_spheres = pair_spheres.data();
  v.pair_run = pair_run.data();
  v.pair_window = pair_window.data();
  v.row_dof = row_dof.data();
  v.row_sign = row_sign.data();
  v.equality = equality.data();
  v.frame = frame.data();
  v.fluid = fluid.data();
  v.sensor = sensor.data();
  v.piece = piece.data();
  v.sensor_match = sensor_match.data();
  v.ray_geom = ray_geom.data();
  v.ray_mesh = ray_mesh.data();
  v.ray_chunk = ray_chunk.data();
  v.ray_triangle = ray_triangle.data();
  v.mesh = mesh.data();
  v.mesh_vertex = mesh_vertex.data();
  v.mesh_edge = mesh_edge.data();
  v.mesh_face = mesh_face.data();
  v.mesh_direction = mesh_direction.data();
  v.mesh_side = mesh_side.data();
  v.height_field = height_field.data();
  v.height = height.data();
  v.qpos0 = qpos0.data();
  v.qpos_spring = qpos_spring.data();
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

void save_model(const Model& model, const std::filesystem::path& path, const VisualModel* seen) {
  Saver saver;
  visit(saver, model);
  FileHeader header{{}, kVersion, sizeof(ModelView), saver.out_.size(), checksum(saver.out_)};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  std::string file(reinterpret_cast<const char*>(&header), sizeof header);
  file += saver.out_;
  if (seen != nullptr) file += visual_model_bytes(*seen);
  write_file_atomically(path, file);
}

std::string_view behind_model(std::string_view file, const std::string& name) {
  FileHeader header{};
  COHORT_THROW_UNLESS(file.size() >= sizeof header, "{} is no compiled model: it is cut off", name);
  std::memcpy(&header, file.data(), sizeof header);
  COHORT_THROW_UNLESS(std::memcmp(header.magic, kMagic, sizeof kMagic) == 0, "{} is no compiled model", name);
  COHORT_THROW_UNLESS(
      header.version == kVersion && header.view_bytes == sizeof(ModelView),
      "{} was written by another version of Cohort (format {}, this one reads {}): compile the model again", name,
      header.version, kVersion);
  COHORT_THROW_UNLESS(header.bytes <= file.size() - sizeof header, "{} is damaged: its checksum does not fit", name);
  return file.substr(sizeof header + header.bytes);
}

Model load_model(const std::filesystem::path& path) {
  const std::string file = read_file(path);
  const std::string_view seen = behind_model(file, path.string());
  check_visual_bytes(seen, path.string());
  FileHeader header{};
  std::memcpy(&header, file.data(), sizeof header);
  const std::string body = file.substr(sizeof header, header.bytes);
  COHORT_THROW_UNLESS(header.checksum == checksum(body), "{} is damaged: its checksum does not fit", path.string());
  Model model;
  Loader loader(body, path.string());
  visit(loader, model);
  COHORT_THROW_UNLESS(loader.at_end(), "{} is damaged: {} bytes", path.string(), file.size());
  try {
    check_model(model);
  } catch (const Error& e) {
    throw Error(format("{} is damaged: {}; compile the model again", path.string(), e.what()));
  }
  return model;
}

}  // namespace cohort::sim
