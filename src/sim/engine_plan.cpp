#include "sim/engine_plan.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "core/error.h"
#include "sim/kernels/lane/constraints.h"

namespace cohort::sim {

int choose_row_space(const Model& model, int wanted, DeviceKind device) {
  COHORT_THROW_UNLESS(wanted <= kMostRowSpaceRows, "a row space of {} rows: {} is the most", wanted, kMostRowSpaceRows);
  // The accelerations are the smaller unknown where the factor of the inertia matrix is cheap and environments of a
  // block have the same constraints. Trees of six dofs, a single free body, are always better off with them; larger
  // ones up to kLeastProducts are where environments differ, which takes many pairs of geoms that may touch (a
  // quadruped's feet are four), and have few rows. Two iterations do not pay for the products of the rows. Measured:
  // docs/design/decisions/row-space.md.
  constexpr long kLeastProducts = 500, kLeastProductsPerDof = 7;
  constexpr int kLeastIterations = 3, kRowsOfSmallTrees = 24;
  const ModelView& v = model.sizes;
  if (v.option.newton == 0) return 0;
  long products = 0, of_tree = 0, of_largest = 0;
  for (std::size_t d = 0; d + 1 < model.pattern_start.size(); ++d) {
    const long above = model.pattern_start[d + 1] - model.pattern_start[d] - 1, own = above * (above + 1) / 2;
    products += own;
    of_tree = above == 0 ? own : of_tree + own;
    of_largest = std::max(of_largest, of_tree);
  }
  if (wanted < 0) {
    const bool large = of_largest >= kLeastProducts;
    const bool differ = products >= kLeastProductsPerDof * v.nv && 2 * v.npair >= v.nv;
    if (v.option.iterations < kLeastIterations || !(large || differ)) return 0;
    wanted = large ? kMostRowSpaceRows : kRowsOfSmallTrees;
    if (device == DeviceKind::kCuda) wanted = std::min(wanted, kMostDeviceRows);
  }
  int rows = v.nfriction + 2 * v.nlimit;
  for (const EqualityRecord& e : model.equality) rows += equality_dim(e);
  for (const PairRecord& p : model.pair) {
    if (p.dof_count == 0) continue;  // no rows
    if (v.option.elliptic != 0 && p.dim > 1) return 0;
    rows += contact_edges(p.dim, false) * p.max_contacts;
  }
  return std::min({rows, wanted, kMostRowSpaceRows});
}

int choose_contact_capacity(const Model& model, int wanted) {
  int most = 0;
  for (const PairRecord& p : model.pair) most += p.max_contacts;
  const int capacity = wanted > 0 ? std::min(wanted, most) : most;
  // Of what grows with the square of the model: the triangles of workspace.h and block_space.h, twice for the
  // integrators' own copy, and the constraints of constraints.h, at the widest lanes.
  ModelView view = model.view();
  view.keep_contacts = 1, view.varies = kVariesFriction;
  const double nv = view.nv, triangles = (view.neq > 0 ? 6 : 5) * nv * (nv + 1) / 2;
  const ConstraintCount n = count_constraints(view);
  double constraints = n.others.pool + n.others.rows;
  for (const auto& [all, one] :
       {std::pair{n.pool, n.largest.pool}, {n.rows, n.largest.rows}, {n.cones, n.largest.cones}}) {
    constraints += std::min(static_cast<double>(all), 16.0 * capacity * one);
  }
  COHORT_THROW_UNLESS(triangles + constraints < std::numeric_limits<int>::max() / 2.0,
                      "the batched engine does not step a model of this size: {} dofs and {} pairs of geoms that may "
                      "touch take {} of scratch memory per lane of a thread. SceneOptions::contact_capacity "
                      "(--contact-capacity), the most contacts of an environment, bounds it; the engine `mujoco` keeps "
                      "only what touches (SceneOptions::engine, --engine mujoco)",
                      view.nv, view.npair, format_bytes(sizeof(float) * (triangles + constraints)));
  return capacity;
}

ModelView planned_view(const Model& model, int row_space, int contact_capacity, const FieldSet& step_leaves,
                       DeviceKind device) {
  ModelView view = model.view();
  view.row_space = choose_row_space(model, row_space, device);
  view.contact_capacity = choose_contact_capacity(model, contact_capacity);
  for (const Field of_contacts : {Field::kLinkForce, Field::kGeomForce}) {
    if (step_leaves.test(static_cast<std::size_t>(of_contacts))) view.keep_contacts = 1;
  }
  return view;
}

void check_step_leaves(const Model& model, const FieldSet& step_leaves, const ParameterSet& parameters) {
  const auto leaves = [&](Field field) { return step_leaves.test(static_cast<std::size_t>(field)); };
  if (leaves(Field::kLinkForce)) {
    const bool joined = std::any_of(model.equality.begin(), model.equality.end(),
                                    [](const EqualityRecord& e) { return equality_dim(e) > 1; });
    COHORT_THROW_UNLESS(!joined && model.sizes.nsegment == 0,
                        "SceneOptions::step_leaves: the batched engine's link_force knows contacts and applied forces "
                        "only, and this model has {}; the engine `mujoco` has all of it",
                        joined ? "equalities between links" : "spatial tendons");
  }
  const bool masses = leaves(Field::kLinkCom) || leaves(Field::kLinkInertia) || leaves(Field::kLinkVelocity) ||
                      leaves(Field::kLinkForce);
  for (const Parameter p :
       {Parameter::kLinkMass, Parameter::kLinkCom, Parameter::kLinkInertia, Parameter::kLinkInertiaQuat}) {
    if (!parameters.test(static_cast<std::size_t>(p))) continue;
    COHORT_THROW_UNLESS(!masses,
                        "{} differs between environments: the batched engine then leaves no link_com, "
                        "link_inertia, link_velocity or link_force (SceneOptions::step_leaves); the engine `mujoco` "
                        "does",
                        parameter_name(p));
    COHORT_THROW_UNLESS(p == Parameter::kLinkMass || model.sizes.nfluid == 0,
                        "{} differs between environments: the batched engine's drag of a fluid (density, viscosity) "
                        "knows the model's centres and inertias alone; the engine `mujoco` has all of it",
                        parameter_name(p));
  }
}

std::vector<int> roots_of_links(const ModelInfo& info) {
  std::vector<int> roots(info.links.size(), 0);
  for (std::size_t k = 1; k < roots.size(); ++k) {
    const int parent = info.links[k].parent;
    roots[k] = parent > 0 ? roots[static_cast<std::size_t>(parent)] : static_cast<int>(k);
  }
  return roots;
}

}  // namespace cohort::sim
