/// Poses of a scene's moving links over time, in small numbers: what a page plays.
///
///   PoseTrack track(scene, envs, 30);
///   track.add(t);                       // after every step: keeps a frame where one is due
///   std::string bytes = track.bytes();  // a BinaryDocument, "cohort poses 1"
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "sim/host/scene.h"
#include "view/shown_looks.h"

namespace cohort::view {

/// A unit quaternion w x y z as its three smallest components in 15 bits each: component i of the other three is
/// (value >> 1) / 32767 * sqrt(2) - sqrt(1/2); the lowest bits of the first two values are the number of the largest
/// component, which is not kept (positive by the choice of sign).
std::array<std::uint16_t, 3> pack_quaternion(const std::array<double, 4>& quat);
std::array<double, 4> unpack_quaternion(const std::array<std::uint16_t, 3>& packed);

/// Of one moment: links' poses of some environments, (envs, links, 6) uint16: position between low and high, rotation.
struct PackedPoses {
  std::array<double, 3> low{0, 0, 0}, high{0, 0, 0};  ///< m
  std::vector<std::uint16_t> values;
};

/// Positions (envs, links, 3) and quaternions (envs, links, 4) of the present state.
class PoseReader {
 public:
  PoseReader(sim::Scene& scene, std::vector<std::int32_t> envs);
  void read(std::vector<float>& pos, std::vector<float>& quat);
  const std::vector<std::int32_t>& envs() const { return envs_; }
  const std::vector<std::int32_t>& links() const { return links_; }

 private:
  sim::Scene& scene_;
  std::vector<std::int32_t> envs_, links_;
};

PackedPoses pack_poses(std::span<const float> pos, std::span<const float> quat);

class PoseTrack {
 public:
  /// fps: frames of a second of simulated time at most; of a longer run than max_frames every other frame is dropped,
  /// as often as is needed.
  PoseTrack(sim::Scene& scene, std::vector<std::int32_t> envs, double fps, std::size_t max_frames = 3000);

  /// Keeps the present state where a frame is due at `time` (s), with these values of curves, (envs) each.
  void add(double time, const std::map<std::string, std::vector<float>>& curves = {});
  /// Keeps it whether one is due or not: the last state of an episode.
  void add_last(double time, const std::map<std::string, std::vector<float>>& curves = {});
  /// Marks under the time line: "success", "reset".
  void mark(double time, const std::string& text) { marks_.emplace_back(time, text); }
  std::size_t frames() const { return time_.size(); }
  std::string bytes() const;

 private:
  void keep(double time, const std::map<std::string, std::vector<float>>& curves);
  void thin_out();

  PoseReader reader_;
  ShownLooks looks_;
  std::vector<std::pair<float, OwnLook>> looks_then_;  ///< from when on (s) an environment looks so
  double interval_, due_ = 0;                          ///< s
  std::size_t max_frames_;
  std::vector<float> time_, pos_, quat_;              ///< (frames), (frames, envs, links, 3), (frames, envs, links, 4)
  std::map<std::string, std::vector<float>> curves_;  ///< (frames, envs)
  std::vector<std::pair<double, std::string>> marks_;
  std::vector<float> pos_now_, quat_now_;
};

}  // namespace cohort::view
