/// `cohort data push-t` and `push-t-baselines`: demonstrations of Push-T, and what policies without learning reach.
#pragma once
#include <functional>

namespace CLI {
class App;
}

namespace cohort::cli {

/// Adds the subcommands to `cohort data`. The returned function, called after parsing, runs the one that was asked for;
/// false when it was neither.
std::function<bool()> add_push_t(CLI::App& app);

}  // namespace cohort::cli
