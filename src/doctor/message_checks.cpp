// Messages of PyTorch, NCCL, Gloo, CUDA and of this program in what a run has printed, and what each means.
#include <algorithm>
#include <string_view>

#include "doctor/examination.h"
#include "monitor/host_text.h"

namespace cohort::doctor {
namespace {

/// A line means this when it holds one of `needles`, and `also` where that is given. The first that fits explains a
/// line.
struct Message {
  std::vector<const char*> needles;
  const char* also;
  const char* title;
  const char* remedy;
};

const std::vector<Message>& known_messages() {
  static const std::vector<Message> all = {
      {{"Duplicate GPU detected"}, "", "two ranks are on one GPU", "one rank per GPU: --nproc_per_node=gpu"},
      {{"unhandled system error", "ncclSystemError", "unhandled cuda error", "ncclUnhandledCudaError",
        "NCCL communicator was aborted", "ncclInternalError"},
       "",
       "NCCL does not start, or broke off",
       "NCCL_DEBUG=INFO says more. In this order: cohort devices (are all GPUs visible to all ranks?); in Docker "
       "--gpus "
       "all --ipc host --network host; NCCL_IB_DISABLE=1; NCCL_P2P_DISABLE=1; NCCL_SOCKET_IFNAME=eth0; the firewall"},
      {{"CUDA out of memory", "CUDA error: out of memory", "CUDACachingAllocator", "OutOfMemoryError"},
       "",
       "a GPU's memory was used up",
       "train.batch_size=half train.gradient_accumulation_steps=2; train.precision=bf16; "
       "parallel.ddp.gradient_as_bucket_view=true; train.gradient_checkpointing=true; `cohort estimate` says what "
       "fits"},
      {{"Expected to have finished reduction in the prior iteration", "did not depend on these parameters"},
       "",
       "parameters got no gradient in a step",
       "parallel.ddp.find_unused_parameters=true, or static_graph=true where they are the same in every step; the same "
       "number of batches on every rank (drop_last=true), equal seeds"},
      {{"ddress already in use", "EADDRINUSE"},
       "",
       "a port was taken",
       "leave --master_port out: a free one is found; ss -ltnp shows who has it; end a job of before that hangs"},
      {{"Expected all tensors to be on the same device", "module must have its parameters and buffers on device",
        "parameters on device cuda"},
       "",
       "tensors lie on different devices",
       "model->to(device) before it is wrapped; all of a batch's inputs and labels to one device, or leave batches on "
       "the "
       "CPU"},
      {{"object has no attribute"},
       "DataParallel",
       "the wrapper was taken for the model",
       "model.module.xxx in Python; parallel_model.module() here"},
      {{"Unexpected key(s) in state_dict", "Missing key(s) in state_dict"},
       "module.",
       "weights of a wrapped module",
       "take `module.` off the names, or save model.module.state_dict(); cohort convert-weights does it"},
      {{"invalid device ordinal", "has no device", "No CUDA GPUs are available", "no CUDA-capable device"},
       "",
       "a rank has no GPU",
       "no more ranks than visible GPUs; CUDA_VISIBLE_DEVICES renumbers from 0; in Docker --gpus all"},
      {{"driver version is insufficient", "NVIDIA driver on your system is too old"},
       "",
       "the driver is too old for this CUDA",
       "update the driver, or use a build for an older CUDA"},
      {{"Driver/library version mismatch", "Failed to initialize NVML"},
       "",
       "driver and its libraries do not fit together",
       "start the machine again after an update of the driver; in a container --gpus all"},
      {{"no kernel image is available"},
       "",
       "the build has no code for this GPU",
       "build for its architecture: -DCMAKE_CUDA_ARCHITECTURES"},
      {{"No space left on device", "ENOSPC"}, "shm", "/dev/shm is full", "docker run --ipc host, or --shm-size 1g"},
      {{"Bus error", "SIGBUS"},
       "",
       "memory that is a file could not be written: /dev/shm is full, or a disk",
       "docker run --ipc host, or --shm-size 1g; df -h /dev/shm"},
      {{"No space left on device", "disk is full"},
       "",
       "a disk is full",
       "make room, or take another output_dir; train.checkpoint.keep=1"},
      {{"SIGKILL", "signal 9", "exitcode: -9", "exitcode : -9"},
       "",
       "a rank was killed",
       "the host's memory ran out, most often: loader.memory_budget_bytes and data.cache_bytes lower, fewer ranks; or "
       "a "
       "scheduler's limit"},
      {{"Name or service not known", "Temporary failure in name resolution", "does not resolve"},
       "",
       "a host's name does not resolve",
       "the address of rank 0's machine as --master_addr, or its name in DNS or /etc/hosts"},
      {{"Connection refused", "Connection timed out", "timed out after", "client socket has timed out",
        "No route to host", "wait timeout after"},
       "",
       "ranks did not reach each other",
       "the same --master_addr and --master_port on all; the firewall between nodes; NCCL_SOCKET_IFNAME and "
       "GLOO_SOCKET_IFNAME; docker --network host"},
      {{"Watchdog caught collective operation timeout", "collective_timeout_s", "did not come to the collective"},
       "",
       "a rank did not come to a collective",
       "find the first rank that failed or waited; all ranks must take the same number of steps; "
       "dist.collective_timeout_s is how long they wait"},
      {{"Connection closed by peer", "Connection reset by peer"},
       "",
       "another rank ended first",
       "the first message of the other ranks is the cause: look at all logs (--log-dir)"},
      {{"the ranks have different settings", "number of training samples is", "parameters of the ranks differ"},
       "",
       "ranks were started with different settings or data",
       "one command and one data set for all ranks"},
      {{"NaN or inf in step"},
       "",
       "the loss became NaN or inf",
       "a lower train.lr, train.clip_norm=1; look at the data"},
      {{"Too many open files", "EMFILE"}, "", "too many files were open", "ulimit -n 65536"}};
  return all;
}

void look_at_messages(const Case& c, Findings& found) {
  if (!c.run) return found.leave_out("no run was named");
  if (c.run->texts.empty()) return found.leave_out("there is no log in the run's folder");
  const bool went_well = c.run->finished();
  std::vector<const Message*> told;
  for (const TextFile& file : c.run->texts) {
    std::size_t number = 0;
    for (const std::string_view line : monitor::split_lines(file.text)) {
      ++number;
      for (const Message& message : known_messages()) {
        const bool fits = std::any_of(message.needles.begin(), message.needles.end(),
                                      [&](const char* needle) { return line.find(needle) != std::string_view::npos; });
        if (!fits || line.find(message.also) == std::string_view::npos) continue;
        if (std::find(told.begin(), told.end(), &message) == told.end()) {
          told.push_back(&message);
          found.add(went_well ? Severity::kWarning : Severity::kError, message.title,
                    format("{}, line {}: {}", file.path.string(), number, line.substr(0, 300)), message.remedy);
        }
        break;
      }
    }
  }
}

}  // namespace

std::vector<Check> message_checks() {
  return {{"run-messages", "messages in logs that have a known cause", look_at_messages}};
}

}  // namespace cohort::doctor
