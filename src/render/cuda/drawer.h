/// What the CUDA renderer asks of the device: plain pointers and numbers, so that neither CUDA's headers are needed on
/// this side nor C++20 on the other. Where no CUDA compiler was found, cuda/absent.cpp stands in for cuda/drawer.cu.
/// Memory and streams are those of sim/backends/cuda/runner.h.
#pragma once
#include "render/kernels/scene_records.h"

namespace cohort::render::cuda {

/// Poses of environments' links in the device's memory: element i of environment e stands at e * row + i * column.
struct PoseFields {
  const void *pos, *quat;
  int in_double;  ///< the elements are doubles, not floats
  long long row, column;
};

/// What pictures are drawn from before their pixels: arrays in the device's memory.
struct Workspace {
  EyeRecord* eye;            ///< (pictures)
  FrameRecord* frame;        ///< (pictures)
  LightRecord* light;        ///< (pictures, kMostLights)
  InstanceRecord* instance;  ///< (pictures, instances)
  TileSpan* span;            ///< (pictures, instances)
  double* distance;          ///< (pictures, instances), of transparent ones
  int* order;                ///< (pictures, instances): near to far
  int* transparent;          ///< (pictures, instances): those first
  unsigned* near;            ///< (pictures, words, tiles): bit k of word w: the tile may show order[32 w + k]
};

/// Some pictures of one camera and size.
struct Job {
  int device;
  void* stream;
  SceneRecord scene;  ///< arrays in the device's memory
  CameraRecord camera;
  LensRecord lens;
  PoseFields poses;
  const int* environment;  ///< (pictures): rows of `poses`; of one picture of many environments (environments)
  const double* offset;    ///< (environments, 2): where each stands, when there are many in one picture; null otherwise
  int pictures;
  int instances;  ///< of a picture
  int tiles, words;
  Workspace space;
  unsigned char* rgb;  ///< (pictures, height, width, 3); null: not wanted; likewise:
  float* depth;
  int* segmentation;
  float* normal;
};

/// Puts the drawing on the job's stream. Returns null, or why it could not.
const char* draw(const Job& job);

}  // namespace cohort::render::cuda
