#include "tasks/file/ik_action.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.h"
#include "core/format.h"
#include "tasks/file/patterns.h"

namespace cohort::tasks {

using sim::Field;
using terms::Expr;
using terms::Graph;
using terms::Op;

namespace {

template <std::size_t N>
Expr numbers(Graph& g, const std::array<double, N>& values) {
  return g.constant(std::vector<float>(values.begin(), values.end()));
}

std::vector<int> some(int first, int count) {
  std::vector<int> all;
  for (int i = 0; i < count; ++i) all.push_back(first + i);
  return all;
}

struct Twist {
  Expr linear, angular;
};

/// What a joint's unit velocity does to a point of its link and of those that hang on it. Joints of one link turn it one
/// after the other: pos and quat are the link's before those that come later, and become those before this one.
Twist column(Quantities& names, const sim::JointInfo& joint, Expr& pos, Expr& quat, const Expr& point) {
  Graph& g = names.graph();
  const Expr axis = g.rotate(quat, numbers(g, joint.axis), false);
  const Expr moved =
      g.subtract(names.field(Field::kQpos, {joint.qpos}),
                 g.constant(static_cast<float>(names.model().info.qpos0[static_cast<std::size_t>(joint.qpos)])));
  if (joint.type == sim::JointType::kSlide) {
    pos = g.subtract(pos, g.multiply(axis, moved));
    return {axis, g.constant({0, 0, 0})};
  }
  const Expr anchor = g.add(pos, g.rotate(quat, numbers(g, joint.pos), false));
  const Expr half = g.multiply(moved, g.constant(0.5f));
  const Expr back = g.join(
      {g.unary(Op::kCosine, half), g.multiply(g.unary(Op::kNegate, g.unary(Op::kSine, half)), numbers(g, joint.axis))});
  quat = g.quat_multiply(quat, back);
  pos = g.subtract(anchor, g.rotate(quat, numbers(g, joint.pos), false));
  return {g.cross(axis, g.subtract(point, anchor)), axis};
}

/// x of (a + damping^2 1) x = b, by Cholesky's factors; a: (m, m) of numbers.
std::vector<Expr> solved(Graph& g, std::vector<std::vector<Expr>> a, std::vector<Expr> b, double damping) {
  const std::size_t m = b.size();
  const Expr least = g.constant(1e-12f);
  for (std::size_t j = 0; j < m; ++j) {
    Expr d = g.add(a[j][j], g.constant(static_cast<float>(damping * damping)));
    for (std::size_t k = 0; k < j; ++k) d = g.subtract(d, g.multiply(a[j][k], a[j][k]));
    a[j][j] = g.unary(Op::kSquareRoot, g.binary(Op::kMaximum, d, least));
    for (std::size_t i = j + 1; i < m; ++i) {
      Expr s = a[i][j];
      for (std::size_t k = 0; k < j; ++k) s = g.subtract(s, g.multiply(a[i][k], a[j][k]));
      a[i][j] = g.binary(Op::kDivide, s, a[j][j]);
    }
  }
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] = g.subtract(b[i], g.multiply(a[i][k], b[k]));
    b[i] = g.binary(Op::kDivide, b[i], a[i][i]);
  }
  for (std::size_t i = m; i-- > 0;) {
    for (std::size_t k = i + 1; k < m; ++k) b[i] = g.subtract(b[i], g.multiply(a[k][i], b[k]));
    b[i] = g.binary(Op::kDivide, b[i], a[i][i]);
  }
  return b;
}

/// The rotation from p to q, about an axis of the world times its angle (rad), the short way.
Expr rotation_between(Graph& g, const Expr& p, const Expr& q) {
  const Expr turn = g.quat_multiply(q, g.quat_inverse(p));
  const Expr w = g.columns(turn, {0}), v = g.columns(turn, {1, 2, 3}), zero = g.constant(0);
  const Expr length = g.unary(Op::kSquareRoot, g.reduce(Op::kSumOfSquares, v));
  const Expr angle = g.multiply(g.constant(2), g.binary(Op::kAtan2, length, g.unary(Op::kAbsolute, w)));
  const Expr small = g.compare(Op::kLess, length, g.constant(1e-6f));
  const Expr per = g.select(small, g.constant(2), g.binary(Op::kDivide, angle, g.select(small, g.constant(1), length)));
  return g.multiply(v, g.select(g.compare(Op::kLess, w, zero), g.unary(Op::kNegate, per), per));
}

}  // namespace

sim::SiteInfo ik_frame(const sim::ModelInfo& info, const std::string& pattern, bool is_site) {
  std::vector<std::string> all;
  if (is_site)
    for (const sim::SiteInfo& site : info.sites) all.push_back(site.name);
  else
    for (const sim::LinkInfo& link : info.links) all.push_back(link.name);
  const std::string patterns[] = {pattern};
  const std::vector<int> found = match_names(all, patterns, is_site ? "site" : "link");
  COHORT_THROW_UNLESS(found.size() == 1, "'{}' is {} {}s: an action moves one", pattern, found.size(),
                      is_site ? "site" : "link");
  const auto at = static_cast<std::size_t>(found.front());
  if (!is_site) return {.name = all[at], .link = found.front()};
  return info.sites[at];
}

Expr ik_targets(Quantities& names, const sim::SiteInfo& frame, std::span<const int> joints, const IkSettings& settings,
                const Expr& command) {
  Graph& g = names.graph();
  const sim::ModelInfo& info = names.model().info;
  const Expr link_pos = names.left(Field::kLinkPos, some(3 * frame.link, 3)),
             link_quat = names.left(Field::kLinkQuat, some(4 * frame.link, 4));
  const Expr point = g.add(link_pos, g.rotate(link_quat, numbers(g, frame.pos), false));
  const Expr turn = g.quat_multiply(link_quat, numbers(g, frame.quat));

  const bool turns = settings.pose || settings.orientation;
  const std::size_t n = joints.size();
  std::vector<Expr> columns(n);  // of 3 or 6 numbers
  for (int link = frame.link; link > 0; link = info.links[static_cast<std::size_t>(link)].parent) {
    Expr pos = names.left(Field::kLinkPos, some(3 * link, 3)), quat = names.left(Field::kLinkQuat, some(4 * link, 4));
    for (std::size_t j = info.joints.size(); j-- > 0;) {
      const sim::JointInfo& joint = info.joints[j];
      if (joint.link != link || (joint.type != sim::JointType::kHinge && joint.type != sim::JointType::kSlide))
        continue;
      const Twist twist = column(names, joint, pos, quat, point);
      const auto which = std::ranges::find(joints, static_cast<int>(j));
      if (which != joints.end())
        columns[static_cast<std::size_t>(which - joints.begin())] =
            turns ? g.join({twist.linear, twist.angular}) : twist.linear;
    }
  }
  const int rows = turns ? 6 : 3;
  for (std::size_t j = 0; j < n; ++j)
    COHORT_THROW_UNLESS(columns[j].node >= 0, "the joint '{}' does not move '{}': leave it out of `joints`",
                        info.joints[static_cast<std::size_t>(joints[j])].name, frame.name);
  const Expr all = g.join(columns);
  std::vector<Expr> jacobian;
  for (int i = 0; i < rows; ++i) {
    std::vector<int> which;
    for (std::size_t j = 0; j < n; ++j) which.push_back(rows * static_cast<int>(j) + i);
    jacobian.push_back(g.columns(all, which));
  }

  Expr error;
  if (settings.relative) {
    error = command;
    if (std::ranges::any_of(settings.high, [](double x) { return std::isfinite(x); }) ||
        std::ranges::any_of(settings.low, [](double x) { return std::isfinite(x); })) {
      const auto within = [&](const Expr& x, const Expr& low, const Expr& high) {
        return g.binary(Op::kMinimum, g.binary(Op::kMaximum, x, low), high);
      };
      const Expr wanted =
          within(g.add(point, g.columns(command, {0, 1, 2})), numbers(g, settings.low), numbers(g, settings.high));
      const Expr step = g.constant(static_cast<float>(settings.step));
      const Expr shift = within(g.subtract(wanted, point), g.unary(Op::kNegate, step), step);
      error = settings.pose ? g.join({shift, g.columns(command, {3, 4, 5})}) : shift;
    }
    if (!settings.pose && settings.orientation)
      error = g.join({error, rotation_between(g, turn, numbers(g, *settings.orientation))});
  } else {
    error = g.subtract(g.columns(command, {0, 1, 2}), point);
    if (settings.pose) {
      const Expr q = g.columns(command, {3, 4, 5, 6});
      const Expr length = g.unary(Op::kSquareRoot, g.reduce(Op::kSumOfSquares, q));
      const Expr none = g.compare(Op::kLess, length, g.constant(1e-6f));
      // No orientation at all: it stays as it is.
      const Expr wanted = g.select(none, turn, g.binary(Op::kDivide, q, g.select(none, g.constant(1), length)));
      error = g.join({error, rotation_between(g, turn, wanted)});
    }
  }
  std::vector<int> qpos;
  for (const int j : joints) qpos.push_back(info.joints[static_cast<std::size_t>(j)].qpos);
  const Expr now = names.field(Field::kQpos, qpos);
  // The way to rest is part of the same solve: J dq = e with dq = p + J+ (e - J p).
  Expr to_rest;
  if (settings.posture > 0)
    to_rest = g.multiply(g.constant(static_cast<float>(settings.posture)),
                         g.subtract(g.constant(std::vector<float>(settings.rest.begin(), settings.rest.end())), now));
  std::vector<std::vector<Expr>> gram(static_cast<std::size_t>(rows));
  std::vector<Expr> wanted;
  for (std::size_t i = 0; i < gram.size(); ++i) {
    const Expr e = g.columns(error, {static_cast<int>(i)});
    wanted.push_back(settings.posture > 0 ? g.subtract(e, g.dot(jacobian[i], to_rest)) : e);
    for (std::size_t j = 0; j <= i; ++j) gram[i].push_back(g.dot(jacobian[i], jacobian[j]));
  }
  const std::vector<Expr> y = solved(g, gram, wanted, settings.damping);
  Expr change = g.multiply(jacobian[0], y[0]);
  for (std::size_t i = 1; i < y.size(); ++i) change = g.add(change, g.multiply(jacobian[i], y[i]));
  if (settings.posture > 0) change = g.add(change, to_rest);
  const auto most = static_cast<float>(settings.max_change);
  change = g.binary(Op::kMinimum, g.binary(Op::kMaximum, change, g.constant(-most)), g.constant(most));

  std::vector<float> lower, upper;
  for (const int j : joints) {
    const sim::JointInfo& joint = info.joints[static_cast<std::size_t>(j)];
    lower.push_back(joint.limited ? static_cast<float>(joint.range[0]) : -INFINITY);
    upper.push_back(joint.limited ? static_cast<float>(joint.range[1]) : INFINITY);
  }
  const Expr target = g.add(now, change);
  return g.binary(Op::kMinimum, g.binary(Op::kMaximum, target, g.constant(lower)), g.constant(upper));
}

}  // namespace cohort::tasks
