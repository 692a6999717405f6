#include "cli/parse_arguments.h"

#include <CLI/CLI.hpp>

#include "cli/subcommand.h"
#include "core/config.h"
#include "core/format.h"

namespace cohort::cli {
namespace {

/// "there is no argument `--n-env 3`; is `--n-envs` meant?"
std::string unknown_arguments(const CLI::App& app) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  std::string all, near;
  for (const std::string& argument : app.remaining()) {
    all += (all.empty() ? "" : " ") + argument;
    if (near.empty() && argument.starts_with("--"))
      near = config::nearest(argument.substr(0, argument.find('=')), known);
  }
  return format("there is no argument `{}`{}", all, near.empty() ? "" : format("; is `{}` meant?", near));
}

}  // namespace

std::optional<int> parse_arguments(CLI::App& app, const std::vector<std::string>& words) {
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ExtrasError&) {
    throw UsageError(format("{}; see `{} --help`", unknown_arguments(app), app.get_name()));
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    throw UsageError(format("{}; see `{} --help`", e.what(), app.get_name()));
  }
  return {};
}

}  // namespace cohort::cli
