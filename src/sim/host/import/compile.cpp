#include "sim/host/compile.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/byte_stream.h"
#include "core/error.h"
#include "core/log.h"
#include "sim/host/import/compose.h"
#include "sim/host/import/handle.h"
#include "sim/host/model_file.h"

namespace cohort::sim {

namespace {

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

/// Address space that this process uses; not asked under the sanitizers.
[[maybe_unused]] double mapped_bytes() {
  double pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<double>(sysconf(_SC_PAGE_SIZE));
}

int answer_fd = -1;

void child_error(const char* message) {
  Writer out(answer_fd);
  out.number(1);
  out.text(message);
  _exit(0);
}
/// What MuJoCo remarks while it reads and compiles, beside what it keeps in the spec.
std::vector<std::string> child_warnings;
void child_warning(const char* message) {
  // check_urdf() says more of these, and what to do.
  if (std::strstr(message, "equal lower and upper limits") == nullptr) child_warnings.emplace_back(message);
}

[[noreturn]] void compile_in_child(int fd, pid_t parent, std::span<const EntityDeclaration> entities,
                                   std::span<const CameraOptions> cameras, const SceneOptions& options) {
  // No parent, no answer: it may have ended before the first line.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(3);
  answer_fd = fd;
  mj::set_error_handler(child_error);
  mj::set_warning_handler(child_warning);
  for (int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU}) std::signal(s, SIG_DFL);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  const rlimit cpu{static_cast<rlim_t>(std::ceil(options.compile_seconds)),
                   static_cast<rlim_t>(std::ceil(options.compile_seconds)) + 1};
  setrlimit(RLIMIT_CPU, &cpu);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // The sanitizers reserve terabytes of address space.
  // Above what this process has mapped already: a CUDA context or LibTorch alone may reserve more than the limit.
  const auto most = static_cast<rlim_t>(options.compile_memory + mapped_bytes());
  const rlimit memory{most, most};
  setrlimit(RLIMIT_AS, &memory);
#endif
  Writer out(fd);
  try {
    mj::load_plugins();
    CompiledScene result = mj::compose_scene(entities, cameras, options);
    for (const std::string& warning : child_warnings) {
      const auto known = std::find(result.warnings.begin(), result.warnings.end(), warning);
      if (known == result.warnings.end()) result.warnings.push_back(warning);
    }
    out.number(0);
    out.number(result.mjb.size());
    out.bytes(result.mjb.data(), result.mjb.size());
    for (const auto* members : {&result.entity_links, &result.entity_geoms}) {
      out.number(members->size());
      for (const auto& ids : *members) {
        out.number(ids.size());
        for (int id : ids) out.number(static_cast<std::uint64_t>(id));
      }
    }
    out.number(result.warnings.size());
    for (const std::string& warning : result.warnings) out.text(warning);
  } catch (const mj::CompileFailure& failure) {
    out.number(1);
    out.text(failure.message);
  } catch (const std::bad_alloc&) {
    out.number(1);
    out.text(format("compiling needs more memory than SceneOptions::compile_memory allows, {}",
                    format_bytes(options.compile_memory)));
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
bool read_answer(int fd, pid_t child, double idle_seconds, const std::string& files, std::string& data) {
  constexpr int kLook = 100;                        // ms
  constexpr double kFirstWord = 2, kNextWord = 10;  // s of computing after which the wait is said, and said again
  std::string chunk(1 << 16, '\0');
  double used = 0, said = 0;
  // Turns are counted, not time: while both processes are stopped none passes.
  for (double idle = 0; idle < idle_seconds;) {
    pollfd ready{fd, POLLIN, 0};
    const int n_ready = poll(&ready, 1, kLook);
    if (n_ready < 0 && errno == EINTR) continue;
    if (n_ready == 0) {
      const double now = cpu_seconds(child);
      idle = now > used ? 0 : idle + 1e-3 * kLook;
      used = now;
      if (used < (said == 0 ? kFirstWord : said + kNextWord)) continue;
      said = used;
      log::info("{}: compiling the model, {:.0f} s so far", files, used);
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

/// What lacks on the way to a file that MuJoCo could not open: its path is relative to that of one of the models.
std::string where_missing(const std::filesystem::path& file, std::span<const EntityDeclaration> entities) {
  std::vector<std::filesystem::path> places;
  const char* rule = "";
  for (const EntityDeclaration& e : entities) {
    const auto* m = std::get_if<Mjcf>(&e.morph);
    const auto* u = std::get_if<Urdf>(&e.morph);
    const std::string model = m ? m->file : u ? u->file : "";
    if (m && !m->xml.empty()) {
      places.push_back(m->folder.empty() ? file : std::filesystem::path(m->folder) / file);
      rule = m->folder.empty() ? ". What a text names is looked for in the working directory: Mjcf::folder (of a task "
                                 "SceneTaskSetup::model_folder) names another, or give the model as a file"
                               : "";
    } else if (!model.empty()) {
      places.push_back(std::filesystem::path(model).parent_path() / file);
    }
  }
  if (places.size() != 1) places = {file}, rule = "";
  std::error_code ignored;
  return std::filesystem::exists(places[0], ignored) ? "" : ": " + what_is_missing(places[0]) + rule;
}

/// What a model's file is instead of XML, as its first bytes say; "" where they say nothing.
std::string kind_of_file(std::span<const EntityDeclaration> entities) {
  for (const EntityDeclaration& e : entities) {
    const auto* m = std::get_if<Mjcf>(&e.morph);
    const auto* u = std::get_if<Urdf>(&e.morph);
    const std::string file = m ? m->file : u ? u->file : "";
    if (file.empty()) continue;
    std::string begin(8, '\0');
    std::ifstream(file, std::ios::binary).read(begin.data(), static_cast<std::streamsize>(begin.size()));
    const std::string extension = std::filesystem::path(file).extension().string();
    if (begin.starts_with("#usda") || begin == "PXR-USDC" || extension == ".usdz") {
      return format(
          ". {} is USD, which is not read: most robots have an MJCF or URDF file as well (MuJoCo Menagerie, the "
          "maker's ROS package), and Isaac Sim's USD to URDF exporter writes one",
          file);
    }
    static constexpr std::array kMeshes{".stl", ".obj", ".msh", ".ply", ".glb", ".gltf"};
    if (begin.starts_with("glTF") || std::ranges::find(kMeshes, extension) != kMeshes.end()) {
      return format(
          ". {} is a mesh, of which a model is made: <geom type=\"mesh\" mesh=\"...\"/> in MJCF, mesh: in the scene of "
          "a task's file",
          file);
    }
  }
  return "";
}

/// Of a file that is of another format than it is taken for; "" of other messages.
std::string remedy_of_format(const std::string& message, std::span<const EntityDeclaration> entities) {
  const auto says = [&](const char* words) { return message.find(words) != std::string::npos; };
  if (says("no decoder found for mesh file")) {
    return ". Meshes are read from STL, OBJ and MSH files, those of a URDF from COLLADA (.dae), too: convert this one, "
           "`assimp export mesh.dae mesh.obj` say (Debian's package assimp-utils), and name the new file";
  }
  if (says("stl_decoder")) {
    return ". A binary STL file has 84 bytes and 50 for each triangle, one of text begins with `solid`: this one was "
           "cut "
           "short, is empty or is none; copy or export it again";
  }
  if (says("XML parse error")) {
    if (const std::string kind = kind_of_file(entities); !kind.empty()) return kind;
    return ". A model is XML text in UTF-8, MJCF or URDF: this is another kind of file, was cut short, or is wrong in "
           "that line";
  }
  if (says("Unrecognized XML model type: 'html'")) {
    return ": a web page in place of the file; download the file itself (of GitHub: the raw one)";
  }
  if (says("Unrecognized XML model type: 'mujocoinclude'")) {
    return ": a part that other files <include>; name the file that does";
  }
  if (says("Unrecognized XML model type")) {
    return ". The root element of MJCF is <mujoco>, of URDF <robot>: other formats (SDF, say) have to be written as "
           "one "
           "of these";
  }
  return "";
}

/// What to do about a message of MuJoCo's that does not say it.
std::string remedy(const std::string& message, std::span<const EntityDeclaration> entities,
                   const SceneOptions& options) {
  const auto says = [&](const char* words) { return message.find(words) != std::string::npos; };
  if (says("allocate memory")) {
    return format(". The limit is {}, with what <size memory=\"...\"/> asks for (SceneOptions::compile_memory)",
                  format_bytes(options.compile_memory));
  }
  constexpr const char* kNotOpened = "Error opening file '";
  if (const std::size_t at = message.find(kNotOpened); at != std::string::npos) {
    const std::string rest = message.substr(at + std::strlen(kNotOpened));
    return where_missing(rest.substr(0, rest.find('\'')), entities);
  }
  if (const std::string of_format = remedy_of_format(message, entities); !of_format.empty()) return of_format;
  const bool free_urdf = std::any_of(entities.begin(), entities.end(), [](const EntityDeclaration& e) {
    const auto* u = std::get_if<Urdf>(&e.morph);
    return u && !u->fixed;
  });
  const auto is_urdf = [](const EntityDeclaration& e) { return std::holds_alternative<Urdf>(e.morph); };
  const bool all_urdf = std::all_of(entities.begin(), entities.end(), is_urdf);
  const auto setting = [&](const char* attributes) {
    return all_urdf ? format("<mujoco><compiler {}/></mujoco> inside <robot>", attributes)
                    : format("<compiler {}/> inside <mujoco>", attributes);
  };
  // The base bears the entity's own name, links below it "entity/link".
  const std::size_t named = message.find("Element name '");
  const bool of_base = named == std::string::npos ||
                       message.substr(named, message.find('\'', named + 14) - named).find('/') == std::string::npos;
  if (free_urdf && of_base && says("mass and inertia of moving bodies")) {
    return format(
        ". A URDF whose base link has no mass is meant to stand fixed: Urdf::fixed, --fixed-base. For one that moves, "
        "give the link an <inertial>, or take --repair-inertia (ModelEdits::repair_inertia), as if the file had {}",
        setting("boundmass=\"0.001\" boundinertia=\"1e-06\""));
  }
  if (says("mass and inertia of moving bodies")) {
    return format(
        ". Give this link a mass and an inertia (in URDF an <inertial>), or make its joint fixed; where it only "
        "carries "
        "others, as the links of a planar base do, take --repair-inertia (ModelEdits::repair_inertia), as if the file "
        "had {}, which gives every link at least so much (kg, kg m^2)",
        setting("boundmass=\"0.001\" boundinertia=\"1e-06\""));
  }
  if (says("must have positive eigenvalues")) {
    return ". No body has such an inertia: put the link's <inertial> right, or take --repair-inertia "
           "(ModelEdits::repair_inertia), which raises it to 1e-06 kg m^2";
  }
  if (says("missing element: 'inertia'") || says("missing element: 'mass'")) {
    return ". Give the link's <inertial> both a <mass> and an <inertia>, or take --repair-inertia "
           "(ModelEdits::repair_inertia), which makes them 0.001 kg and 1e-06 kg m^2 where they are missing";
  }
  if (says("balanceinertia")) {
    return format(
        ". No body has such an inertia (a diagonal element is at most the sum of the other two): put the link's "
        "<inertial> right, or take --repair-inertia (ModelEdits::repair_inertia), as if the file had {}, which "
        "replaces "
        "it by its mean",
        setting("balanceinertia=\"true\""));
  }
  if (says("inertia must be positive") || says("mass and inertia must be positive") || says("invalid mass")) {
    return ". Put the link's mass and inertia right (in URDF its <inertial>)";
  }
  return "";
}

}  // namespace

CompiledScene compile_scene(std::span<const EntityDeclaration> entities, std::span<const CameraOptions> cameras,
                            const SceneOptions& options) {
  COHORT_THROW_UNLESS(!entities.empty(), "the scene has no entity: add one before build()");
  mj::open_library();  // its absence is told here, and the child finds it open
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
  const std::string files = describe(entities);
  const bool answered = read_answer(fds[0], child, std::min(kIdle, options.compile_seconds), files, data);
  close(fds[0]);
  int status = 0;
  rusage used{};
  while (wait4(child, &status, 0, &used) < 0 && errno == EINTR) {
  }
  COHORT_THROW_UNLESS(answered,
                      "{}: the model compiler waited {} s for a file that gives nothing; is one that it names, an "
                      "<include> or a mesh, a pipe or a device?",
                      files, std::min(kIdle, options.compile_seconds));
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    const bool spent = seconds(used.ru_utime) + seconds(used.ru_stime) >= 0.9 * options.compile_seconds;
    if (signal == SIGXCPU || (signal == SIGKILL && spent)) {
      throw Error(
          format("{}: the model compiler did not finish within {} s of CPU time", files, options.compile_seconds));
    }
    COHORT_THROW_UNLESS(signal != SIGKILL,
                        "{}: the model compiler was killed, by hand or by the system for want of memory", files);
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
  for (auto* members : {&result.entity_links, &result.entity_geoms}) {
    members->resize(in.count(1));
    for (auto& ids : *members) {
      ids.resize(in.count(8));
      for (int& id : ids) id = static_cast<int>(in.number());
    }
  }
  result.warnings.resize(in.count(1));
  for (std::string& warning : result.warnings) warning = in.text();
  return result;
}

}  // namespace cohort::sim
