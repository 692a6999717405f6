#include "render/cuda/raycast.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/real_at.h"
#include "render/cuda/drawer.h"
#include "render/cuda/scene_memory.h"
#include "sim/backends/cuda/engine.h"
#include "sim/index.h"

namespace cohort::render {

using sim::at;
using sim::cuda::DeviceMemory;
using sim::cuda::need;

namespace {

/// Memory of a device that grows as it is asked for.
class GrowingMemory {
 public:
  GrowingMemory(int device, void* stream) : device_(device), stream_(stream) {}
  void* at_least(std::size_t bytes) {
    if (bytes <= bytes_) return memory_.get();
    need(sim::cuda::wait(device_, stream_), device_, "an earlier launch failed");
    memory_ = {}, bytes_ = 0;
    memory_ = sim::cuda::make_device_scratch(device_, bytes);
    bytes_ = bytes;
    return memory_.get();
  }

 private:
  int device_;
  void* stream_;
  DeviceMemory memory_;
  std::size_t bytes_ = 0;
};

/// A copy in the device's memory of what is often the same.
template <class T>
class KeptCopy {
 public:
  KeptCopy(int device, void* stream) : device_(device), stream_(stream), memory_(device, stream) {}
  const T* of(std::span<const T> values) {
    if (!std::ranges::equal(values, held_) || held_.empty()) {
      held_.clear();
      void* memory = memory_.at_least(values.size_bytes());
      need(sim::cuda::upload(device_, stream_, memory, values.data(), values.size_bytes()), device_,
           "a picture's environments cannot be copied");
      held_.assign(values.begin(), values.end());
    }
    return static_cast<const T*>(memory_.at_least(0));
  }

 private:
  int device_;
  void* stream_;
  GrowingMemory memory_;
  std::vector<T> held_;
};

/// The four arrays of Pictures: how many numbers a pixel has, and of how many bytes.
struct Output {
  ArrayView Pictures::*view;
  std::size_t components, bytes;
  std::size_t pixel() const { return components * bytes; }
};
constexpr std::array<Output, 4> kOutputs{{{&Pictures::rgb, 3, 1},
                                          {&Pictures::depth, 1, sizeof(float)},
                                          {&Pictures::segmentation, 1, sizeof(std::int32_t)},
                                          {&Pictures::normal, 3, sizeof(float)}}};

int checked_device(const RendererSettings& settings) {
  const int device = settings.device->index;
  const std::string why = sim::cuda_unusable();
  COHORT_THROW_UNLESS(why.empty(), "the renderer raycast cannot draw on cuda:{}: {}", device, why);
  const int count = sim::cuda::device_count();
  COHORT_THROW_UNLESS(device >= 0 && device < count,
                      "the renderer raycast cannot draw on cuda:{}: this process sees {} CUDA devices", device, count);
  COHORT_THROW_UNLESS(settings.lanes == sim::LaneWidth::kAuto,
                      "the renderer raycast has no {} lanes on cuda:{}: leave the lanes out, or set the device to cpu",
                      sim::to_string(settings.lanes), device);
  return device;
}

class CudaRaycastRenderer final : public Renderer {
 public:
  CudaRaycastRenderer(sim::Scene& scene, const RendererSettings& settings)
      : Renderer(scene, settings),
        device_(checked_device(settings)),
        own_stream_(runs_here(scene) ? sim::cuda::Stream() : sim::cuda::make_stream(device_)),
        stream_(runs_here(scene) ? scene.engine().stream() : own_stream_.get()),
        traced_(model(), settings),
        memory_(cuda::upload_scene(traced_, device_, stream_, record_)),
        environments_(device_, stream_),
        offsets_(device_, stream_),
        poses_(device_, stream_),
        space_(device_, stream_),
        outputs_{GrowingMemory{device_, stream_}, {device_, stream_}, {device_, stream_}, {device_, stream_}} {}
  ~CudaRaycastRenderer() override { sim::cuda::wait(device_, stream_); }
  CudaRaycastRenderer(const CudaRaycastRenderer&) = delete;
  CudaRaycastRenderer& operator=(const CudaRaycastRenderer&) = delete;

  std::string description() const override { return "raycast"; }
  DeviceId device() const override { return {DeviceKind::kCuda, device_}; }

 protected:
  void draw(const Request& q) override {
    COHORT_THROW_UNLESS(
        scene_.looks_in_use() == nullptr,
        "environments have colours, cameras or lights of their own, which the renderer raycast draws on the "
        "processor: set its device to cpu");
    cuda::Job job{};
    job.device = device_, job.stream = stream_;
    job.scene = record_;
    job.camera = camera_record(q, q.envs[0]), job.lens = lens(q, q.envs[0]);
    std::vector<std::int32_t> rows(q.envs.begin(), q.envs.end());
    job.poses = poses_of(q, rows);
    const int environments = static_cast<int>(q.envs.size());
    job.instances = record_.geoms + (q.together ? (environments - 1) * record_.endeds : 0);
    job.tiles = ((q.width + kTile - 1) / kTile) * ((q.height + kTile - 1) / kTile);
    job.words = (job.instances + 31) / 32;
    const int* environment = environments_.of(rows);
    std::vector<double> offset;
    if (q.together) {
      for (const std::int32_t env : q.envs) {
        for (const double x : scene_.environment_offset(env)) offset.push_back(x);
      }
      job.offset = offsets_.of(offset);
    }
    const int pictures = q.together ? 1 : environments;
    std::size_t each = space_bytes(job, 1, nullptr);
    const std::size_t pixels = at(q.width) * at(q.height);
    for (const Output& o : kOutputs) each += on_host(q.out.*o.view) ? pixels * o.pixel() : 0;
    // Threads and blocks of a launch are counted in 31 bits.
    const double at_once = std::min(settings_.device_workspace / static_cast<double>(each),
                                    2e9 / (static_cast<double>(std::max(job.words, 1)) * job.tiles));
    const int most = static_cast<int>(std::clamp(at_once, 1.0, static_cast<double>(pictures)));
    space_bytes(job, most, space_.at_least(space_bytes(job, most, nullptr)));
    for (int first = 0; first < pictures; first += most) {
      job.pictures = std::min(most, pictures - first);
      job.environment = environment + (q.together ? 0 : first);
      draw_some(q, job, at(first), pixels);
    }
  }

  void* own_memory(int camera, std::size_t output, std::size_t bytes) override {
    return own_.try_emplace({camera, output}, device_, stream_).first->second.at_least(bytes);
  }
  void* stream() const override { return stream_; }

 private:
  bool runs_here(sim::Scene& scene) const {
    return scene.options().device == DeviceId{DeviceKind::kCuda, device_} && scene.engine().stream() != nullptr;
  }
  static bool on_host(const ArrayView& view) { return view.data != nullptr && view.device.kind == DeviceKind::kCpu; }

  /// The engine's own arrays where it runs on this device; elsewhere a copy of the rows that are asked for, which are
  /// numbered anew.
  cuda::PoseFields poses_of(const Request& q, std::vector<std::int32_t>& rows) {
    if (runs_here(scene_)) {
      const ArrayView pos = scene_.view(sim::Field::kLinkPos), quat = scene_.view(sim::Field::kLinkQuat);
      return {pos.data, quat.data, pos.type == ElementType::kFloat64, pos.strides[0], pos.strides[1]};
    }
    const ArrayView pos = scene_.host_view(sim::Field::kLinkPos), quat = scene_.host_view(sim::Field::kLinkQuat);
    const std::size_t links = at(pos.shape[1]) / 3, row = 7 * links;
    host_poses_.resize(row * q.envs.size());
    for (std::size_t i = 0; i < q.envs.size(); ++i) {
      double* to = &host_poses_[i * row];
      for (std::size_t k = 0; k < 3 * links; ++k) to[k] = real_at(pos, q.envs[i], static_cast<std::int64_t>(k));
      to += 3 * links;
      for (std::size_t k = 0; k < 4 * links; ++k) to[k] = real_at(quat, q.envs[i], static_cast<std::int64_t>(k));
      rows[i] = static_cast<std::int32_t>(i);
    }
    const std::size_t bytes = host_poses_.size() * sizeof(double);
    auto* memory = static_cast<double*>(poses_.at_least(bytes));
    need(sim::cuda::upload(device_, stream_, memory, host_poses_.data(), bytes), device_, "poses cannot be copied");
    return {memory, memory + 3 * links, 1, static_cast<long long>(row), 1};
  }

  /// Bytes of the workspace of so many pictures; where memory is given, the job's pointers into it too.
  static std::size_t space_bytes(cuda::Job& job, int pictures, void* memory) {
    std::size_t bytes = 0;
    const auto piece = [&](auto*& pointer, std::size_t count) {
      using T = std::remove_reference_t<decltype(*pointer)>;
      if (memory != nullptr) pointer = reinterpret_cast<T*>(static_cast<unsigned char*>(memory) + bytes);
      bytes += (count * at(pictures) * sizeof(T) + 255) / 256 * 256;
    };
    const std::size_t instances = at(job.instances);
    cuda::Workspace& s = job.space;
    piece(s.eye, 1), piece(s.frame, 1), piece(s.light, at(kMostLights));
    piece(s.instance, instances), piece(s.span, instances), piece(s.distance, instances);
    piece(s.order, instances), piece(s.transparent, instances);
    piece(s.near, at(job.words) * at(job.tiles));
    return bytes;
  }

  /// job.pictures from picture `first` on: into the caller's arrays on this device, or by way of it to the host's.
  void draw_some(const Request& q, cuda::Job& job, std::size_t first, std::size_t pixels) {
    std::array<void*, kOutputs.size()> target{};
    for (std::size_t i = 0; i < kOutputs.size(); ++i) {
      const ArrayView& view = q.out.*kOutputs[i].view;
      if (view.data == nullptr) continue;
      const std::size_t picture = pixels * kOutputs[i].pixel();
      target[i] = on_host(view) ? outputs_[i].at_least(picture * at(job.pictures))
                                : static_cast<unsigned char*>(view.data) + first * picture;
    }
    job.rgb = static_cast<unsigned char*>(target[0]), job.depth = static_cast<float*>(target[1]);
    job.segmentation = static_cast<int*>(target[2]), job.normal = static_cast<float*>(target[3]);
    need(cuda::draw(job), device_, "pictures cannot be drawn");
    for (std::size_t i = 0; i < kOutputs.size(); ++i) {
      const ArrayView& view = q.out.*kOutputs[i].view;
      if (!on_host(view)) continue;
      const std::size_t picture = pixels * kOutputs[i].pixel();
      need(sim::cuda::download(device_, stream_, static_cast<unsigned char*>(view.data) + first * picture, target[i],
                               picture * at(job.pictures)),
           device_, "pictures cannot be copied");
    }
  }

  int device_;
  sim::cuda::Stream own_stream_;  ///< where the scene runs elsewhere
  void* stream_;
  TracedScene traced_;
  SceneRecord record_{};
  DeviceMemory memory_;
  KeptCopy<std::int32_t> environments_;
  KeptCopy<double> offsets_;
  GrowingMemory poses_, space_;
  std::array<GrowingMemory, kOutputs.size()> outputs_;        ///< on their way to the host
  std::map<std::pair<int, std::size_t>, GrowingMemory> own_;  ///< of render_in_place(): camera and output
  std::vector<double> host_poses_;
};

}  // namespace

std::unique_ptr<Renderer> make_cuda_raycast_renderer(sim::Scene& scene, const RendererSettings& settings) {
  return std::make_unique<CudaRaycastRenderer>(scene, settings);
}

}  // namespace cohort::render
