// What a run that goes on says about settings that are others than its checkpoint's.
#include "run/changed_settings.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/json_text.h"
#include "core/log.h"
#include "support/process.h"

namespace cohort::run {
namespace {

using config::Json;

Json saved(const char* precision) {
  Json json = parse_json<Json>(R"({"name": "a", "threads": 2, "data": {"paths": ["x"]}, "loader": {"workers": 1},
      "train": {"weight_decay": 0.1, "scaler": {"init_scale": 4}}, "model": {"initial_weights": ""}})");
  json["train"]["precision"] = precision;
  return json;
}

std::string paths(const std::vector<ChangedSetting>& changed) {
  std::string text;
  for (const ChangedSetting& one : changed) text += one.path + " " + one.before + " " + one.now + ";";
  return text;
}

/// What is said to a file of the log.
std::string said(const Json& before, const Json& now, const std::string& run) {
  const testing::TemporaryFolder folder;
  const std::string file = (folder.path() / "log").string();
  log::add_file(file);
  say_what_only_a_beginning_reads(before, now, "out/a/checkpoint-2", run);
  log::remove_file(file);
  return read_file(file);
}

TEST(ChangedSettings, WhatIsTakenAndWhatOnlyABeginningReadsAreToldApart) {
  constexpr std::string_view kFree[] = {"loader."};
  for (const char* precision : {"fp16", "fp32"}) {
    const Json before = saved(precision);
    Json now = before;
    now["name"] = "b", now["threads"] = 1, now["loader"]["workers"] = 3, now["data"]["paths"] = {"y", "z"};
    now["model"]["initial_weights"] = "w", now["train"]["scaler"]["init_scale"] = 8, now["train"]["new"] = 1;
    const bool goes_on = std::string(precision) == "fp16";
    EXPECT_EQ(paths(changed_settings(before, now, kFree)),
              goes_on ? "data.paths [x] [y,z];" : "data.paths [x] [y,z];train.scaler.init_scale 4 8;");
    const std::string own = said(before, now, "out/a");
    EXPECT_NE(own.find("name=b does nothing here: the run goes on in its folder, out/a"), std::string::npos) << own;
    EXPECT_NE(own.find("model.initial_weights=w does nothing here: what it is for comes from the checkpoint, "
                       "out/a/checkpoint-2"),
              std::string::npos)
        << own;
    EXPECT_EQ(own.find("train.scaler.init_scale=8 does nothing") != std::string::npos, goes_on) << own;
    // A new run that begins with another's checkpoint has a folder of its own.
    EXPECT_EQ(said(before, now, "").find("name=b"), std::string::npos);
    EXPECT_EQ(said(before, before, "out/a"), "");
  }
}

TEST(ChangedSettings, WhatWasUnsetOrEmptyIsSaidInWords) {
  const auto changed = [](const Json& before, const Json& now) {
    const testing::TemporaryFolder folder;
    const std::string file = (folder.path() / "log").string();
    log::add_file(file);
    say_changed_settings(changed_settings({{"train", {{"clip", before}}}}, {{"train", {{"clip", now}}}}, {}));
    log::remove_file(file);
    return read_file(file);
  };
  for (const auto& [before, now, line] : std::vector<std::tuple<Json, Json, std::string>>{
           {nullptr, 0.5, "train.clip=0.5 from here on, and not unset as before"},
           {0.5, nullptr, "train.clip=null from here on, and not 0.5 as before"},
           {"", "a", "train.clip=a from here on, and not \"\" as before"}})
    EXPECT_NE(changed(before, now).find(line), std::string::npos) << changed(before, now);
}

}  // namespace
}  // namespace cohort::run
