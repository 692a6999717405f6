// What messages tell a user to set can be set: every setting that a text in the sources names is compared with the
// list.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include <gtest/gtest.h>

#include "core/config.h"
#include "core/files.h"
#include "train/jobs/job.h"
#include "train/run.h"

namespace cohort::train {
namespace {
namespace fs = std::filesystem;

/// The settings of one job.
struct JobFields {
  explicit JobFields(std::unique_ptr<Job> of) : job(std::move(of)) {
    describe(fields, run);
    job->describe(fields, run);
  }
  std::unique_ptr<Job> job;
  RunSettings run;
  config::Fields fields;
};

struct Known {
  std::vector<std::unique_ptr<JobFields>> jobs;
  std::set<std::string> settings;  ///< "train.lr"
  std::set<std::string> sections;  ///< "train", "train.ema"
  std::set<std::string> endings;   ///< "lr", "ema.enabled", "enabled": not enough to set something by

  /// Also by another name of it.
  bool is_setting(const std::string& name) const {
    return std::any_of(jobs.begin(), jobs.end(), [&](const auto& job) { return job->fields.has(name); });
  }
};

void collect(const config::Json& json, const std::string& path, Known& known) {
  for (const auto& [name, value] : json.items()) {
    const std::string inner = path.empty() ? name : path + "." + name;
    if (!value.is_object()) {
      known.settings.insert(inner);
    } else {
      known.sections.insert(inner);
      collect(value, inner, known);
    }
  }
}

Known all_settings() {
  Known known;
  for (auto& job : all_jobs()) {
    known.jobs.push_back(std::make_unique<JobFields>(std::move(job)));
    collect(known.jobs.back()->fields.to_json(), "", known);
  }
  for (const std::string& setting : known.settings)
    for (std::size_t dot = setting.find('.'); dot != std::string::npos; dot = setting.find('.', dot + 1))
      known.endings.insert(setting.substr(dot + 1));
  return known;
}

/// The texts of a source; pieces that stand behind each other are one text. Comments are left out.
std::vector<std::string> texts_of(const std::string& source) {
  std::vector<std::string> texts;
  bool joins = false;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source.compare(i, 2, "//") == 0) {
      i = std::min(source.find('\n', i), source.size());
    } else if (source[i] == '\'' && i + 2 < source.size() && source[i + 1] == '"') {
      i += 2;  // the character '"'
    } else if (source[i] == '"') {
      if (!joins) texts.emplace_back();
      for (++i; i < source.size() && source[i] != '"'; ++i) {
        if (source[i] == '\\') ++i;
        texts.back() += source[i];
      }
      joins = true;
    } else if (!std::isspace(static_cast<unsigned char>(source[i]))) {
      joins = false;
    }
  }
  return texts;
}

/// robomimic's keys, which its own configurations are written with.
bool is_robomimics(const std::string& name) {
  return name == "train.num_epochs" || name == "train.action_config";
}

/// A word of Python, or of LeRobot's weights.
bool is_pythons(const std::string& name) {
  return name == "model.state_dict" || name == "model.backbone";
}

bool is_file(const std::string& name) {
  static const std::set<std::string> kEndings = {"safetensors", "json", "jsonl", "csv", "txt", "log", "html", "pkl"};
  return kEndings.contains(name.substr(name.rfind('.') + 1));
}

/// What is wrong with the settings that a text names; `own`: the module has these settings, so that "lr = 0 must be
/// ..." is about train.lr.
std::string wrong_names(const std::string& text, const Known& known, bool own) {
  static const std::regex kDotted(R"((^|[^\w./{-])([a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+))");
  static const std::regex kAssigned(R"((^|[^\w./{-])([a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*)(=| = )(.?))");
  std::string wrong;
  for (std::sregex_iterator it(text.begin(), text.end(), kDotted), end; it != end; ++it) {
    const std::string name = (*it)[2];
    const bool of_ours = known.sections.contains(name.substr(0, name.find('.')));
    if (of_ours && !known.is_setting(name) && !known.sections.contains(name) && !is_file(name) &&
        !is_robomimics(name) && !is_pythons(name))
      wrong += " " + name;
  }
  for (std::sregex_iterator it(text.begin(), text.end(), kAssigned), end; it != end; ++it) {
    const std::string name = (*it)[2];
    if (own && known.endings.contains(name) && !known.is_setting(name)) wrong += " " + name + "=";
  }
  return wrong;
}

TEST(NamedSettings, EveryOneThatAMessageNamesCanBeSet) {
  const Known known = all_settings();
  ASSERT_TRUE(known.settings.contains("parallel.ddp.find_unused_parameters"));
  int files = 0;
  for (const char* module : {"train", "run", "parallel", "weights", "policies", "dist", "data", "models", "report"}) {
    const bool own = module == std::string("train") || module == std::string("parallel");
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(COHORT_SOURCE_DIR) / "src" / module)) {
      const std::string name = entry.path().filename().string();
      if (entry.path().extension() != ".cpp" || name.starts_with("robomimic") ||
          (name == "config.cpp" && entry.path().parent_path().filename() == "rdt"))
        continue;  // those speak the words of robomimic and of RDT
      ++files;
      for (const std::string& text : texts_of(read_file(entry.path())))
        EXPECT_EQ(wrong_names(text, known, own), "") << entry.path().string() << ": \"" << text << "\"";
    }
  }
  EXPECT_GT(files, 100);
}

TEST(NamedSettings, WrongNamesAreFound) {
  const Known known = all_settings();
  EXPECT_EQ(wrong_names("set ddp.find_unused_parameters=true", known, true), " ddp.find_unused_parameters=");
  EXPECT_EQ(wrong_names("lower train.learning_rate", known, false), " train.learning_rate");
  EXPECT_EQ(wrong_names("lr = {} must not be negative", known, true), " lr=");
  EXPECT_EQ(wrong_names("set parallel.ddp.find_unused_parameters=true, or train.lr; train.ema.* is none", known, true),
            "");
  EXPECT_EQ(texts_of("f(\"a \"\n  \"b\", 'x', \"c\\\"d\") // \"e\"\n"), (std::vector<std::string>{"a b", "c\"d"}));
}

}  // namespace
}  // namespace cohort::train
