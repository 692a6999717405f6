#include "parallel/exchange_timer.h"

#include <utility>

#include <c10/core/impl/VirtualGuardImpl.h>

namespace cohort::parallel {
namespace {

constexpr double kSecondsPerMillisecond = 1e-3;  // c10::Event tells milliseconds

}  // namespace

c10::Event ExchangeTimer::mark() const {
  c10::Event event(device_.type(), c10::EventFlag::BACKEND_DEFAULT);  // the other kind knows no time
  event.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  return event;
}

void ExchangeTimer::begin() {
  if (device_.is_cpu())
    began_ = Clock::now();
  else
    began_on_device_.emplace(mark());
}

void ExchangeTimer::end() {
  if (device_.is_cpu()) {
    if (began_) seconds_ += std::chrono::duration<double>(Clock::now() - *began_).count();
    began_.reset();
    return;
  }
  if (!began_on_device_) return;
  on_device_.push_back({std::move(*began_on_device_), mark()});
  began_on_device_.reset();
  while (!on_device_.empty() && on_device_.front().end.query()) {
    seconds_ += kSecondsPerMillisecond * on_device_.front().begin.elapsedTime(on_device_.front().end);
    on_device_.pop_front();
  }
}

}  // namespace cohort::parallel
