/// Lights, cameras and numbers as the page's script takes them (src/view/page/scene.js).
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "render/kernels/scene_records.h"
#include "sim/host/visual_model.h"

namespace cohort::view {

/// JSON has no infinity; numbers to seven digits are enough for a picture and half as long.
inline nlohmann::json number(double x) {
  if (!std::isfinite(x)) return 0;
  if (x == std::floor(x) && std::abs(x) < 1e15) return static_cast<std::int64_t>(x);
  return static_cast<double>(static_cast<float>(x));
}
template <class T, std::size_t N>
nlohmann::json numbers(const T (&values)[N]) {
  nlohmann::json out = nlohmann::json::array();
  for (const T x : values) out.push_back(number(static_cast<double>(x)));
  return out;
}
template <class T, std::size_t N>
nlohmann::json numbers(const std::array<T, N>& values) {
  nlohmann::json out = nlohmann::json::array();
  for (const T x : values) out.push_back(number(static_cast<double>(x)));
  return out;
}

nlohmann::json light_json(const render::LightRecord& light);
nlohmann::json light_json(const render::LightSource& light);
nlohmann::json camera_json(const sim::VisualCamera& camera);

}  // namespace cohort::view
