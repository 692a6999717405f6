#include "parallel/distributed_data_parallel.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include <torch/autograd.h>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/log.h"
#include "dist/recovery.h"
#include "parallel/compression_hook.h"
#include "parallel/exchange_timer.h"
#include "parallel/module_layout.h"
#include "parallel/node_sum.h"
#include "parallel/reducer_adapter.h"
#include "parallel/replica_step.h"
#include "tensors/convert.h"

namespace cohort::parallel {
namespace {

constexpr double kMebibyte = 1024.0 * 1024.0;
constexpr std::size_t kBroadcastBytes = 250 * 1024 * 1024;  // one message of parameters or buffers; as PyTorch
constexpr int kSkewWarning = 1000;                          // steps

std::vector<at::Tensor> detached(const std::vector<NamedTensor>& tensors) {
  std::vector<at::Tensor> result;
  for (const NamedTensor& t : tensors) result.push_back(t.tensor.detach());
  return result;
}

}  // namespace

void describe(config::Fields& fields, DdpSettings& s) {
  fields.add("bucket_cap_mb", s.bucket_cap_mb,
             "MiB of gradients summed in one go; larger: fewer messages, less overlap");
  fields.add("first_bucket_cap_mb", s.first_bucket_cap_mb,
             "MiB of the first bucket, so that communication starts early");
  fields.add("find_unused_parameters", s.find_unused_parameters, "allow parameters that the loss does not depend on");
  fields.add("gradient_as_bucket_view", s.gradient_as_bucket_view,
             "gradients are views into the buckets: saves memory and a copy");
  fields.add("static_graph", s.static_graph,
             "the graph is the same in every iteration: unused parameters are found once");
  fields.add("broadcast_buffers", s.broadcast_buffers, "every forward pass starts with rank 0's buffers");
  fields.add("constant_buffers", s.constant_buffers, "endings of names of buffers that never change: sent once only");
  fields.add_choice("bucket_order", s.bucket_order, {"definition", "arrival"},
                    "parameters in buckets: the reverse of their definition, or as gradients arrived in the first step "
                    "(a resumed run of 3 ranks or more then differs in last bits)");
  fields.add_choice("cpu_reduction", s.cpu_reduction, {"auto", "shared_memory", "gloo"},
                    "gradients on the CPU: added up in memory that the ranks of one machine share, or through sockets");
  fields.add_choice("compression", s.compression, {"none", "fp16", "bf16"}, "element type in which gradients travel");
}

struct DistributedDataParallel::Impl {
  std::shared_ptr<torch::nn::Module> model;
  std::shared_ptr<dist::Group> group;
  DdpSettings settings;
  c10::Device device = c10::kCPU;
  std::vector<std::string> names;  // of the reducer's parameters, in its order
  std::shared_ptr<c10d::Reducer> reducer;
  std::shared_ptr<c10d::Logger> logger;
  std::shared_ptr<NodeSum> node_sum;   // null: gradients travel through c10d
  std::optional<ExchangeTimer> waits;  // for buffers, and for gradients that travel through c10d
  double earlier_sums_s = 0;           // of node sums in groups that were left

  bool synchronise = true;          // false inside no_sync
  bool synchronise_buffers = true;  // false in the forward pass after one that did not synchronise
  bool rebuilt = false;
  // static_graph: the all-reduce of the first iteration waits until all gradients are there; whether it has been
  // queued.
  std::shared_ptr<bool> delayed_reduce_queued = std::make_shared<bool>(false);
  bool joining = false;
  JoinSettings join;
  // join, when gradients are divided by the ranks that still have data: their number, once the sum is there.
  at::Tensor ranks_in_forward;
  c10::intrusive_ptr<c10d::Work> count_of_ranks;

  at::Tensor scalar(float value) const { return at::full({1}, value, at::TensorOptions().device(device)); }

  c10::intrusive_ptr<c10d::Work> start_sum(at::Tensor& tensor) const {
    std::vector<at::Tensor> tensors{tensor};
    return group->process_group()->allreduce(tensors);
  }

  void broadcast_from(const std::vector<at::Tensor>& tensors, int root) {
    if (tensors.empty() || group->world_size() == 1) return;
    const at::NoGradGuard no_grad;
    c10d::broadcast_coalesced(group->process_group(), tensors, kBroadcastBytes, root);
  }

  bool buffers_are_synchronised() const { return synchronise_buffers && settings.broadcast_buffers; }

  /// What a rank's gradients are multiplied with before the sum.
  float share_of_rank() const {
    if (!joining || join.divide_by_initial_world_size || !count_of_ranks)
      return 1.0F / static_cast<float>(group->world_size());
    count_of_ranks->wait();
    return 1.0F / ranks_in_forward.item<float>();
  }

  /// Sums gradients through shared memory where that is asked for and can be. Collective.
  void use_node_sum(const std::vector<at::Tensor>& parameters, const std::vector<bool>& sparse) {
    const std::string& wanted = settings.cpu_reduction;
    COHORT_THROW_UNLESS(wanted == "auto" || wanted == "shared_memory" || wanted == "gloo",
                        "parallel.ddp.cpu_reduction='{}': it is auto, shared_memory or gloo", wanted);
    if (wanted == "gloo" || group->world_size() == 1) return;
    const bool fits =
        device.is_cpu() && settings.compression == "none" &&
        std::ranges::none_of(sparse, [](bool is_sparse) { return is_sparse; }) &&
        std::ranges::all_of(parameters, [](const at::Tensor& p) { return p.scalar_type() == at::kFloat; });
    node_sum = fits ? NodeSum::open(*group) : nullptr;
    COHORT_THROW_UNLESS(wanted == "auto" || node_sum,
                        "parallel.ddp.cpu_reduction=shared_memory needs ranks on one machine, with float32 parameters "
                        "on the CPU, dense "
                        "gradients, and no parallel.ddp.compression; write parallel.ddp.cpu_reduction=auto");
    if (node_sum) reducer->register_comm_hook(make_node_sum_hook(node_sum, [this] { return share_of_rank(); }));
  }

  /// Largest rank among those that take part.
  int common_rank(bool takes_part) {
    at::Tensor candidate = at::full({1}, takes_part ? std::int64_t{group->rank()} : std::int64_t{-1},
                                    at::TensorOptions().device(device).dtype(at::kLong));
    group->all_reduce(candidate, dist::Reduction::kMax);
    return static_cast<int>(candidate.item<std::int64_t>());
  }

  /// Buffers may be replaced by the model, so that they are looked up every time.
  void synchronise_module_buffers(bool has_data) {
    if (!buffers_are_synchronised()) return;
    const std::vector<at::Tensor> buffers = detached(changing_buffers_of(*model, settings.constant_buffers));
    if (buffers.empty()) return;
    waits->begin();
    broadcast_from(buffers, joining ? common_rank(has_data) : 0);
    waits->end();
  }

  /// The reducer waits for all sums behind the backward pass, in a callback. One that was queued before it is called
  /// first, when this rank has all its own gradients: where the wait begins. It ends with the backward pass. False where
  /// there is no such wait.
  bool time_wait_behind(const at::Tensor& loss) {
    if (node_sum || group->world_size() == 1) return false;
    loss.register_hook([this](const at::Tensor&) {
      torch::autograd::Engine::get_default_engine().queue_callback([this] { waits->begin(); });
    });
    return true;
  }

  int ranks_with_data() {
    at::Tensor count = scalar(0);
    group->all_reduce(count);
    return static_cast<int>(count.item<float>());
  }

  /// Throws what an exception out of LibTorch's reducer or a collective means. To be called inside a catch block.
  [[noreturn]] void rethrow(const std::exception& problem, const char* operation) {
    if (dynamic_cast<const Error*>(&problem) != nullptr) throw;
    const std::string text(problem.what());
    if (text.find("Expected to have finished reduction in the prior iteration") != std::string::npos)
      throw Error(
          format("the loss of the last step did not depend on these parameters: {}. Every rank must give all of them a "
                 "gradient: let "
                 "the loss use them, freeze them (requires_grad(false)), or set "
                 "parallel.ddp.find_unused_parameters=true (slower), or "
                 "parallel.ddp.static_graph=true when they are the same in every step",
                 unused_names(text)));
    if (dist::Group::is_communication_failure(problem)) throw group->explain(problem, operation);
    rethrow_plain(problem);
  }

  /// Names for "Parameter indices which did not receive grad for rank 0: 4 5".
  std::string unused_names(const std::string& text) const {
    const std::size_t line = text.find("did not receive grad for rank");
    if (line == std::string::npos) return "(unknown)";
    std::istringstream numbers(text.substr(text.find(':', line) + 1));
    std::string result;  // in order of definition, which is the reverse of the reducer's
    for (std::size_t index = 0; numbers >> index;)
      if (index < names.size()) result = "'" + names[index] + (result.empty() ? "'" : "', ") + result;
    return result;
  }

  void end_reduction() {
    try {
      logger.reset();
      if (reducer) reducer->remove_autograd_hooks();
      reducer.reset();
    } catch (const std::exception& problem) {
      log::warning("while ending DistributedDataParallel: {}", problem.what());
    }
  }

  /// What the others' forward and backward communicate, from a rank that has no more data.
  void shadow_one_step() {
    reducer->rebuild_buckets();
    synchronise_module_buffers(false);
    at::Tensor flag = scalar(0);
    group->all_reduce(flag);
    const bool others_synchronise = flag.item<float>() != 0;
    synchronise_buffers = others_synchronise;
    if (!others_synchronise) return;
    std::vector<c10::intrusive_ptr<c10::ivalue::Future>> pending;
    for (c10d::GradBucket& bucket : reducer->get_grad_buckets(/*return_zero_tensors=*/true))
      pending.push_back(reducer->run_comm_hook(bucket));
    for (const auto& future : pending) future->waitAndThrow();
    if (settings.find_unused_parameters) {
      at::Tensor used = reducer->get_local_used_map_on_device();
      start_sum(used)->wait();
    }
    reducer->push_rebuilt_params_for_all_indices();
  }
};

namespace {

/// What the gate below does when the backward pass reaches it.
struct GateAction : public torch::CustomClassHolder {
  std::weak_ptr<c10d::Reducer> reducer;
  std::shared_ptr<bool> reduce_queued;  ///< null: nothing to queue
};

/// Identity on the outputs, first in the backward pass. static_graph, first iteration: queues the reduction of all
/// gradients behind the rest of the pass. Outputs that the loss does not use keep undefined gradients, so that
/// find_unused_parameters sees them as unused.
struct OutputGate : public torch::autograd::Function<OutputGate> {
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context, at::TensorList outputs,
                                                const c10::intrusive_ptr<GateAction>& action) {
    context->set_materialize_grads(false);
    context->saved_data["action"] = c10::IValue::make_capsule(action);
    torch::autograd::variable_list copies;
    for (const at::Tensor& output : outputs) copies.push_back(output.clone());
    return copies;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto action = c10::static_intrusive_pointer_cast<GateAction>(context->saved_data["action"].toCapsule());
    if (action->reduce_queued && !*action->reduce_queued) {
      *action->reduce_queued = true;
      if (const auto reducer = action->reducer.lock())
        torch::autograd::Engine::get_default_engine().queue_callback([reducer] { reducer->delay_all_reduce(); });
    }
    gradients.emplace_back();  // for `action`
    return gradients;
  }
};

}  // namespace

DistributedDataParallel::DistributedDataParallel(std::shared_ptr<torch::nn::Module> model,
                                                 std::shared_ptr<dist::Group> group, DdpSettings settings)
    : impl_(std::make_unique<Impl>()) {
  Impl& self = *impl_;
  self.model = std::move(model);
  self.group = std::move(group);
  self.settings = std::move(settings);
  COHORT_CHECK(self.model && self.group, "DistributedDataParallel needs a model and a group");
  COHORT_THROW_UNLESS(self.settings.bucket_cap_mb > 0 && self.settings.first_bucket_cap_mb > 0,
                      "ddp bucket sizes must be above 0 MiB, not {} and {}", self.settings.bucket_cap_mb,
                      self.settings.first_bucket_cap_mb);
  self.device = tensors::to_torch_device(self.group->options().device);
  self.waits.emplace(self.device);
  check_on_device(*self.model, self.device);
  COHORT_THROW_UNLESS(self.settings.bucket_order == "definition" || self.settings.bucket_order == "arrival",
                      "parallel.ddp.bucket_order='{}': it is definition or arrival", self.settings.bucket_order);
  join_group();
}

void DistributedDataParallel::join_group() {
  Impl& self = *impl_;
  if (self.group->world_size() > 1) check_same_layout(*self.model, *self.group);

  const std::vector<NamedTensor> all = parameters_of(*self.model);
  std::vector<at::Tensor> parameters;
  std::vector<bool> sparse;
  std::vector<std::string> names;
  // Gradients arrive roughly in the reverse order of definition.
  for (auto position = all.rbegin(); position != all.rend(); ++position) {
    const NamedTensor& p = *position;
    if (!p.tensor.requires_grad()) continue;
    parameters.push_back(p.tensor);
    sparse.push_back(p.sparse_gradient);
    names.push_back(p.name);
  }
  COHORT_THROW_UNLESS(!parameters.empty(), "the model has no trainable parameter: nothing to synchronise");

  try {
    const bool anew = self.group->environment().generation > 0;
    if (!anew) self.broadcast_from(detached(all), 0);
    // Without broadcast_buffers every rank keeps its own buffers from the start, as with PyTorch's constructor.
    if (!anew && self.settings.broadcast_buffers) self.broadcast_from(detached(buffers_of(*self.model)), 0);

    self.names = names;
    ReducerSettings reducer_settings;
    reducer_settings.bucket_bytes = static_cast<std::int64_t>(self.settings.bucket_cap_mb * kMebibyte);
    reducer_settings.first_bucket_bytes = static_cast<std::int64_t>(self.settings.first_bucket_cap_mb * kMebibyte);
    reducer_settings.find_unused_parameters = self.settings.find_unused_parameters;
    reducer_settings.gradient_as_bucket_view = self.settings.gradient_as_bucket_view;
    reducer_settings.static_graph = self.settings.static_graph;
    reducer_settings.buckets_fixed_at_start = self.settings.bucket_order == "definition";
    reducer_settings.broadcast_buffers = self.settings.broadcast_buffers;
    reducer_settings.model_name = self.model->name();
    ReducerPair pair = make_reducer(parameters, sparse, names, self.group->process_group(), reducer_settings);
    self.reducer = std::move(pair.reducer);
    self.logger = std::move(pair.logger);
    const std::string& compression = self.settings.compression;
    COHORT_THROW_UNLESS(compression == "none" || compression == "fp16" || compression == "bf16",
                        "parallel.ddp.compression='{}': it is none, fp16 or bf16", compression);
    if (compression != "none")
      self.reducer->register_comm_hook(
          make_compression_hook(self.group->process_group(), compression == "fp16" ? at::kHalf : at::kBFloat16));
    self.use_node_sum(parameters, sparse);
  } catch (const std::exception& problem) {
    self.rethrow(problem, "the first broadcast of the parameters");
  }
}

void DistributedDataParallel::leave_group() {
  Impl& self = *impl_;
  drop_gradients(*self.model);  // they may be views into the reducer's buckets
  self.end_reduction();
  if (self.node_sum) self.earlier_sums_s += self.node_sum->seconds();
  self.node_sum.reset();
  self.count_of_ranks.reset();
  self.ranks_in_forward.reset();
  self.synchronise = self.synchronise_buffers = true;
  self.rebuilt = self.joining = false;
  self.delayed_reduce_queued = std::make_shared<bool>(false);
}

DistributedDataParallel::~DistributedDataParallel() {
  impl_->end_reduction();
}

torch::nn::Module& DistributedDataParallel::module() {
  return *impl_->model;
}
int DistributedDataParallel::rank() const {
  return impl_->group->rank();
}
int DistributedDataParallel::world_size() const {
  return impl_->group->world_size();
}
dist::Group& DistributedDataParallel::group() {
  return *impl_->group;
}
void DistributedDataParallel::zero_grad() {
  drop_gradients(*impl_->model);
}
void DistributedDataParallel::mean_over_ranks(at::Tensor& values) {
  impl_->group->all_reduce(values, dist::Reduction::kMean);
}
void DistributedDataParallel::max_over_ranks(at::Tensor& values) {
  impl_->group->all_reduce(values, dist::Reduction::kMax);
}
void DistributedDataParallel::barrier() {
  impl_->group->barrier();
}
std::vector<std::int64_t> DistributedDataParallel::bucket_sizes() const {
  return impl_->logger->get_bucket_sizes();
}
bool DistributedDataParallel::buckets_were_rebuilt() const {
  return impl_->rebuilt;
}

bool DistributedDataParallel::sums_in_shared_memory() const {
  return impl_->node_sum != nullptr;
}

void DistributedDataParallel::prepare_for_forward() {
  Impl& self = *impl_;
  const bool gradients = at::GradMode::is_enabled();
  try {
    const dist::WaitingForOthers waiting;  // the buffers come from rank 0
    if (gradients && self.synchronise) {
      self.logger->set_runtime_stats_and_log();
      self.reducer->prepare_for_forward();
    }
    if (self.joining) {
      at::Tensor one = self.scalar(1);
      const auto work = self.start_sum(one);
      if (self.join.throw_on_early_termination) {
        at::Tensor ended = self.scalar(0);
        self.group->all_reduce(ended);
        COHORT_THROW_UNLESS(ended.item<float>() == 0,
                            "rank {}: another rank has no more data; all ranks stop, as join was asked to", rank());
      }
      self.reducer->set_forward_pass_work_handle(work, self.join.divide_by_initial_world_size);
      self.count_of_ranks = work;
      self.ranks_in_forward = one;
    }
    if (gradients && self.reducer->rebuild_buckets()) self.rebuilt = true;
    self.synchronise_module_buffers(true);
    if (self.joining) {
      at::Tensor flag = self.scalar(self.synchronise ? 1 : 0);
      self.group->all_reduce(flag);
    }
  } catch (const std::exception& problem) {
    self.rethrow(problem, "the exchange before a forward pass");
  }
}

std::vector<at::Tensor> DistributedDataParallel::prepare_for_backward(std::vector<at::Tensor> outputs) {
  Impl& self = *impl_;
  const bool synchronise = at::GradMode::is_enabled() && self.synchronise;
  self.synchronise_buffers = synchronise;
  if (!synchronise) return outputs;
  const bool search = self.settings.find_unused_parameters && !self.settings.static_graph;
  self.reducer->prepare_for_backward(search ? outputs : std::vector<at::Tensor>{});
  const bool delay = self.settings.static_graph && !*self.delayed_reduce_queued;
  if (!search && !delay) return outputs;

  const auto action = c10::make_intrusive<GateAction>();
  action->reducer = self.reducer;
  if (delay) action->reduce_queued = self.delayed_reduce_queued;
  // Tensors without a graph stay as they are; the gate would give them one.
  std::vector<at::Tensor> with_graph;
  for (const at::Tensor& output : outputs)
    if (output.defined() && output.grad_fn()) with_graph.push_back(output);
  if (with_graph.empty()) return outputs;
  const std::vector<at::Tensor> gated = OutputGate::apply(at::TensorList(with_graph), action);
  std::size_t next = 0;
  for (at::Tensor& output : outputs)
    if (output.defined() && output.grad_fn()) output = gated[next++];
  return outputs;
}

at::Tensor DistributedDataParallel::prepare_for_backward(at::Tensor output) {
  return prepare_for_backward(std::vector<at::Tensor>{std::move(output)}).front();
}

void DistributedDataParallel::backward(const at::Tensor& loss) {
  try {
    loss.backward();
  } catch (const std::exception& problem) {
    impl_->rethrow(problem, "the all-reduce of gradients");
  }
}

at::Tensor DistributedDataParallel::forward_backward(const Batch& batch, const LossFunction& loss,
                                                     const BackwardOptions& options) {
  Impl& self = *impl_;
  const Batch here = place_batch(batch, self.device);
  at::Tensor value;
  const auto step = [&] {
    try {
      prepare_for_forward();
      value = checked_loss(loss, *self.model, here);
      const at::Tensor output = prepare_for_backward(value);
      const bool waits = options.synchronise && self.time_wait_behind(output);
      backward_weighted(output, options.weight, options.loss_scale);
      if (waits) self.waits->end();
    } catch (const std::exception& problem) {
      self.rethrow(problem, "the all-reduce of gradients");
    }
  };
  if (options.synchronise) {
    step();
  } else {
    no_sync(step);
  }
  return value.detach();
}

double DistributedDataParallel::exchange_seconds() const {
  const Impl& self = *impl_;
  if (self.group->world_size() == 1) return 0.0;
  return self.earlier_sums_s + (self.node_sum ? self.node_sum->seconds() : 0.0) + self.waits->seconds();
}

void DistributedDataParallel::no_sync(const std::function<void()>& body) {
  struct Restore {
    bool& flag;
    bool former;
    ~Restore() { flag = former; }
  } const restore{impl_->synchronise, impl_->synchronise};
  impl_->synchronise = false;
  body();
}

void DistributedDataParallel::join(const std::function<void()>& body, JoinSettings settings) {
  Impl& self = *impl_;
  COHORT_CHECK(!self.joining, "join inside join");
  struct Restore {
    bool& flag;
    ~Restore() { flag = false; }
  } const restore{self.joining};
  self.joining = true;
  self.join = settings;
  self.logger->set_uneven_input_join();
  body();

  bool last = true;  // nobody had data left when this rank ended
  try {
    for (int skew = 0; self.ranks_with_data() > 0; ++skew, last = false) {
      if (skew == kSkewWarning)
        log::warning("rank {} ended {} steps before others: it idles; the data are spread unevenly", rank(),
                     kSkewWarning);
      if (settings.throw_on_early_termination) {
        at::Tensor ended = self.scalar(1);
        self.group->all_reduce(ended);
        throw Error(
            format("rank {} has no more data while other ranks have; all ranks stop, as join was asked to", rank()));
      }
      self.shadow_one_step();
    }
    const int source = self.common_rank(last);
    self.broadcast_from(detached(parameters_of(*self.model)), source);
    if (self.settings.broadcast_buffers) self.broadcast_from(detached(buffers_of(*self.model)), source);
  } catch (const std::exception& problem) {
    self.rethrow(problem, "waiting for ranks that still have data");
  }
}

}  // namespace cohort::parallel
