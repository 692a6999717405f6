/// Joins what a robot sees and feels into one vector per frame: cameras through an image encoder, everything else as it
/// is. robomimic's ObservationGroupEncoder for the group "obs", weight for weight.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "core/config.h"
#include "models/layers.h"
#include "models/vision/randomizers.h"
#include "models/vision/visual_core.h"

namespace cohort::models {

/// B samples, O frames each: name -> (B, O, width), or (B, O, C, H, W) float in [0, 1], or (B, O, H, W, C) uint8 for a
/// camera. Names beyond those that the encoder knows are ignored.
using Observations = std::map<std::string, at::Tensor>;

struct ObservationSettings {
  std::string name;        ///< e.g. "robot_state/gripper_position"
  std::vector<int> shape;  ///< (width), or a camera's (channels, height, width)
  std::string shares;      ///< the camera whose image encoder this one uses, too; empty: its own

  bool is_camera() const { return shape.size() == 3; }
};

struct ObservationEncoderSettings {
  std::vector<ObservationSettings> observations;  ///< in the order of the joined vector
  VisualCoreSettings core;                        ///< of every camera
  ColorRandomizerSettings color;                  ///< before the crop
  CropRandomizerSettings crop;
  /// Of the pictures' colours in [0, 1], by which they are normalised behind the randomizers: three numbers, or three for
  /// each camera. Empty: colours stay as they are.
  std::vector<double> image_mean, image_std;
  /// The DROID fork's: an MLP of 1024, 512 and 512 units over the joined vector. robomimic has none.
  bool combine = false;
  bool channels_last = false;  ///< memory format of images and image weights: faster on tensor cores
};

/// Throws Error naming the observation or the setting that is wrong.
void check(const ObservationEncoderSettings& settings);

/// The cameras whose name contains `part` share the image encoder of the first of them: the DROID configuration's rule
/// for "camera/image/varied_camera".
void share_cameras(std::vector<ObservationSettings>& observations, const std::string& part);

/// Brings the observations that `first` names to the front, in its order; the others stay as they are.
void put_first(std::vector<ObservationSettings>& observations, const std::vector<std::string>& first);

/// Weights: nets.obs.obs_nets.<camera>.*, of cameras with an encoder of their own; combine.{0,2,4}.*.
class ObservationEncoder : public torch::nn::Module {
 public:
  /// Throws Error naming the observation that is wrong.
  explicit ObservationEncoder(ObservationEncoderSettings settings);
  /// (B, frames, width()). In training mode with randomizers a RandomContext must be set. Throws Error naming a missing
  /// or misshapen observation.
  at::Tensor forward(const Observations& observations, std::int64_t frames) const;
  std::int64_t width() const { return width_; }
  const ObservationEncoderSettings& settings() const { return settings_; }

 private:
  at::Tensor randomized(const at::Tensor& images, int camera, std::int64_t frames) const;
  at::Tensor normalized(const at::Tensor& images, int camera) const;

  ObservationEncoderSettings settings_;
  std::map<std::string, std::shared_ptr<VisualCore>> cores_;  // by camera
  std::vector<std::shared_ptr<Linear>> combine_;
  std::int64_t width_ = 0;
};

/// Gives all weights of 2-D convolutions the memory format channels_last, in place.
void to_channels_last(torch::nn::Module& module);

}  // namespace cohort::models
