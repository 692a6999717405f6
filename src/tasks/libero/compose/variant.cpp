#include "tasks/libero/compose/variant.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numbers>
#include <vector>

#include "core/error.h"
#include "core/format.h"

namespace cohort::tasks::libero::compose {
namespace {

using Quaternion = std::array<double, 4>;  // w, x, y, z

constexpr double kPivotHeight = 0.8;  // m: what cameras turn about lies above the origin
constexpr int kNoises = 50, kStarts = 500;

/// As Python's round(x, 4): the nearest decimal of four digits, halves by the exact value.
double four_digits(double x) {
  char text[64];
  std::snprintf(text, sizeof text, "%.4f", x);
  return std::strtod(text, nullptr);
}

template <std::size_t N>
std::array<double, N> rounded(std::array<double, N> values) {
  for (double& value : values) value = four_digits(value);
  return values;
}

Quaternion product(const Quaternion& a, const Quaternion& b) {
  return {a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3], a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
          a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1], a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]};
}

Quaternion unit(Quaternion q) {
  const double length = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  for (double& part : q) part /= length;
  return q;
}

double radians(int degrees) {
  return degrees * std::numbers::pi / 180;
}

Quaternion about_z(int degrees) {
  return {std::cos(radians(degrees) / 2), 0, 0, std::sin(radians(degrees) / 2)};
}
/// Positive from x to z, against the right-hand rule.
Quaternion about_y(int degrees) {
  return {std::cos(radians(degrees) / 2), 0, std::sin(radians(-degrees) / 2), 0};
}

bool take_number(std::string_view& text, int& number) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}
bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

/// "H_V_S_R_E_initstate_I" and perhaps "_noise_N".
bool read_view(std::string_view text, Variant& v) {
  const bool read = take_number(text, v.horizontal) && take(text, "_") && take_number(text, v.vertical) &&
                    take(text, "_") && take_number(text, v.scale) && take(text, "_") && take_number(text, v.turn) &&
                    take(text, "_") && take_number(text, v.tilt) && take(text, "_initstate_") &&
                    take_number(text, v.start);
  if (!read || (take(text, "_noise_") && !take_number(text, v.noise))) return false;
  return text.empty() && v.scale > 0 && v.start >= 0 && v.start <= kStarts && v.noise >= 0 && v.noise <= kNoises;
}

/// Whether `task` ends in `mark` and a number.
bool ends_in_number(const std::string& task, const std::string& mark) {
  const std::size_t at = task.rfind(mark);
  if (at == std::string::npos || at + mark.size() == task.size()) return false;
  return task.find_first_not_of("0123456789", at + mark.size()) == std::string::npos;
}

Variant plus_variant(const std::string& task) {
  Variant v;
  v.problem = task;
  constexpr const char* kView = "_view_";
  if (const std::size_t view = task.find(kView); view != std::string::npos) {
    v.problem = task.substr(0, view);
    COHORT_THROW_UNLESS(read_view(std::string_view(task).substr(view + std::string_view(kView).size()), v),
                        "{}: a name of LIBERO-Plus ends in _view_H_V_S_R_E_initstate_I or that and _noise_N, with I up "
                        "to {} and N up to {}",
                        task, kStarts, kNoises);
    const std::size_t language = v.problem.find("_language_");
    v.base = v.problem.substr(0, language);
    v.perturbation = language != std::string::npos ? "language"
                     : v.noise != 0                ? "picture_noise"
                     : v.start != 0                ? "robot_start"
                                                   : "camera";
  } else if (task.find("_level") != std::string::npos) {
    v.perturbation = "layout";
  } else if (ends_in_number(task, "_add_")) {
    v.perturbation = "added_objects", v.lacks = "the models of the added objects";
  } else if (ends_in_number(task, "_light_")) {
    v.perturbation = "light", v.lacks = "the scenes of scenes/lights";
  } else if (ends_in_number(task, "_table_")) {
    v.perturbation = "table", v.lacks = "the scenes and textures of its tables";
  } else if (ends_in_number(task, "_tb_")) {
    v.perturbation = "background", v.lacks = "the scenes and textures of its backgrounds";
  }
  if (!v.lacks.empty()) v.lacks += ", which are in the 6.4 GB archive assets.zip of LIBERO-Plus and in no wheel";
  return v;
}

}  // namespace

Variant read_variant(Family family, const std::string& suite, const std::string& task) {
  if (family == Family::kPlus) return plus_variant(task);
  Variant v;
  v.problem = task;
  if (family == Family::kPro)
    for (const char* base : {"libero_spatial_", "libero_object_", "libero_goal_", "libero_10_"})
      if (suite.starts_with(base)) v.perturbation = suite.substr(std::string_view(base).size());
  if (v.perturbation == "lan") v.perturbation = "language";
  if (family == Family::kPro && v.perturbation.empty()) v.perturbation = suite;
  return v;
}

CameraPose moved_camera(const CameraPose& camera, const Variant& variant) {
  CameraPose pose = camera;
  if (variant.vertical != 0) {
    const double angle = radians(-variant.vertical), c = std::cos(angle), s = std::sin(angle), x = pose.pos[0],
                 z = pose.pos[2] - kPivotHeight;
    pose.pos = rounded(std::array<double, 3>{c * x + s * z, pose.pos[1], c * z - s * x + kPivotHeight});
    pose.quat = rounded(unit(product(about_y(variant.vertical), unit(pose.quat))));
  }
  const double angle = radians(variant.horizontal), c = std::cos(angle), s = std::sin(angle), x = pose.pos[0],
               y = pose.pos[1];
  pose.pos = rounded(std::array<double, 3>{c * x - s * y, s * x + c * y, pose.pos[2]});
  pose.quat = rounded(unit(product(about_z(variant.horizontal), unit(pose.quat))));
  if (variant.scale != 100) {
    const double scale = variant.scale / 100.0;
    pose.pos = rounded(std::array<double, 3>{scale * pose.pos[0], scale * pose.pos[1],
                                             kPivotHeight + scale * (pose.pos[2] - kPivotHeight)});
  }
  if (variant.turn != 0) pose.quat = rounded(unit(product(about_z(variant.turn), unit(pose.quat))));
  if (variant.tilt != 0) pose.quat = rounded(unit(product(about_y(variant.tilt), unit(pose.quat))));
  return pose;
}

std::array<double, 7> start_posture(const std::string& text, const std::string& robot, int start,
                                    const std::string& source) {
  const std::string name = format("{}{}", robot, start), head = "\nclass " + name + "(";
  const std::size_t at = text.find(head), list = text.find("np.array([", at == std::string::npos ? text.size() : at);
  const std::size_t next = text.find("\nclass ", at == std::string::npos ? text.size() : at + 1);
  COHORT_THROW_UNLESS(list != std::string::npos && list < next, "{}: there is no init_qpos of a class {} in it", source,
                      name);
  std::array<double, 7> joints{};
  const char* from = text.c_str() + list + std::string_view("np.array([").size();
  for (std::size_t i = 0; i < joints.size(); ++i) {
    char* end = nullptr;
    joints[i] = std::strtod(from, &end);
    const bool read = end != from;
    for (from = end; *from == ' ' || *from == '\n' || *from == '\r' || *from == '\t'; ++from) {
    }
    COHORT_THROW_UNLESS(read && *from == (i + 1 < joints.size() ? ',' : ']') && std::isfinite(joints[i]),
                        "{}: init_qpos of {} is not a list of seven numbers", source, name);
    ++from;
  }
  return joints;
}

}  // namespace cohort::tasks::libero::compose
