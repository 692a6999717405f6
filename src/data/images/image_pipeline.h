/// What is done to every frame between the file and the batch, by names:
///
///   resize(H, W) or resize(H, W, METHOD)   METHOD as resize.h; lanczos3 unless said
///   crop(H, W)                             at random; in the centre without augmentation
///   random_resized_crop(S1, S2, R1, R2)    of S1 to S2 of the area, width / height R1 to R2, back to the same size
///   brightness(D), hue(D)                  shifted by -D to D (hue: parts of a turn)
///   contrast(A, B), saturation(A, B)       times A to B
///   flip_vertical                          upside down (LIBERO's renders)
///   rdt_augment                            colours, noise and blur as RDT's reference draws them (rdt_augment.h)
///
/// Random choices are a function of (seed, sample, epoch, camera): the frames of one window are changed alike. The
/// order is the list's; colours are changed on floats, clipped to [0, 1] after each step, as dlimp's augment_image
/// does.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/philox.h"
#include "data/images/codec.h"

namespace cohort::data {

class ImagePipeline {
 public:
  /// Throws Error naming the step at fault, and where nothing fixes the size (no resize or crop).
  explicit ImagePipeline(const std::vector<std::string>& steps);
  ~ImagePipeline();
  ImagePipeline(ImagePipeline&&) noexcept;

  std::int64_t height() const { return height_; }
  std::int64_t width() const { return width_; }
  bool is_random() const;
  /// Writes (height, width, 3) uint8. `augment` false: random steps are left out (a crop is taken from the centre).
  /// Throws Error where a crop is larger than its image.
  void run(const Image& frame, bool augment, const RandomStream& random, std::uint64_t camera, std::uint8_t* out) const;

 private:
  struct Step;
  std::vector<Step> steps_;
  std::int64_t height_ = 0, width_ = 0;
};

}  // namespace cohort::data
