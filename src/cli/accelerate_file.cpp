#include "cli/accelerate_file.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "cli/subcommand.h"
#include "core/config.h"
#include "core/error.h"
#include "core/format.h"
#include "core/typed_text.h"
#include "core/yaml_file.h"

namespace cohort::cli {
namespace {

using config::Json;

/// Keys that are flags of the same name, and by which other flags the same thing is said.
struct SameFlag {
  std::string_view key;
  std::array<std::string_view, 2> also;
};
constexpr std::array<SameFlag, 8> kSame{{{"num_processes", {"nproc_per_node", ""}},
                                         {"num_machines", {"nnodes", ""}},
                                         {"machine_rank", {"node_rank", ""}},
                                         {"main_process_ip", {"master_addr", "rdzv_endpoint"}},
                                         {"main_process_port", {"master_port", "rdzv_endpoint"}},
                                         {"mixed_precision", {"", ""}},
                                         {"gpu_ids", {"cpu", ""}},
                                         {"num_cpu_threads_per_process", {"", ""}}}};

/// Keys that change nothing here, whatever they say.
constexpr std::array<std::string_view, 4> kWithoutEffect{"same_network", "main_training_function", "tpu_name",
                                                         "tpu_zone"};

/// Keys that ask for what is not here, unless they are empty, and what to do.
constexpr std::array<std::pair<std::string_view, std::string_view>, 20> kRefused{
    {{"deepspeed_config",
      "DeepSpeed is not here; parallel.zero=1 or 2 divides state and gradients among ranks, and "
      "`cohort train rdt --deepspeed FILE.json` reads its file"},
     {"fsdp_config", "FSDP is not here; parallel.zero=1 or 2 divides state and gradients among ranks"},
     {"megatron_lm_config", "Megatron-LM is not here; data parallelism is"},
     {"parallelism_config", "there is data parallelism alone"},
     {"fp8_config", "there are fp32, bf16 and fp16"},
     {"te_recipe_config", "there are fp32, bf16 and fp16"},
     {"ao_recipe_config", "there are fp32, bf16 and fp16"},
     {"msamp_recipe_config", "there are fp32, bf16 and fp16"},
     {"dynamo_config", "there is no TorchDynamo here"},
     {"dynamo_backend", "there is no TorchDynamo here"},
     {"ipex_config", "Intel's extension for PyTorch is not here"},
     {"mpirun_config", "jobs are not started through mpirun"},
     {"enable_cpu_affinity", "ranks are not bound to processors; put `numactl` in front of the program"},
     {"debug", "accelerate's debug mode has no counterpart"},
     {"downcast_bf16", "TPUs are not supported"},
     {"tpu_env", "TPUs are not supported"},
     {"tpu_use_cluster", "TPUs are not supported"},
     {"tpu_use_sudo", "TPUs are not supported"},
     {"commands", "TPUs are not supported"},
     {"command_file", "TPUs are not supported"}}};

/// Whether the value asks for nothing.
bool asks_for_nothing(const Json& value) {
  return value.is_null() || value == false || value == "no" || value == "NO" || value == "" ||
         (value.is_structured() && value.empty());
}

class Reader {
 public:
  Reader(const std::string& path, const std::set<std::string>& typed) : typed_(typed) {
    const Json json = read_yaml_file(path);
    COHORT_THROW_UNLESS(json.is_object(), "{} is none of accelerate's configurations: it has no keys", path);
    for (const auto& [key, value] : json.items()) take(key, value);
    if (!refused_.empty()) throw UsageError(format("launch: {} asks for what is not possible:{}", path, refused_));
    if (!file_.flags.empty()) file_.notes.push_back(format("{} says {}", path, join(file_.flags, " ")));
  }
  AccelerateFile file() && { return std::move(file_); }

 private:
  bool is_typed(std::string_view name) const { return !name.empty() && typed_.contains(std::string(name)); }
  void refuse(const std::string& key, const Json& value, std::string_view why) {
    refused_ += format("\n  {}: {}: {}", key, typed_text(value), why);
  }

  void take(const std::string& key, const Json& value) {
    for (const SameFlag& one : kSame) {
      if (key != one.key) continue;
      if (!value.is_null() && !is_typed(key) &&
          !std::any_of(one.also.begin(), one.also.end(), [&](auto name) { return is_typed(name); }))
        file_.flags.push_back(format("--{}={}", key, value == false ? "no" : typed_text(value)));
      return;
    }
    if (std::find(kWithoutEffect.begin(), kWithoutEffect.end(), key) != kWithoutEffect.end()) return;
    if (key == "use_cpu") {
      if (value == true) use_cpu();
    } else if (key == "distributed_type") {
      distributed_type(typed_text(value));
    } else if (key == "compute_environment") {
      if (value != "LOCAL_MACHINE") refuse(key, value, "jobs run on machines that are there: LOCAL_MACHINE");
    } else if (key == "rdzv_backend") {
      if (!asks_for_nothing(value) && !is_typed(key))
        file_.flags.push_back(format("--rdzv_backend={}", typed_text(value)));
    } else {
      const auto known =
          std::find_if(kRefused.begin(), kRefused.end(), [&](const auto& one) { return one.first == key; });
      if (!asks_for_nothing(value))
        refuse(key, value, known == kRefused.end() ? "is unknown here; leave it out" : known->second);
    }
  }

  void use_cpu() {
    if (!cpu_ && !is_typed("cpu") && !is_typed("multi_gpu")) file_.flags.emplace_back("--cpu");
    cpu_ = true;
  }

  void distributed_type(const std::string& type) {
    if (type == "MULTI_CPU") {
      use_cpu();
    } else if (type == "MULTI_GPU") {
      if (!is_typed("multi_gpu") && !is_typed("cpu")) file_.flags.emplace_back("--multi_gpu");
    } else if (type != "NO" && type != "no" && type != "false") {
      refuse("distributed_type", type, "there are NO, MULTI_GPU and MULTI_CPU");
    }
  }

  const std::set<std::string>& typed_;
  AccelerateFile file_;
  std::string refused_;
  bool cpu_ = false;
};

}  // namespace

AccelerateFile read_accelerate_file(const std::string& path, const std::set<std::string>& typed) {
  return Reader(path, typed).file();
}

}  // namespace cohort::cli
