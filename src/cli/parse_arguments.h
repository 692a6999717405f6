/// A subcommand's arguments, and what to say when they are wrong.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cohort::cli {

/// Parses `words` by `app`, whose name is the command as it is typed ("cohort report"). The exit code when help was asked for and
/// printed, else nothing. UsageError for anything else: with the nearest flag for one that there is not, and where the help is.
///
///     if (const auto code = parse_arguments(app, words)) return *code;
std::optional<int> parse_arguments(CLI::App& app, const std::vector<std::string>& words);

/// Checks of an option's value, for CLI11: what is wrong with it, or "".
std::string not_empty(const std::string& file);
/// Of --html.
std::string page_name(const std::string& file);

/// Throws UsageError for a word that is written as a path, with a slash, where nothing is.
void check_path(const std::string& word);

}  // namespace cohort::cli
