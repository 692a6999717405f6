// Geoms and the pairs of them that may touch.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "core/error.h"
#include "sim/host/import/handle.h"
#include "sim/host/import/importer.h"
#include "sim/host/import/unsupported.h"
#include "sim/host_memory.h"
#include "sim/kernels/collide/convex/queued.h"
#include "sim/kernels/collide/near_pairs.h"
#include "sim/kernels/lane/pair_kernels.h"

namespace cohort::sim::mj {

int Importer::add_geom(int g) {
  const auto found = geom_index_.find(g);
  if (found != geom_index_.end()) return found->second;
  GeomRecord r = geom(g);
  if (r.shape == kMesh) r.data = add_mesh(m_.geom_dataid[g]);
  if (r.shape == kHeightField) r.data = add_height_field(m_.geom_dataid[g]);
  out_.geom.push_back(r);
  return geom_index_[g] = static_cast<int>(out_.geom.size()) - 1;
}

GeomRecord Importer::geom(int g) const {
  GeomRecord r{};
  const int link = m_.geom_bodyid[g];
  r.shape = m_.geom_type[g];
  r.body = body_of_[at(link)];
  r.link = link;
  r.data = -1;
  r.id = g;
  Vec3 pos = rotate(link_rot_[at(link)], m_.geom_pos + 3 * g);
  for (std::size_t i = 0; i < 3; ++i) pos[i] += link_pos_[at(link)][i];
  put(r.pos, pos);
  put(r.rot, multiply(link_rot_[at(link)], from_quat(m_.geom_quat + 4 * g)));
  put(r.size, m_.geom_size + 3 * g, 3);
  r.radius = f32(m_.geom_rbound[g]);
  if (r.shape != kPlane && r.shape != kHeightField) put(r.box, m_.geom_aabb + 6 * g, 6);
  return r;
}

int Importer::add_mesh(int mesh) {
  const auto found = mesh_index_.find(mesh);
  if (found != mesh_index_.end()) return found->second;
  MeshRecord r{};
  std::vector<int> ids;  // of our vertices, in the file's mesh
  r.first_edge = -1;
  if (m_.mesh_graphadr[mesh] >= 0) {
    // The hull's graph: counts, where each vertex' neighbours begin, global indices, neighbours (3 faces + vertices).
    const int* graph = m_.mesh_graph + m_.mesh_graphadr[mesh];
    r.vertex_count = graph[0];
    ids.assign(graph + 2 + r.vertex_count, graph + 2 + 2 * r.vertex_count);
    r.first_edge = static_cast<int>(out_.mesh_edge.size());
    for (int v = 0; v < r.vertex_count; ++v) out_.mesh_edge.push_back(r.vertex_count + graph[2 + v]);
    const int* edges = graph + 2 + 2 * r.vertex_count;
    out_.mesh_edge.insert(out_.mesh_edge.end(), edges, edges + r.vertex_count + 3 * graph[1]);
  } else {
    r.vertex_count = m_.mesh_vertnum[mesh];
    ids.resize(at(r.vertex_count));
    std::iota(ids.begin(), ids.end(), 0);
  }
  add_vertices(r, mesh, ids);
  add_faces(r, mesh, ids);
  // Edges are looked at one by one where there are few (by_axes, are_lane_polytopes): not of a scanned object, whose
  // pairs of edges would take longer to import than all else.
  constexpr int kMostFacesWithEdges = 1024;
  if (r.face_count <= kMostFacesWithEdges) {
    add_directions(r);
    add_sides(r);
  }
  out_.mesh.push_back(r);
  return mesh_index_[mesh] = static_cast<int>(out_.mesh.size()) - 1;
}

void Importer::add_vertices(MeshRecord& r, int mesh, const std::vector<int>& ids) {
  const float* vertices = m_.mesh_vert + 3 * m_.mesh_vertadr[mesh];
  r.first_vertex = static_cast<int>(out_.mesh_vertex.size());
  for (std::size_t block = 0; block < ids.size(); block += kVertexBlock) {
    for (int axis = 0; axis < 3; ++axis) {
      for (std::size_t i = block; i < block + kVertexBlock; ++i) {
        out_.mesh_vertex.push_back(vertices[3 * ids[i < ids.size() ? i : 0] + axis]);
      }
    }
  }
}

void Importer::add_faces(MeshRecord& r, int mesh, const std::vector<int>& ids) {
  std::vector<int> index(at(m_.mesh_vertnum[mesh]), -1);
  for (std::size_t v = 0; v < ids.size(); ++v) index[at(ids[v])] = static_cast<int>(v);
  const int first = m_.mesh_polyadr[mesh], count = m_.mesh_polynum[mesh];
  const auto corner = [&](int face, int k) { return m_.mesh_polyvert[m_.mesh_polyvertadr[first + face] + k]; };
  for (int f = 0; f < count; ++f) {
    for (int k = 0; k < m_.mesh_polyvertnum[first + f]; ++k) {
      if (index[at(corner(f, k))] < 0) return;  // a face that is not of the hull
    }
  }
  r.first_face = static_cast<int>(out_.mesh_face.size());
  r.face_count = count;
  std::vector<std::vector<int>> around(ids.size());
  for (int f = 0; f < count; ++f) {
    FaceRecord face{};
    const double* normal = m_.mesh_polynormal + 3 * (first + f);
    const float* on = m_.mesh_vert + 3 * (m_.mesh_vertadr[mesh] + corner(f, 0));
    put(face.normal, normal, 3);
    face.offset = f32(normal[0] * double{on[0]} + normal[1] * double{on[1]} + normal[2] * double{on[2]});
    face.first_corner = static_cast<int>(out_.mesh_edge.size());
    face.corner_count = m_.mesh_polyvertnum[first + f];
    for (int k = 0; k < face.corner_count; ++k) {
      const int v = index[at(corner(f, k))];
      out_.mesh_edge.push_back(v);
      around[at(v)].push_back(f);
    }
    out_.mesh_face.push_back(face);
  }
  r.first_vertex_face = static_cast<int>(out_.mesh_edge.size());
  int begin = r.vertex_count;
  for (const auto& faces : around) {
    out_.mesh_edge.push_back(begin);
    begin += static_cast<int>(faces.size()) + 1;
  }
  for (const auto& faces : around) {
    out_.mesh_edge.insert(out_.mesh_edge.end(), faces.begin(), faces.end());
    out_.mesh_edge.push_back(-1);
  }
}

/// A vertex of a mesh, in its frame, m.
Vec3 Importer::vertex_of(const MeshRecord& r, int v) const {
  const float* p = out_.mesh_vertex.data() + r.first_vertex + v / kVertexBlock * 3 * kVertexBlock + v % kVertexBlock;
  return {double{p[0]}, double{p[kVertexBlock]}, double{p[2 * kVertexBlock]}};
}

/// Of edges that are parallel, one.
void Importer::add_directions(MeshRecord& r) {
  constexpr double kParallel = 1e-5;  // rad
  std::vector<Vec3> directions;
  const auto length = [](const Vec3& v) { return std::hypot(v[0], v[1], v[2]); };
  for (int f = r.first_face; f < r.first_face + r.face_count; ++f) {
    const FaceRecord& face = out_.mesh_face[at(f)];
    const int* corner = out_.mesh_edge.data() + face.first_corner;
    for (int k = 0; k < face.corner_count; ++k) {
      const Vec3 from = vertex_of(r, corner[k]), to = vertex_of(r, corner[(k + 1) % face.corner_count]);
      Vec3 along{to[0] - from[0], to[1] - from[1], to[2] - from[2]};
      const double size = length(along);
      if (size == 0) continue;
      for (double& x : along) x /= size;
      const bool known = std::any_of(directions.begin(), directions.end(), [&](const Vec3& d) {
        return length({along[1] * d[2] - along[2] * d[1], along[2] * d[0] - along[0] * d[2],
                       along[0] * d[1] - along[1] * d[0]}) < kParallel;
      });
      if (!known) directions.push_back(along);
    }
  }
  r.first_direction = static_cast<int>(out_.mesh_direction.size());
  r.direction_count = static_cast<int>(directions.size());
  for (const Vec3& d : directions) {
    for (double x : d) out_.mesh_direction.push_back(f32(x));
  }
}

/// side.turn and side.beyond. A mesh's extent less that of a point of it is convex in the direction, so that between
/// the normals it is the largest at one of them, times what a chord of the arc is shorter than its radius.
void Importer::bound_turn(const MeshRecord& r, SideRecord& side) const {
  constexpr double kWidest = 1.4;  // of two normals' ends: about a right angle
  const float *n1 = out_.mesh_face[at(r.first_face + side.left)].normal,
              *n2 = out_.mesh_face[at(r.first_face + side.right)].normal;
  const double ends = std::hypot(n1[0] - n2[0], n1[1] - n2[1], n1[2] - n2[2]);
  side.turn = f32(1.0001 * ends + 1e-5);
  double beyond = ends < kWidest ? 0 : 1e9;
  const Vec3 begin = vertex_of(r, side.begin);
  for (int v = 0; v < r.vertex_count; ++v) {
    const Vec3 p = vertex_of(r, v);
    for (const float* n : {n1, n2}) {
      double height = 0;
      for (std::size_t i = 0; i < 3; ++i) height += double{n[i]} * (p[i] - begin[i]);
      beyond = std::max(beyond, 1.5 * height);
    }
  }
  side.beyond = f32(beyond);
}

/// Every edge between two faces. None where the faces do not close: an edge that is not once of one face and once, the
/// other way round, of another.
void Importer::add_sides(MeshRecord& r) {
  r.first_side = static_cast<int>(out_.mesh_side.size());
  std::map<std::pair<int, int>, int> face_left_of;
  for (int f = 0; f < r.face_count; ++f) {
    const FaceRecord& face = out_.mesh_face[at(r.first_face + f)];
    const int* corner = out_.mesh_edge.data() + face.first_corner;
    for (int k = 0; k < face.corner_count; ++k) {
      if (!face_left_of.emplace(std::pair(corner[k], corner[(k + 1) % face.corner_count]), f).second) return;
    }
  }
  std::vector<SideRecord> sides;
  for (const auto& [ends, left] : face_left_of) {
    const auto [begin, end] = ends;
    const auto other = face_left_of.find({end, begin});
    if (other == face_left_of.end() || begin == end) return;
    if (end < begin) continue;
    SideRecord side{{}, begin, end, left, other->second, 0, 0};
    const Vec3 from = vertex_of(r, begin), to = vertex_of(r, end);
    for (std::size_t i = 0; i < 3; ++i) side.along[i] = static_cast<float>(to[i]) - static_cast<float>(from[i]);
    bound_turn(r, side);
    sides.push_back(side);
  }
  out_.mesh_side.insert(out_.mesh_side.end(), sides.begin(), sides.end());
  r.side_count = static_cast<int>(sides.size());
}

int Importer::add_height_field(int field) {
  const auto found = field_index_.find(field);
  if (found != field_index_.end()) return found->second;
  HeightFieldRecord r{};
  r.rows = m_.hfield_nrow[field];
  r.cols = m_.hfield_ncol[field];
  r.first = static_cast<int>(out_.height.size());
  put(r.size, m_.hfield_size + 4 * field, 4);
  const float* heights = m_.hfield_data + m_.hfield_adr[field];
  out_.height.insert(out_.height.end(), heights, heights + r.rows * r.cols);
  out_.height_field.push_back(r);
  return field_index_[field] = static_cast<int>(out_.height_field.size()) - 1;
}

/// Dofs that move link2 against link1: the two chains, which rise, without what they share.
std::pair<int, int> Importer::relative_dofs(const std::vector<int>& chain1, const std::vector<int>& chain2) {
  const int first = static_cast<int>(out_.row_dof.size());
  const auto add = [&](int dof, float sign) {
    out_.row_dof.push_back(dof);
    out_.row_sign.push_back(sign);
  };
  auto a = chain1.begin(), b = chain2.begin();
  while (a != chain1.end() || b != chain2.end()) {
    if (b == chain2.end() || (a != chain1.end() && *a < *b)) {
      add(*a++, -1);
    } else if (a == chain1.end() || *b < *a) {
      add(*b++, 1);
    } else {
      ++a, ++b;
    }
  }
  return {first, static_cast<int>(out_.row_dof.size()) - first};
}

/// Refuses pairs whose records would not fit, before any is made, and makes room for them.
void Importer::reserve_pairs(const std::vector<std::vector<int>>& chains) {
  double pairs = 0, dofs = 0;
  mj::for_each_candidate_pair(m_, [&](const mj::CandidatePair& c) {
    ++pairs;
    dofs +=
        static_cast<double>(chains[at(m_.geom_bodyid[c.geom1])].size() + chains[at(m_.geom_bodyid[c.geom2])].size());
  });
  const double bytes = pairs * (sizeof(PairRecord) + sizeof(PairBoundRecord) + sizeof(PairSpheresRecord)) +
                       dofs * (sizeof(int) + sizeof(float));
  const double have = available_host_memory();
  COHORT_THROW_UNLESS(bytes <= have && dofs <= std::numeric_limits<int>::max(),
                      "the batched engine keeps every pair of geoms that may touch: {:.0f} pairs of {} geoms take {}, "
                      "this process can get {}. contype, conaffinity and <exclude> leave out pairs that never touch; "
                      "the engine `mujoco` keeps only what touches (SceneOptions::engine, --engine mujoco)",
                      pairs, m_.ngeom, format_bytes(bytes), format_bytes(have));
  out_.pair.reserve(static_cast<std::size_t>(pairs));
  out_.pair_bound.reserve(static_cast<std::size_t>(pairs));
  out_.pair_spheres.reserve(static_cast<std::size_t>(pairs));
  out_.row_dof.reserve(out_.row_dof.size() + static_cast<std::size_t>(dofs));
  out_.row_sign.reserve(out_.row_sign.size() + static_cast<std::size_t>(dofs));
}

void Importer::contacts() {
  std::vector<std::vector<int>> chains;  // of each link
  for (int b = 0; b < m_.nbody; ++b) chains.push_back(chain_of(b));
  reserve_pairs(chains);
  int separated_pairs = 0;
  mj::for_each_candidate_pair(m_, [&](const mj::CandidatePair& c) {
    const int g1 = c.geom1, g2 = c.geom2, l1 = m_.geom_bodyid[g1], l2 = m_.geom_bodyid[g2];
    PairRecord r{};
    std::tie(r.first_dof, r.dof_count) = relative_dofs(chains[at(l1)], chains[at(l2)]);
    r.geom1 = add_geom(g1);
    r.geom2 = add_geom(g2);
    r.kernel = mj::pair_kernel(m_.geom_type[g1], m_.geom_type[g2]);
    r.max_contacts = most_contacts(r.kernel, off(mjDSBL_MULTICCD));
    r.weight_tran = f32(m_.body_invweight0[2 * l1] + m_.body_invweight0[2 * l2]);
    r.weight_rot = f32(m_.body_invweight0[2 * l1 + 1] + m_.body_invweight0[2 * l2 + 1]);
    if (c.pair >= 0) {
      explicit_parameters(r, c.pair);
    } else {
      mixed_parameters(r, g1, g2);
    }
    r.mu = f32(r.friction[0] / std::sqrt(std::max(mjMINVAL, m_.opt.impratio)));
    r.fits = on_one_chain(r.first_dof, r.dof_count);
    r.by_axes = by_axes(r);
    r.as_before = !out_.pair.empty() && alike(out_.pair.back(), r);
    out_.pair.push_back(r);
    PairBoundRecord bound = bound_of(r);
    if (remembers_separation(r.kernel)) bound.separation = separated_pairs++ % kMostSeparations;
    out_.pair_bound.push_back(bound);
  });
  out_.sizes.nseparation = std::min(separated_pairs, kMostSeparations);
  runs_of_pairs();
}

/// What every step reads of the pairs, and the runs of them that are of planes, of one tree, or of one body with
/// another tree, with what these are bounded by.
void Importer::runs_of_pairs() {
  constexpr int kWorthABox = 6;                    // pairs: their spheres take longer than a look at a tree's box
  std::vector<float> radius(out_.geom.size(), 0);  // m, around each geom: where its body's geoms are
  for (std::size_t i = 0; i < radius.size(); ++i) {
    const GeomRecord& g = out_.geom[i];
    for (const GeomRecord& other : out_.geom) {
      if (g.body < 0 || other.body != g.body) continue;
      const double distance =
          std::hypot(other.pos[0] - g.pos[0], other.pos[1] - g.pos[1], other.pos[2] - g.pos[2]) + other.radius;
      radius[i] = std::max(radius[i], f32(distance));
    }
  }
  // The body of a pair is the one that comes first; so do its tree's bodies.
  const auto geom_of = [&](const PairBoundRecord& b) { return b.root1 > b.root2 ? b.geom2 : b.geom1; };
  const auto goes_on = [&](const PairRunRecord& run, const PairBoundRecord& b) {
    return run.first / kPairsAtOnce == (run.first + run.count) / kPairsAtOnce &&
           (run.look == kLookAtPlane) == (b.look == kLookAtPlane) &&
           std::minmax(b.root1, b.root2) == std::minmax(run.low, run.high) &&
           (run.low == run.high || run.look == kLookAtPlane ||
            out_.geom[at(geom_of(b))].body == out_.geom[at(run.geom)].body);
  };
  float reach = 0;
  for (std::size_t i = 0; i < out_.pair_bound.size(); ++i) {
    const PairBoundRecord& b = out_.pair_bound[i];
    const bool swapped = b.root1 > b.root2;
    out_.pair_spheres.push_back(
        {3 * (swapped ? b.geom2 : b.geom1), 3 * (swapped ? b.geom1 : b.geom2), b.bound * b.bound});
    if (i == 0 || !goes_on(out_.pair_run.back(), b)) {
      if (i % kPairsAtOnce == 0) out_.pair_window.push_back(static_cast<int>(out_.pair_run.size()));
      out_.pair_run.push_back({static_cast<int>(i), 0, b.look == kLookAtPlane ? kLookAtPlane : kLookAtSpheres,
                               std::min(b.root1, b.root2), std::max(b.root1, b.root2), geom_of(b), 0.0f});
      reach = 0;
    }
    PairRunRecord& run = out_.pair_run.back();
    ++run.count;
    reach = std::max(reach, b.reach);
    if (run.count < kWorthABox || run.look == kLookAtPlane || run.low == run.high || run.low < 0) continue;
    run.bound = 1.001f * (radius[at(run.geom)] + reach) + 1e-4f;  // with room for rounding
    out_.sizes.tree_boxes = 1;
  }
  out_.sizes.npairrun = static_cast<int>(out_.pair_run.size());
  if (out_.sizes.npairrun > 0) out_.pair_window.push_back(out_.sizes.npairrun);
}

/// Whether the axes of two polytopes are so few that all are looked along (kernels/collide/sat.h) rather than searched.
/// The bound is in operations of the lanes: about what the searches of four environments take.
bool Importer::by_axes(const PairRecord& r) const {
  constexpr int kMostOperations = 16000, kOfABox = 6, kOfAnAxis = 30, kOfAVertex = 5, kOfTwoEdges = 12;
  struct Polytope {
    int faces, directions, sides, span;  // span: operations to find how far it reaches along an axis
  };
  const auto polytope = [&](int geom) {
    const GeomRecord& g = out_.geom[at(geom)];
    if (g.shape == kBox) return Polytope{3, 3, 3, kOfABox};
    if (g.shape != kMesh) return Polytope{0, 0, 0, 0};
    const MeshRecord& mesh = out_.mesh[at(g.data)];
    return Polytope{mesh.face_count, mesh.direction_count, mesh.side_count, kOfAVertex * mesh.vertex_count};
  };
  const Polytope a = polytope(r.geom1), b = polytope(r.geom2);
  // A prism of a field has a slope, four edges that can meet others, and normals that take no time.
  constexpr int kEdgesOfPrism = 4, kOfAPrism = 12;
  if (r.kernel == kHeightFieldConvex) {
    return b.faces > 0 && double(b.faces) * (kOfAnAxis + kOfAPrism) +
                                  double(b.directions) * kEdgesOfPrism * (kOfAnAxis + kOfAPrism + b.span) <=
                              kMostOperations;
  }
  if (r.kernel != kConvexConvex || b.faces == 0) return false;
  if (out_.geom[at(r.geom1)].shape == kSphere) return true;
  if (!are_lane_polytopes(out_.geom[at(r.geom1)], out_.geom[at(r.geom2)], out_.mesh.data(), out_.mesh_face.data())) {
    return false;
  }
  const double operations = double(a.faces) * (kOfAnAxis + b.span) + double(b.faces) * (kOfAnAxis + a.span) +
                            double(a.sides) * b.sides * kOfTwoEdges;
  return operations <= kMostOperations;
}

PairBoundRecord Importer::bound_of(const PairRecord& r) const {
  const auto root = [&](const GeomRecord& g) { return g.body < 0 ? -1 : out_.body[at(g.body)].root; };
  const GeomRecord &g1 = out_.geom[at(r.geom1)], &g2 = out_.geom[at(r.geom2)];
  PairBoundRecord b{};
  b.geom1 = r.geom1, b.geom2 = r.geom2;
  b.root1 = root(g1), b.root2 = root(g2);
  const auto round = [](const GeomRecord& g) { return g.shape == kSphere || g.shape == kCapsule; };
  b.look = g1.shape == kPlane ? kLookAtPlane : round(g1) && round(g2) ? kLookAtRound : kLookAtSpheres;
  b.reach = r.margin + r.gap;
  b.bound = b.reach + g1.radius + g2.radius;
  b.separation = -1;
  if (b.look == kLookAtRound) {
    const bool swapped = b.root1 > b.root2;
    const float touch = round_touch(g1, g2, b.reach);
    b.half_low = (swapped ? g2 : g1).size[1], b.half_high = (swapped ? g1 : g2).size[1];
    b.touch_square = touch * touch;
  }
  return b;
}

/// True when a contact of one pair is a contact of the other but for where it is.
bool Importer::alike(const PairRecord& a, const PairRecord& b) const {
  const auto body = [&](int geom) { return out_.geom[at(geom)].body; };
  const auto same = [](const auto& x, const auto& y) { return std::memcmp(&x, &y, sizeof x) == 0; };
  return body(a.geom1) == body(b.geom1) && body(a.geom2) == body(b.geom2) && a.dim == b.dim && a.margin == b.margin &&
         same(a.friction, b.friction) && a.weight_tran == b.weight_tran && same(a.solver, b.solver) &&
         a.friction_damping == b.friction_damping && a.mu == b.mu;
}

void Importer::explicit_parameters(PairRecord& r, int p) const {
  r.friction_from = 3;
  r.dim = m_.pair_dim[p];
  r.margin = f32(m_.pair_margin[p]);
  r.gap = f32(m_.pair_gap[p]);
  for (int i = 0; i < 5; ++i) r.friction[i] = f32(std::max(mjMINMU, m_.pair_friction[5 * p + i]));
  r.solver = solver(m_.pair_solref + mjNREF * p, m_.pair_solimp + mjNIMP * p);
  const mjtNum* tangential = m_.pair_solreffriction + mjNREF * p;
  const bool own = (tangential[0] > 0) == (tangential[1] > 0) && (tangential[0] != 0 || tangential[1] != 0);
  r.friction_damping = own ? solver(tangential, m_.pair_solimp + mjNIMP * p).damping : r.solver.damping;
}

/// Contact parameters of two geoms: priority, then solmix, as MuJoCo's documentation of contact parameters says.
void Importer::mixed_parameters(PairRecord& r, int g1, int g2) const {
  r.margin = f32(m_.geom_margin[g1] + m_.geom_margin[g2]);
  r.gap = f32(m_.geom_gap[g1] + m_.geom_gap[g2]);
  double solref[mjNREF], solimp[mjNIMP], friction[3];
  if (m_.geom_priority[g1] != m_.geom_priority[g2]) {
    const int g = m_.geom_priority[g1] > m_.geom_priority[g2] ? g1 : g2;
    r.friction_from = g == g1 ? 1 : 2;
    r.dim = m_.geom_condim[g];
    std::copy_n(m_.geom_solref + mjNREF * g, mjNREF, solref);
    std::copy_n(m_.geom_solimp + mjNIMP * g, mjNIMP, solimp);
    std::copy_n(m_.geom_friction + 3 * g, 3, friction);
  } else {
    r.dim = std::max(m_.geom_condim[g1], m_.geom_condim[g2]);
    const double mix1 = m_.geom_solmix[g1], mix2 = m_.geom_solmix[g2];
    double mix = mix1 < mjMINVAL ? 0.0 : 1.0;
    if (mix1 >= mjMINVAL && mix2 >= mjMINVAL) mix = mix1 / (mix1 + mix2);
    if (mix1 < mjMINVAL && mix2 < mjMINVAL) mix = 0.5;
    const mjtNum *ref1 = m_.geom_solref + mjNREF * g1, *ref2 = m_.geom_solref + mjNREF * g2;
    for (int i = 0; i < mjNREF; ++i) {
      solref[i] = ref1[0] > 0 && ref2[0] > 0 ? mix * ref1[i] + (1 - mix) * ref2[i] : std::min(ref1[i], ref2[i]);
    }
    for (int i = 0; i < mjNIMP; ++i) {
      solimp[i] = mix * m_.geom_solimp[mjNIMP * g1 + i] + (1 - mix) * m_.geom_solimp[mjNIMP * g2 + i];
    }
    for (int i = 0; i < 3; ++i) friction[i] = std::max(m_.geom_friction[3 * g1 + i], m_.geom_friction[3 * g2 + i]);
  }
  const int which[5] = {0, 0, 1, 2, 2};
  for (int i = 0; i < 5; ++i) r.friction[i] = f32(std::max(mjMINMU, friction[which[i]]));
  r.solver = solver(solref, solimp);
  r.friction_damping = r.solver.damping;
}

}  // namespace cohort::sim::mj
