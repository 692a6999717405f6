// The ray caster's kernels on a CUDA device: a thread draws a pixel, a block a tile. The source is the CPU's
// (render/kernels), compiled without contraction (-fmad=false), with IEEE division and square root, which are nvcc's
// defaults: the bytes are meant to be the CPU's. Launches follow each other on one stream, and no thread waits for
// another.
#include "render/cuda/drawer.h"
#include "render/cuda/thread_tree.h"
#include "render/kernels/placing.h"
#include "render/kernels/tile.h"
#include "sim/backends/cuda/current_device.h"

namespace cohort::render::cuda {
namespace {

/// An environment's poses, where they lie, as kernels/placing.h takes them.
struct PosesOnDevice {
  PoseFields fields;
  long long environment;
  const double* offset;  ///< null: it stays where it is
  bool world_stays;      ///< link 0 is not moved with it

  COHORT_LANE double element(const void* field, int i) const {
    const long long at = environment * fields.row + i * fields.column;
    return fields.in_double ? static_cast<const double*>(field)[at]
                            : static_cast<double>(static_cast<const float*>(field)[at]);
  }
  COHORT_LANE void pos(int link, double* out) const {
    for (int k = 0; k < 3; ++k) out[k] = element(fields.pos, 3 * link + k);
    if (offset == nullptr || (world_stays && link == 0)) return;
    out[0] += offset[0], out[1] += offset[1];
  }
  COHORT_LANE void rot(int link, double* out) const {
    double quat[4];
    for (int k = 0; k < 4; ++k) quat[k] = element(fields.quat, 4 * link + k);
    rotation3(quat, out);
  }
};

/// Of a picture's environment; number: which of the job's.
COHORT_LANE PosesOnDevice poses_of(const Job& job, int number, bool world_stays) {
  return {job.poses, job.environment[number], job.offset == nullptr ? nullptr : job.offset + 2 * number, world_stays};
}

/// The instances that a tile may show, near to far.
struct NearBits {
  const unsigned* word;
  int words;
  long stride;
  const int* order;
  template <class F>
  COHORT_LANE void each(F f) const {
    for (int w = 0; w < words; ++w) {
      for (unsigned left = word[w * stride]; left != 0; left &= left - 1) {
        if (!f(order[32 * w + sim::lowest_bit(left)])) return;
      }
    }
  }
};

template <class T>
COHORT_LANE T* rows_of(T* all, int picture, long row) {
  return all == nullptr ? nullptr : all + picture * row;
}

__global__ void frames_kernel(const __grid_constant__ Job job) {
  const int p = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (p >= job.pictures) return;
  FrameRecord& f = job.space.frame[p];
  place_frame(job.scene, job.camera, job.lens, poses_of(job, p, true), job.space.light + p * kMostLights,
              job.space.eye[p], f);
  const long first = static_cast<long>(p) * job.instances, pixels = static_cast<long>(f.width) * f.height;
  f.instance = job.space.instance + first, f.instances = job.instances;
  f.transparent = job.space.transparent + first;
  f.rgb = rows_of(job.rgb, p, 3 * pixels), f.depth = rows_of(job.depth, p, pixels);
  f.segmentation = rows_of(job.segmentation, p, pixels), f.normal = rows_of(job.normal, p, 3 * pixels);
}

__global__ void instances_kernel(const __grid_constant__ Job job) {
  const long at = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= static_cast<long>(job.pictures) * job.instances) return;
  const int p = static_cast<int>(at / job.instances), i = static_cast<int>(at % job.instances);
  const InstanceSource from = source_of(job.scene, i);
  const GeomRecord& geom = job.scene.geom[from.geom];
  InstanceRecord& r = job.space.instance[at];
  job.space.span[at] = place_and_span(job.scene, geom, job.lens, job.space.eye[p], job.space.frame[p],
                                      poses_of(job, job.offset == nullptr ? p : from.environment, false), r);
  job.space.distance[at] = r.transparent ? blending_distance(r, geom.radius) : 0.0;
}

/// An instance's place in each order is the number of those before it.
__global__ void order_kernel(const __grid_constant__ Job job) {
  const long at = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= static_cast<long>(job.pictures) * job.instances) return;
  const int p = static_cast<int>(at / job.instances), i = static_cast<int>(at % job.instances);
  const long first = at - i;
  const InstanceRecord* instance = job.space.instance + first;
  const double* distance = job.space.distance + first;
  int before = 0, transparent_before = 0, transparents = 0;
  for (int k = 0; k < job.instances; ++k) {
    const float there = instance[k].nearest, here = instance[i].nearest;
    before += there < here || (there == here && k < i);
    if (!instance[k].transparent) continue;
    ++transparents;
    transparent_before += distance[k] < distance[i] || (distance[k] == distance[i] && k < i);
  }
  job.space.order[first + before] = i;
  if (instance[i].transparent) job.space.transparent[first + transparent_before] = i;
  if (i != 0) return;
  FrameRecord& f = job.space.frame[p];
  f.transparents = transparents;
  finish_frame(job.scene, instance, f);
}

__global__ void tiles_kernel(const __grid_constant__ Job job) {
  const long at = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= static_cast<long>(job.pictures) * job.words * job.tiles) return;
  const int tile = static_cast<int>(at % job.tiles), word = static_cast<int>(at / job.tiles % job.words);
  const int columns = (job.lens.width + kTile - 1) / kTile, x = tile % columns, y = tile / columns;
  const long first = at / job.tiles / job.words * job.instances;
  unsigned bits = 0;
  for (int k = 0; k < 32 && 32 * word + k < job.instances; ++k) {
    const TileSpan& s = job.space.span[first + job.space.order[first + 32 * word + k]];
    const bool inside = s.first_x <= x && x <= s.last_x && s.first_y <= y && y <= s.last_y;
    bits |= inside ? 1u << k : 0u;
  }
  job.space.near[at] = bits;
}

constexpr int kPixels = kTile * kTile;
/// Blocks that a multiprocessor of 65,536 registers is to hold: 128 registers each thread.
constexpr int kBlocksAtOnce = 8;

__global__ void __launch_bounds__(kPixels, kBlocksAtOnce) pixels_kernel(const __grid_constant__ Job job) {
  const int tile = static_cast<int>(blockIdx.x) % job.tiles, p = static_cast<int>(blockIdx.x) / job.tiles;
  const int pixel = static_cast<int>(threadIdx.x);
  const FrameRecord& f = job.space.frame[p];
  Packet<sim::ScalarLane> packet;
  packet.x[0] = tile % f.columns * kTile + pixel % kTile, packet.y[0] = tile / f.columns * kTile + pixel / kTile;
  if (packet.x[0] >= f.width || packet.y[0] >= f.height) return;
  packet.inside = 1;
  const NearBits near{job.space.near + static_cast<long>(p) * job.words * job.tiles + tile, job.words, job.tiles,
                      job.space.order + static_cast<long>(p) * job.instances};
  draw_packet<sim::ScalarLane, ThreadTree>(f, near, packet, column_of(f, packet.x[0]), row_of(f, packet.y[0]));
}

constexpr int kThreads = 128;
unsigned blocks_for(long threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

}  // namespace

const char* draw(const Job& job) {
  const sim::cuda::OnDevice on(job.device);
  if (on.status() != cudaSuccess) return sim::cuda::text(on.status());
  const long instances = static_cast<long>(job.pictures) * job.instances;
  const auto put = [&](void (*kernel)(Job), long blocks, int threads) {
    return sim::cuda::text(sim::cuda::launch_on(job.stream, static_cast<unsigned>(blocks),
                                                static_cast<unsigned>(threads), 0, kernel, job));
  };
  if (const char* why = put(frames_kernel, blocks_for(job.pictures), kThreads)) return why;
  if (instances > 0) {
    if (const char* why = put(instances_kernel, blocks_for(instances), kThreads)) return why;
    if (const char* why = put(order_kernel, blocks_for(instances), kThreads)) return why;
    const long words = static_cast<long>(job.pictures) * job.words * job.tiles;
    if (const char* why = put(tiles_kernel, blocks_for(words), kThreads)) return why;
  }
  return put(pixels_kernel, static_cast<long>(job.pictures) * job.tiles, kPixels);
}

}  // namespace cohort::render::cuda
