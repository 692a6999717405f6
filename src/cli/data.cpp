// `cohort data`: making data sets.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/subcommand.h"
#include "tasks/two_link_arm.h"

namespace cohort::cli {
namespace {

int run_data(const std::vector<std::string>& arguments) {
  CLI::App app("Makes data sets.", "cohort data");
  app.require_subcommand(1);
  tasks::TwoLinkArmSettings settings;
  std::string out = "outputs/two_link_arm.csv";
  CLI::App* arm = app.add_subcommand(
      "two-link-arm", "a CSV table from a simulated two-link arm: 10 measured columns, 2 torques to find");
  arm->add_option("--rows", settings.rows, "samples")->capture_default_str();
  arm->add_option("--seed", settings.seed, "keys torques and noise")->capture_default_str();
  arm->add_option("--sample-period", settings.sample_period, "s between rows")->capture_default_str();
  arm->add_option("--torque-range", settings.torque_range, "N m at the shoulder")->capture_default_str();
  arm->add_option("--noise", settings.noise, "relative sensor noise")->capture_default_str();
  arm->add_option("--out", out, "the file")->capture_default_str();
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    throw UsageError(e.what());
  }
  tasks::write_two_link_arm_csv(out, settings);
  std::printf("%s: %lld rows of a simulated two-link arm\n", out.c_str(), static_cast<long long>(settings.rows));
  return 0;
}

const Register kData({"data", "make data sets", run_data, {}});

}  // namespace
}  // namespace cohort::cli
