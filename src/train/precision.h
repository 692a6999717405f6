/// Mixed precision: autocast as torch.autocast does it, for one thread and one scope.
#pragma once
#include <string>

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

namespace torch::nn {
class Module;
}

namespace cohort::train {

enum class Precision { kFp32, kBf16, kFp16 };

/// "fp32", "bf16", "fp16"; also Accelerate's "no". Throws Error.
Precision parse_precision(const std::string& text);
const char* to_string(Precision precision);

/// The model's floating-point parameters in another type, in place: before a strategy or an optimizer holds on to them.
/// Buffers stay as they are.
void convert_parameters(torch::nn::Module& module, at::ScalarType type);

/// Sets autocast for operations on `device` in the calling thread and restores the former state at the end of the
/// scope. kFp32 switches autocast off. Autocast is a property of a thread: every replica's thread needs its own guard.
/// Backward passes stand outside of it, as in PyTorch.
class PrecisionGuard {
 public:
  PrecisionGuard(Precision precision, c10::DeviceType device);
  ~PrecisionGuard();
  PrecisionGuard(const PrecisionGuard&) = delete;
  PrecisionGuard& operator=(const PrecisionGuard&) = delete;

 private:
  c10::DeviceType device_;
  bool former_enabled_;
  c10::ScalarType former_type_;
};

/// The whole autocast state of a thread, to be entered again in another thread or later (recomputation in backward).
class AutocastState {
 public:
  /// The calling thread's state for the CPU and for `device`.
  explicit AutocastState(c10::DeviceType device);

  class Guard {
   public:
    explicit Guard(const AutocastState& state);
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    const AutocastState& entered_;
    bool former_cpu_, former_device_, former_cache_;
    c10::ScalarType former_cpu_type_, former_device_type_;
  };

 private:
  c10::DeviceType device_;
  bool cpu_enabled_, device_enabled_, cache_;
  c10::ScalarType cpu_type_, device_type_;
};

}  // namespace cohort::train
