#include "cli/launch_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>
#include <sstream>

#include "cli/accelerate_file.h"
#include "cli/launch_nodes.h"
#include "cli/subcommand.h"
#include "core/config.h"

namespace cohort::cli {
namespace {

constexpr const char* kHelp =
    "Starts N ranks of one job on this node, with torchrun's environment, and stops them all when one fails.\n"
    "Several nodes: one `cohort launch` on each, told apart by --node-rank.\n\n"
    "  cohort launch --nproc_per_node=2 train informer data.path=file.csv   ranks of cohort itself\n"
    "  cohort launch --nproc_per_node=2 script.py --lr 0.1                  ranks of a Python script, as torchrun "
    "does\n"
    "  cohort launch --nproc_per_node=2 -- ./program arguments              ranks of any program\n"
    "  cohort launch --multi_gpu --num_processes 2 --mixed_precision bf16 train policy load_from=c.json    with\n"
    "                                                                       accelerate's flags\n"
    "  cohort launch --nnodes=2 --node-rank=R --master-addr=NODE0 --master-port=29500 --nproc_per_node=4 train ...\n"
    "  cohort launch --nnodes=1:4 --rdzv-endpoint=NODE0:29400 --rdzv-id=JOB --job-secret-file=F --nproc_per_node=4 "
    "train "
    "...\n\n"
    "A rank sees all GPUs of CUDA_VISIBLE_DEVICES and takes the one that LOCAL_RANK names, as torchrun's do; with\n"
    "--virtual-local-rank each sees only its own. Flags may be written with dashes or underscores; torchrun's are also "
    "read from\n"
    "PET_<FLAG>. Exit code: that of the rank that failed first (128 + signal), 128 + the signal that stopped the "
    "launcher.\n\n"
    "What a rank is given, inside the mask of this process, where there are GPUs:\n"
    "  variable                              value                                    with --virtual-local-rank\n"
    "  LOCAL_RANK                            0, 1, ...                                0\n"
    "  CUDA_VISIBLE_DEVICES                  unchanged, or what --gpu_ids names       the rank's own GPU\n"
    "  TI_VISIBLE_DEVICE, QD_VISIBLE_DEVICE  the GPU's number as nvidia-smi counts    the same\n"
    "  EGL_DEVICE_ID                         the GPU's number as EGL counts           the same\n"
    "  MUJOCO_EGL_DEVICE_ID                  the rank's entry of the mask, else EGL's the same";

/// A flag of another launcher whose meaning needs what this version does not have. Some values ask for nothing special.
struct Limited {
  const char* name;
  bool takes_value;
  bool pet;
  std::vector<std::string> accepted;  ///< "*" accepts every value
  const char* otherwise;              ///< what is said when it is refused, or, for "*", that it has no effect
};

const std::vector<Limited>& limited_flags() {
  static const std::vector<Limited> all = {
      {"same-network", false, false, {"*"}, "has no effect: machines meet at --main_process_ip"},
      {"monitor-interval", true, true, {"*"}, "has no effect: a rank's end is noticed at once"},
      {"start-method", true, true, {"*"}, "has no effect: every rank is a program of its own"},
      {"rdzv-backend",
       true,
       true,
       {"static", "c10d"},
       "nodes meet at an address that all of them are given: leave it out, or say static (with one node also c10d)"},
      {"event-log-handler", true, true, {"null"}, "handlers are Python plug-ins of torchrun; leave it out"},
      {"logs-specs", true, false, {}, "specs are Python plug-ins of torchrun; use --log-dir, --redirects and --tee"},
      {"run-path", false, true, {}, "there is no Python interpreter in this launcher; give the script as it is"},
      {"local-addr", true, true, {"127.0.0.1", "localhost"}, "the store is at --master-addr; leave it out"},
      {"numa-binding", true, false, {}, "ranks are not bound to processors; put `numactl` in front of the program"},
      {"duplicate-stdout-filters",
       true,
       true,
       {""},
       "output is not filtered into files of its own; use --tee and grep"},
      {"duplicate-stderr-filters",
       true,
       true,
       {""},
       "output is not filtered into files of its own; use --tee and grep"},
      {"dynamo-backend", true, false, {"no", "NO"}, "there is no TorchDynamo here; leave it out or say no"},
      {"dynamo-mode", true, false, {"default"}, "there is no TorchDynamo here; leave it out"},
      {"dynamo-use-fullgraph", false, false, {}, "there is no TorchDynamo here; leave it out"},
      {"dynamo-use-dynamic", false, false, {}, "there is no TorchDynamo here; leave it out"},
      {"use-deepspeed", false, false, {}, "DeepSpeed is not supported: data parallelism is"},
      {"use-fsdp", false, false, {}, "FSDP is not supported: data parallelism is"},
      {"use-megatron-lm", false, false, {}, "Megatron-LM is not supported: data parallelism is"},
      {"use-xpu", false, false, {}, "Intel GPUs are not supported"},
      {"ipex", false, false, {}, "Intel's extension for PyTorch is not supported"},
      {"tpu", false, false, {}, "TPUs are not supported"},
      {"enable-cpu-affinity",
       false,
       false,
       {},
       "ranks are not bound to processors; put `numactl` in front of the program"},
      {"main-training-function", true, false, {}, "it is for TPUs, which are not supported"},
      {"mpirun-hostfile",
       true,
       false,
       {},
       "jobs are not started through mpirun; under mpirun or srun start `cohort train` itself"},
      {"debug", false, false, {}, "accelerate's debug mode has no counterpart; leave it out"}};
  return all;
}

std::string underscored(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// "--nproc-per-node,--nproc_per_node"
std::string both_forms(const std::string& name, const std::string& letter = "") {
  const std::string dashed = "--" + name;
  const std::string second = "--" + underscored(name);
  return (letter.empty() ? "" : "-" + letter + ",") + dashed + (second == dashed ? "" : "," + second);
}

std::string pet_variable(const std::string& name) {
  std::string text = "PET_" + underscored(name);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

/// Splits the arguments where the program begins, using what the flags say about taking values.
void split_at_program(const CLI::App& app, const std::vector<std::string>& arguments, std::vector<std::string>& flags,
                      LaunchRequest& request) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--") {
      request.behind_dashes = true;
      request.program.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1, arguments.end());
      return;
    }
    if (word.size() < 2 || word[0] != '-') {
      request.program.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i), arguments.end());
      return;
    }
    const std::string name = word[1] == '-' ? word.substr(0, word.find('=')) : word.substr(0, 2);
    const CLI::Option* option = name == "-h" || name == "--help" ? app.get_help_ptr() : app.get_option_no_throw(name);
    if (!option) {
      std::vector<std::string> names;
      for (const CLI::Option* known : app.get_options())
        for (const std::string& text : known->get_lnames()) names.push_back("--" + text);
      const std::string near = config::nearest(name, names);
      throw UsageError(format("launch: there is no flag '{}'{}; flags of the program stand behind its name", name,
                              near.empty() ? "" : format(", did you mean '{}'?", near)));
    }
    flags.push_back(word);
    const bool takes_value = option->get_expected_min() > 0;
    const bool has_value = word[1] == '-' ? word.find('=') != std::string::npos : word.size() > 2;
    if (takes_value && !has_value) {
      if (i + 1 == arguments.size()) throw UsageError(format("launch: {} needs a value", name));
      flags.push_back(arguments[++i]);
    }
  }
}

}  // namespace

namespace {

/// "num_processes" of "--num-processes=2"; empty for what is no flag.
std::string name_of_flag(const std::string& word) {
  if (!word.starts_with("--")) return "";
  return underscored(word.substr(2, word.find('=') == std::string::npos ? std::string::npos : word.find('=') - 2));
}

std::set<std::string> names_of_flags(const std::vector<std::string>& words) {
  std::set<std::string> names;
  for (const std::string& word : words)
    if (const std::string name = name_of_flag(word); !name.empty()) names.insert(name);
  return names;
}

/// The last value of a flag; empty: it is not there.
std::string value_of_flag(const std::vector<std::string>& words, const std::string& name) {
  std::string value;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (name_of_flag(words[i]) != name) continue;
    const std::size_t equals = words[i].find('=');
    value = equals != std::string::npos ? words[i].substr(equals + 1) : i + 1 < words.size() ? words[i + 1] : "";
  }
  return value;
}

}  // namespace

LaunchRequest parse_launch(const std::vector<std::string>& arguments) {
  LaunchRequest request;
  launch::LaunchSettings& settings = request.settings;
  CLI::App app(kHelp, "cohort launch [flags] SUBCOMMAND|SCRIPT.py|-- PROGRAM [arguments]");
  std::string recover = "memory", nproc, redirects, tee, filter, signals, mixed_precision, gpu_ids;
  NodeFlags nodes;
  int main_process_port = -1, master_port = -1;
  settings.master_addr.clear();
  bool use_env = false, virtual_local_rank = false, multi_gpu = false, cpu = false;

  const char* group = "torchrun's flags";
  const auto option = [&](const std::string& name, auto& value, const std::string& doc, bool pet,
                          const std::string& letter = "") {
    CLI::Option* added = app.add_option(both_forms(name, letter), value, doc)->group(group);
    if (pet) added->envname(pet_variable(name));
    return added;
  };
  const auto flag = [&](const std::string& name, bool& value, const std::string& doc, bool pet,
                        const std::string& letter = "") {
    CLI::Option* added = app.add_flag(both_forms(name, letter), value, doc)->group(group);
    if (pet) added->envname(pet_variable(name));
    return added;
  };
  option("nproc-per-node", nproc,
         "ranks: a number, gpu (one for each), cpu (one for each core), auto (gpu, else cpu); 1", true);
  option("nnodes", nodes.nnodes, "nodes that take part, each with a launcher: N, or MIN:MAX that come and go; 1", true);
  option("node-rank", nodes.node_rank, "which of them this is; 0", true)->check(CLI::NonNegativeNumber);
  option("master-addr", settings.master_addr, "address of the store: with several nodes one of node 0; else 127.0.0.1",
         true);
  const CLI::Option* master_port_flag =
      option("master-port", master_port, "its port; with one node a free one is chosen and kept, else 29500", true);
  option(
      "rdzv-endpoint", nodes.rdzv_endpoint,
      "host:port[,host:port]: where nodes that come and go meet, and where else when that machine is lost; or another "
      "way to name the store",
      true);
  option(
      "rdzv-conf", nodes.rdzv_conf,
      "state_file=PATH on a file system that all nodes share: says who hosts their meeting, also when that machine is "
      "lost",
      true);
  option(
      "max-restarts", settings.max_restarts,
      "how often a job goes on after a rank has failed, from memory or started again; 0. With several numbered nodes "
      "it needs a --job-secret-file, and the port after --master-port for the agents",
      true);
  option("rdzv-id", settings.run_id, "TORCHELASTIC_RUN_ID", true);
  flag("standalone", nodes.standalone, "one node: what this launcher does unless --nnodes says otherwise", true);
  option("role", settings.role, "ROLE_NAME of the ranks", true);
  flag("module", request.module, "run the script as `python3 -m` does", true, "m");
  flag("no-python", request.no_python, "the program is no Python script, whatever its name", true);
  option("log-dir", settings.log_dir, "store output as attempt_0/rank_<r>/{stdout,stderr}.log, and error.json", true);
  option("redirects", redirects,
         "streams that only go to files: 0 none, 1 stdout, 2 stderr, 3 both, or by rank 0:3,1:1", true, "r");
  option("tee", tee, "streams that go to files and the console, likewise; with --log-dir alone: 3", true, "t");
  option("local-ranks-filter", filter, "ranks whose output is shown: 0,1", true);
  option("signals-to-handle", signals, "signals passed on to the ranks; SIGTERM,SIGINT,SIGHUP,SIGQUIT,SIGUSR1,SIGUSR2",
         true);
  flag("virtual-local-rank", virtual_local_rank, "each rank sees only its own GPU, as cuda:0; LOCAL_RANK is 0", true);

  group = "torch.distributed.launch's flags";
  flag("use-env", use_env, "pass the local rank by LOCAL_RANK only: what this launcher does unless told otherwise",
       false);
  option("pass-local-rank", request.pass_local_rank,
         "also pass --<form>=R to the program: local-rank (PyTorch 2) or local_rank (before), as without --use-env",
         false)
      ->check(CLI::IsMember({"local-rank", "local_rank"}));

  group = "accelerate's flags";
  std::string config_file;
  option("config-file", config_file, "what `accelerate config` wrote; what is typed outranks it", false);
  option("num-processes", nodes.num_processes, "ranks, on all machines together", false);
  option("num-machines", nodes.num_machines, "as --nnodes", false)->check(CLI::PositiveNumber);
  option("machine-rank", nodes.machine_rank, "as --node-rank", false)->check(CLI::NonNegativeNumber);
  flag("multi-gpu", multi_gpu, "ranks on several GPUs; one for each unless --num_processes says otherwise", false);
  flag("cpu", cpu, "ranks on the CPU", false);
  option("gpu-ids", gpu_ids, "GPUs to use, among those this process may use: 0,2 or all", false);
  const CLI::Option* mixed_precision_flag =
      option("mixed-precision", mixed_precision,
             "no, fp16 or bf16: ACCELERATE_MIXED_PRECISION and COHORT_MIXED_PRECISION", false);
  option("main-process-ip", nodes.main_process_ip, "as --master-addr", false);
  const CLI::Option* main_process_port_flag =
      option("main-process-port", main_process_port, "as --master-port; 0 chooses a free one", false);
  option("num-cpu-threads-per-process", settings.threads_per_rank, "OMP_NUM_THREADS; unless set, cores / ranks", false)
      ->check(CLI::PositiveNumber);
  flag("quiet", settings.quiet, "do not say what was chosen", false, "q");

  group = "own flags";
  option("recover", recover,
         "after a rank has died: memory (the other ranks keep what they have and a new one joins them, where the "
         "program can; else as checkpoint), or checkpoint (all start again); memory",
         false)
      ->check(CLI::IsMember({"memory", "checkpoint"}));
  option("job-secret-file", settings.job_secret_file,
         "a file with the secret of a job whose agents meet; else the variable COHORT_JOB_SECRET", false);
  option("last-call", settings.last_call, "seconds that such a job waits for further nodes once MIN are there; 5",
         false)
      ->check(CLI::NonNegativeNumber);
  option(
      "hang-timeout", settings.hang_timeout,
      "seconds of silence in training steps (and 5 steps' time) after which a rank hangs and is killed; 0: never; 10",
      false)
      ->check(CLI::NonNegativeNumber);
  option("hang-timeout-elsewhere", settings.hang_timeout_elsewhere,
         "likewise in validation, in a checkpoint, or waiting for data; 600", false)
      ->check(CLI::PositiveNumber);
  option("grace-period", settings.grace_period, "seconds that ranks have to end before they are killed; 30", false);

  std::vector<std::string> limited_values(limited_flags().size());
  std::vector<CLI::Option*> limited;
  for (std::size_t i = 0; i < limited_flags().size(); ++i) {
    const Limited& l = limited_flags()[i];
    limited.push_back(l.takes_value ? app.add_option(both_forms(l.name), limited_values[i])
                                    : app.add_flag(both_forms(l.name)));
    limited.back()->group("");  // not in --help
    if (l.pet) limited.back()->envname(pet_variable(l.name));
  }

  split_at_program(app, arguments, request.flags, request);
  std::vector<std::string> flags = request.flags;
  if (const std::string file = value_of_flag(flags, "config_file"); !file.empty()) {
    AccelerateFile read = read_accelerate_file(file, names_of_flags(flags));
    flags.insert(flags.end(), read.flags.begin(), read.flags.end());
    request.notes.insert(request.notes.end(), read.notes.begin(), read.notes.end());
  }
  try {
    app.parse(std::vector<std::string>(flags.rbegin(), flags.rend()));
  } catch (const CLI::CallForHelp&) {
    request.help = true;
    request.help_text = app.help();
    return request;
  } catch (const CLI::ParseError& e) {
    throw UsageError(format("launch: {}; `cohort launch --help` lists the flags", e.what()));
  }

  for (std::size_t i = 0; i < limited.size(); ++i) {
    const Limited& l = limited_flags()[i];
    const bool by_value = l.takes_value ? limited[i]->count() > 0 : limited[i]->count() > 0 && limited[i]->as<bool>();
    if (!by_value) continue;
    if (l.accepted == std::vector<std::string>{"*"}) {
      request.notes.push_back(format("--{} {}", l.name, l.otherwise));
      continue;
    }
    if (std::find(l.accepted.begin(), l.accepted.end(), limited_values[i]) == l.accepted.end() || !l.takes_value)
      throw UsageError(format("launch: --{}{} is not possible: {}", l.name,
                              l.takes_value ? "=" + limited_values[i] : "", l.otherwise));
  }

  if (settings.max_restarts < 0)
    throw UsageError(format("launch: --max-restarts={} must not be negative", settings.max_restarts));
  const int num_processes = nodes.num_processes;
  if (num_processes == 0 || num_processes < -1) throw UsageError("launch: --num_processes must be at least 1");
  // With several machines the one counts those of a node, the other all: settle_nodes compares them then.
  const bool one_node = nodes.num_machines <= 1 && (nodes.nnodes.empty() || nodes.nnodes == "1");
  if (num_processes > 0 && one_node && !nproc.empty() && nproc != std::to_string(num_processes))
    throw UsageError(
        format("launch: --nproc_per_node={} and --num_processes={} contradict each other", nproc, num_processes));
  if (multi_gpu && cpu) throw UsageError("launch: --multi_gpu and --cpu contradict each other");
  if (multi_gpu && num_processes == 1)
    throw UsageError("launch: --multi_gpu needs at least 2 processes, not --num_processes=1");
  if (num_processes > 0)
    request.ranks = std::to_string(num_processes);
  else if (!nproc.empty())
    request.ranks = nproc;
  else if (multi_gpu)
    request.ranks = "auto-multi-gpu";

  if (!(settings.grace_period >= 0 && settings.grace_period <= launch::kLongestGracePeriod))
    throw UsageError(format("launch: --grace-period={}: give 0 to {:.0f} seconds (a year)", settings.grace_period,
                            launch::kLongestGracePeriod));
  if (master_port_flag->count() > 0) check_port("--master_port", master_port);
  if (main_process_port_flag->count() > 0) check_port("--main_process_port", main_process_port);
  if (master_port > 0 && main_process_port > 0 && master_port != main_process_port)
    throw UsageError("launch: --master_port and --main_process_port contradict each other");
  settings.master_port = std::max({master_port, main_process_port, 0});
  const auto backend = std::find_if(limited_flags().begin(), limited_flags().end(),
                                    [](const Limited& l) { return std::string(l.name) == "rdzv-backend"; });
  nodes.nproc_per_node = nproc;
  nodes.rdzv_backend = limited_values[static_cast<std::size_t>(backend - limited_flags().begin())];
  settle_nodes(request, nodes);

  if (mixed_precision_flag->count() > 0) {
    if (mixed_precision != "no" && mixed_precision != "fp16" && mixed_precision != "bf16")
      throw UsageError(
          format("launch: --mixed_precision={} is not possible: choose no, fp16 or bf16", mixed_precision));
    settings.environment.emplace_back("ACCELERATE_MIXED_PRECISION", mixed_precision);
    // What is typed outranks a training's configuration; what accelerate's says holds where that says nothing.
    if (names_of_flags(request.flags).contains("mixed_precision"))
      settings.environment.emplace_back("COHORT_MIXED_PRECISION", mixed_precision);
  }
  if (cpu) {
    settings.without_gpu = true;
    settings.environment.emplace_back("ACCELERATE_USE_CPU", "true");
    settings.environment.emplace_back("COHORT_BACKEND", "cpu");
  }
  settings.expects_gpu = multi_gpu;
  settings.recovers_from_memory = recover == "memory";
  if (!gpu_ids.empty()) settings.gpu_ids = gpu_ids;
  if (virtual_local_rank) settings.device_policy = DevicePolicy::kOwn;
  if (request.module && request.no_python) throw UsageError("launch: --module and --no-python contradict each other");
  if (use_env && !request.pass_local_rank.empty())
    throw UsageError("launch: --use-env and --pass-local-rank contradict each other");
  try {
    if (!redirects.empty()) settings.redirects = launch::parse_streams(redirects, "--redirects");
    if (!tee.empty()) settings.tee = launch::parse_streams(tee, "--tee");
    if (!signals.empty()) settings.signals = launch::parse_signals(signals);
    std::stringstream ranks(filter);
    for (std::string rank; std::getline(ranks, rank, ',');) {
      COHORT_THROW_UNLESS(!rank.empty() && rank.size() < 6 && rank.find_first_not_of("0123456789") == std::string::npos,
                          "--local-ranks-filter='{}' is no list of ranks such as 0,1", filter);
      settings.local_ranks_filter.insert(std::stoi(rank));
    }
  } catch (const Error& e) {
    throw UsageError(format("launch: {}", e.what()));
  }
  return request;
}

}  // namespace cohort::cli
