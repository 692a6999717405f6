#include "sim/compile.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <limits>

#include <fcntl.h>
#include <mujoco/mujoco.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/byte_stream.h"
#include "core/error.h"
#include "core/files.h"
#include "sim/model_file.h"
#include "sim/mujoco/handle.h"

namespace cohort::sim {

namespace {

/// What a failing step says; becomes the Error of the parent.
struct CompileFailure {
  std::string message;
};

[[noreturn]] void fail(const std::string& message) {
  throw CompileFailure{message};
}

void set_pose(double pos[3], double quat[4], const Pose& pose) {
  for (int i = 0; i < 3; ++i) pos[i] = pose.pos[static_cast<std::size_t>(i)];
  double norm = 0;
  for (double q : pose.quat) norm += q * q;
  if (!(norm > 1e-12) || !std::isfinite(norm)) fail("the pose's quaternion has no length");
  for (int i = 0; i < 4; ++i) quat[i] = pose.quat[static_cast<std::size_t>(i)] / std::sqrt(norm);
}

mjSpec* parse(const std::string& file, const std::string& xml) {
  char error[2048] = "";
  mjSpec* spec = nullptr;
  if (!xml.empty()) {
    spec = mj_parseXMLString(xml.c_str(), nullptr, error, sizeof error);
    if (!spec) fail(error);
  } else {
    const std::string trouble = why_unreadable(file);
    if (!trouble.empty()) fail(trouble);
    spec = mj_parseXML(file.c_str(), nullptr, error, sizeof error);
    if (!spec) fail(format("{}: {}", file, error));
  }
  return spec;
}

mjSpec* parse(const Mjcf& m) {
  if (m.xml.empty() ? is_urdf(m.file) : root_element(m.xml) == "robot") {
    fail(
        "this is a URDF model (its root element is <robot>), given as MJCF: add it as a Urdf, which says whether its "
        "base is fixed");
  }
  return parse(m.file, m.xml);
}

/// MuJoCo knows neither ROS' packages nor its macros.
mjSpec* parse(const Urdf& u) {
  namespace fs = std::filesystem;
  const std::string trouble = u.xml.empty() ? why_unreadable(u.file) : "";
  if (!trouble.empty()) fail(trouble);
  if ((u.xml.empty() ? read_file(u.file) : u.xml).find("<xacro:") != std::string::npos) {
    fail("this URDF has xacro macros, which are not known here: write them out first (`xacro FILE > robot.urdf`)");
  }
  mjSpec* spec = parse(u.file, u.xml);
  const fs::path folder = fs::absolute(u.file.empty() ? "here" : u.file).parent_path();
  for (mjsElement* e = mjs_firstElement(spec, mjOBJ_MESH); e; e = mjs_nextElement(spec, e)) {
    mjsMesh* mesh = mjs_asMesh(e);
    const std::string uri = mjs_getString(mesh->file);
    if (spec->strippath || !uri.starts_with("package://")) continue;
    const fs::path found = find_in_package(uri, folder);
    if (found.empty()) {
      fail(
          format("mesh `{}`: neither {} nor a folder above it is this package or holds it; write the path of the mesh "
                 "relative to the URDF file",
                 uri, folder.string()));
    }
    mjs_setString(mesh->file, found.c_str());
  }
  return spec;
}

/// Composes one scene in a spec; lives in the child process.
class Composer {
 public:
  explicit Composer(std::span<const EntityDeclaration> entities) : entities_(entities) {
    // The first model file without a pose of its own is the root: its options, defaults and keyframes stay as written.
    for (std::size_t i = 0; i < entities.size() && root_entity_ == kNone; ++i) {
      const auto* mjcf = std::get_if<Mjcf>(&entities[i].morph);
      if (mjcf && !mjcf->pose) root_entity_ = i;
    }
    if (root_entity_ == kNone) {
      spec_ = mj_makeSpec();
    } else {
      const auto& mjcf = std::get<Mjcf>(entities[root_entity_].morph);
      spec_ = parse(mjcf);
    }
    world_ = mjs_findBody(spec_, "world");
    roots_.resize(entities.size());
    if (root_entity_ != kNone) roots_[root_entity_] = children();
    for (std::size_t i = 0; i < entities.size(); ++i) {
      if (i == root_entity_) continue;
      const std::vector<mjsElement*> before = children();
      current_ = i;
      std::visit([this](const auto& morph) { add(morph); }, entities[i].morph);
      for (mjsElement* child : children()) {
        if (std::find(before.begin(), before.end(), child) == before.end()) roots_[i].push_back(child);
      }
    }
  }
  ~Composer() {
    for (mjSpec* child : attached_) mj_deleteSpec(child);
    mj_deleteSpec(spec_);
  }
  Composer(const Composer&) = delete;
  Composer& operator=(const Composer&) = delete;

  void add_camera(const CameraOptions& camera) {
    mjsCamera* c = mjs_addCamera(world_, nullptr);
    if (!camera.name.empty()) mjs_setName(c->element, camera.name.c_str());
    double forward[3], back[3];
    for (int i = 0; i < 3; ++i) {
      c->pos[i] = camera.pos[static_cast<std::size_t>(i)];
      forward[i] = camera.lookat[static_cast<std::size_t>(i)] - c->pos[i];
      back[i] = -forward[i];
    }
    if (mju_normalize3(back) < 1e-9) fail(format("camera `{}` looks at its own position", camera.name));
    double right[3], up[3] = {0, 0, 1};
    mju_cross(right, up, back);
    if (mju_normalize3(right) < 1e-9) right[0] = 1, right[1] = 0, right[2] = 0;
    mju_cross(up, back, right);
    const double rotation[9] = {right[0], up[0], back[0], right[1], up[1], back[1], right[2], up[2], back[2]};
    mju_mat2Quat(c->quat, rotation);
    c->fovy = camera.fov;
    c->resolution[0] = camera.width;
    c->resolution[1] = camera.height;
  }

  void apply(const SceneOptions& o) {
    mjOption& opt = spec_->option;
    if (o.timestep) {
      if (!(*o.timestep > 0)) fail(format("timestep is {}: it has to be positive (s)", *o.timestep));
      opt.timestep = *o.timestep;
    }
    if (o.gravity) std::copy(o.gravity->begin(), o.gravity->end(), opt.gravity);
    if (o.integrator) {
      if (*o.integrator == "Euler")
        opt.integrator = mjINT_EULER;
      else if (*o.integrator == "RK4")
        opt.integrator = mjINT_RK4;
      else if (*o.integrator == "implicit")
        opt.integrator = mjINT_IMPLICIT;
      else if (*o.integrator == "implicitfast")
        opt.integrator = mjINT_IMPLICITFAST;
      else
        fail(format("integrator `{}` is not known: Euler, RK4, implicit or implicitfast", *o.integrator));
    }
    if (o.solver) {
      if (*o.solver == "PGS")
        opt.solver = mjSOL_PGS;
      else if (*o.solver == "CG")
        opt.solver = mjSOL_CG;
      else if (*o.solver == "Newton")
        opt.solver = mjSOL_NEWTON;
      else
        fail(format("solver `{}` is not known: PGS, CG or Newton", *o.solver));
    }
    if (o.cone) {
      if (*o.cone == "pyramidal")
        opt.cone = mjCONE_PYRAMIDAL;
      else if (*o.cone == "elliptic")
        opt.cone = mjCONE_ELLIPTIC;
      else
        fail(format("cone `{}` is not known: pyramidal or elliptic", *o.cone));
    }
    if (o.iterations) opt.iterations = *o.iterations;
    if (o.tolerance) opt.tolerance = *o.tolerance;
  }

  CompiledScene compile() {
    check_height_fields();
    mjModel* model = mj_compile(spec_, nullptr);
    if (!model) fail(mjs_getError(spec_));
    // Below the least float the batched engine would step by zero.
    const double timestep = model->opt.timestep, least = std::numeric_limits<float>::min();
    if (!(timestep >= least) || !std::isfinite(timestep)) {
      fail(format("timestep is {}: it has to be positive (s) and at least {:.1e}, or no step advances the time",
                  timestep, least));
    }
    CompiledScene result;
    result.entity_links.resize(roots_.size());
    for (std::size_t i = 0; i < roots_.size(); ++i) {
      for (mjsElement* root : roots_[i]) result.entity_links[i].push_back(mjs_getId(root));
    }
    for (int i = 0; i < mjs_numWarnings(spec_); ++i) result.warnings.emplace_back(mjs_getWarning(spec_, i));
    result.mjb.resize(static_cast<std::size_t>(mj_sizeModel(model)));
    mj_saveModel(model, nullptr, result.mjb.data(), static_cast<mjtSize>(result.mjb.size()));
    mj_deleteModel(model);
    return result;
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  std::vector<mjsElement*> children() const {
    std::vector<mjsElement*> found;
    for (mjsElement* e = mjs_firstChild(world_, mjOBJ_BODY, 0); e; e = mjs_nextChild(world_, e, 0)) found.push_back(e);
    return found;
  }
  const std::string& name() const { return entities_[current_].name; }

  /// MuJoCo multiplies the two numbers as ints.
  void check_height_fields() const {
    for (mjsElement* e = mjs_firstElement(spec_, mjOBJ_HFIELD); e; e = mjs_nextElement(spec_, e)) {
      const mjsHField* field = mjs_asHField(e);
      const double points = static_cast<double>(field->nrow) * field->ncol;
      if (points > std::numeric_limits<int>::max()) {
        fail(format("height field `{}` has {} x {} points: {} are the most", mjs_getString(mjs_getName(e)), field->nrow,
                    field->ncol, std::numeric_limits<int>::max()));
      }
    }
  }

  void attach(mjSpec* child, mjsBody* to, const Pose& pose) {
    attached_.push_back(child);
    mjs_setDeepCopy(spec_, 1);
    const std::string prefix = name() + "/";
    mjsBody* world = mjs_findBody(child, "world");
    const mjsElement* attached = nullptr;
    if (to == world_ && holds_mocap(world)) {
      attached = mjs_attach(to->element, in_one_frame(world, pose)->element, prefix.c_str(), "");
    } else {
      mjsFrame* frame = mjs_addFrame(to, nullptr);
      set_pose(frame->pos, frame->quat, pose);
      attached = mjs_attach(frame->element, world->element, prefix.c_str(), "");
    }
    if (!attached) fail(format("entity `{}`: {}", name(), mjs_getError(spec_)));
  }

  static bool holds_mocap(mjsBody* world) {
    for (mjsElement* e = mjs_firstChild(world, mjOBJ_BODY, 0); e; e = mjs_nextChild(world, e, 0)) {
      if (mjs_asBody(e)->mocap) return true;
    }
    return false;
  }

  /// Puts all that a file's world holds into a frame. Attached as a body, as otherwise, that world would lie between
  /// the scene's and its mocap bodies, which MuJoCo wants directly below the scene's.
  static mjsFrame* in_one_frame(mjsBody* world, const Pose& pose) {
    std::vector<mjsElement*> inside;
    for (const mjtObj type : {mjOBJ_FRAME, mjOBJ_BODY, mjOBJ_GEOM, mjOBJ_SITE, mjOBJ_CAMERA, mjOBJ_LIGHT}) {
      for (mjsElement* e = mjs_firstChild(world, type, 0); e; e = mjs_nextChild(world, e, 0)) {
        if (!mjs_getFrame(e)) inside.push_back(e);
      }
    }
    mjsFrame* frame = mjs_addFrame(world, nullptr);
    set_pose(frame->pos, frame->quat, pose);
    for (mjsElement* e : inside) mjs_setFrame(e, frame);
    return frame;
  }

  void add(const Mjcf& m) { attach(parse(m), world_, m.pose.value_or(Pose{})); }

  void add(const Urdf& u) {
    mjSpec* child = parse(u);
    if (u.fixed) {
      attach(child, world_, u.pose);
      return;
    }
    mjsBody* base = mjs_addBody(world_, nullptr);
    mjs_setName(base->element, name().c_str());
    set_pose(base->pos, base->quat, u.pose);
    mjs_addFreeJoint(base);
    attach(child, base, Pose{});
  }

  /// A body for a shape, with a free joint unless it is fixed.
  mjsBody* body_for(const ShapeOptions& s) {
    mjsBody* body = mjs_addBody(world_, nullptr);
    mjs_setName(body->element, name().c_str());
    set_pose(body->pos, body->quat, s.pose);
    if (!s.fixed) mjs_addFreeJoint(body);
    return body;
  }

  mjsGeom* geom_for(mjsBody* body, mjtGeom type, std::array<double, 3> size) {
    mjsGeom* geom = mjs_addGeom(body, nullptr);
    mjs_setName(geom->element, name().c_str());
    geom->type = type;
    for (int i = 0; i < 3; ++i) {
      const double s = size[static_cast<std::size_t>(i)];
      if (!(s >= 0) || !std::isfinite(s)) fail(format("entity `{}`: a size of {} m makes no shape", name(), s));
      geom->size[i] = s;
    }
    return geom;
  }

  void add_shape(const ShapeOptions& s, mjtGeom type, std::array<double, 3> size) {
    mjsGeom* geom = geom_for(body_for(s), type, size);
    finish(geom, s);
  }
  void finish(mjsGeom* geom, const ShapeOptions& s) {
    geom->density = s.density;
    if (s.mass) geom->mass = *s.mass;
    std::copy(s.friction.begin(), s.friction.end(), geom->friction);
    std::copy(s.rgba.begin(), s.rgba.end(), geom->rgba);
  }

  void add(const Sphere& s) { add_shape(s.shape, mjGEOM_SPHERE, {s.radius, 0, 0}); }
  void add(const Capsule& s) { add_shape(s.shape, mjGEOM_CAPSULE, {s.radius, s.length / 2, 0}); }
  void add(const Cylinder& s) { add_shape(s.shape, mjGEOM_CYLINDER, {s.radius, s.height / 2, 0}); }
  void add(const Box& s) { add_shape(s.shape, mjGEOM_BOX, {s.size[0] / 2, s.size[1] / 2, s.size[2] / 2}); }
  void add(const Ellipsoid& s) { add_shape(s.shape, mjGEOM_ELLIPSOID, s.radii); }

  void add(const Plane& p) {
    mjsGeom* geom = geom_for(world_, mjGEOM_PLANE, {0, 0, 0.05});
    set_pose(geom->pos, geom->quat, p.pose);
    std::copy(p.friction.begin(), p.friction.end(), geom->friction);
    std::copy(p.rgba.begin(), p.rgba.end(), geom->rgba);
  }

  void add(const Mesh& m) {
    std::error_code code;
    const std::filesystem::path path = std::filesystem::absolute(m.file, code);
    const std::string trouble = why_unreadable(m.file);
    if (!trouble.empty()) fail(format("entity `{}`, mesh: {}", name(), trouble));
    mjsMesh* mesh = mjs_addMesh(spec_, nullptr);
    mjs_setName(mesh->element, name().c_str());
    mjs_setString(mesh->file, path.c_str());
    std::copy(m.scale.begin(), m.scale.end(), mesh->scale);
    mjsGeom* geom = geom_for(body_for(m.shape), mjGEOM_MESH, {0, 0, 0});
    mjs_setString(geom->meshname, name().c_str());
    finish(geom, m.shape);
  }

  void add(const Terrain& t) {
    if (t.rows < 2 || t.cols < 2 ||
        t.heights.size() != static_cast<std::size_t>(t.rows) * static_cast<std::size_t>(t.cols)) {
      fail(format("entity `{}`: {} heights given for a terrain of {} rows x {} columns", name(), t.heights.size(),
                  t.rows, t.cols));
    }
    mjsHField* field = mjs_addHField(spec_);
    mjs_setName(field->element, name().c_str());
    field->nrow = t.rows;
    field->ncol = t.cols;
    field->size[0] = t.size[0] / 2;
    field->size[1] = t.size[1] / 2;
    field->size[2] = t.height;
    field->size[3] = t.base;
    mjs_setFloat(field->userdata, t.heights.data(), static_cast<int>(t.heights.size()));
    mjsGeom* geom = geom_for(world_, mjGEOM_HFIELD, {0, 0, 0});
    set_pose(geom->pos, geom->quat, t.pose);
    mjs_setString(geom->hfieldname, name().c_str());
    std::copy(t.friction.begin(), t.friction.end(), geom->friction);
  }

  std::span<const EntityDeclaration> entities_;
  std::size_t root_entity_ = kNone;
  std::size_t current_ = 0;
  mjSpec* spec_ = nullptr;
  mjsBody* world_ = nullptr;
  std::vector<mjSpec*> attached_;
  std::vector<std::vector<mjsElement*>> roots_;
};

// ---- the child's answer: a number for its kind, then parts behind their lengths, which a ByteReader reads.

class Writer {
 public:
  explicit Writer(int fd) : fd_(fd) {}
  void bytes(const void* data, std::size_t size) {
    const char* at = static_cast<const char*>(data);
    while (size > 0) {
      const ssize_t n = ::write(fd_, at, size);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) _exit(3);
      at += n;
      size -= static_cast<std::size_t>(n);
    }
  }
  void number(std::uint64_t n) { bytes(&n, sizeof n); }
  void text(const std::string& s) {
    number(s.size());
    bytes(s.data(), s.size());
  }

 private:
  int fd_;
};

int answer_fd = -1;

void child_error(const char* message) {
  Writer out(answer_fd);
  out.number(1);
  out.text(message);
  _exit(0);
}
void child_warning(const char*) {}

[[noreturn]] void compile_in_child(int fd, pid_t parent, std::span<const EntityDeclaration> entities,
                                   std::span<const CameraOptions> cameras, const SceneOptions& options) {
  // No parent, no answer: it may have ended before the first line.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(3);
  answer_fd = fd;
  mju_user_error = child_error;
  mju_user_warning = child_warning;
  for (int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU}) std::signal(s, SIG_DFL);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  const rlimit cpu{static_cast<rlim_t>(std::ceil(options.compile_seconds)),
                   static_cast<rlim_t>(std::ceil(options.compile_seconds)) + 1};
  setrlimit(RLIMIT_CPU, &cpu);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // The sanitizers reserve terabytes of address space.
  const rlimit memory{static_cast<rlim_t>(options.compile_memory), static_cast<rlim_t>(options.compile_memory)};
  setrlimit(RLIMIT_AS, &memory);
#endif
  Writer out(fd);
  try {
    mj::load_plugins();
    Composer composer(entities);
    for (const CameraOptions& camera : cameras) composer.add_camera(camera);
    composer.apply(options);
    const CompiledScene result = composer.compile();
    out.number(0);
    out.number(result.mjb.size());
    out.bytes(result.mjb.data(), result.mjb.size());
    out.number(result.entity_links.size());
    for (const auto& links : result.entity_links) {
      out.number(links.size());
      for (int link : links) out.number(static_cast<std::uint64_t>(link));
    }
    out.number(result.warnings.size());
    for (const std::string& warning : result.warnings) out.text(warning);
  } catch (const CompileFailure& failure) {
    out.number(1);
    out.text(failure.message);
  } catch (const std::bad_alloc&) {
    out.number(1);
    out.text(format("compiling needs more than the limit of {}", format_bytes(options.compile_memory)));
  } catch (const std::exception& e) {
    out.number(1);
    out.text(e.what());
  }
  _exit(0);
}

std::string describe(std::span<const EntityDeclaration> entities) {
  std::string list;
  for (const EntityDeclaration& e : entities) {
    std::string file = e.name;
    if (const auto* m = std::get_if<Mjcf>(&e.morph)) file = m->file.empty() ? e.name + " (text)" : m->file;
    if (const auto* u = std::get_if<Urdf>(&e.morph)) file = u->file.empty() ? e.name + " (text)" : u->file;
    list += (list.empty() ? "" : ", ") + file;
  }
  return list;
}

/// Seconds of CPU time that a process has used; 0 when it has ended.
double cpu_seconds(pid_t process) {
  clockid_t clock{};
  timespec used{};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

/// Reads all that the child writes. Ends it when it neither writes nor computes for so many seconds: it waits for a
/// file that gives nothing, which its limit of CPU time does not see. Returns false then.
bool read_answer(int fd, pid_t child, double idle_seconds, std::string& data) {
  constexpr int kLook = 100;  // ms
  std::string chunk(1 << 16, '\0');
  double used = 0;
  // Turns are counted, not time: while both processes are stopped none passes.
  for (double idle = 0; idle < idle_seconds;) {
    pollfd ready{fd, POLLIN, 0};
    const int n_ready = poll(&ready, 1, kLook);
    if (n_ready < 0 && errno == EINTR) continue;
    if (n_ready == 0) {
      const double now = cpu_seconds(child);
      idle = now > used ? 0 : idle + 1e-3 * kLook;
      used = now;
      continue;
    }
    const ssize_t n = ::read(fd, chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;
    data.append(chunk, 0, static_cast<std::size_t>(n));
    idle = 0;
  }
  kill(child, SIGKILL);
  return false;
}

/// What to do about a message of MuJoCo's that does not say it.
std::string remedy(const std::string& message, std::span<const EntityDeclaration> entities,
                   const SceneOptions& options) {
  const auto says = [&](const char* words) { return message.find(words) != std::string::npos; };
  if (says("allocate memory")) {
    return format(". The limit is {}, with what <size memory=\"...\"/> asks for (SceneOptions::compile_memory)",
                  format_bytes(options.compile_memory));
  }
  const bool free_urdf = std::any_of(entities.begin(), entities.end(), [](const EntityDeclaration& e) {
    const auto* u = std::get_if<Urdf>(&e.morph);
    return u && !u->fixed;
  });
  if (free_urdf && says("mass and inertia of moving bodies")) {
    return ". A URDF whose base link has no mass is meant to stand fixed: Urdf::fixed, --fixed-base";
  }
  return "";
}

}  // namespace

CompiledScene compile_scene(std::span<const EntityDeclaration> entities, std::span<const CameraOptions> cameras,
                            const SceneOptions& options) {
  COHORT_THROW_UNLESS(!entities.empty(), "the scene has no entity: add one before build()");
  int fds[2];
  COHORT_THROW_UNLESS(pipe2(fds, O_CLOEXEC) == 0, "no pipe for the model compiler: {}", std::strerror(errno));
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) {
    const int reason = errno;
    close(fds[0]);
    close(fds[1]);
    throw Error(format("no process for the model compiler: {}", std::strerror(reason)));
  }
  if (child == 0) {
    close(fds[0]);
    compile_in_child(fds[1], parent, entities, cameras, options);
  }
  close(fds[1]);
  constexpr double kIdle = 20;  // s: a network's file may hang as long
  std::string data;
  const bool answered = read_answer(fds[0], child, std::min(kIdle, options.compile_seconds), data);
  close(fds[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const std::string files = describe(entities);
  COHORT_THROW_UNLESS(answered,
                      "{}: the model compiler waited {} s for a file that gives nothing; is one that it names, an "
                      "<include> or a mesh, a pipe or a device?",
                      files, std::min(kIdle, options.compile_seconds));
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    if (signal == SIGXCPU || signal == SIGKILL) {
      throw Error(
          format("{}: the model compiler did not finish within {} s of CPU time", files, options.compile_seconds));
    }
    throw Error(format(
        "{}: the model compiler crashed ({}): the file is damaged, or a size in it (rows, columns, a count) needs "
        "more than the limit of {} of memory",
        files, strsignal(signal), format_bytes(options.compile_memory)));
  }
  COHORT_THROW_UNLESS(data.size() >= sizeof(std::uint64_t), "{}: the model compiler ended without an answer", files);
  ByteReader in(std::move(data));
  if (in.number() != 0) {
    std::string message = in.text();
    message += remedy(message, entities, options);
    throw Error(message.starts_with(files) ? message : format("{}: {}", files, message));
  }
  CompiledScene result;
  result.mjb.resize(in.count(1));
  in.bytes(result.mjb.data(), result.mjb.size());
  result.entity_links.resize(in.count(1));
  for (auto& links : result.entity_links) {
    links.resize(in.count(8));
    for (int& link : links) link = static_cast<int>(in.number());
  }
  result.warnings.resize(in.count(1));
  for (std::string& warning : result.warnings) warning = in.text();
  return result;
}

}  // namespace cohort::sim
