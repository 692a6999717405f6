// Which settings of a checkpoint a run that goes on may change.
#include "rl/resumed_settings.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/json_text.h"

namespace cohort::rl {
namespace {

using config::Json;

const Json& saved() {
  static const Json json =
      parse_json<Json>(R"({"task": "walk", "seed": 4, "engine": "batched", "threads": 2, "task_settings": ["horizon=9"],
          "algorithm": {"gamma": 0.99}, "policy": {"activation": "elu", "init_noise_std": 1.0, "critic_only": []}})");
  return json;
}

TEST(ResumedSettings, WhatChangesWhatIsLearntIsTold) {
  Json now = saved();
  now["threads"] = 1, now["policy"]["init_noise_std"] = 0.1;  // where it computes, and what only a beginning needs
  EXPECT_TRUE(settings_changed_since(saved(), now, "c", "r").empty());
  now["engine"] = "mujoco", now["task_settings"] = Json::array(), now["algorithm"]["gamma"] = 0.9;
  now["algorithm"]["lam"] = 0.5;  // an older checkpoint does not say it
  const std::vector<ChangedSetting> changed = settings_changed_since(saved(), now, "c", "r");
  ASSERT_EQ(changed.size(), 3u);
  std::string text;
  for (const ChangedSetting& one : changed) text += one.path + " " + one.before + " " + one.now + ";";
  EXPECT_EQ(text, "engine batched mujoco;task_settings [horizon=9] [];algorithm.gamma 0.99 0.9;");
}

TEST(ResumedSettings, WhatHasToStayIsRefusedWithTheValuesOfTheCheckpoint) {
  Json now = saved();
  now["seed"] = 1, now["policy"]["activation"] = "tanh", now["policy"]["critic_only"] = {"a", "b"};
  try {
    settings_changed_since(saved(), now, "runs/a/checkpoint-3", "runs/a");
    ADD_FAILURE() << "went on";
  } catch (const Error& e) {
    const std::string message = e.what();
    for (const char* part : {"runs/a/checkpoint-3", "seed=4 and not 1", "policy.activation=elu and not tanh",
                             "resume=runs/a", "seed=4 policy.activation=elu 'policy.critic_only=[]'"})
      EXPECT_NE(message.find(part), std::string::npos) << part << "\n" << message;
  }
}

}  // namespace
}  // namespace cohort::rl
