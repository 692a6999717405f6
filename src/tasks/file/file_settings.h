/// What a task's file may be told by `task_settings.NAME=value`, and what that changes in it:
///
///   settings:
///     pushes: {default: true, summary: "the trunk is pushed now and then", when: {false: {events: {push: null}}}}
///     terrain: {default: flat, summary: "...", when: {rough: {scene: {...}}}}
///     distance: {default: 0.5, summary: "m, between ..."}              # formulas may name it
#pragma once
#include <string>
#include <variant>
#include <vector>

#include "core/config.h"

namespace cohort::tasks {

/// A switch, a text that is one of its choices, or a number.
struct FileSetting {
  std::string name, summary;
  std::variant<bool, double, std::string> value{};
  std::vector<std::string> choices{};  ///< of a text: the default, and what `when` names
};

/// The settings that a file's content declares, with their defaults. Throws Error, naming the file, where one is no
/// setting.
std::vector<FileSetting> settings_of_content(const std::string& file, const config::Json& content);

/// Binds them, so that a value of another kind is refused.
void describe_file_settings(config::Fields& fields, std::vector<FileSetting>& settings);

/// The content with the changes of these values made, one after the other in the file's order (RFC 7396 says what a
/// change does): one that an earlier setting makes to a later one's `when` counts. `settings` has names and values then.
config::Json with_settings(config::Json content, const std::vector<FileSetting>& settings);

}  // namespace cohort::tasks
