#include "train/batches_in_flight.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace cohort::train {

struct BatchesInFlight::Held {
  parallel::Batch batch;
  c10::Event done;
};

BatchesInFlight::BatchesInFlight(c10::Device device) : device_(device) {}

BatchesInFlight::~BatchesInFlight() {
  try {
    release(0);
  } catch (const std::exception&) {
    // The device has failed; what it was doing is lost anyway, and the failure is reported where it is noticed.
  }
}

void BatchesInFlight::hold(parallel::Batch batch) {
  if (device_.is_cpu()) return;
  auto held = std::make_unique<Held>(Held{std::move(batch), c10::Event(device_.type())});
  held->done.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  held_.push_back(std::move(held));
}

void BatchesInFlight::release(std::size_t keep) {
  while (held_.size() > keep) {
    held_.front()->done.synchronize();
    held_.pop_front();
  }
}

}  // namespace cohort::train
