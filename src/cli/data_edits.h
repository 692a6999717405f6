/// `cohort data merge|split|delete-episodes|rename|retask`: what makes other sets of sets.
#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cohort::cli {

/// What changes a set as a whole: the result is another one, the source stays as it is.
struct EditArguments {
  std::vector<std::string> paths;
  std::string out, format = "auto", on_corrupt = "error", task;
  std::vector<std::string> episodes, parts, changes;
};

/// The subcommands, with what each was told.
struct EditCommands {
  EditArguments merging, splitting, deleting, renaming, retasking;
  CLI::App *merge = nullptr, *split = nullptr, *remove = nullptr, *rename = nullptr, *retask = nullptr;
};

void add_edits(CLI::App& app, EditCommands& edits);

/// Runs the one that was asked for; false: none was.
bool run_edit(const EditCommands& edits);

}  // namespace cohort::cli
