#include "sim/host/kinematics.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "core/config.h"
#include "core/error.h"
#include "sim/host/import/handle.h"

namespace cohort::sim {

struct Kinematics::Impl {
  mj::ModelPtr model;
  /// mjData that no posture holds.
  mutable std::mutex mutex;
  mutable std::vector<mj::DataPtr> idle;
  mutable std::size_t made = 0;

  mj::DataPtr take() const {
    const std::lock_guard lock(mutex);
    if (!idle.empty()) {
      mj::DataPtr data = std::move(idle.back());
      idle.pop_back();
      return data;
    }
    idle.reserve(++made);  // so that give_back() allocates nothing
    mj::DataPtr data(mj::mj_makeData(model.get()));
    COHORT_THROW_UNLESS(data != nullptr, "MuJoCo has no memory for another mjData of this model");
    return data;
  }
  void give_back(mj::DataPtr data) const {
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(data));
  }
};

namespace {

mjData* data_of(void* data) {
  return static_cast<mjData*>(data);
}

template <std::size_t N>
std::array<double, N> numbers(const mjtNum* from) {
  std::array<double, N> to;
  std::copy_n(from, N, to.begin());
  return to;
}

}  // namespace

Kinematics::Kinematics(std::span<const std::uint8_t> mjb) : impl_(std::make_unique<Impl>()) {
  impl_->model = mj::load(mjb);
  impl_->model->opt.enableflags &= ~mjENBL_SLEEP;  // MuJoCo leaves trees that sleep where they were
  impl_->give_back(impl_->take());
}
Kinematics::~Kinematics() = default;

int Kinematics::site(const std::string& name) const {
  const mjModel& m = *impl_->model;
  std::vector<std::string> names;
  for (int s = 0; s < m.nsite; ++s) {
    names.emplace_back(m.names + m.name_siteadr[s]);
    if (names.back() == name) return s;
  }
  const std::string near = config::nearest(name, names);
  throw Error(format("the model has no site `{}`{}", name, near.empty() ? "" : format(", is `{}` meant?", near)));
}

Kinematics::SiteFrame Kinematics::site_frame(int site) const {
  const mjModel& m = *impl_->model;
  COHORT_CHECK(site >= 0 && site < m.nsite, "site {} of {}", site, m.nsite);
  return {static_cast<int>(m.site_bodyid[site]), numbers<3>(m.site_pos + 3 * site), numbers<4>(m.site_quat + 4 * site)};
}

Kinematics::Posture Kinematics::at(std::span<const double> qpos) const {
  const mjModel& m = *impl_->model;
  COHORT_CHECK(qpos.size() == static_cast<std::size_t>(m.nq), "{} coordinates of a model that has {}", qpos.size(),
               m.nq);
  mj::DataPtr data = impl_->take();
  std::copy(qpos.begin(), qpos.end(), data->qpos);
  mj::mj_kinematics(&m, data.get());
  mj::mj_comPos(&m, data.get());
  return {*impl_, data.release()};
}

Kinematics::Posture::~Posture() {
  if (data_ != nullptr) impl_->give_back(mj::DataPtr(data_of(data_)));
}

Kinematics::Pose Kinematics::Posture::link_pose(int link) const {
  const mjData& d = *data_of(data_);
  return {numbers<3>(d.xpos + 3 * link), numbers<4>(d.xquat + 4 * link), numbers<9>(d.xmat + 9 * link)};
}

Kinematics::Pose Kinematics::Posture::site_pose(int site) const {
  const mjData& d = *data_of(data_);
  Pose pose{numbers<3>(d.site_xpos + 3 * site), {}, numbers<9>(d.site_xmat + 9 * site)};
  mj::mju_mat2Quat(pose.quat.data(), pose.rot.data());
  return pose;
}

std::array<double, 3> Kinematics::Posture::joint_axis(int joint) const {
  return numbers<3>(data_of(data_)->xaxis + 3 * joint);
}

void Kinematics::Posture::link_jacobian(int link, std::span<const int> dofs, std::span<double> out) const {
  point_jacobian(data_of(data_)->xpos + 3 * link, link, dofs, out);
}
void Kinematics::Posture::site_jacobian(int site, std::span<const int> dofs, std::span<double> out) const {
  point_jacobian(data_of(data_)->site_xpos + 3 * site, impl_->model->site_bodyid[site], dofs, out);
}

void Kinematics::Posture::point_jacobian(const double* point, int link, std::span<const int> dofs,
                                         std::span<double> out) const {
  const mjModel& m = *impl_->model;
  const mjData& d = *data_of(data_);
  const std::size_t n = dofs.size();
  const mjtNum* const origin = d.subtree_com + 3 * m.body_rootid[link];  // what mjData::cdof is about
  const mjtNum arm[3] = {point[0] - origin[0], point[1] - origin[1], point[2] - origin[2]};
  const auto moves = [&](int dof) {
    int b = link;
    while (b > m.dof_bodyid[dof]) b = m.body_parentid[b];  // a parent has the smaller number
    return b == m.dof_bodyid[dof];
  };
  for (std::size_t j = 0; j < n; ++j) {
    const bool moved = moves(dofs[j]);
    const mjtNum* const dof = d.cdof + 6 * dofs[j];
    mjtNum turned[3] = {0, 0, 0};
    if (moved) mj::mju_cross(turned, dof, arm);
    for (std::size_t i = 0; i < 3; ++i) {
      out[i * n + j] = moved ? dof[3 + i] + turned[i] : 0;
      out[(3 + i) * n + j] = moved ? dof[i] : 0;
    }
  }
}

void Kinematics::Posture::mass_matrix(std::span<const int> dofs, std::span<double> out) {
  const mjModel& m = *impl_->model;
  mjData& d = *data_of(data_);
  if (m.ntendon > 0) mj::mj_tendon(&m, &d);  // a tendon may have armature
  mj::mj_makeM(&m, &d);
  const std::size_t n = dofs.size();
  const auto lower = [&](int row, int column) {
    const int* const first = m.M_colind + m.M_rowadr[row];
    const int* const last = first + m.M_rownnz[row];
    const int* const at = std::lower_bound(first, last, column);
    return at != last && *at == column ? d.M[at - m.M_colind] : 0.0;
  };
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) out[i * n + j] = lower(std::max(dofs[i], dofs[j]), std::min(dofs[i], dofs[j]));
}

void Kinematics::Posture::bias(std::span<const double> qvel, std::span<const int> dofs, std::span<double> out) {
  const mjModel& m = *impl_->model;
  mjData& d = *data_of(data_);
  COHORT_CHECK(qvel.size() == static_cast<std::size_t>(m.nv), "{} velocities of a model that has {}", qvel.size(),
               m.nv);
  std::copy(qvel.begin(), qvel.end(), d.qvel);
  mj::mj_comVel(&m, &d);
  mj::mj_rne(&m, &d, 0, d.qfrc_bias);
  for (std::size_t i = 0; i < dofs.size(); ++i) out[i] = d.qfrc_bias[dofs[i]];
}

}  // namespace cohort::sim
