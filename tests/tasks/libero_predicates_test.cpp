// LIBERO's predicates beside the truth values that LIBERO gave in 120 states.
#include <cctype>
#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/json_text.h"
#include "tasks/libero/simulation.h"
#include "tasks/libero_data.h"

namespace cohort::tasks::libero {
namespace {

TEST(LiberoPredicates, All120RecordedTruthValuesComeOut) {
  COHORT_NEED_LIBERO_DATA();
  int cases = 0, right = 0, held = 0;
  for (const auto& path : test::libero_folders()) {
    const SceneFolder folder = read_scene_folder(path);
    Simulation simulation(folder, {});
    const auto recorded = parse_json<nlohmann::json>(read_file(path / "predicates.json"));
    for (const auto& item : recorded.at("cases")) {
      PredicateWords words = item.at("predicate").get<PredicateWords>();
      words.front().front() = static_cast<char>(std::toupper(words.front().front()));  // bddl writes In, Turnon
      simulation.reset(0, item.at("state").get<std::vector<double>>());
      const bool truth = simulation.judge_now(0, simulation.predicates().add(words));
      const bool expected = item.at("truth").get<bool>();
      EXPECT_EQ(truth, expected) << path << " " << json_text(item.at("predicate")) << ": " << item.at("what");
      ++cases;
      right += truth == expected;
      held += expected;
    }
  }
  EXPECT_EQ(cases, 120);
  EXPECT_EQ(right, 120);
  EXPECT_GT(held, 20);
}

}  // namespace
}  // namespace cohort::tasks::libero
