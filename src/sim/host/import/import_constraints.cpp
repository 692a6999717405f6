// Solver parameters, limits, friction loss, equalities.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>

#include "sim/host/import/handle.h"
#include "sim/host/import/importer.h"
#include "sim/host/import/unsupported.h"

namespace cohort::sim::mj {

/// Reference and impedance as MuJoCo's mj_makeImpedance reads them; `friction` rows have no stiffness.
SolverRecord Importer::solver(const mjtNum* solref, const mjtNum* solimp, bool friction) const {
  double ref[2] = {solref[0], solref[1]};
  if ((ref[0] > 0) != (ref[1] > 0)) ref[0] = 0.02, ref[1] = 1;
  if (!off(mjDSBL_REFSAFE) && ref[0] > 0) ref[0] = std::max(ref[0], 2 * m_.opt.timestep);
  const auto impedance = [](double v) { return std::clamp(v, mjMINIMP, mjMAXIMP); };
  const double dmin = impedance(solimp[0]), dmax = impedance(solimp[1]);
  const double width = std::max(0.0, solimp[2]), midpoint = impedance(solimp[3]), power = std::max(1.0, solimp[4]);
  SolverRecord r{};
  if (!friction) {
    r.stiffness = f32(ref[0] > 0 ? 1 / std::max(mjMINVAL, dmax * dmax * ref[0] * ref[0] * ref[1] * ref[1])
                                 : -ref[0] / std::max(mjMINVAL, dmax * dmax));
  }
  r.damping = f32(ref[1] > 0 ? 2 / std::max(mjMINVAL, dmax * ref[0]) : -ref[1] / std::max(mjMINVAL, dmax));
  if (dmin == dmax || width <= mjMINVAL) {
    r.dmin = r.dmax = f32(0.5 * (dmin + dmax));
  } else {
    r.dmin = f32(dmin);
    r.dmax = f32(dmax);
    r.inverse_width = f32(1 / width);
  }
  r.midpoint = f32(midpoint);
  r.power = f32(power);
  return r;
}

void Importer::limits_and_friction() {
  const bool limits = !off(mjDSBL_LIMIT) && !off(mjDSBL_CONSTRAINT);
  const bool friction = !off(mjDSBL_FRICTIONLOSS) && !off(mjDSBL_CONSTRAINT);
  const auto tendon_dofs = [&](int t) {
    const TendonRecord& r = out_.tendon[at(t)];
    return row_dofs(wrap_dofs(r.first_wrap, r.wrap_count));
  };
  const auto tendon_fits = [&](int t, int first, int count) {
    return static_cast<int>(count == 1 || (out_.tendon[at(t)].spatial && on_one_chain(first, count)));
  };
  for (int d = 0; d < m_.nv && friction; ++d) {
    if (m_.dof_frictionloss[d] == 0) continue;
    const auto [first, count] = row_dofs({d});
    out_.friction.push_back({-1, first, count, 1, f32(m_.dof_frictionloss[d]), f32(m_.dof_invweight0[d]),
                             solver(m_.dof_solref + mjNREF * d, m_.dof_solimp + mjNIMP * d, true)});
  }
  for (int t = 0; t < m_.ntendon && friction; ++t) {
    if (m_.tendon_frictionloss[t] <= 0) continue;
    const auto [first, count] = tendon_dofs(t);
    out_.friction.push_back({t, first, count, tendon_fits(t, first, count), f32(m_.tendon_frictionloss[t]),
                             f32(m_.tendon_invweight0[t]),
                             solver(m_.tendon_solref_fri + mjNREF * t, m_.tendon_solimp_fri + mjNIMP * t, true)});
  }
  for (int j = 0; j < m_.njnt && limits; ++j) {
    const int type = m_.jnt_type[j], dof = m_.jnt_dofadr[j];
    if (!m_.jnt_limited[j] || type == mjJNT_FREE) continue;
    LimitRecord r{};
    r.kind = type == mjJNT_BALL ? 1 : 0;
    r.index = m_.jnt_qposadr[j];
    std::tie(r.first_dof, r.dof_count) = r.kind == 1 ? row_dofs({dof, dof + 1, dof + 2}) : row_dofs({dof});
    r.fits = 1;
    r.lower = f32(m_.jnt_range[2 * j]);
    r.upper = f32(r.kind == 1 ? std::max(m_.jnt_range[2 * j], m_.jnt_range[2 * j + 1]) : m_.jnt_range[2 * j + 1]);
    r.margin = f32(m_.jnt_margin[j]);
    r.inverse_weight = f32(m_.dof_invweight0[dof]);
    r.solver = solver(m_.jnt_solref + mjNREF * j, m_.jnt_solimp + mjNIMP * j);
    out_.limit.push_back(r);
  }
  for (int t = 0; t < m_.ntendon && limits; ++t) {
    if (!m_.tendon_limited[t]) continue;
    const auto [first, count] = tendon_dofs(t);
    out_.limit.push_back({2, t, first, count, tendon_fits(t, first, count), f32(m_.tendon_range[2 * t]),
                          f32(m_.tendon_range[2 * t + 1]), f32(m_.tendon_margin[t]), f32(m_.tendon_invweight0[t]),
                          solver(m_.tendon_solref_lim + mjNREF * t, m_.tendon_solimp_lim + mjNIMP * t)});
  }
}

/// Dofs of a row that is not a contact's.
std::pair<int, int> Importer::row_dofs(const std::vector<int>& dofs) {
  const int first = static_cast<int>(out_.row_dof.size());
  for (int d : dofs) {
    out_.row_dof.push_back(d);
    out_.row_sign.push_back(1);
  }
  return {first, static_cast<int>(dofs.size())};
}

std::vector<int> Importer::wrap_dofs(int first, int count) const {
  std::vector<int> dofs;
  for (int k = first; k < first + count; ++k) dofs.push_back(out_.wrap[at(k)].dof);
  return dofs;
}

/// True when any two of the dofs are ancestor and descendant.
bool Importer::on_one_chain(int first, int count) const {
  for (int k = first + 1; k < first + count; ++k) {
    const int d = out_.row_dof[at(k)], before = out_.row_dof[at(k - 1)];
    bool found = false;
    for (int a = d; a >= 0; a = m_.dof_parentid[a]) found = found || a == before;
    if (!found) return false;
  }
  return true;
}

void Importer::equalities() {
  for (int i = 0; i < m_.neq; ++i) {
    EqualityRecord r{};
    const mjtNum* data = m_.eq_data + mjNEQDATA * i;
    const int o1 = m_.eq_obj1id[i], o2 = m_.eq_obj2id[i];
    if (!m_.eq_active0[i]) continue;  // nothing in this interface switches one on
    if (m_.eq_type[i] == mjEQ_CONNECT || m_.eq_type[i] == mjEQ_WELD) {
      out_.equality.push_back(frame_equality(i));
      continue;
    }
    const bool joint = m_.eq_type[i] == mjEQ_JOINT;
    r.kind = joint ? kEqualityJoint : kEqualityTendon;
    // A tendon's own wraps: their arms are computed once.
    const auto of_tendon = [&](int t) {
      return std::pair(out_.tendon[at(t)].first_wrap, out_.tendon[at(t)].wrap_count);
    };
    std::tie(r.first_wrap1, r.wrap_count1) = joint ? joint_wrap(o1, 1) : of_tendon(o1);
    r.reference1 = f32(joint ? m_.qpos0[m_.jnt_qposadr[o1]] : m_.tendon_length0[o1]);
    r.weight = f32(joint ? m_.dof_invweight0[m_.jnt_dofadr[o1]] : m_.tendon_invweight0[o1]);
    if (o2 >= 0) {
      std::tie(r.first_wrap2, r.wrap_count2) = joint ? joint_wrap(o2, 1) : of_tendon(o2);
      r.reference2 = f32(joint ? m_.qpos0[m_.jnt_qposadr[o2]] : m_.tendon_length0[o2]);
      r.weight += f32(joint ? m_.dof_invweight0[m_.jnt_dofadr[o2]] : m_.tendon_invweight0[o2]);
    }
    r.object1 = o1;
    r.object2 = o2;
    put(r.polynomial, data, 5);
    std::vector<int> dofs = wrap_dofs(r.first_wrap1, r.wrap_count1);
    for (int d : wrap_dofs(r.first_wrap2, r.wrap_count2)) dofs.push_back(d);
    std::tie(r.first_dof, r.dof_count) = row_dofs(dofs);
    r.fits = r.dof_count == 1;
    r.solver = solver(m_.eq_solref + mjNREF * i, m_.eq_solimp + mjNIMP * i);
    out_.equality.push_back(r);
  }
}

/// Connect and weld, of bodies (anchors and relative pose in eq_data) or of sites.
EqualityRecord Importer::frame_equality(int i) {
  EqualityRecord r{};
  const mjtNum* data = m_.eq_data + mjNEQDATA * i;
  const bool weld = m_.eq_type[i] == mjEQ_WELD;
  const int o1 = m_.eq_obj1id[i], o2 = m_.eq_obj2id[i];
  r.kind = weld ? kEqualityWeld : kEqualityConnect;
  if (m_.eq_objtype[i] == mjOBJ_SITE) {
    r.link1 = m_.site_bodyid[o1];
    r.link2 = m_.site_bodyid[o2];
    r.frame1 = add_site(o1);
    r.frame2 = add_site(o2);
  } else {
    const double unturned[4] = {1, 0, 0, 0};
    r.link1 = o1;
    r.link2 = o2;
    r.frame1 = add_frame(o1, weld ? data + 3 : data, weld ? data + 6 : unturned);
    r.frame2 = add_frame(o2, weld ? data : data + 3, unturned);
  }
  r.torque_scale = weld ? f32(data[10]) : 0;
  r.weight = f32(m_.body_invweight0[2 * r.link1] + m_.body_invweight0[2 * r.link2]);
  r.weight_rot = f32(m_.body_invweight0[2 * r.link1 + 1] + m_.body_invweight0[2 * r.link2 + 1]);
  std::map<int, float> side;
  for (int d : chain_of(r.link1)) side[d] = 1;
  for (int d : chain_of(r.link2)) side[d] = side.count(d) ? 0.0f : -1.0f;
  r.first_dof = static_cast<int>(out_.row_dof.size());
  r.dof_count = static_cast<int>(side.size());
  for (const auto& [dof, sign] : side) {
    out_.row_dof.push_back(dof);
    out_.row_sign.push_back(sign);
  }
  r.fits = on_one_chain(r.first_dof, r.dof_count);
  r.solver = solver(m_.eq_solref + mjNREF * i, m_.eq_solimp + mjNIMP * i);
  return r;
}

std::vector<int> Importer::chain_of(int link) const {
  std::vector<int> dofs;
  int b = link;
  while (b > 0 && m_.body_dofnum[b] == 0) b = m_.body_parentid[b];
  if (b > 0) {
    for (int d = m_.body_dofadr[b] + m_.body_dofnum[b] - 1; d >= 0; d = m_.dof_parentid[d]) dofs.push_back(d);
  }
  return {dofs.rbegin(), dofs.rend()};
}

}  // namespace cohort::sim::mj
