#include "tasks/file/file_settings.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/format.h"
#include "core/json_section.h"

namespace cohort::tasks {

using config::Json;
using config::JsonSection;

namespace {

std::string text_of(const std::variant<bool, double, std::string>& value) {
  if (const bool* const flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  const std::string* const text = std::get_if<std::string>(&value);
  return text == nullptr ? format("{:g}", std::get<double>(value)) : *text;
}

}  // namespace

std::vector<FileSetting> settings_of_content(const std::string& file, const Json& content) {
  std::vector<FileSetting> settings;
  if (!content.contains("settings")) return settings;
  std::vector<std::string> wrong;
  {
    JsonSection all(content.at("settings"), "settings", wrong);
    all.each([&](const std::string& name, const Json& value) {
      JsonSection s(value, "settings." + name, wrong);
      if (!value.is_object()) return;
      FileSetting setting{.name = name};
      s.take("summary", setting.summary);
      const Json& standard = s.get("default");
      std::vector<std::string> known;
      s.in("when", [&](JsonSection& when) {
        when.each([&](const std::string& at, const Json& change) {
          known.push_back(at);
          if (!change.is_object()) when.refuse(when.path() + "." + at, change, "is no change of the file: an object");
        });
      });
      if (standard.is_boolean()) {
        setting.value = standard.get<bool>();
        for (const std::string& at : known)
          if (at != "true" && at != "false") s.refuse(s.path() + ".when", at, "is none of true and false");
      } else if (standard.is_string()) {
        setting.value = standard.get<std::string>();
        setting.choices = known;
        if (std::ranges::find(known, standard.get<std::string>()) == known.end())
          setting.choices.insert(setting.choices.begin(), standard.get<std::string>());
      } else if (standard.is_number()) {
        setting.value = standard.get<double>();
        if (!known.empty())
          s.refuse(s.path() + ".when", known.front(), "goes with switches and texts, not with numbers");
      } else {
        s.refuse(s.path() + ".default", standard, "is needed: true, false, a text or a number");
      }
      settings.push_back(std::move(setting));
    });
  }
  COHORT_THROW_UNLESS(wrong.empty(), "{}: {}", file, join(wrong, "; "));
  return settings;
}

void describe_file_settings(config::Fields& fields, std::vector<FileSetting>& settings) {
  for (FileSetting& setting : settings) {
    COHORT_THROW_UNLESS(!fields.has(setting.name), "settings.{}: every task has a setting of that name; choose another",
                        setting.name);
    if (bool* const flag = std::get_if<bool>(&setting.value))
      fields.add(setting.name, *flag, setting.summary);
    else if (double* const number = std::get_if<double>(&setting.value))
      fields.add(setting.name, *number, setting.summary);
    else
      fields.add_choice(setting.name, std::get<std::string>(setting.value), setting.choices, setting.summary);
  }
}

Json with_settings(Json content, const std::vector<FileSetting>& settings) {
  Json values = Json::object();
  for (const FileSetting& setting : settings) {
    std::visit([&](const auto& value) { values[setting.name] = value; }, setting.value);
    const Json& all = content["settings"];
    if (!all.contains(setting.name) || !all[setting.name].contains("when")) continue;
    const Json& when = all[setting.name]["when"];
    if (const auto change = when.find(text_of(setting.value)); change != when.end()) {
      const Json patch = *change;
      content.merge_patch(patch);
    }
  }
  if (!values.empty()) content["settings"] = std::move(values);
  return content;
}

}  // namespace cohort::tasks
