#include "sim/host/collada.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <map>
#include <numbers>
#include <string>

#include "core/error.h"
#include "formats/xml_elements.h"

namespace cohort::sim {
namespace {

/// Row-major 4 x 4, of points as columns.
using Transform = std::array<double, 16>;

constexpr Transform kIdentity{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};

Transform product(const Transform& a, const Transform& b) {
  Transform c{};
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < 4; ++j)
      for (std::size_t k = 0; k < 4; ++k) c[4 * i + j] += a[4 * i + k] * b[4 * k + j];
  return c;
}

double determinant(const Transform& m) {
  return m[0] * (m[5] * m[10] - m[6] * m[9]) - m[1] * (m[4] * m[10] - m[6] * m[8]) + m[2] * (m[4] * m[9] - m[5] * m[8]);
}

template <class T>
std::vector<T> numbers(std::string_view text) {
  std::vector<T> found;
  const char *at = text.data(), *end = at + text.size();
  for (;;) {
    while (at != end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n' || *at == '+')) ++at;
    T value{};
    const auto read = std::from_chars(at, end, value);
    if (read.ec != std::errc()) return found;
    found.push_back(value);
    at = read.ptr;
  }
}

/// The text's elements with their places in the tree.
class Document {
 public:
  explicit Document(std::string_view text) : text_(text), elements_(xml_elements(text)), children_(elements_.size()) {
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < elements_.size(); ++i) {
      const auto depth = static_cast<std::size_t>(std::max(0, elements_[i].depth));
      if (open.size() > depth) open.resize(depth);
      if (!open.empty()) children_[open.back()].push_back(i);
      open.push_back(i);
      if (elements_[i].has("id")) by_id_.emplace(elements_[i].attribute("id"), i);
    }
  }

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t size() const { return elements_.size(); }
  const std::string& name(std::size_t i) const { return elements_[i].name; }
  std::string attribute(std::size_t i, const char* key) const { return elements_[i].attribute(key); }
  const std::vector<std::size_t>& children(std::size_t i) const { return children_[i]; }
  /// Character data up to the first element or end within.
  std::string_view text(std::size_t i) const {
    const std::size_t begin = std::min(elements_[i].end, text_.size());
    return text_.substr(begin, text_.find('<', begin) - begin);
  }
  std::size_t child(std::size_t i, const char* name) const {
    for (const std::size_t c : children_[i])
      if (elements_[c].name == name) return c;
    return kNone;
  }
  /// The first of that name below, however deep.
  std::size_t below(std::size_t i, const char* name) const {
    for (const std::size_t c : children_[i]) {
      if (elements_[c].name == name) return c;
      if (const std::size_t found = below(c, name); found != kNone) return found;
    }
    return kNone;
  }
  /// What "#name" stands for.
  std::size_t target(const std::string& url) const {
    const auto found = by_id_.find(url.starts_with('#') ? url.substr(1) : url);
    return found == by_id_.end() ? kNone : found->second;
  }
  std::size_t first(const char* name) const {
    for (std::size_t i = 0; i < elements_.size(); ++i)
      if (elements_[i].name == name) return i;
    return kNone;
  }

 private:
  std::string_view text_;
  std::vector<XmlElement> elements_;
  std::vector<std::vector<std::size_t>> children_;
  std::map<std::string, std::size_t> by_id_;
};

class Reader {
 public:
  explicit Reader(std::string_view text) : d_(text) {}

  TriangleMesh read() {
    COHORT_THROW_UNLESS(d_.size() > 0 && d_.name(0) == "COLLADA",
                        "it is no COLLADA: its root element is not <COLLADA>");
    Transform metres = kIdentity;
    if (const std::size_t unit = d_.first("unit"); unit != Document::kNone) {
      const auto size = numbers<double>(d_.attribute(unit, "meter"));
      if (!size.empty() && size[0] > 0) metres[0] = metres[5] = metres[10] = size[0];
    }
    if (const std::size_t scene = visual_scene(); scene != Document::kNone) {
      for (const std::size_t node : d_.children(scene))
        if (d_.name(node) == "node") walk(node, metres, 0);
    } else {
      for (std::size_t i = 0; i < d_.size(); ++i)
        if (d_.name(i) == "geometry") add_geometry(i, metres, Document::kNone);
    }
    COHORT_THROW_UNLESS(!mesh_.face.empty(), "it holds no triangles");
    std::size_t most = 0;
    for (const auto& [material, triangles] : triangles_of_)
      if (triangles > most) most = triangles, mesh_.colour = colour_of(material);
    return std::move(mesh_);
  }

 private:
  static constexpr int kMostNodes = 64;  ///< one below the other: a node that instances itself ends there

  std::size_t visual_scene() const {
    if (const std::size_t shown = d_.first("instance_visual_scene"); shown != Document::kNone)
      if (const std::size_t scene = d_.target(d_.attribute(shown, "url")); scene != Document::kNone) return scene;
    return d_.first("visual_scene");
  }

  Transform own_transform(std::size_t node) const {
    Transform all = kIdentity;
    for (const std::size_t c : d_.children(node)) {
      const std::vector<double> v = numbers<double>(d_.text(c));
      Transform one = kIdentity;
      if (d_.name(c) == "matrix" && v.size() >= 16) {
        std::copy_n(v.begin(), 16, one.begin());
      } else if (d_.name(c) == "translate" && v.size() >= 3) {
        one[3] = v[0], one[7] = v[1], one[11] = v[2];
      } else if (d_.name(c) == "scale" && v.size() >= 3) {
        one[0] = v[0], one[5] = v[1], one[10] = v[2];
      } else if (d_.name(c) == "rotate" && v.size() >= 4) {  // axis, and degrees
        const double length = std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
        if (!(length > 0)) continue;
        const double x = v[0] / length, y = v[1] / length, z = v[2] / length;
        const double angle = v[3] * std::numbers::pi / 180, c1 = std::cos(angle), s = std::sin(angle), t = 1 - c1;
        one = {t * x * x + c1,
               t * x * y - s * z,
               t * x * z + s * y,
               0,  //
               t * x * y + s * z,
               t * y * y + c1,
               t * y * z - s * x,
               0,  //
               t * x * z - s * y,
               t * y * z + s * x,
               t * z * z + c1,
               0,  //
               0,
               0,
               0,
               1};
      } else {
        continue;
      }
      all = product(all, one);
    }
    return all;
  }

  void walk(std::size_t node, const Transform& above, int depth) {
    COHORT_THROW_UNLESS(depth < kMostNodes, "its nodes lie in each other without end");
    const Transform here = product(above, own_transform(node));
    for (const std::size_t c : d_.children(node)) {
      const std::string& name = d_.name(c);
      const std::size_t target = d_.target(d_.attribute(c, "url"));
      if (name == "node") walk(c, here, depth + 1);
      if (target == Document::kNone) continue;
      if (name == "instance_node") walk(target, here, depth + 1);
      if (name == "instance_geometry") add_geometry(target, here, c);
      if (name == "instance_controller")  // a skin at rest
        if (const std::size_t skin = d_.child(target, "skin"); skin != Document::kNone)
          if (const std::size_t geometry = d_.target(d_.attribute(skin, "source")); geometry != Document::kNone)
            add_geometry(geometry, here, c);
    }
  }

  /// instance: says which materials its names stand for; kNone: none does.
  void add_geometry(std::size_t geometry, const Transform& to_scene, std::size_t instance) {
    const std::size_t mesh = d_.child(geometry, "mesh");
    if (mesh == Document::kNone) return;
    const bool mirrored = determinant(to_scene) < 0;
    placed_.clear();
    for (const std::size_t primitive : d_.children(mesh)) {
      const std::string& kind = d_.name(primitive);
      if (kind == "triangles" || kind == "polylist" || kind == "polygons" || kind == "trifans" || kind == "tristrips")
        add_primitive(primitive, to_scene, mirrored, instance);
    }
  }

  void add_primitive(std::size_t primitive, const Transform& to_scene, bool mirrored, std::size_t instance) {
    std::size_t stride = 1, at = 0, positions = Document::kNone;
    for (const std::size_t input : d_.children(primitive)) {
      if (d_.name(input) != "input") continue;
      const auto offset = numbers<std::size_t>(d_.attribute(input, "offset"));
      const std::size_t place = offset.empty() ? 0 : offset[0];
      COHORT_THROW_UNLESS(place < 64, "an input of its mesh has the offset {}", place);
      stride = std::max(stride, place + 1);
      if (d_.attribute(input, "semantic") != "VERTEX") continue;
      at = place;
      const std::size_t vertices = d_.target(d_.attribute(input, "source"));
      if (vertices == Document::kNone) continue;
      for (const std::size_t of : d_.children(vertices))
        if (d_.name(of) == "input" && d_.attribute(of, "semantic") == "POSITION")
          positions = d_.target(d_.attribute(of, "source"));
    }
    if (positions == Document::kNone) return;
    const auto [place_of, is_new] = placed_.try_emplace(positions, mesh_.vertex.size() / 3);
    if (is_new) add_vertices(positions, to_scene);
    const std::size_t first = place_of->second;
    const std::size_t before = mesh_.face.size();
    const auto add = [&](std::size_t a, std::size_t b, std::size_t c) {
      const std::size_t most = std::max({a, b, c}), end = mesh_.vertex.size() / 3 - first;
      COHORT_THROW_UNLESS(most < end, "a triangle of its mesh has the corner {}, and there are {}", most, end);
      if (mirrored) std::swap(b, c);
      for (const std::size_t corner : {a, b, c}) mesh_.face.push_back(static_cast<int>(first + corner));
    };
    std::vector<std::size_t> sides;
    if (const std::size_t counts = d_.child(primitive, "vcount"); counts != Document::kNone)
      sides = numbers<std::size_t>(d_.text(counts));
    const std::string& kind = d_.name(primitive);
    for (const std::size_t p : d_.children(primitive)) {
      if (d_.name(p) != "p") continue;
      const std::vector<std::size_t> all = numbers<std::size_t>(d_.text(p));
      std::vector<std::size_t> corners;
      for (std::size_t i = at; i < all.size(); i += stride) corners.push_back(all[i]);
      const auto fan = [&](std::size_t begin, std::size_t n) {
        for (std::size_t k = 2; k < n && begin + k < corners.size(); ++k)
          add(corners[begin], corners[begin + k - 1], corners[begin + k]);
      };
      if (kind == "triangles") {
        for (std::size_t i = 0; i + 2 < corners.size(); i += 3) fan(i, 3);
      } else if (kind == "polylist") {
        std::size_t begin = 0;
        for (const std::size_t n : sides) fan(begin, n), begin += n;
      } else if (kind == "tristrips") {
        for (std::size_t i = 2; i < corners.size(); ++i)
          i % 2 == 0 ? add(corners[i - 2], corners[i - 1], corners[i])
                     : add(corners[i - 1], corners[i - 2], corners[i]);
      } else {  // each a polygon, or a fan
        fan(0, corners.size());
      }
    }
    triangles_of_[material_of(d_.attribute(primitive, "material"), instance)] += (mesh_.face.size() - before) / 3;
  }

  /// Appends the positions of a <source>.
  void add_vertices(std::size_t source, const Transform& to_scene) {
    const std::size_t array = d_.child(source, "float_array");
    if (array == Document::kNone) return;
    std::size_t step = 3;
    if (const std::size_t accessor = d_.below(source, "accessor"); accessor != Document::kNone) {
      const auto told = numbers<std::size_t>(d_.attribute(accessor, "stride"));
      if (!told.empty()) step = std::max<std::size_t>(3, told[0]);
    }
    const std::vector<double> values = numbers<double>(d_.text(array));
    for (std::size_t i = 0; i + 2 < values.size(); i += step)
      for (std::size_t row = 0; row < 3; ++row) {
        const double* m = to_scene.data() + 4 * row;
        mesh_.vertex.push_back(
            static_cast<float>(m[0] * values[i] + m[1] * values[i + 1] + m[2] * values[i + 2] + m[3]));
      }
  }

  /// The material that a geometry's name for one stands for where it is placed.
  std::size_t material_of(const std::string& symbol, std::size_t instance) const {
    if (instance != Document::kNone)
      if (const std::size_t bound = d_.below(instance, "technique_common"); bound != Document::kNone)
        for (const std::size_t c : d_.children(bound))
          if (d_.name(c) == "instance_material" && d_.attribute(c, "symbol") == symbol)
            return d_.target(d_.attribute(c, "target"));
    return d_.target(symbol);
  }

  std::optional<std::array<float, 4>> colour_of(std::size_t material) const {
    if (material == Document::kNone) return std::nullopt;
    const std::size_t use = d_.child(material, "instance_effect");
    const std::size_t effect = use == Document::kNone ? use : d_.target(d_.attribute(use, "url"));
    const std::size_t diffuse = effect == Document::kNone ? effect : d_.below(effect, "diffuse");
    const std::size_t colour = diffuse == Document::kNone ? diffuse : d_.child(diffuse, "color");
    if (colour == Document::kNone) return std::nullopt;
    const std::vector<float> v = numbers<float>(d_.text(colour));
    if (v.size() < 3) return std::nullopt;
    std::array<float, 4> rgba{0, 0, 0, 1};
    for (std::size_t i = 0; i < 3; ++i) rgba[i] = std::clamp(v[i], 0.0f, 1.0f);
    return rgba;
  }

  Document d_;
  TriangleMesh mesh_;
  std::map<std::size_t, std::size_t> placed_;        ///< sources of the present geometry: where their first vertex is
  std::map<std::size_t, std::size_t> triangles_of_;  ///< by material
};

}  // namespace

TriangleMesh read_collada(std::string_view text) {
  return Reader(text).read();
}

}  // namespace cohort::sim
