#include "cli/unknown_arguments.h"

#include <CLI/CLI.hpp>

#include "core/config.h"
#include "core/format.h"

namespace cohort::cli {

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

}  // namespace cohort::cli
