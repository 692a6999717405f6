#include "sim/host/import/compose.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "core/config.h"
#include "core/error.h"
#include "core/files.h"
#include "core/placeholder_file.h"
#include "formats/xml_elements.h"
#include "sim/host/collada.h"
#include "sim/host/import/edits.h"
#include "sim/host/import/library.h"
#include "sim/host/import/numbers.h"
#include "sim/host/import/scene_look.h"
#include "sim/host/import/units.h"
#include "sim/host/model_file.h"
#include "sim/host/model_info.h"
#include "sim/host/obj_mesh.h"
#include "sim/host/urdf.h"

namespace cohort::sim::mj {

namespace {

/// A file that lies in memory.
class VirtualFile {
 public:
  VirtualFile(const std::string& name, const std::string& text) {
    mj_defaultVFS(&files_);
    mj_addBufferVFS(&files_, name.c_str(), text.data(), static_cast<int>(text.size()));
  }
  ~VirtualFile() { mj_deleteVFS(&files_); }
  VirtualFile(const VirtualFile&) = delete;
  VirtualFile& operator=(const VirtualFile&) = delete;
  const mjVFS* get() const { return &files_; }

 private:
  mjVFS files_;
};

/// What a simulation takes for a broken state begins here (MuJoCo's mjMAXVAL).
constexpr double kFarthest = 1e10;

[[noreturn]] void fail(const std::string& message) {
  throw CompileFailure{message};
}

void set_pose(double pos[3], double quat[4], const Pose& pose) {
  for (int i = 0; i < 3; ++i) {
    pos[i] = pose.pos[static_cast<std::size_t>(i)];
    if (!(std::abs(pos[i]) <= kFarthest))
      fail(format("the pose's position is {} m: no more than {}", pos[i], kFarthest));
  }
  double norm = 0;
  for (double q : pose.quat) norm += q * q;
  if (!(norm > 1e-12) || !std::isfinite(norm)) fail("the pose's quaternion has no length");
  for (int i = 0; i < 4; ++i) quat[i] = pose.quat[static_cast<std::size_t>(i)] / std::sqrt(norm);
}

/// folder: of a text, where the files that it names lie; empty: the working directory.
mjSpec* parse(const std::string& file, const std::string& xml, const std::string& folder = "") {
  char error[2048] = "";
  mjSpec* spec = nullptr;
  if (!xml.empty() && !folder.empty()) {
    // The parser looks for <include> files beside the file that it is given: one that is in memory alone.
    const std::string name = (std::filesystem::path(folder) / "model.xml").string();
    const VirtualFile memory(name, xml);
    spec = mj_parseXML(name.c_str(), memory.get(), error, sizeof error);
    if (!spec) fail(error);
  } else if (!xml.empty()) {
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

/// The elements of a type directly in a body.
std::vector<mjsElement*> children(const mjsBody* of, mjtObj type) {
  std::vector<mjsElement*> found;
  for (mjsElement* e = mjs_firstChild(of, type, 0); e; e = mjs_nextChild(of, e, 0)) found.push_back(e);
  return found;
}
std::vector<mjsElement*> without(const std::vector<mjsElement*>& all, const std::vector<mjsElement*>& some) {
  std::vector<mjsElement*> rest;
  std::copy_if(all.begin(), all.end(), std::back_inserter(rest),
               [&](mjsElement* e) { return std::find(some.begin(), some.end(), e) == some.end(); });
  return rest;
}

/// Refuses a height field that MuJoCo's parser would crash over: it multiplies the sizes as ints, and takes memory
/// before anything else looks at them.
void check_size(const std::string& name, double rows, double cols, double memory) {
  constexpr double kBytesPerPoint = 20;  // in the spec, the model and its copy
  const double points = rows * cols;
  if (points > std::numeric_limits<int>::max()) {
    fail(format("height field `{}` has {} x {} points: {} are the most", name, rows, cols,
                std::numeric_limits<int>::max()));
  }
  if (points * kBytesPerPoint > memory) {
    fail(format("height field `{}` has {} x {} points: compiling them takes {}, and SceneOptions::compile_memory is {}",
                name, rows, cols, format_bytes(points * kBytesPerPoint), format_bytes(memory)));
  }
}

bool has_suffix(const std::string& file, const char* wanted) {
  std::string suffix = std::filesystem::path(file).extension().string();
  std::transform(suffix.begin(), suffix.end(), suffix.begin(), [](unsigned char c) { return std::tolower(c); });
  return suffix == wanted;
}

/// The mesh is what was read, not what its file says. One without a name has its file's, as MuJoCo names it.
void set_triangles(mjsMesh* mesh, const TriangleMesh& read) {
  const std::string stem = std::filesystem::path(mjs_getString(mesh->file)).stem().string();
  if (mjs_getString(mjs_getName(mesh->element))[0] == '\0') mjs_setName(mesh->element, stem.c_str());
  mjs_setFloat(mesh->uservert, read.vertex.data(), static_cast<int>(read.vertex.size()));
  mjs_setInt(mesh->userface, read.face.data(), static_cast<int>(read.face.size()));
  mjs_setString(mesh->file, "");
}

/// Reads an STL file that is written as text, which MuJoCo does not.
void read_if_text_stl(mjsMesh* mesh, const std::filesystem::path& file) {
  if (!has_suffix(file.string(), ".stl") || !why_unreadable(file).empty()) return;
  try {
    if (const std::string text = read_file(file); is_text_stl(text)) set_triangles(mesh, read_text_stl(text));
  } catch (const Error& error) {
    fail(format("mesh {}: {}", file.string(), error.what()));
  }
}

/// All of a model file's. `folder`: where the file lies.
void read_text_stls(mjSpec* spec, const std::filesystem::path& folder) {
  for (mjsElement* e = mjs_firstElement(spec, mjOBJ_MESH); e; e = mjs_nextElement(spec, e)) {
    mjsMesh* const mesh = mjs_asMesh(e);
    std::string named = mjs_getString(mesh->file);
    if (named.empty()) continue;
    std::replace(named.begin(), named.end(), '\\', '/');
    std::filesystem::path file = named;
    if (spec->strippath) file = file.filename();
    read_if_text_stl(mesh, folder / mjs_getString(spec->compiler.meshdir) / file);
  }
}

mjSpec* parse(const Mjcf& m, double memory) {
  if (m.xml.empty() ? is_urdf(m.file) : root_element(m.xml) == "robot") {
    fail(
        "this is a URDF model (its root element is <robot>), given as MJCF: add it as a Urdf, which says whether its "
        "base is fixed");
  }
  const std::string text = !m.xml.empty() ? m.xml : why_unreadable(m.file).empty() ? read_file(m.file) : "";
  const std::filesystem::path file = m.file;
  const std::filesystem::path folder = m.xml.empty() ? file.parent_path() : std::filesystem::path(m.folder);
  for (const HeightFieldSize& field : height_field_sizes(text, folder)) {
    check_size(field.name, field.rows, field.cols, memory);
  }
  const std::string asset = placeholder_asset(text, folder);
  if (!asset.empty()) fail(m.file.empty() ? asset : m.file + ": " + asset);
  mjSpec* const spec = parse(m.file, m.xml, m.folder);
  read_text_stls(spec, folder);
  return spec;
}

/// Whether something of the body may touch.
bool collides(const mjsBody* body) {
  const std::vector<mjsElement*> geoms = children(body, mjOBJ_GEOM);
  return std::any_of(geoms.begin(), geoms.end(), [](mjsElement* e) {
    const mjsGeom* g = mjs_asGeom(e);
    return g->contype != 0 || g->conaffinity != 0;
  });
}

void exclude(mjSpec* spec, const std::string& one, const std::string& other) {
  mjsExclude* pair = mjs_addExclude(spec);
  mjs_setString(pair->bodyname1, one.c_str());
  mjs_setString(pair->bodyname2, other.c_str());
}

/// Leaves out what the SRDF file of a URDF says. all_links: the URDF's. Adds to `warnings`.
void exclude_as_srdf(mjSpec* spec, const Urdf& u, const std::vector<std::string>& all_links,
                     std::vector<std::string>& warnings) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::path file = u.srdf;
  const bool found_beside = u.srdf.empty();
  if (found_beside) {
    if (u.file.empty()) return;
    file = fs::path(u.file).replace_extension(".srdf");
    if (!fs::is_regular_file(file, ignored)) return;
  }
  if (const std::string trouble = why_unreadable(file); !trouble.empty()) fail(trouble);
  std::set<std::string> links;
  for (mjsElement* e = mjs_firstElement(spec, mjOBJ_BODY); e; e = mjs_nextElement(spec, e)) {
    if (collides(mjs_asBody(e))) links.insert(mjs_getString(mjs_getName(e)));
  }
  std::vector<std::pair<std::string, std::string>> pairs;
  std::vector<std::string> unknown;
  try {
    const std::string text = read_file(file);
    pairs = srdf_exclusions(text, links);
    for (const std::string& link : links_of_srdf(text)) {
      if (std::ranges::find(all_links, link) != all_links.end()) continue;
      const std::string near = config::nearest(link, all_links);
      unknown.push_back(format("`{}`{}", link, near.empty() ? "" : format(" (is `{}` meant?)", near)));
    }
  } catch (const Error& e) {
    fail(format("{}: {}", file.string(), e.what()));
  }
  for (const auto& [one, other] : pairs) exclude(spec, one, other);
  if (!unknown.empty())
    warnings.push_back(format("{}: it names {} that the URDF file does not have: {}; pairs with {} are passed over",
                              file.string(), unknown.size() == 1 ? "a link" : "links", join(unknown, ", "),
                              unknown.size() == 1 ? "it" : "them"));
  warnings.push_back(format("{}{}: {} pair{} of links do{} not collide", file.string(),
                            found_beside ? " (beside the URDF file)" : "", pairs.size(), pairs.size() == 1 ? "" : "s",
                            pairs.size() == 1 ? "es" : ""));
}

/// A base that is part of the world: MuJoCo lets parent and child collide where the parent is the world. Leaves out the
/// pairs that it leaves out of the same robot with a free base.
void exclude_neighbours_of_base(mjSpec* spec) {
  std::vector<const mjsBody*> fastened, moved;
  const auto walk = [&](const auto& self, const mjsBody* body) -> void {
    for (mjsElement* e : children(body, mjOBJ_BODY)) {
      const mjsBody* child = mjs_asBody(e);
      (children(child, mjOBJ_JOINT).empty() ? fastened : moved).push_back(child);
      if (children(child, mjOBJ_JOINT).empty()) self(self, child);
    }
  };
  walk(walk, mjs_findBody(spec, "world"));
  // What is fixed to a moved link moves with it.
  for (std::size_t i = 0; i < moved.size(); ++i) {
    for (mjsElement* e : children(moved[i], mjOBJ_BODY)) {
      if (children(mjs_asBody(e), mjOBJ_JOINT).empty()) moved.push_back(mjs_asBody(e));
    }
  }
  const auto name = [](const mjsBody* body) { return std::string(mjs_getString(mjs_getName(body->element))); };
  for (const mjsBody* still : fastened) {
    for (const mjsBody* other : moved) {
      if (collides(still) && collides(other)) exclude(spec, name(still), name(other));
    }
  }
}

/// Why the <visual> shapes of a URDF are left out; "" where they are kept.
std::string visuals_not_kept(const std::string& text, const std::filesystem::path& folder) {
  bool in_visual = false;
  for (const XmlElement& e : xml_elements(text)) {
    if (e.depth == 2 && e.name == "compiler" && e.has("discardvisual")) return "the file itself leaves visuals out";
    if (e.depth <= 2) in_visual = e.name == "visual";
    if (!in_visual || e.name != "mesh") continue;
    const std::string file = e.attribute("filename");
    std::string suffix = std::filesystem::path(file).extension().string();
    std::transform(suffix.begin(), suffix.end(), suffix.begin(), [](unsigned char c) { return std::tolower(c); });
    if (suffix != ".stl" && suffix != ".obj" && suffix != ".msh" && suffix != ".dae") {
      return format(
          "the visual mesh `{}` (line {}) is none of STL, OBJ, MSH and COLLADA (.dae), which are read; convert it "
          "(`assimp export {} mesh.obj`) and name the new file",
          file, e.line, file);
    }
    const MeshPath path = resolve_mesh(file, folder);
    if (!path.problem.empty()) return format("line {}: {}", e.line, path.problem);
  }
  return "";
}

/// A <visual> shape, as MuJoCo's importer makes one of it.
bool is_visual(const mjsGeom& g) {
  return g.contype == 0 && g.conaffinity == 0 && g.group == 1;
}

/// Reads what MuJoCo does not of a URDF's meshes: COLLADA files, and OBJ files that are only looked at and of which it
/// would leave out faces. `folder`: of the URDF. A geom that the URDF gives no colour gets the file's.
void read_other_meshes(mjSpec* spec, const std::filesystem::path& folder) {
  constexpr float kDefaultColour[4] = {0.5f, 0.5f, 0.5f, 1};
  for (mjsElement* e = mjs_firstElement(spec, mjOBJ_MESH); e; e = mjs_nextElement(spec, e)) {
    mjsMesh* mesh = mjs_asMesh(e);
    const std::string named = mjs_getString(mesh->file), name = mjs_getString(mjs_getName(e));
    const bool collada = has_suffix(named, ".dae");
    if (!collada && !has_suffix(named, ".obj")) continue;
    std::vector<mjsGeom*> users;
    for (mjsElement* g = mjs_firstElement(spec, mjOBJ_GEOM); g; g = mjs_nextElement(spec, g)) {
      if (mjs_getString(mjs_asGeom(g)->meshname) == name) users.push_back(mjs_asGeom(g));
    }
    if (!collada && !std::all_of(users.begin(), users.end(), [](const mjsGeom* g) { return is_visual(*g); })) continue;
    const MeshPath path = resolve_mesh(named, folder);
    if (!path.problem.empty()) fail(path.problem);
    const std::filesystem::path meshes = folder / mjs_getString(spec->compiler.meshdir);
    std::filesystem::path file = meshes / path.file;
    std::error_code ignored;
    // `strippath` of MuJoCo's importer: the name alone counts.
    if (!std::filesystem::is_regular_file(file, ignored)) file = meshes / path.file.filename();
    if (const std::string trouble = why_unreadable(file.string()); !trouble.empty()) {
      fail(format("mesh `{}`: {}", named, trouble));
    }
    TriangleMesh read;
    try {
      const std::string text = read_file(file);
      if (!collada && !mixes_texture_coordinates(text)) continue;
      read = collada ? read_collada(text) : read_obj(text);
    } catch (const Error& error) {
      fail(format("mesh {}: {}", file.string(), error.what()));
    }
    set_triangles(mesh, read);
    for (mjsGeom* geom : users) {
      if (read.colour && std::equal(geom->rgba, geom->rgba + 4, kDefaultColour)) {
        std::copy(read.colour->begin(), read.colour->end(), geom->rgba);
      }
    }
  }
}

/// Of a URDF whose <visual> shapes are kept (MuJoCo's importer puts them into group 1 and lets them collide with
/// nothing): they weigh nothing, and collision shapes go to group 3, which pictures leave out unless they are asked for
/// it, as in most MJCF files. So does ROS' viewer show robots: also links without a visual by none.
void show_visuals(mjSpec* spec) {
  constexpr int kCollisionGroup = 3;
  for (mjsElement* e = mjs_firstElement(spec, mjOBJ_GEOM); e; e = mjs_nextElement(spec, e)) {
    mjsGeom* geom = mjs_asGeom(e);
    if (is_visual(*geom))
      geom->density = geom->mass = 0;
    else
      geom->group = kCollisionGroup;
  }
}

/// Shapes of a URDF without an extent, which ROS' programs pass over and MuJoCo refuses.
void leave_out_empty_shapes(mjSpec* spec, const std::string& from, std::vector<std::string>& warnings) {
  std::vector<mjsElement*> empty;
  for (mjsElement* e = mjs_firstElement(spec, mjOBJ_GEOM); e; e = mjs_nextElement(spec, e)) {
    const mjsGeom* g = mjs_asGeom(e);
    const int sizes = g->type == mjGEOM_SPHERE                                  ? 1
                      : g->type == mjGEOM_CAPSULE || g->type == mjGEOM_CYLINDER ? 2
                      : g->type == mjGEOM_BOX                                   ? 3
                                                                                : 0;
    if (std::any_of(g->size, g->size + sizes, [](double s) { return s == 0; })) empty.push_back(e);
  }
  for (mjsElement* e : empty) mjs_delete(spec, e);
  if (empty.empty()) return;
  warnings.push_back(format("{}{} shape{} of size 0 left out", from, empty.size(), empty.size() == 1 ? "" : "s"));
}

/// What becomes of the <visual> shapes of a scene's URDF files.
struct Visuals {
  std::string left_out;  ///< why they are, of all files; "": they are kept where they can be read
  bool kept = false;     ///< of some file
};

/// MuJoCo knows neither ROS' packages nor its macros, and passes over what check_urdf() finds. Adds to `warnings`;
/// fixed: u.fixed, or the file fastens the robot itself.
mjSpec* parse(const Urdf& u, std::vector<std::string>& warnings, bool& fixed, Visuals& visuals) {
  namespace fs = std::filesystem;
  const std::string trouble = u.xml.empty() ? why_unreadable(u.file) : "";
  if (!trouble.empty()) fail(trouble);
  const std::string written = u.xml.empty() ? read_file(u.file) : u.xml;
  const std::string text = u.edits.repair_inertia ? with_whole_inertials(written) : written;
  const std::string from = u.file.empty() ? "" : u.file + ": ";
  if (const std::string macro = unexpanded_xacro(text); !macro.empty()) fail(from + macro);
  const UrdfRemarks remarks = check_urdf(text);
  const fs::path folder = fs::absolute(u.file.empty() ? "here" : u.file).parent_path();
  const std::string unseen = !remarks.has_visuals        ? ""
                             : !visuals.left_out.empty() ? visuals.left_out
                                                         : visuals_not_kept(text, folder);
  mjSpec* spec = nullptr;
  try {
    if (remarks.has_visuals && unseen.empty()) {
      visuals.kept = true;
      spec = parse("", with_visuals(text), folder.string());
      show_visuals(spec);
    } else {
      spec = text == written ? parse(u.file, u.xml) : parse("", text, folder.string());
    }
  } catch (const CompileFailure& failure) {
    // MuJoCo does not say which name. A text that is no XML has no names to look at.
    if (remarks.error.empty() || failure.message.find("XML parse error") != std::string::npos) throw;
    fail(from + remarks.error);
  }
  if (!remarks.error.empty()) fail(from + remarks.error);
  for (const std::string& warning : remarks.warnings) warnings.push_back(from + warning);
  if (remarks.seen_only) {
    warnings.push_back(from + "its links have <visual> and no <collision> elements, so that nothing touches them; " +
                       (unseen.empty() ? "the visuals are kept for pictures" : "pictures show none of it: " + unseen));
  } else if (!unseen.empty()) {
    warnings.push_back(from + "pictures show its collision shapes in place of the visuals: " + unseen);
  }
  read_other_meshes(spec, folder);
  for (mjsElement* e = mjs_firstElement(spec, mjOBJ_MESH); e && !spec->strippath; e = mjs_nextElement(spec, e)) {
    mjsMesh* mesh = mjs_asMesh(e);
    if (mjs_getString(mesh->file)[0] == '\0') continue;  // has been read
    const MeshPath path = resolve_mesh(mjs_getString(mesh->file), folder);
    if (!path.problem.empty()) fail(from + path.problem);
    const std::string fault = placeholder_fault(folder / path.file);
    if (!fault.empty()) fail(format("{}`{}` {}", from, path.file.string(), fault));
    mjs_setString(mesh->file, path.file.c_str());
    read_if_text_stl(mesh, folder / mjs_getString(spec->compiler.meshdir) / path.file);
  }
  leave_out_empty_shapes(spec, from, warnings);
  exclude_as_srdf(spec, u, remarks.links, warnings);
  fixed = fixed || remarks.on_world;
  if (fixed) exclude_neighbours_of_base(spec);
  return spec;
}

/// Where an entity comes from, "" of no file, and what scales its meshes from millimetres.
std::pair<std::string, std::string> file_and_scale(const Morph& morph) {
  constexpr const char* kOfElement = "a scale of 0.001 for each mesh (<mesh scale=\"0.001 0.001 0.001\">)";
  if (const auto* mjcf = std::get_if<Mjcf>(&morph)) return {mjcf->file, kOfElement};
  if (const auto* urdf = std::get_if<Urdf>(&morph)) return {urdf->file, kOfElement};
  if (const auto* mesh = std::get_if<Mesh>(&morph)) return {mesh->file, "the entity's scale of 0.001"};
  return {};
}

/// Composes one scene in a spec; lives in the child process.
class Composer {
 public:
  /// memory: bytes that compiling may take.
  Composer(std::span<const EntityDeclaration> entities, double memory, Visuals& visuals)
      : entities_(entities), memory_(memory), visuals_(visuals) {
    // The first model file without a pose of its own is the root: its options, defaults and keyframes stay as written.
    for (std::size_t i = 0; i < entities.size() && root_entity_ == kNone; ++i) {
      const auto* mjcf = std::get_if<Mjcf>(&entities[i].morph);
      if (mjcf && !mjcf->pose) root_entity_ = i;
    }
    if (root_entity_ == kNone) {
      spec_ = mj_makeSpec();
      takes_options_ = true;
    } else {
      const auto& mjcf = std::get<Mjcf>(entities[root_entity_].morph);
      spec_ = parse(mjcf, memory_);
      apply_edits(spec_, mjcf.edits, entities[root_entity_].name, warnings_);
    }
    world_ = mjs_findBody(spec_, "world");
    bodies_.resize(entities.size());
    geoms_.resize(entities.size());
    if (root_entity_ != kNone) note_members(root_entity_, {}, {});
    for (std::size_t i = 0; i < entities.size(); ++i) {
      if (i == root_entity_) continue;
      const std::vector<mjsElement*> bodies = children(world_, mjOBJ_BODY), geoms = children(world_, mjOBJ_GEOM);
      current_ = i;
      std::visit([this](const auto& morph) { add(morph); }, entities[i].morph);
      note_members(i, bodies, geoms);
    }
  }
  ~Composer() {
    for (mjSpec* child : attached_) mj_deleteSpec(child);
    mj_deleteSpec(plain_);
    mj_deleteSpec(spec_);
  }
  Composer(const Composer&) = delete;
  Composer& operator=(const Composer&) = delete;

  void add_camera(const CameraOptions& camera) {
    mjsCamera* c = mjs_addCamera(world_, mjs_getSpecDefault(plain_));
    if (!camera.name.empty() && mjs_setName(c->element, camera.name.c_str()) != 0) {
      fail(format("camera `{}`: the scene has a camera of that name already: give this one another", camera.name));
    }
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
    for (const std::array<std::string, 2>& pair : o.exclude) exclude(spec_, link_named(pair[0]), link_named(pair[1]));
    if (o.iterations) opt.iterations = *o.iterations;
    if (o.tolerance) opt.tolerance = *o.tolerance;
    if (o.ls_iterations) opt.ls_iterations = *o.ls_iterations;
    if (o.ls_tolerance) opt.ls_tolerance = *o.ls_tolerance;
    if (o.noslip_iterations) opt.noslip_iterations = *o.noslip_iterations;
    if (o.noslip_tolerance) opt.noslip_tolerance = *o.noslip_tolerance;
    if (o.impratio) opt.impratio = *o.impratio;
  }

  CompiledScene compile() {
    check_height_fields();
    // An MJCF file says itself what it looks like.
    if (std::none_of(entities_.begin(), entities_.end(),
                     [](const EntityDeclaration& e) { return std::holds_alternative<Mjcf>(e.morph); }))
      add_sky_and_light(spec_);
    mjModel* model = mj_compile(spec_, nullptr);
    if (!model) fail(mjs_getError(spec_));
    const double timestep = model->opt.timestep;
    if (!(timestep >= kLeastTimestep) || !std::isfinite(timestep)) {
      fail(format("timestep is {}: it has to be positive (s) and at least {}, or no step advances the time", timestep,
                  kLeastTimestep));
    }
    if (const std::vector<std::string> bad = impossible_numbers(*model); !bad.empty()) {
      std::string list;
      for (const std::string& number : bad) list += (list.empty() ? "" : "; ") + number;
      fail("no simulation can use these numbers: " + list);
    }
    CompiledScene result;
    result.entity_links = ids(bodies_, mjOBJ_BODY);
    result.entity_geoms = ids(geoms_, mjOBJ_GEOM);
    result.warnings = warnings_;
    for (std::size_t i = 0; i < entities_.size(); ++i) {
      const auto& [file, scale] = file_and_scale(entities_[i].morph);
      const std::string from = file.empty() ? format("entity `{}`: ", entities_[i].name) : file + ": ";
      for (std::string& remark : remarks_on_units(*model, from, result.entity_links[i], scale))
        result.warnings.push_back(std::move(remark));
    }
    for (int i = 0; i < mjs_numWarnings(spec_); ++i) result.warnings.emplace_back(mjs_getWarning(spec_, i));
    result.mjb.resize(static_cast<std::size_t>(mj_sizeModel(model)));
    mj_saveModel(model, nullptr, result.mjb.data(), static_cast<mjtSize>(result.mjb.size()));
    mj_deleteModel(model);
    return result;
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  const std::string& name() const { return entities_[current_].name; }

  /// The whole name of a link that SceneOptions::exclude names, perhaps without its entity's.
  std::string link_named(const std::string& wanted) const {
    std::vector<std::string> names, matches;
    for (mjsElement* e = mjs_firstElement(spec_, mjOBJ_BODY); e; e = mjs_nextElement(spec_, e)) {
      const std::string name = mjs_getString(mjs_getName(e));
      if (name == wanted) return name;
      if (!name.empty()) names.push_back(name.substr(name.rfind('/') + 1));
      if (name.ends_with("/" + wanted)) matches.push_back(name);
    }
    if (matches.size() == 1) return matches[0];
    if (matches.size() > 1) {
      fail(format("exclude names the link `{}`, and there are {} and {}: give it with its entity's name", wanted,
                  matches[0], matches[1]));
    }
    const std::string near = config::nearest(wanted, names);
    fail(format("exclude names the link `{}`, and no link has that name{}", wanted,
                near.empty() ? "" : format("; is `{}` meant?", near)));
  }

  /// Notes what an entity has brought: `bodies` and `geoms` were in the world before it.
  void note_members(std::size_t entity, const std::vector<mjsElement*>& bodies, const std::vector<mjsElement*>& geoms) {
    geoms_[entity] = without(children(world_, mjOBJ_GEOM), geoms);
    for (mjsElement* root : without(children(world_, mjOBJ_BODY), bodies)) {
      bodies_[entity].push_back(root);
      for (const auto& [type, to] : {std::pair{mjOBJ_BODY, &bodies_}, std::pair{mjOBJ_GEOM, &geoms_}}) {
        const mjsBody* body = mjs_asBody(root);
        for (mjsElement* e = mjs_firstChild(body, type, 1); e; e = mjs_nextChild(body, e, 1)) {
          (*to)[entity].push_back(e);
        }
      }
    }
  }

  /// Of files too, whose sizes the parser finds.
  void check_height_fields() const {
    for (mjsElement* e = mjs_firstElement(spec_, mjOBJ_HFIELD); e; e = mjs_nextElement(spec_, e)) {
      const mjsHField* field = mjs_asHField(e);
      check_size(mjs_getString(mjs_getName(e)), field->nrow, field->ncol, memory_);
    }
  }

  /// Rising indices in the compiled model of the elements that are left: the compiler fuses bodies (`fusestatic`) and
  /// leaves out geoms (`discardvisual`).
  std::vector<std::vector<int>> ids(const std::vector<std::vector<mjsElement*>>& of, mjtObj type) const {
    std::set<mjsElement*> left;
    for (mjsElement* e = mjs_firstElement(spec_, type); e; e = mjs_nextElement(spec_, e)) left.insert(e);
    std::vector<std::vector<int>> all(of.size());
    for (std::size_t i = 0; i < of.size(); ++i) {
      for (mjsElement* e : of[i]) {
        if (left.count(e)) all[i].push_back(mjs_getId(e));
      }
      std::sort(all[i].begin(), all[i].end());
    }
    return all;
  }

  /// Gives an element the entity's name. Two elements of a kind and a name cannot be told apart, also not by entity().
  void give_name(mjsElement* element, const char* kind) {
    if (mjs_setName(element, name().c_str()) == 0) return;
    fail(format("entity `{}`: the scene has a {} of that name already: give the entity another", name(), kind));
  }

  /// Puts what a file's world holds into `to` (the scene's world, or a body), with the entity's name before its names.
  void attach(mjSpec* child, mjsBody* to, const Pose& pose) {
    attached_.push_back(child);
    mjs_setDeepCopy(spec_, 1);
    if (to == world_) put_keyframes(child, pose);
    const std::string prefix = name() + "/";
    const std::size_t sensors = count(spec_, mjOBJ_SENSOR);
    mjsFrame* frame = in_one_frame(mjs_findBody(child, "world"), pose);
    if (!mjs_attach(to->element, frame->element, prefix.c_str(), "")) {
      fail(format("entity `{}`: {}", name(), mjs_getError(spec_)));
    }
    // MuJoCo leaves out a sensor of something that is not in the frame: of the world.
    const std::size_t lost = sensors + count(child, mjOBJ_SENSOR) - count(spec_, mjOBJ_SENSOR);
    for (mjsElement* e = mjs_firstElement(child, mjOBJ_SENSOR); e && lost > 0; e = mjs_nextElement(child, e)) {
      const mjsSensor* sensor = mjs_asSensor(e);
      const std::string own = mjs_getString(mjs_getName(e));
      if (mjs_getString(sensor->objname) != std::string("world")) continue;
      fail(
          format("entity `{}`: its sensor `{}` is one of the whole world, which the scene's entities share: take it "
                 "away, or give this file no pose and add it first",
                 name(), own));
    }
    if (lost > 0) fail(format("entity `{}`: MuJoCo leaves out {} of its sensors", name(), lost));
  }

  static std::size_t count(mjSpec* spec, mjtObj type) {
    std::size_t n = 0;
    for (mjsElement* e = mjs_firstElement(spec, type); e; e = mjs_nextElement(spec, e)) ++n;
    return n;
  }

  /// Puts all that a file's world holds into a frame: attached as a body, that world would lie between the scene's and
  /// its bodies with free joints and mocap bodies, which MuJoCo wants directly below the scene's.
  static mjsFrame* in_one_frame(mjsBody* world, const Pose& pose) {
    std::vector<mjsElement*> inside;
    for (const mjtObj type : {mjOBJ_FRAME, mjOBJ_BODY, mjOBJ_GEOM, mjOBJ_SITE, mjOBJ_CAMERA, mjOBJ_LIGHT}) {
      for (mjsElement* e : children(world, type)) {
        if (!mjs_getFrame(e)) inside.push_back(e);
      }
    }
    mjsFrame* frame = mjs_addFrame(world, nullptr);
    set_pose(frame->pos, frame->quat, pose);
    for (mjsElement* e : inside) mjs_setFrame(e, frame);
    return frame;
  }

  static bool has_free_joint(const mjsBody* body) {
    const std::vector<mjsElement*> joints = children(body, mjOBJ_JOINT);
    return std::any_of(joints.begin(), joints.end(), [](mjsElement* e) { return mjs_asJoint(e)->type == mjJNT_FREE; });
  }

  /// `inner`, which is given in the frame `outer`.
  static Pose composed(const Pose& outer, const Pose& inner) {
    double pos[3], quat[4], inner_pos[3], inner_quat[4];
    set_pose(pos, quat, outer);
    set_pose(inner_pos, inner_quat, inner);
    Pose pose;
    mju_rotVecQuat(pose.pos.data(), inner_pos, quat);
    mju_addTo3(pose.pos.data(), pos);
    mju_mulQuat(pose.quat.data(), quat, inner_quat);
    return pose;
  }

  /// The keyframes of a file hold free joints and mocap bodies in its world: puts those with it.
  static void put_keyframes(mjSpec* file, const Pose& pose) {
    double pos[3], quat[4];
    set_pose(pos, quat, pose);
    const auto place = [&](double* at, double* orientation) {
      if (at) mju_rotVecQuat(at, std::array<double, 3>{at[0], at[1], at[2]}.data(), quat), mju_addTo3(at, pos);
      if (!orientation) return;
      double turned[4];
      mju_mulQuat(turned, quat, orientation);
      std::copy_n(turned, 4, orientation);
    };
    for (mjsElement* e = mjs_firstElement(file, mjOBJ_KEY); e; e = mjs_nextElement(file, e)) {
      mjsKey* key = mjs_asKey(e);
      const auto values = [](mjDoubleVec* all) {
        int n = 0;
        const double* first = mjs_getDouble(all, &n);
        return std::vector<double>(first, first + n);
      };
      std::vector<double> qpos = values(key->qpos), qvel = values(key->qvel), mpos = values(key->mpos),
                          mquat = values(key->mquat);
      // Coordinates are in the order of the bodies, the outer one first.
      std::size_t q = 0, v = 0;
      const mjsBody* world = mjs_findBody(file, "world");
      for (mjsElement* j = mjs_firstChild(world, mjOBJ_JOINT, 1); j; j = mjs_nextChild(world, j, 1)) {
        const auto type = static_cast<std::size_t>(mjs_asJoint(j)->type);
        if (type == mjJNT_FREE && q + 7 <= qpos.size()) place(&qpos[q], &qpos[q + 3]);
        if (type == mjJNT_FREE && v + 3 <= qvel.size()) {
          mju_rotVecQuat(&qvel[v], std::array<double, 3>{qvel[v], qvel[v + 1], qvel[v + 2]}.data(), quat);
        }
        q += kJointQpos[type], v += kJointDofs[type];
      }
      for (std::size_t i = 0; i + 3 <= mpos.size(); i += 3) place(&mpos[i], nullptr);
      for (std::size_t i = 0; i + 4 <= mquat.size(); i += 4) place(nullptr, &mquat[i]);
      const auto write = [](mjDoubleVec* to, const std::vector<double>& from) {
        if (!from.empty()) mjs_setDouble(to, from.data(), static_cast<int>(from.size()));
      };
      write(key->qpos, qpos), write(key->qvel, qvel), write(key->mpos, mpos), write(key->mquat, mquat);
    }
  }

  void add(const Mjcf& m) {
    mjSpec* child = parse(m, memory_);
    apply_edits(child, m.edits, name(), warnings_);
    if (takes_options_) spec_->option = child->option;
    takes_options_ = false;
    attach(child, world_, m.pose.value_or(Pose{}));
  }

  void add(const Urdf& u) {
    bool fixed = u.fixed;
    mjSpec* child = parse(u, warnings_, fixed, visuals_);
    const auto is_mjcf = [](const EntityDeclaration& e) { return std::holds_alternative<Mjcf>(e.morph); };
    if (takes_options_ && std::none_of(entities_.begin(), entities_.end(), is_mjcf)) {
      spec_->option = child->option;  // of its <mujoco> element
      takes_options_ = false;
    }
    const std::vector<mjsElement*> bodies = children(mjs_findBody(child, "world"), mjOBJ_BODY);
    // A file may say itself that its base moves freely (a joint `floating`).
    const bool own_base =
        fixed || std::any_of(bodies.begin(), bodies.end(), [](auto* e) { return has_free_joint(mjs_asBody(e)); });
    ModelEdits edits = u.edits;
    if (edits.free_base) fail(format("entity `{}`, edits.free_base: of a URDF Urdf::fixed says it", name()));
    Pose pose = u.pose;
    if (!own_base && edits.init && edits.init->base) {
      // The free body is the scene's.
      pose = composed(u.pose, *edits.init->base);
      edits.init->base.reset();
    }
    apply_edits(child, edits, name(), warnings_);
    if (own_base) {
      attach(child, world_, u.pose);
      return;
    }
    mjsBody* base = mjs_addBody(world_, nullptr);
    give_name(base->element, "body");
    set_pose(base->pos, base->quat, pose);
    mjs_addFreeJoint(base);
    attach(child, base, Pose{});
  }

  /// A body for a shape, with a free joint unless it is fixed.
  mjsBody* body_for(const ShapeOptions& s) {
    mjsBody* body = mjs_addBody(world_, nullptr);
    give_name(body->element, "body");
    set_pose(body->pos, body->quat, s.pose);
    if (s.marker)
      body->mocap = 1;
    else if (!s.fixed)
      mjs_addFreeJoint(body);
    return body;
  }

  mjsGeom* geom_for(mjsBody* body, mjtGeom type, std::array<double, 3> size) {
    mjsGeom* geom = mjs_addGeom(body, mjs_getSpecDefault(plain_));
    give_name(geom->element, "geom");
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
    const auto check = [&](const char* what, double value, const char* unit) {
      if (!(value >= 0) || !std::isfinite(value)) fail(format("entity `{}`: a {} of {} {}", name(), what, value, unit));
    };
    check("density", s.density, "kg/m^3");
    geom->density = s.density;
    if (s.mass) check("mass", *s.mass, "kg"), geom->mass = *s.mass;
    if (s.marker) geom->contype = geom->conaffinity = 0, geom->mass = 0;
    set_friction(geom, s.friction);
    std::copy(s.rgba.begin(), s.rgba.end(), geom->rgba);
  }

  void set_friction(mjsGeom* geom, const std::array<double, 3>& friction) {
    for (const double f : friction) {
      if (!(f >= 0) || !std::isfinite(f)) fail(format("entity `{}`: a friction of {}: not below zero", name(), f));
    }
    std::copy(friction.begin(), friction.end(), geom->friction);
  }

  void add(const Sphere& s) { add_shape(s.shape, mjGEOM_SPHERE, {s.radius, 0, 0}); }
  void add(const Capsule& s) { add_shape(s.shape, mjGEOM_CAPSULE, {s.radius, s.length / 2, 0}); }
  void add(const Cylinder& s) { add_shape(s.shape, mjGEOM_CYLINDER, {s.radius, s.height / 2, 0}); }
  void add(const Box& s) { add_shape(s.shape, mjGEOM_BOX, {s.size[0] / 2, s.size[1] / 2, s.size[2] / 2}); }
  void add(const Ellipsoid& s) { add_shape(s.shape, mjGEOM_ELLIPSOID, s.radii); }

  void add(const Plane& p) {
    mjsGeom* geom = geom_for(world_, mjGEOM_PLANE, {0, 0, 0.05});
    set_pose(geom->pos, geom->quat, p.pose);
    set_friction(geom, p.friction);
    std::copy(p.rgba.begin(), p.rgba.end(), geom->rgba);
    // Of a colour that somebody chose it stays that colour.
    if (p.rgba == Plane{}.rgba) give_checker(spec_, geom);
  }

  void add(const Mesh& m) {
    std::error_code code;
    const std::filesystem::path path = std::filesystem::absolute(m.file, code);
    const std::string trouble = why_unreadable(m.file);
    if (!trouble.empty()) fail(format("entity `{}`, mesh: {}", name(), trouble));
    mjsMesh* mesh = mjs_addMesh(spec_, mjs_getSpecDefault(plain_));
    give_name(mesh->element, "mesh");
    mjs_setString(mesh->file, path.c_str());
    read_if_text_stl(mesh, path);
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
    for (const float h : t.heights) {
      if (!std::isfinite(h)) fail(format("entity `{}`: a height of {} m", name(), h));
    }
    check_size(name(), t.rows, t.cols, memory_);
    mjsHField* field = mjs_addHField(spec_);
    give_name(field->element, "height field");
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
    set_friction(geom, t.friction);
  }

  std::span<const EntityDeclaration> entities_;
  double memory_;
  Visuals& visuals_;
  std::size_t root_entity_ = kNone;
  std::size_t current_ = 0;
  mjSpec* spec_ = nullptr;
  /// Empty. A shape, mesh or camera is what its options say: the defaults of the model file in spec_ are that file's.
  mjSpec* plain_ = mj_makeSpec();
  mjsBody* world_ = nullptr;
  std::vector<mjSpec*> attached_;
  std::vector<std::string> warnings_;                     ///< of its files
  bool takes_options_ = false;                            ///< no file is the root: the next gives its options
  std::vector<std::vector<mjsElement*>> bodies_, geoms_;  ///< per entity
};

}  // namespace

CompiledScene compose_scene(std::span<const EntityDeclaration> entities, std::span<const CameraOptions> cameras,
                            const SceneOptions& options) {
  Visuals visuals;
  const auto compose = [&] {
    Composer composer(entities, options.compile_memory, visuals);
    for (const CameraOptions& camera : cameras) composer.add_camera(camera);
    composer.apply(options);
    return composer.compile();
  };
  try {
    return compose();
  } catch (const CompileFailure& failure) {
    if (!visuals.kept) throw;
    // What is only looked at is no reason to refuse a robot: a visual mesh without a volume, or that is not there.
    visuals.left_out = failure.message;
  }
  return compose();
}

}  // namespace cohort::sim::mj
