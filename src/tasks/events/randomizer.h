/// Gives environments their randomised parameters.
///
///   Randomizer randomizer(std::move(randomizations), scene, control_period);
///   randomizer.reset(envs, keys);                    // where episodes begin; keys: of the episodes' seeds
///   randomizer.step(steps, keys);                    // before every control period, for mode: interval
///   ArrayView bias = randomizer.task_values(TaskParameter::kEncoderBias);
///
/// Only the values that are drawn are written, and parameters are committed for these environments alone.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "core/array_view.h"
#include "sim/host/looks.h"
#include "sim/host/scene.h"
#include "tasks/events/randomization.h"
#include "tasks/state_visitor.h"

namespace cohort::tasks {

class Randomizer {
 public:
  /// The scene stands and outlives this; parameters that it was not built with take their memory here. control_period: s.
  Randomizer(std::vector<Randomization> randomizations, sim::Scene& scene, double control_period);

  /// Draws everything anew for these environments, whose episodes begin. keys: an episode's each, in the order of envs.
  void reset(std::span<const std::int32_t> envs, std::span<const std::uint64_t> keys);
  /// Draws what is due. steps: control steps of every environment since its reset; keys: of their episodes.
  void step(std::span<const std::int64_t> steps, std::span<const std::uint64_t> keys);
  bool has_intervals() const { return has_intervals_; }

  /// Writes value items[i] of environment envs[i] of a field, in this order: for who has a shorter way to an engine on a
  /// device than the copy of the whole field that is written otherwise.
  using PutValues = std::function<void(sim::Field field, std::span<const std::int32_t> envs,
                                       std::span<const std::int32_t> items, std::span<const double> values)>;
  void put_values_by(PutValues put) { put_values_ = std::move(put); }

  /// (n_envs, size), float32, in host memory, [value][environment]; valid as long as this. Zeros of what nobody draws.
  ArrayView task_values(TaskParameter parameter);
  /// Adds what the state of the scene does not hold.
  void visit(StateVisitor& state);

 private:
  struct Prepared {
    Randomization what;
    std::vector<double> base;                  ///< of each write: the model's value
    std::vector<LinkInertia> inertias;         ///< the model's, of each of what.inertias
    std::vector<std::array<double, 4>> quats;  ///< likewise, of each of what.turns
    std::uint64_t id = 0;                      ///< of its streams
    /// Of kInterval, of each environment: control step of the next time, and how many there were.
    std::vector<std::int64_t> next, count;
  };
  RandomStream stream(const Prepared& p, std::uint64_t key, std::int64_t count) const;
  /// Calls f(sim::Parameter) for each that an event writes.
  template <class F>
  static void for_each_parameter(const Prepared& p, F f);
  void write_inertia(const Prepared& p, std::size_t k, std::int32_t env, const LinkInertia& value);
  /// A parameter's value, and what is seen of it.
  void set_parameter(sim::Parameter parameter, std::int32_t env, int item, double value);
  void put_forces();
  void set_look(sim::Look look, std::int32_t env, int item, double value);
  void apply(const Prepared& p, std::int32_t env, std::uint64_t key, std::int64_t count);
  std::int64_t steps_until_next(const Prepared& p, std::uint64_t key, std::int64_t count) const;

  sim::Scene& scene_;
  double control_period_;
  std::vector<Prepared> all_;
  bool has_intervals_ = false, has_parameters_ = false, has_looks_ = false;
  std::array<std::vector<float>, kTaskParameterCount> task_values_;
  /// Valid during a call.
  std::array<ArrayView, sim::kParameterCount> parameters_;
  /// Forces that are drawn, until put_forces() gives them to the engine.
  std::vector<std::int32_t> force_envs_, force_items_;
  std::vector<double> force_values_;
  PutValues put_values_;
  std::vector<std::int32_t> due_;
};

}  // namespace cohort::tasks
