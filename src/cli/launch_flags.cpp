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

/// The flags of `cohort launch`, and what was given for them.
class LaunchFlags {
 public:
  explicit LaunchFlags(LaunchRequest& request) : request_(request), settings_(request.settings) {
    settings_.master_addr.clear();
    add_torchrun();
    add_accelerate();
    add_own();
    add_limited();
  }
  /// False: help was asked for.
  bool parse(const std::vector<std::string>& arguments);
  /// What was parsed becomes the request. Throws UsageError for what contradicts itself or is not possible.
  void settle() {
    settle_limited();
    settle_ranks();
    settle_meeting();
    settle_devices();
    settle_output();
  }

 private:
  template <class T>
  CLI::Option* option(const std::string& name, T& value, const std::string& doc, bool pet,
                      const std::string& letter = "") {
    return grouped(app_.add_option(both_forms(name, letter), value, doc), name, pet);
  }
  CLI::Option* flag(const std::string& name, bool& value, const std::string& doc, bool pet,
                    const std::string& letter = "") {
    return grouped(app_.add_flag(both_forms(name, letter), value, doc), name, pet);
  }
  CLI::Option* grouped(CLI::Option* added, const std::string& name, bool pet) {
    added->group(group_);
    if (pet) added->envname(pet_variable(name));
    return added;
  }
  void add_torchrun();
  void add_accelerate();
  void add_own();
  void add_limited();
  void settle_limited();
  void settle_ranks();
  void settle_meeting();
  void settle_devices();
  void settle_output();

  LaunchRequest& request_;
  launch::LaunchSettings& settings_;
  CLI::App app_{kHelp, "cohort launch [flags] SUBCOMMAND|SCRIPT.py|-- PROGRAM [arguments]"};
  const char* group_ = "torchrun's flags";  // in --help, of what is added
  std::string recover_ = "memory", nproc_, redirects_, tee_, filter_, signals_, mixed_precision_, gpu_ids_,
              config_file_;
  NodeFlags nodes_;
  int main_process_port_ = -1, master_port_ = -1;
  bool use_env_ = false, virtual_local_rank_ = false, multi_gpu_ = false, cpu_ = false;
  const CLI::Option *master_port_flag_ = nullptr, *main_process_port_flag_ = nullptr, *mixed_precision_flag_ = nullptr;
  std::vector<std::string> limited_values_ = std::vector<std::string>(limited_flags().size());
  std::vector<CLI::Option*> limited_;
};

void LaunchFlags::add_torchrun() {
  option("nproc-per-node", nproc_,
         "ranks: a number, gpu (one for each), cpu (one for each core), auto (gpu, else cpu); 1", true);
  option("nnodes", nodes_.nnodes, "nodes that take part, each with a launcher: N, or MIN:MAX that come and go; 1",
         true);
  option("node-rank", nodes_.node_rank, "which of them this is; 0", true)->check(CLI::NonNegativeNumber);
  option("master-addr", settings_.master_addr, "address of the store: with several nodes one of node 0; else 127.0.0.1",
         true);
  master_port_flag_ =
      option("master-port", master_port_, "its port; with one node a free one is chosen and kept, else 29500", true);
  option(
      "rdzv-endpoint", nodes_.rdzv_endpoint,
      "host:port[,host:port]: where nodes that come and go meet, and where else when that machine is lost; or another "
      "way to name the store",
      true);
  option(
      "rdzv-conf", nodes_.rdzv_conf,
      "state_file=PATH on a file system that all nodes share: says who hosts their meeting, also when that machine is "
      "lost",
      true);
  option(
      "max-restarts", settings_.max_restarts,
      "how often a job goes on after a rank has failed, from memory or started again; 0. With several numbered nodes "
      "it needs a --job-secret-file, and the port after --master-port for the agents",
      true);
  option("rdzv-id", settings_.run_id, "TORCHELASTIC_RUN_ID", true);
  flag("standalone", nodes_.standalone, "one node: what this launcher does unless --nnodes says otherwise", true);
  option("role", settings_.role, "ROLE_NAME of the ranks", true);
  flag("module", request_.module, "run the script as `python3 -m` does", true, "m");
  flag("no-python", request_.no_python, "the program is no Python script, whatever its name", true);
  option("log-dir", settings_.log_dir, "store output as attempt_0/rank_<r>/{stdout,stderr}.log, and error.json", true);
  option("redirects", redirects_,
         "streams that only go to files: 0 none, 1 stdout, 2 stderr, 3 both, or by rank 0:3,1:1", true, "r");
  option("tee", tee_, "streams that go to files and the console, likewise; with --log-dir alone: 3", true, "t");
  option("local-ranks-filter", filter_, "ranks whose output is shown: 0,1", true);
  option("signals-to-handle", signals_, "signals passed on to the ranks; SIGTERM,SIGINT,SIGHUP,SIGQUIT,SIGUSR1,SIGUSR2",
         true);
  flag("virtual-local-rank", virtual_local_rank_, "each rank sees only its own GPU, as cuda:0; LOCAL_RANK is 0", true);

  group_ = "torch.distributed.launch's flags";
  flag("use-env", use_env_, "pass the local rank by LOCAL_RANK only: what this launcher does unless told otherwise",
       false);
  option("pass-local-rank", request_.pass_local_rank,
         "also pass --<form>=R to the program: local-rank (PyTorch 2) or local_rank (before), as without --use-env",
         false)
      ->check(CLI::IsMember({"local-rank", "local_rank"}));
}

void LaunchFlags::add_accelerate() {
  group_ = "accelerate's flags";
  option("config-file", config_file_, "what `accelerate config` wrote; what is typed outranks it", false);
  option("num-processes", nodes_.num_processes, "ranks, on all machines together", false);
  option("num-machines", nodes_.num_machines, "as --nnodes", false)->check(CLI::PositiveNumber);
  option("machine-rank", nodes_.machine_rank, "as --node-rank", false)->check(CLI::NonNegativeNumber);
  flag("multi-gpu", multi_gpu_, "ranks on several GPUs; one for each unless --num_processes says otherwise", false);
  flag("cpu", cpu_, "ranks on the CPU", false);
  option("gpu-ids", gpu_ids_, "GPUs to use, among those this process may use: 0,2 or all", false);
  mixed_precision_flag_ = option("mixed-precision", mixed_precision_,
                                 "no, fp16 or bf16: ACCELERATE_MIXED_PRECISION and COHORT_MIXED_PRECISION", false);
  option("main-process-ip", nodes_.main_process_ip, "as --master-addr", false);
  main_process_port_flag_ =
      option("main-process-port", main_process_port_, "as --master-port; 0 chooses a free one", false);
  option("num-cpu-threads-per-process", settings_.threads_per_rank, "OMP_NUM_THREADS; unless set, cores / ranks", false)
      ->check(CLI::PositiveNumber);
  flag("quiet", settings_.quiet, "do not say what was chosen", false, "q");
}

void LaunchFlags::add_own() {
  group_ = "own flags";
  option("recover", recover_,
         "after a rank has died: memory (the other ranks keep what they have and a new one joins them, where the "
         "program can; else as checkpoint), or checkpoint (all start again); memory",
         false)
      ->check(CLI::IsMember({"memory", "checkpoint"}));
  option("job-secret-file", settings_.job_secret_file,
         "a file with the secret of a job whose agents meet; else the variable COHORT_JOB_SECRET", false);
  option("last-call", settings_.last_call, "seconds that such a job waits for further nodes once MIN are there; 5",
         false)
      ->check(CLI::NonNegativeNumber);
  option(
      "hang-timeout", settings_.hang_timeout,
      "seconds of silence in training steps (and 5 steps' time) after which a rank hangs and is killed; 0: never; 10",
      false)
      ->check(CLI::NonNegativeNumber);
  option("hang-timeout-elsewhere", settings_.hang_timeout_elsewhere,
         "likewise in validation, in a checkpoint, or waiting for data; 600", false)
      ->check(CLI::PositiveNumber);
  option("grace-period", settings_.grace_period, "seconds that ranks have to end before they are killed; 30", false);
}

void LaunchFlags::add_limited() {
  for (std::size_t i = 0; i < limited_flags().size(); ++i) {
    const Limited& l = limited_flags()[i];
    limited_.push_back(l.takes_value ? app_.add_option(both_forms(l.name), limited_values_[i])
                                     : app_.add_flag(both_forms(l.name)));
    limited_.back()->group("");  // not in --help
    if (l.pet) limited_.back()->envname(pet_variable(l.name));
  }
}

bool LaunchFlags::parse(const std::vector<std::string>& arguments) {
  split_at_program(app_, arguments, request_.flags, request_);
  std::vector<std::string> flags = request_.flags;
  if (const std::string file = value_of_flag(flags, "config_file"); !file.empty()) {
    AccelerateFile read = read_accelerate_file(file, names_of_flags(flags));
    flags.insert(flags.end(), read.flags.begin(), read.flags.end());
    request_.notes.insert(request_.notes.end(), read.notes.begin(), read.notes.end());
  }
  try {
    app_.parse(std::vector<std::string>(flags.rbegin(), flags.rend()));
  } catch (const CLI::CallForHelp&) {
    request_.help = true;
    request_.help_text = app_.help();
    return false;
  } catch (const CLI::ParseError& e) {
    throw UsageError(format("launch: {}; `cohort launch --help` lists the flags", e.what()));
  }

  return true;
}

void LaunchFlags::settle_limited() {
  for (std::size_t i = 0; i < limited_.size(); ++i) {
    const Limited& l = limited_flags()[i];
    const bool by_value =
        l.takes_value ? limited_[i]->count() > 0 : limited_[i]->count() > 0 && limited_[i]->as<bool>();
    if (!by_value) continue;
    if (l.accepted == std::vector<std::string>{"*"}) {
      request_.notes.push_back(format("--{} {}", l.name, l.otherwise));
      continue;
    }
    if (std::find(l.accepted.begin(), l.accepted.end(), limited_values_[i]) == l.accepted.end() || !l.takes_value)
      throw UsageError(format("launch: --{}{} is not possible: {}", l.name,
                              l.takes_value ? "=" + limited_values_[i] : "", l.otherwise));
  }
}

void LaunchFlags::settle_ranks() {
  if (settings_.max_restarts < 0)
    throw UsageError(format("launch: --max-restarts={} must not be negative", settings_.max_restarts));
  const int num_processes = nodes_.num_processes;
  if (num_processes == 0 || num_processes < -1) throw UsageError("launch: --num_processes must be at least 1");
  // With several machines the one counts those of a node, the other all: settle_nodes compares them then.
  const bool one_node = nodes_.num_machines <= 1 && (nodes_.nnodes.empty() || nodes_.nnodes == "1");
  if (num_processes > 0 && one_node && !nproc_.empty() && nproc_ != std::to_string(num_processes))
    throw UsageError(
        format("launch: --nproc_per_node={} and --num_processes={} contradict each other", nproc_, num_processes));
  if (multi_gpu_ && cpu_) throw UsageError("launch: --multi_gpu and --cpu contradict each other");
  if (multi_gpu_ && num_processes == 1)
    throw UsageError("launch: --multi_gpu needs at least 2 processes, not --num_processes=1");
  if (num_processes > 0)
    request_.ranks = std::to_string(num_processes);
  else if (!nproc_.empty())
    request_.ranks = nproc_;
  else if (multi_gpu_)
    request_.ranks = "auto-multi-gpu";
}

void LaunchFlags::settle_meeting() {
  if (!(settings_.grace_period >= 0 && settings_.grace_period <= launch::kLongestGracePeriod))
    throw UsageError(format("launch: --grace-period={}: give 0 to {:.0f} seconds (a year)", settings_.grace_period,
                            launch::kLongestGracePeriod));
  if (master_port_flag_->count() > 0) check_port("--master_port", master_port_);
  if (main_process_port_flag_->count() > 0) check_port("--main_process_port", main_process_port_);
  if (master_port_ > 0 && main_process_port_ > 0 && master_port_ != main_process_port_)
    throw UsageError("launch: --master_port and --main_process_port contradict each other");
  settings_.master_port = std::max({master_port_, main_process_port_, 0});
  const auto backend = std::find_if(limited_flags().begin(), limited_flags().end(),
                                    [](const Limited& l) { return std::string(l.name) == "rdzv-backend"; });
  nodes_.nproc_per_node = nproc_;
  nodes_.rdzv_backend = limited_values_[static_cast<std::size_t>(backend - limited_flags().begin())];
  settle_nodes(request_, nodes_);
}

void LaunchFlags::settle_devices() {
  if (mixed_precision_flag_->count() > 0) {
    if (mixed_precision_ != "no" && mixed_precision_ != "fp16" && mixed_precision_ != "bf16")
      throw UsageError(
          format("launch: --mixed_precision={} is not possible: choose no, fp16 or bf16", mixed_precision_));
    settings_.environment.emplace_back("ACCELERATE_MIXED_PRECISION", mixed_precision_);
    // What is typed outranks a training's configuration; what accelerate's says holds where that says nothing.
    if (names_of_flags(request_.flags).contains("mixed_precision"))
      settings_.environment.emplace_back("COHORT_MIXED_PRECISION", mixed_precision_);
  }
  if (cpu_) {
    settings_.without_gpu = true;
    settings_.environment.emplace_back("ACCELERATE_USE_CPU", "true");
    settings_.environment.emplace_back("COHORT_BACKEND", "cpu");
  }
  settings_.expects_gpu = multi_gpu_;
  settings_.recovers_from_memory = recover_ == "memory";
  if (!gpu_ids_.empty()) settings_.gpu_ids = gpu_ids_;
  if (virtual_local_rank_) settings_.device_policy = DevicePolicy::kOwn;
}

void LaunchFlags::settle_output() {
  if (request_.module && request_.no_python) throw UsageError("launch: --module and --no-python contradict each other");
  if (use_env_ && !request_.pass_local_rank.empty())
    throw UsageError("launch: --use-env and --pass-local-rank contradict each other");
  try {
    if (!redirects_.empty()) settings_.redirects = launch::parse_streams(redirects_, "--redirects");
    if (!tee_.empty()) settings_.tee = launch::parse_streams(tee_, "--tee");
    if (!signals_.empty()) settings_.signals = launch::parse_signals(signals_);
    std::stringstream ranks(filter_);
    for (std::string rank; std::getline(ranks, rank, ',');) {
      COHORT_THROW_UNLESS(!rank.empty() && rank.size() < 6 && rank.find_first_not_of("0123456789") == std::string::npos,
                          "--local-ranks-filter='{}' is no list of ranks such as 0,1", filter_);
      settings_.local_ranks_filter.insert(std::stoi(rank));
    }
  } catch (const Error& e) {
    throw UsageError(format("launch: {}", e.what()));
  }
}

}  // namespace

LaunchRequest parse_launch(const std::vector<std::string>& arguments) {
  LaunchRequest request;
  LaunchFlags flags(request);
  if (flags.parse(arguments)) flags.settle();
  return request;
}

}  // namespace cohort::cli
