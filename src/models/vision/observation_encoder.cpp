#include "models/vision/observation_encoder.h"

#include <algorithm>
#include <utility>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "models/host_values.h"
#include "models/module_group.h"
#include "models/random_context.h"
#include "models/vision/camera_name.h"

namespace cohort::models {
namespace {

std::string shape_text(const std::vector<int>& shape) {
  std::string text;
  for (const int n : shape) text += ", " + std::to_string(n);
  return text;
}

/// (B, O, ...) as (B·O, C, H, W) float in [0, 1].
at::Tensor images_of(const ObservationSettings& camera, const at::Tensor& x, std::int64_t frames) {
  const bool bytes = x.scalar_type() == at::kByte;
  const std::int64_t c = camera.shape[0], h = camera.shape[1], w = camera.shape[2];
  const std::vector<std::int64_t> wanted =
      bytes ? std::vector<std::int64_t>{h, w, c} : std::vector<std::int64_t>{c, h, w};
  COHORT_THROW_UNLESS(
      x.dim() == 5 && x.size(1) >= frames && x.sizes().slice(2) == at::IntArrayRef(wanted),
      "observation {} has shape {}, but must be (samples, {}{}): {}", camera.name, c10::str(x.sizes()), frames,
      bytes ? shape_text({static_cast<int>(h), static_cast<int>(w), static_cast<int>(c)}) : shape_text(camera.shape),
      bytes ? "bytes, colours last" : "colours first");
  const at::Tensor flat = x.narrow(1, 0, frames).flatten(0, 1);
  return bytes ? flat.permute({0, 3, 1, 2}).to(at::kFloat) / 255.0 : flat;
}

/// Images of the cameras that share an encoder, and where their features go.
struct ImageBatch {
  const VisualCore* core;
  std::vector<at::Tensor> images;
  std::vector<std::size_t> places;
};

std::vector<std::int64_t> sample_ids(const RandomContext& context, std::int64_t samples) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(samples));
  if (!context.sample_ids.defined()) {
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i);
    return ids;
  }
  COHORT_CHECK(context.sample_ids.numel() == samples, "{} sample ids for {} samples", context.sample_ids.numel(),
               samples);
  const at::Tensor in_order = context.sample_ids.contiguous();
  std::copy_n(in_order.const_data_ptr<std::int64_t>(), ids.size(), ids.begin());
  return ids;
}

}  // namespace

void share_cameras(std::vector<ObservationSettings>& observations, const std::string& part) {
  const ObservationSettings* first = nullptr;
  for (ObservationSettings& observation : observations) {
    if (!observation.is_camera() || observation.name.find(part) == std::string::npos) continue;
    if (first == nullptr)
      first = &observation;
    else
      observation.shares = first->name;
  }
}

void put_first(std::vector<ObservationSettings>& observations, const std::vector<std::string>& first) {
  const auto place = [&](const ObservationSettings& observation) {
    return std::find(first.begin(), first.end(), observation.name) - first.begin();
  };
  std::stable_sort(observations.begin(), observations.end(),
                   [&](const auto& a, const auto& b) { return place(a) < place(b); });
}

void to_channels_last(torch::nn::Module& module) {
  const at::NoGradGuard no_grad;
  for (at::Tensor& p : module.parameters())
    if (p.dim() == 4) p.set_data(p.contiguous(at::MemoryFormat::ChannelsLast));
}

void check(const ObservationEncoderSettings& settings) {
  COHORT_THROW_UNLESS(!settings.observations.empty(),
                      "the policy has no observations; name at least one under observation.modalities.obs");
  for (const ObservationSettings& o : settings.observations) {
    COHORT_THROW_UNLESS(!o.name.empty() && (o.shape.size() == 1 || o.shape.size() == 3) &&
                            std::all_of(o.shape.begin(), o.shape.end(), [](int n) { return n >= 1; }),
                        "observation \"{}\" has shape ({}), but must be (width) or (channels, height, width)", o.name,
                        o.shape.empty() ? "" : shape_text(o.shape).substr(2));
    if (!o.is_camera()) continue;
    check(settings.core);
    if (settings.color.enabled) {
      check(settings.color);
      COHORT_THROW_UNLESS(o.shape[0] == 3, "ColorRandomizer: {} has {} channels, but must have 3", o.name, o.shape[0]);
    }
    if (settings.crop.enabled) check(settings.crop, o.shape[1], o.shape[2]);
  }
  const auto cameras = static_cast<std::size_t>(std::count_if(
      settings.observations.begin(), settings.observations.end(), [](const auto& o) { return o.is_camera(); }));
  if (cameras == 0) return;
  COHORT_THROW_UNLESS(settings.image_mean.size() == settings.image_std.size(),
                      "image_mean has {} numbers and image_std {}, but both are of the same colours",
                      settings.image_mean.size(), settings.image_std.size());
  COHORT_THROW_UNLESS(
      settings.image_mean.empty() || settings.image_mean.size() == 3 || settings.image_mean.size() == 3 * cameras,
      "image_mean has {} numbers, but must have 3, or 3 for each of {} cameras", settings.image_mean.size(), cameras);
  for (const double std : settings.image_std)
    COHORT_THROW_UNLESS(std > 0, "image_std holds {}, but must be positive", std);
}

ObservationEncoder::ObservationEncoder(ObservationEncoderSettings settings) : settings_(std::move(settings)) {
  check(settings_);
  const auto group = register_module("nets", std::make_shared<ModuleGroup>());
  const auto nets =
      group->hold("obs", std::make_shared<ModuleGroup>())->hold("obs_nets", std::make_shared<ModuleGroup>());
  for (const ObservationSettings& o : settings_.observations) {
    if (!o.is_camera()) {
      width_ += o.shape[0];
      continue;
    }
    std::array<std::int64_t, 3> image{o.shape[0], o.shape[1], o.shape[2]};
    if (settings_.crop.enabled) image = {image[0], settings_.crop.crop_height, settings_.crop.crop_width};
    if (o.shares.empty()) {
      cores_[o.name] = nets->hold(camera_module_name(o.name), std::make_shared<VisualCore>(settings_.core, image));
    } else {
      const auto found = cores_.find(o.shares);
      COHORT_THROW_UNLESS(found != cores_.end(), "{} shares the image encoder of {}, which is no camera before it",
                          o.name, o.shares);
      COHORT_THROW_UNLESS(found->second->image() == image,
                          "{} shares the image encoder of {}, but its images have another size", o.name, o.shares);
      cores_[o.name] = found->second;
    }
    width_ += cores_[o.name]->width();
  }
  if (settings_.combine) {
    const auto mlp = register_module("combine", std::make_shared<ModuleGroup>());
    const std::array<std::int64_t, 4> widths{width_, 1024, 512, 512};
    for (std::size_t i = 0; i < 3; ++i)
      combine_.push_back(mlp->hold(std::to_string(2 * i), std::make_shared<Linear>(widths[i], widths[i + 1])));
    width_ = widths.back();
  }
  if (settings_.channels_last) to_channels_last(*this);
}

at::Tensor ObservationEncoder::randomized(const at::Tensor& images, int camera, std::int64_t frames) const {
  const ColorRandomizerSettings& color = settings_.color;
  const CropRandomizerSettings& crops = settings_.crop;
  const auto centred = [&crops](const at::Tensor& all) {
    return center_crop(all, crops.crop_height, crops.crop_width, crops.half_to_even);
  };
  if (!is_training()) return crops.enabled ? centred(images) : images;
  if (!color.enabled && !crops.enabled) return images;
  const std::int64_t samples = images.size(0) / frames;
  const auto keys = [samples, camera](const RandomContext& context, std::int64_t frames_per_sample) {
    return ImageKeys{.seed = context.seed,
                     .step = context.step,
                     .sample_ids = sample_ids(context, samples),
                     .frames = static_cast<int>(frames_per_sample),
                     .camera = camera};
  };
  at::Tensor x = images;
  if (color.enabled) {
    refuse_recording("colour jitter: how many images it sends through each operation differs from step to step");
    x = apply_color_jitter(x.repeat_interleave(color.num_samples, 0),
                           draw_color_jitter(color, keys(random_context(), frames)));
    frames *= color.num_samples;
  }
  if (crops.enabled && !crops.random) return centred(x);
  if (crops.enabled) {
    const at::Tensor corners =
        host_values(x.device(), [=, height = x.size(2), width = x.size(3)](const RandomContext& context) {
          return std::vector<at::Tensor>{draw_crop_corners(crops, keys(context, frames), height, width)};
        })[0];
    x = crop(x.repeat_interleave(crops.num_crops, 0), corners, crops.crop_height, crops.crop_width);
  }
  return x;
}

at::Tensor ObservationEncoder::normalized(const at::Tensor& images, int camera) const {
  if (settings_.image_mean.empty()) return images;
  const auto of = [&](const std::vector<double>& all) {
    const std::size_t first = all.size() == 3 ? 0 : 3 * static_cast<std::size_t>(camera);
    at::Tensor colours = at::empty({3, 1, 1}, at::kFloat);
    for (std::size_t i = 0; i < 3; ++i) colours.mutable_data_ptr<float>()[i] = static_cast<float>(all[first + i]);
    return colours.to(images.device());
  };
  return (images - of(settings_.image_mean)) / of(settings_.image_std);
}

at::Tensor ObservationEncoder::forward(const Observations& observations, std::int64_t frames) const {
  std::vector<at::Tensor> parts;
  std::vector<ImageBatch> batches;
  std::int64_t samples = -1;
  int camera = 0;
  for (const ObservationSettings& o : settings_.observations) {
    const auto found = observations.find(o.name);
    COHORT_THROW_UNLESS(found != observations.end(), "observation {} is missing from the batch", o.name);
    const at::Tensor& x = found->second;
    if (samples < 0) samples = x.size(0);
    COHORT_THROW_UNLESS(x.size(0) == samples, "observation {} has {} samples, but others have {}", o.name, x.size(0),
                        samples);
    if (!o.is_camera()) {
      COHORT_THROW_UNLESS(x.dim() == 3 && x.size(1) >= frames && x.size(2) == o.shape[0],
                          "observation {} has shape {}, but must be (samples, {}, {})", o.name, c10::str(x.sizes()),
                          frames, o.shape[0]);
      parts.push_back(x.narrow(1, 0, frames).to(at::kFloat));
      continue;
    }
    const at::NoGradGuard no_grad;
    // Bytes come with colours last: without this their memory format would decide.
    const at::Tensor images =
        normalized(randomized(images_of(o, x, frames), camera, frames), camera)
            .contiguous(settings_.channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous);
    ++camera;
    const VisualCore& core = *cores_.at(o.name);
    // One pass for all cameras of an encoder. Batch norm would see them together then, which the reference's does not.
    auto batch = std::find_if(batches.begin(), batches.end(), [&](const ImageBatch& b) { return b.core == &core; });
    if (batch == batches.end() || settings_.core.norm == "batch")
      batch = batches.insert(batches.end(), ImageBatch{&core, {}, {}});
    batch->images.push_back(images);
    batch->places.push_back(parts.size());
    parts.emplace_back();
  }
  for (const ImageBatch& batch : batches) {
    const at::Tensor images = batch.images.size() == 1 ? batch.images[0] : at::cat(batch.images);
    const std::vector<at::Tensor> features =
        at::relu(batch.core->forward(images)).chunk(static_cast<std::int64_t>(batch.places.size()));
    // Several jitters and crops of one image lie one after another.
    for (std::size_t i = 0; i < features.size(); ++i)
      parts[batch.places[i]] = features[i].view({samples, frames, -1, features[i].size(1)}).mean(2);
  }
  at::Tensor joined = at::cat(parts, -1);
  for (std::size_t i = 0; i < combine_.size(); ++i) joined = combine_[i]->forward(i == 0 ? joined : at::relu(joined));
  return joined;
}

}  // namespace cohort::models
