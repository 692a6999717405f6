#include "view/pose_track.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/error.h"
#include "core/real_at.h"
#include "sim/index.h"
#include "view/binary_document.h"
#include "view/scene_document.h"

namespace cohort::view {

namespace {

using sim::at;

constexpr double kSteps = 65535;

}  // namespace

std::array<std::uint16_t, 3> pack_quaternion(const std::array<double, 4>& quat) {
  double square = 0;
  for (const double x : quat) square += x * x;
  std::array<double, 4> q = quat;
  if (!(square > 1e-20) || !std::isfinite(square)) q = {1, 0, 0, 0}, square = 1;
  std::size_t largest = 0;
  for (std::size_t k = 1; k < 4; ++k)
    if (std::abs(q[k]) > std::abs(q[largest])) largest = k;
  const double scale = (q[largest] < 0 ? -1 : 1) / std::sqrt(square);
  std::array<std::uint16_t, 3> out{};
  for (std::size_t k = 0, i = 0; k < 4; ++k) {
    if (k == largest) continue;
    const double part = (q[k] * scale + std::numbers::sqrt2 / 2) / std::numbers::sqrt2;
    const auto value = static_cast<unsigned>(std::lround(std::clamp(part, 0.0, 1.0) * 32767));
    const unsigned bit = i < 2 ? static_cast<unsigned>(largest) >> (1 - i) & 1u : 0u;
    out[i++] = static_cast<std::uint16_t>(value << 1 | bit);
  }
  return out;
}

std::array<double, 4> unpack_quaternion(const std::array<std::uint16_t, 3>& packed) {
  const std::size_t largest = std::size_t{2} * (packed[0] & 1u) + (packed[1] & 1u);
  std::array<double, 4> q{};
  double square = 0;
  for (std::size_t k = 0, i = 0; k < 4; ++k) {
    if (k == largest) continue;
    q[k] = (packed[i++] >> 1) / 32767.0 * std::numbers::sqrt2 - std::numbers::sqrt2 / 2;
    square += q[k] * q[k];
  }
  q[largest] = std::sqrt(std::max(0.0, 1 - square));
  return q;
}

PoseReader::PoseReader(sim::Scene& scene, std::vector<std::int32_t> envs)
    : scene_(scene), envs_(std::move(envs)), links_(moving_links(scene.info())) {}

void PoseReader::read(std::vector<float>& pos, std::vector<float>& quat) {
  const ArrayView p = scene_.host_view(sim::Field::kLinkPos), q = scene_.host_view(sim::Field::kLinkQuat);
  pos.clear(), quat.clear();
  for (const std::int32_t env : envs_) {
    for (const std::int64_t link : links_) {
      for (int k = 0; k < 3; ++k) pos.push_back(static_cast<float>(real_at(p, env, 3 * link + k)));
      for (int k = 0; k < 4; ++k) quat.push_back(static_cast<float>(real_at(q, env, 4 * link + k)));
    }
  }
}

PackedPoses pack_poses(std::span<const float> pos, std::span<const float> quat) {
  COHORT_CHECK(pos.size() / 3 == quat.size() / 4, "{} positions and {} rotations", pos.size() / 3, quat.size() / 4);
  PackedPoses out;
  constexpr double kFar = std::numeric_limits<double>::max();
  out.low.fill(kFar), out.high.fill(-kFar);
  for (std::size_t i = 0; i < pos.size(); ++i) {
    const auto x = static_cast<double>(pos[i]);
    if (!std::isfinite(x)) continue;
    out.low[i % 3] = std::min(out.low[i % 3], x), out.high[i % 3] = std::max(out.high[i % 3], x);
  }
  for (std::size_t k = 0; k < 3; ++k)
    if (out.low[k] > out.high[k]) out.low[k] = out.high[k] = 0;
  out.values.reserve(2 * pos.size());
  for (std::size_t i = 0; i < pos.size() / 3; ++i) {
    for (std::size_t k = 0; k < 3; ++k) {
      const double range = out.high[k] - out.low[k], x = static_cast<double>(pos[3 * i + k]);
      const double part = range > 0 && std::isfinite(x) ? (x - out.low[k]) / range : 0;
      out.values.push_back(static_cast<std::uint16_t>(std::lround(part * kSteps)));
    }
    std::array<double, 4> q;
    for (std::size_t k = 0; k < 4; ++k) q[k] = static_cast<double>(quat[4 * i + k]);
    const std::array<std::uint16_t, 3> packed = pack_quaternion(q);
    out.values.insert(out.values.end(), packed.begin(), packed.end());
  }
  return out;
}

PoseTrack::PoseTrack(sim::Scene& scene, std::vector<std::int32_t> envs, double fps, std::size_t max_frames)
    : reader_(scene, envs), looks_(scene, std::move(envs)), interval_(1 / fps), max_frames_(max_frames) {
  COHORT_CHECK(fps > 0 && max_frames >= 2, "{} frames a second, at most {}", fps, max_frames);
}

void PoseTrack::add(double time, const std::map<std::string, std::vector<float>>& curves) {
  constexpr double kRounding = 1e-6;
  if (!time_.empty() && time < due_ - kRounding) return;
  if (time_.empty()) due_ = time;
  while (due_ <= time + kRounding) due_ += interval_;
  keep(time, curves);
}

void PoseTrack::add_last(double time, const std::map<std::string, std::vector<float>>& curves) {
  if (time_.empty() || time > static_cast<double>(time_.back())) keep(time, curves);
}

void PoseTrack::keep(double time, const std::map<std::string, std::vector<float>>& curves) {
  if (time_.size() >= max_frames_) thin_out();
  reader_.read(pos_now_, quat_now_);
  time_.push_back(static_cast<float>(time));
  for (OwnLook& look : looks_.changed()) looks_then_.emplace_back(time_.back(), std::move(look));
  pos_.insert(pos_.end(), pos_now_.begin(), pos_now_.end());
  quat_.insert(quat_.end(), quat_now_.begin(), quat_now_.end());
  for (const auto& [name, values] : curves) {
    COHORT_CHECK(values.size() == reader_.envs().size(), "{} values of {} for {} environments", values.size(), name,
                 reader_.envs().size());
    std::vector<float>& all = curves_[name];
    all.resize((time_.size() - 1) * values.size(), 0.0f);
    all.insert(all.end(), values.begin(), values.end());
  }
}

void PoseTrack::thin_out() {
  interval_ *= 2;
  const std::size_t frames = time_.size();
  const auto every_other = [&](std::vector<float>& values) {
    const std::size_t row = values.size() / frames;
    std::size_t to = 0;
    for (std::size_t f = 0; f < frames; f += 2)
      for (std::size_t i = 0; i < row; ++i) values[to++] = values[f * row + i];
    values.resize(to);
  };
  for (auto& [name, values] : curves_) values.resize(frames * reader_.envs().size(), 0.0f), every_other(values);
  every_other(pos_), every_other(quat_), every_other(time_);
}

std::string PoseTrack::bytes() const {
  BinaryDocument doc;
  const PackedPoses packed = pack_poses(pos_, quat_);
  doc.text["format"] = "cohort poses 1";
  doc.text["frames"] = time_.size();
  doc.text["envs"] = reader_.envs();
  doc.text["links"] = reader_.links();
  doc.text["low"] = packed.low, doc.text["high"] = packed.high;
  doc.text["time"] = doc.add(std::span<const float>(time_));
  doc.text["values"] = doc.add(std::span<const std::uint16_t>(packed.values));
  nlohmann::json curves = nlohmann::json::array();
  for (const auto& [name, values] : curves_) {
    std::vector<float> all = values;
    all.resize(time_.size() * reader_.envs().size(), 0.0f);
    curves.push_back({{"name", name}, {"values", doc.add(std::span<const float>(all))}});
  }
  doc.text["curves"] = std::move(curves);
  nlohmann::json marks = nlohmann::json::array();
  for (const auto& [time, text] : marks_) marks.push_back({{"time", time}, {"text", text}});
  doc.text["marks"] = std::move(marks);
  nlohmann::json looks = nlohmann::json::array();
  for (const auto& [time, look] : looks_then_) {
    nlohmann::json one = looks_json({look}, doc).at(0);
    one["time"] = time;
    looks.push_back(std::move(one));
  }
  doc.text["looks"] = std::move(looks);
  return doc.bytes();
}

}  // namespace cohort::view
