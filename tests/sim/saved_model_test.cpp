// Saved models whose numbers are wrong: refused by the record that is, and not run.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/format.h"
#include "core/message_of.h"
#include "sim/host/compile.h"
#include "sim/host/model.h"
#include "sim/host/model_arrays.h"
#include "sim/models.h"

namespace cohort::sim {
namespace {

/// What loading a saved model says after `change`; "": nothing.
std::string refusal_after(const Model& good, const std::filesystem::path& path,
                          const std::function<void(Model&)>& change) {
  Model model = good;
  change(model);
  save_model(model, path);
  const std::string text = message_of([&] { load_model(path); });
  std::filesystem::remove(path);
  return text;
}

TEST(Batched, ASavedModelWithAnIndexThatPointsNowhereIsRefused) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / format("cohort_indices_{}.cohort", getpid());
  const EntityDeclaration e{"m", Mjcf{kModels + "walker.xml"}};
  const Model good = import_model(compile_scene(std::span(&e, 1), {}, {}).mjb);
  const auto refusal = [&](const std::function<void(Model&)>& change) { return refusal_after(good, path, change); };
  EXPECT_EQ(refusal([](Model&) {}), "");
  const std::pair<const char*, std::function<void(Model&)>> changes[] = {
      {"hinge or slide 0: dof is 1000", [](Model& m) { m.joint[0].dof = 1000; }},
      {"body 1: parent is 7", [](Model& m) { m.body[1].parent = 7; }},
      {"row_space is 8", [](Model& m) { m.sizes.row_space = 8; }},
      {"contact_capacity is 30", [](Model& m) { m.sizes.contact_capacity = 30; }},
      {"dof has", [](Model& m) { m.sizes.nv += 1; }},
      {"dof 0: below is 2", [](Model& m) { std::swap(m.below[0], m.below[1]); }},
      {"pair of geoms 0: geom2 is -1", [](Model& m) { m.pair[0].geom2 = -1; }},
      {"pair of geoms 0: first_dof", [](Model& m) { m.pair[0].first_dof = std::numeric_limits<int>::max(); }},
      {"pair of geoms 0: kernel", [](Model& m) { m.pair[0].kernel = 12; }},
      {"pair of geoms 1: low is", [](Model& m) { m.pair_spheres[1].low += 3; }},
      {"pair of geoms 0: square is", [](Model& m) { m.pair_spheres[0].square *= 0.5f; }},
      {"run of pairs 0: count", [](Model& m) { m.pair_run[0].count += 1000; }},
      {"run of pairs 1: first", [](Model& m) { m.pair_run[0].count -= 1; }},
      {"run of pairs 0: low", [](Model& m) { m.pair_run[0].low += 1; }},
      {"run of pairs 0: geom is", [](Model& m) { m.pair_run[0].geom = 500; }},
      {"run of pairs 0: pair_window is 1", [](Model& m) { m.pair_window[0] = 1; }},
      {"size 0: pairs of runs", [](Model& m) { m.pair_run.pop_back(), m.sizes.npairrun -= 1; }},
      {"actuator 0: ctrl is", [](Model& m) { m.actuator[0].ctrl = 99; }},
      {"row 0: dof", [](Model& m) { m.row_dof[0] = -5; }},
      {"keyframe 0: size of qpos", [](Model& m) { m.info.keyframes.resize(1), m.info.keyframes[0].qpos = {1}; }},
      {"link 2: parent", [](Model& m) { m.info.links[2].parent = 2; }}};
  for (const auto& [words, change] : changes) {
    const std::string text = refusal(change);
    EXPECT_NE(text.find(words), std::string::npos) << words << " in: " << text;
    EXPECT_NE(text.find(path.filename()), std::string::npos) << text;
  }
}

TEST(Batched, EveryArrayOfAModelIsListedOnceAndOfTheLengthThatItsSizesSay) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / format("cohort_arrays_{}.cohort", getpid());
  const EntityDeclaration e{"m", Mjcf{kModels + "walker.xml"}};
  const Model good = import_model(compile_scene(std::span(&e, 1), {}, {}).mjb);
  std::set<const void*> arrays, pointers;
  const ModelView view = good.view();
  int shortened = 0;
  for_each_array([&](const auto& array) {
    EXPECT_TRUE(arrays.insert(&(good.*array.items)).second) << array.name;
    if (array.pointer) {
      EXPECT_TRUE(pointers.insert(&(view.*array.pointer)).second) << array.name;
      EXPECT_EQ(view.*array.pointer, (good.*array.items).data()) << array.name;
    }
    if (!array.count || (good.*array.items).empty()) return;
    ++shortened;
    const std::string text = refusal_after(good, path, [&](Model& m) { (m.*array.items).pop_back(); });
    EXPECT_NE(text.find(std::string(array.name) + " has"), std::string::npos) << array.name << ": " << text;
  });
  EXPECT_GT(shortened, 20);
  // Model and ModelView end with their arrays and nothing else.
  const auto bytes_from = [](const auto& whole, const auto& first) {
    return static_cast<std::size_t>(reinterpret_cast<const char*>(&whole + 1) - reinterpret_cast<const char*>(&first));
  };
  EXPECT_EQ(arrays.size(), bytes_from(good, good.body) / sizeof good.body);
  EXPECT_EQ(pointers.size(), bytes_from(view, view.body) / sizeof view.body);
}

}  // namespace
}  // namespace cohort::sim
