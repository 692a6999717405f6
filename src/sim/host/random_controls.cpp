#include "sim/host/random_controls.h"

#include <algorithm>

#include "core/error.h"
#include "core/philox.h"

namespace cohort::sim {
namespace {

/// Environments whose numbers are made side by side: the compiler makes vectors of them.
constexpr int kSide = 16;

/// Fields of RandomStream::Fixed that differ between environments.
struct Streams {
  std::uint32_t id[kSide], key1[kSide];
  std::uint32_t step, key0;
};

/// RandomStream::uniform of the indices 4 block to 4 block + 3: a call of Philox makes four numbers.
void uniforms(const Streams& streams, std::uint32_t block, float out[4][kSide]) {
  for (int e = 0; e < kSide; ++e) {
    const Philox4 r = philox4x32_10(block, 0, streams.id[e], streams.step, streams.key0, streams.key1[e]);
    for (int i = 0; i < 4; ++i) {
      out[i][e] = static_cast<float>(static_cast<std::int32_t>(r.v[i] >> 8)) * (1.0f / 16777216.0f);
    }
  }
}

}  // namespace

RandomControls::RandomControls(std::span<const ActuatorInfo> actuators) {
  for (const ActuatorInfo& a : actuators) {
    const float lower = a.limited ? static_cast<float>(a.range[0]) : -1.0f;
    const float upper = a.limited ? static_cast<float>(a.range[1]) : 1.0f;
    for (int c = 0; c < a.ctrl_count; ++c) ranges_.push_back({a.ctrl + c, lower, upper - lower});
  }
  std::sort(ranges_.begin(), ranges_.end(),
            [](const ControlRange& a, const ControlRange& b) { return a.index < b.index; });
}

template <class T>
void RandomControls::draw_as(const ArrayView& ctrl, const ControlDraw& draw) const {
  T* const data = static_cast<T*>(ctrl.data);
  Streams streams;
  for (std::int64_t first = 0; first < ctrl.shape[0]; first += kSide) {
    for (int e = 0; e < kSide; ++e) {
      const RandomStream::Fixed one = RandomStream(draw.seed, RandomPurpose::kAction,
                                                   static_cast<std::uint64_t>(draw.first_environment + first + e),
                                                   static_cast<std::uint64_t>(draw.step))
                                          .fixed();
      streams.id[e] = one.id, streams.key1[e] = one.key1;
      streams.step = one.step, streams.key0 = one.key0;
    }
    const auto count = static_cast<int>(std::min(std::int64_t{kSide}, ctrl.shape[0] - first));
    float uniform[4][kSide];
    std::int64_t made = -1;
    for (const ControlRange& c : ranges_) {
      if (c.index >> 2 != made) {
        made = c.index >> 2;
        uniforms(streams, static_cast<std::uint32_t>(made), uniform);
      }
      const float* const from = uniform[c.index & 3];
      T* const to = data + first * ctrl.strides[0] + c.index * ctrl.strides[1];
      for (int e = 0; e < count; ++e) to[e * ctrl.strides[0]] = static_cast<T>(c.at(from[e]));
    }
  }
}

void RandomControls::draw(const ArrayView& ctrl, const ControlDraw& draw) const {
  if (ctrl.type == ElementType::kFloat32) {
    draw_as<float>(ctrl, draw);
  } else {
    COHORT_CHECK(ctrl.type == ElementType::kFloat64, "controls are float or double");
    draw_as<double>(ctrl, draw);
  }
}

}  // namespace cohort::sim
