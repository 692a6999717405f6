/// How long this process stands still for other processes: what lies between begin() and end(), added up.
///
///   ExchangeTimer timer(device);
///   timer.begin();          // this process has done its own work
///   work->wait();           // for the sum over all processes
///   timer.end();
///   timer.seconds();
///
/// On the CPU the thread's time counts. On a GPU it would tell nothing, since Work::wait() only makes the stream wait:
/// events on the current stream say how long that stood still.
#pragma once
#include <chrono>
#include <deque>
#include <optional>

#include <c10/core/Device.h>
#include <c10/core/Event.h>

namespace cohort::parallel {

class ExchangeTimer {
 public:
  explicit ExchangeTimer(c10::Device device) : device_(device) {}

  /// Without an end(), after an exception say, it does not count.
  void begin();
  /// Nothing without a begin().
  void end();
  /// So far. GPU: of what was over there when end() was last called, some steps ago.
  double seconds() const { return seconds_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Wait {
    c10::Event begin, end;
  };
  c10::Event mark() const;

  const c10::Device device_;
  double seconds_ = 0;
  std::optional<Clock::time_point> began_;     // CPU
  std::optional<c10::Event> began_on_device_;  // GPU
  std::deque<Wait> on_device_;                 // not known to be over
};

}  // namespace cohort::parallel
