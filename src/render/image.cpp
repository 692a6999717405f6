#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "render/video.h"
#include "sim/index.h"

namespace cohort::render {

using sim::at;

Mosaic mosaic_of(int count, int width, int height) {
  COHORT_THROW_UNLESS(count >= 1, "a mosaic of {} pictures: at least one", count);
  Mosaic m;
  m.columns = static_cast<int>(std::ceil(std::sqrt(static_cast<double>(count))));
  m.rows = (count + m.columns - 1) / m.columns;
  m.width = m.columns * width, m.height = m.rows * height;
  return m;
}

void tile(const Mosaic& m, std::span<const std::uint8_t> pictures, int count, std::span<std::uint8_t> whole) {
  const std::size_t width = at(m.width / m.columns), height = at(m.height / m.rows);
  COHORT_CHECK(pictures.size() == 3 * at(count) * width * height, "{} bytes are no {} pictures of {} x {}",
               pictures.size(), count, width, height);
  COHORT_CHECK(whole.size() == 3 * at(m.width) * at(m.height) && count <= m.columns * m.rows,
               "the mosaic takes {} x {} pixels and {} pictures", m.width, m.height, m.columns * m.rows);
  std::fill(whole.begin(), whole.end(), std::uint8_t{0});
  for (std::size_t i = 0; i < at(count); ++i) {
    const std::size_t left = i % at(m.columns) * width, top = i / at(m.columns) * height;
    for (std::size_t y = 0; y < height; ++y) {
      const auto from = pictures.begin() + static_cast<std::ptrdiff_t>(3 * width * (i * height + y));
      std::copy_n(from, 3 * width, whole.begin() + static_cast<std::ptrdiff_t>(3 * ((top + y) * at(m.width) + left)));
    }
  }
}

}  // namespace cohort::render
