// `cohort serve`: the executable cohort-serve, which `cohort` becomes. A trained policy for robots and simulators, by
// openpi's protocol.
#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>

#include <torch/utils.h>

#include "cli/parse_arguments.h"
#include "cli/policy_kinds.h"
#include "cli/subcommand.h"
#include "cli/torch_program.h"
#include "core/config.h"
#include "core/error.h"
#include "core/log.h"
#include "core/near_file.h"
#include "launch/signals.h"
#include "policy/convention_policy.h"
#include "policy/libero_convention.h"
#include "policy/registry.h"
#include "rank/environment.h"
#include "serve/policy_server.h"
#include "serve/server_protocol.h"
#include "tasks/libero/catalogue.h"

namespace cohort::cli {
namespace fs = std::filesystem;
namespace {

struct ServeArguments {
  std::string run, libero, observations = "own";
  std::vector<std::string> devices{"cpu"};
  std::size_t max_message = 64;  // MiB
  int threads = 0;
  double control_frequency = 0, report_every = 60;
  bool raw_weights = false;
  policy::LoadSettings policy{.exact = false, .alone = true};
  serve::PolicyServerSettings server;
};

std::vector<std::unique_ptr<policy::Policy>> load(const ServeArguments& arguments) {
  COHORT_THROW_UNLESS(fs::exists(arguments.run), "{}: there is no such run or checkpoint{}", arguments.run,
                      near_file(arguments.run));
  register_policy_kinds();
  policy::LoadSettings settings = arguments.policy;
  settings.averaged = !arguments.raw_weights;
  std::vector<std::unique_ptr<policy::Policy>> replicas;
  for (const std::string& device : arguments.devices) {
    settings.device = device;
    replicas.push_back(policy::load(arguments.run, settings));
    if (arguments.observations == "own") continue;
    try {
      replicas.back() = policy::answering(arguments.observations, std::move(replicas.back()));
    } catch (const Error& e) {
      throw Error(format("{}: {}", arguments.run, e.what()));
    }
  }
  return replicas;
}

void say_what_is_served(const policy::Spec& spec, const ServeArguments& arguments, int port) {
  std::printf("%s\n", spec.summary.c_str());
  std::printf("sees:");
  for (const policy::Observation& o : spec.observations) {
    std::string shape;
    for (const std::int64_t n : o.shape)
      shape += format("{}{}", shape.empty() ? "" : ", ", n < 0 ? "any" : format("{}", n));
    std::printf(" %s (%s) %s;", o.name.c_str(), shape.c_str(), o.picture ? "uint8" : "float32");
  }
  std::printf("%s\n", spec.instructed ? " prompt, a text" : "");
  std::printf("gives: %lld actions of %lld numbers at a time\n", static_cast<long long>(spec.chunk),
              static_cast<long long>(spec.action_width));
  std::printf("rounding: %s\n", spec.exact
                                    ? "the last bits of cohort evaluate, whoever else asks; one robot costs sixteen"
                                    : "one robot costs one robot; --exact-bits: the last bits of cohort evaluate, "
                                      "slower");
  if (spec.frames > 1)
    std::printf("looks at %lld moments, %lld control steps apart: send those since the last answer stacked\n",
                static_cast<long long>(spec.frames), static_cast<long long>(spec.stride));
  std::printf("serving on %s://%s:%d\n", arguments.server.protocol == "vla-eval" ? "vla-eval" : "ws",
              arguments.server.network.host.c_str(), port);
  std::fflush(stdout);
}

void serve_until_told(const ServeArguments& arguments, std::vector<std::unique_ptr<policy::Policy>> replicas) {
  launch::SignalPipe signals({SIGINT, SIGTERM});
  const policy::Spec spec = replicas.front()->spec();
  serve::PolicyServer server(std::move(replicas), arguments.server);
  say_what_is_served(spec, arguments, server.port());
  while (true) {
    pollfd waiting{.fd = signals.fd(), .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(arguments.report_every * 1000));
    if (ready > 0 && !signals.take().empty()) break;
    if (ready != 0) continue;
    if (const std::string rates = server.rates(); !rates.empty()) log::info("{}", rates);
  }
  log::info("told to end");
  server.stop();
  if (const std::string rates = server.rates(); !rates.empty()) log::info("at last {}", rates);
}

int run_serve(const std::vector<std::string>& words) {
  CLI::App app(
      "Serves a trained policy to robots and simulators by openpi's policy-server protocol, or vla-eval's: WebSocket, "
      "msgpack, NumPy arrays.",
      "cohort serve");
  app.footer(
      "  cohort serve outputs/push/latest\n"
      "  cohort serve outputs/push/latest --host 0.0.0.0 --port 8000 --devices cuda:0\n\n"
      "Only this machine reaches it unless --host says otherwise: whoever reaches it may use it, nothing is "
      "encrypted.\n"
      "A client: openpi_client.websocket_client_policy.WebsocketClientPolicy(host, port).infer({name: array, ...}), "
      "or\n"
      "`cohort evaluate --policy ws://HOST:PORT`.\n\n" +
      policy::libero_conventions_help());
  ServeArguments arguments;
  serve::WebSocketServerSettings& network = arguments.server.network;
  app.add_option("RUN,--policy", arguments.run,
                 "a run, a folder of checkpoints, a checkpoint, a folder of LeRobot's, or an ONNX file")
      ->required();
  app.add_option("settings", arguments.policy.overrides,
                 "key=value: of settings that need no other weights, e.g. model.rdt.lang_embed=FILE");
  app.add_option("--host", network.host, "address to serve on; 0.0.0.0: all of this machine")->capture_default_str();
  app.add_option("--port", network.port, "0: one that is free")->capture_default_str()->check(CLI::Range(0, 65535));
  app.add_option("--devices,--device", arguments.devices,
                 "cpu, or cuda:0,cuda:1: connections go round them (default: cpu)")
      ->delimiter(',');
  app.add_option("--threads", arguments.threads, "cores to use; 0: all");
  app.add_option("--exec-horizon,--exec_horizon", arguments.policy.exec_horizon,
                 "actions of an answer of a diffusion policy or RDT; 0: as it was trained");
  app.add_option("--seed", arguments.policy.seed, "keys what the policy draws at random")->capture_default_str();
  app.add_option("--control-frequency,--control_frequency", arguments.control_frequency,
                 "Hz at which actions are executed; an RDT that learnt several must be told");
  app.add_option("--protocol,--clients", arguments.server.protocol,
                 "openpi (RoboArena's too); omnigibson: an action at a time, called action, and no answer to a reset; "
                 "vla-eval: its runner's, an action for each observation")
      ->capture_default_str()
      ->check(CLI::IsMember(serve::server_protocol_names()));
  app.add_option("--observations", arguments.observations,
                 "what clients send: own, the names that the policy learnt, or LIBERO's as openpi, lerobot or vla-eval "
                 "send them; see below")
      ->capture_default_str();
  app.add_option("--max-connections,--max_connections", network.max_connections, "at a time")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  app.add_option("--max-message,--max_message", arguments.max_message, "MiB of a message")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  app.add_option("--report-every,--report_every", arguments.report_every, "s between lines with rates")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 86400.0));
  app.add_flag("--exact-bits,--exact_bits", arguments.policy.exact,
               "answers with the last bits of `cohort evaluate`, at the cost of 16 robots for one; else they agree to "
               "rounding");
  app.add_flag("--raw-weights,--raw_weights", arguments.raw_weights, "not the moving average of the weights");
  app.add_option("--data-set,--data_set", arguments.policy.data_set,
                 "of data.paths: whose statistics actions are given back by, where each set has its own");
  app.add_option("--libero", arguments.libero, "folder of LIBERO's scenes, for policies of PPO that learnt in one");
  if (const auto code = parse_arguments(app, words)) return *code;
  const rank::Environment place = rank::read_environment(rank::process_variable, rank::StoreUse::kNone);
  if (place.world_size > 1)
    throw UsageError(
        format("serve works in one process, and {} were started (from {}): name the devices with --devices",
               place.world_size, rank::to_string(place.source)));
  for (const std::string& word : arguments.policy.overrides)
    if (!config::is_override(word))
      throw UsageError(format("'{}' is neither an argument nor a setting of the form key=value", word));
  if (arguments.threads > 0) at::set_num_threads(arguments.threads);
  if (!arguments.libero.empty()) tasks::libero::set_libero_folder(arguments.libero);
  network.max_message = arguments.max_message << 20;
  if (arguments.control_frequency > 0) arguments.server.control_period = 1 / arguments.control_frequency;
  serve_until_told(arguments, load(arguments));
  return 0;
}

const TorchProgram kServe("cohort-serve", "cohort serve", &run_serve);

}  // namespace
}  // namespace cohort::cli
