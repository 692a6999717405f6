/// What LIBERO's environment observes, by robosuite's names (environments/manipulation, robots/single_arm.py) and by
/// those of LIBERO's data sets (libero/lifelong, scripts/create_dataset.py).
#pragma once
#include <span>
#include <vector>

#include "tasks/libero/simulation.h"
#include "tasks/task.h"

namespace cohort::tasks::libero {

class Observations {
 public:
  explicit Observations(const Simulation& simulation);

  const std::vector<FieldSpec>& fields() const { return fields_; }

  /// Memory of one environment.
  struct Workspace {
    explicit Workspace(const Simulation& simulation) : poses(simulation.frames().poses()) {}
    Frames::Poses poses;
    std::vector<double> numbers;
  };
  /// Calls put(field, numbers) for every field.
  template <class Put>
  void read(const Simulation::Seen& seen, Workspace& w, const Put& put) const {
    compute(seen, w);
    std::size_t at = 0;
    for (std::size_t field = 0; field < fields_.size(); ++field) {
      const auto width = static_cast<std::size_t>(fields_[field].elements());
      put(field, std::span<const double>(w.numbers).subspan(at, width));
      at += width;
    }
  }

 private:
  void compute(const Simulation::Seen& seen, Workspace& w) const;

  const Simulation& simulation_;
  std::size_t hand_ = 0;
  std::vector<std::size_t> objects_;  ///< bodies
  std::vector<FieldSpec> fields_;
};

}  // namespace cohort::tasks::libero
