/// What to say about arguments that a subcommand does not know.
#pragma once
#include <string>

namespace CLI {
class App;
}

namespace cohort::cli {

/// "there is no argument `--n-env 3`; is `--n-envs` meant?": of a parse that ended with CLI::ExtrasError.
std::string unknown_arguments(const CLI::App& app);

}  // namespace cohort::cli
