/// What a policy server is shown of a task.
///
///   const auto writer = make_observation_writer("openpi-libero", task, info);   // throws Error where the task lacks something
///   const std::vector<Map> messages = writer->write(task, envs);
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "serve/observation.h"
#include "serve/value.h"

namespace cohort::tasks {
class Task;
}

namespace cohort::serve {

class ObservationWriter {
 public:
  virtual ~ObservationWriter() = default;
  /// The present observation of each of envs, without the prompt.
  virtual std::vector<Map> write(tasks::Task& task, std::span<const std::int32_t> envs) const = 0;
};

/// `form`: "task": the observations that `cohort serve` says it needs, of another server all of the task's and its cameras'
/// pictures, by the task's own names; "openpi-libero": what openpi's examples/libero/main.py sends
/// (serve/libero_observations.h).
std::unique_ptr<ObservationWriter> make_observation_writer(const std::string& form, const tasks::Task& task,
                                                           const ServerInfo& server, const std::string& url);

/// px of the pictures that the form wants drawn; 0: any.
int picture_size_of(const std::string& form);

/// Several moments as one observation: arrays get one more dimension in front.
Map stack(std::span<const Map> moments);

}  // namespace cohort::serve
