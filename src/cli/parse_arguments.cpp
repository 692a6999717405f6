#include "cli/parse_arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <utility>

#include "cli/subcommand.h"
#include "core/config.h"
#include "core/format.h"

namespace cohort::cli {
namespace {

/// The long names of the program's options and of its subcommands', without the dashes.
std::vector<std::string> long_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
  for (const CLI::App* inner : app.get_subcommands([](const CLI::App*) { return true; })) {
    const std::vector<std::string> of_inner = long_names(*inner);
    names.insert(names.end(), of_inner.begin(), of_inner.end());
  }
  return names;
}

/// "there is no argument `--n-env 3`; is `--n-envs` meant?"
std::string unknown_arguments(const CLI::App& app) {
  std::vector<std::string> known;
  for (const std::string& name : long_names(app)) known.push_back("--" + name);
  std::string all, near;
  for (const std::string& argument : app.remaining(/*recurse=*/true)) {
    all += (all.empty() ? "" : " ") + argument;
    std::string name = argument.substr(0, argument.find('='));
    if (!near.empty() || (!argument.starts_with("--") && name == argument)) continue;
    std::replace(name.begin(), name.end(), '_', '-');
    near = config::nearest(name.starts_with("--") ? name : "--" + name, known);
  }
  return format("there is no argument `{}`{}", all, near.empty() ? "" : format("; is `{}` meant?", near));
}

/// The words with every flag as the program knows it: `--n_envs` where there is `--n-envs`, and the other way round.
std::vector<std::string> with_known_names(const CLI::App& app, std::vector<std::string> words) {
  const std::vector<std::string> known = long_names(app);
  const auto is_known = [&](const std::string& name) {
    return std::find(known.begin(), known.end(), name) != known.end();
  };
  for (std::string& word : words) {
    if (word == "--") break;  // what follows are values
    if (!word.starts_with("--")) continue;
    const std::size_t end = std::min(word.find('='), word.size());
    const std::string name = word.substr(2, end - 2);
    if (is_known(name)) continue;
    for (const auto& [from, to] : {std::pair{'_', '-'}, std::pair{'-', '_'}}) {
      std::string other = name;
      std::replace(other.begin(), other.end(), from, to);
      if (!is_known(other)) continue;
      word = "--" + other + word.substr(end);
      break;
    }
  }
  return words;
}

}  // namespace

std::optional<int> parse_arguments(CLI::App& app, const std::vector<std::string>& words) {
  try {
    std::vector<std::string> named = with_known_names(app, words);
    std::reverse(named.begin(), named.end());  // as CLI11 takes them
    app.parse(std::move(named));
  } catch (const CLI::ExtrasError&) {
    throw UsageError(format("{}; see `{} --help`", unknown_arguments(app), app.get_name()));
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    throw UsageError(format("{}; see `{} --help`", e.what(), app.get_name()));
  }
  return {};
}

std::string not_empty(const std::string& file) {
  return file.empty() ? "the name of the file is empty" : "";
}

std::string page_name(const std::string& file) {
  return file.ends_with(".html") ? "" : format("--html {}: a page's name ends in .html", file);
}

void check_path(const std::string& word) {
  const bool is_path = word.find('/') != std::string::npos && word.find("://") == std::string::npos;
  if (is_path && !std::filesystem::exists(word)) throw UsageError(format("{}: there is no such file or folder", word));
}

}  // namespace cohort::cli
