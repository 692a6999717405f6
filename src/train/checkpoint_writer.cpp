#include "train/checkpoint_writer.h"

#include <csignal>
#include <nlohmann/json.hpp>

#include <pthread.h>

#include <ATen/DeviceAccelerator.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/log.h"
#include "formats/crc32c.h"
#include "report/result_links.h"
#include "weights/checksums.h"
#include "weights/safetensors.h"

namespace cohort::train {
namespace fs = std::filesystem;

CheckpointWriter::CheckpointWriter(weights::CheckpointFolder folder, std::int64_t keep, fs::path links)
    : folder_(std::move(folder)), keep_(keep), links_(std::move(links)) {
  if (const int removed = folder_.clean(); removed > 0) {
    log::info("{}: removed {} checkpoint(s) that a former run had not finished", folder_.path().string(), removed);
  }
  folder_.restore_links();
}

CheckpointWriter::~CheckpointWriter() {
  if (thread_.joinable()) {
    {
      const std::scoped_lock lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  if (!error_.empty()) log::error("{}", error_);
}

weights::NamedTensors CheckpointWriter::capture(const weights::NamedTensors& live,
                                                std::map<std::string, at::Tensor>& buffers) {
  const at::NoGradGuard no_grad;
  weights::NamedTensors copies;
  copies.reserve(live.size());
  for (const auto& [name, tensor] : live) {
    at::Tensor& buffer = buffers[name];
    if (!buffer.defined() || buffer.sizes() != tensor.sizes() || buffer.scalar_type() != tensor.scalar_type()) {
      buffer =
          at::empty(tensor.sizes(), at::TensorOptions().dtype(tensor.scalar_type()).pinned_memory(tensor.is_cuda()));
    }
    buffer.copy_(tensor, /*non_blocking=*/true);
    if (!tensor.is_cpu()) copied_from_.insert(tensor.device().index());
    copies.emplace_back(name, buffer);
  }
  return copies;
}

void CheckpointWriter::save(const weights::CheckpointContent& content) {
  finish();
  pending_.state = content.state;
  pending_.model_aliases = content.model_aliases;
  pending_.dataset_statistics = content.dataset_statistics;
  pending_.is_best = content.is_best;
  copied_from_.clear();
  pending_.model = capture(content.model, model_buffers_);
  pending_.ema = capture(content.ema, ema_buffers_);
  pending_.optimizer = capture(content.optimizer, optimizer_buffers_);
  pending_.random = capture(content.random, random_buffers_);
  // Of the tensors' devices: the thread's present one may be another.
  for (const c10::DeviceIndex device : copied_from_) at::accelerator::synchronizeDevice(device);
  {
    const std::scoped_lock lock(mutex_);
    busy_ = true;
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  changed_.notify_all();
}

void CheckpointWriter::run() {
  ::pthread_setname_np(::pthread_self(), "checkpoint");
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);  // SIGTERM belongs to the thread that trains
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return busy_ || stop_; });
    if (!busy_) return;
    lock.unlock();
    std::string error;
    try {
      write(pending_);
    } catch (const std::exception& e) {
      error = format("the checkpoint of step {} could not be saved: {}", pending_.state.step, e.what());
    }
    lock.lock();
    if (error_.empty()) error_ = error;
    busy_ = false;
    changed_.notify_all();
  }
}

void CheckpointWriter::write(const weights::CheckpointContent& content) const {
  const std::int64_t step = content.state.step;
  const fs::path path = folder_.begin(step);
  try {
    const std::map<std::string, std::string> metadata{{"format", "pt"}, {"step", std::to_string(step)}};
    config::Json files = config::Json::object();
    weights::Checksums checksums;
    const auto tensors = [&](const char* name, const weights::NamedTensors& part,
                             const std::map<std::string, std::string>& notes) {
      auto all = metadata;
      all.insert(notes.begin(), notes.end());
      checksums[name] = weights::write_safetensors_in_place(path / name, part, all);
      files[name] = fs::file_size(path / name);
    };
    const auto text = [&](const char* name, const std::string& bytes) {
      write_file_atomically(path / name, bytes);
      checksums[name] = crc32c(bytes);
    };
    tensors(weights::kModelFile, content.model, content.model_aliases);
    if (!content.ema.empty()) {
      fs::create_directory(path / fs::path(weights::kEmaFile).parent_path());
      tensors(weights::kEmaFile, content.ema, content.model_aliases);
    }
    tensors(weights::kOptimizerFile, content.optimizer, {});
    tensors(weights::kRandomFile, content.random, {});
    if (!content.dataset_statistics.empty()) {
      text(weights::kStatisticsFile, content.dataset_statistics);
      files[weights::kStatisticsFile] = fs::file_size(path / weights::kStatisticsFile);
    }
    config::Json state = to_json(content.state);
    state["files"] = files;
    text(weights::kStateFile, json_text(state, 2) + "\n");
    write_file_atomically(path / weights::kChecksumsFile, weights::to_text(checksums));
    folder_.commit(step, content.is_best);
  } catch (const std::exception&) {
    std::error_code ignored;
    fs::remove_all(path, ignored);
    throw;
  }
  try {
    folder_.prune(keep_);
  } catch (const Error& e) {
    log::warning("an old checkpoint stays: {}", e.what());  // the new one is whole
  }
  if (!links_.empty()) report::link_checkpoints(links_, folder_.path());
}

std::string CheckpointWriter::take_error() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(error_, {});
}

void CheckpointWriter::check() {
  const std::string error = take_error();
  if (!error.empty()) throw Error(error);
}

void CheckpointWriter::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !busy_; });
}

void CheckpointWriter::finish() {
  wait();
  check();
}

}  // namespace cohort::train
