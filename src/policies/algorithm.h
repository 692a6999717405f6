/// What learns from demonstrations, by the name in model.algorithm: what its settings ask of the data before there is a
/// network, and how the network is made (models/policy_network.h). A new one is a class and a line in algorithms().
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/policy_network.h"
#include "policies/policy_settings.h"

namespace cohort::policies {

class Algorithm {
 public:
  virtual ~Algorithm() = default;
  virtual std::string name() const = 0;     ///< "diffusion_policy"
  virtual std::string section() const = 0;  ///< of its settings: "model.diffusion"

  /// Frames of observations per sample, and rows of actions.
  virtual int observation_steps(const PolicySettings& settings) const = 0;
  virtual int action_steps(const PolicySettings& settings) const = 0;
  /// Row of a sample's actions that belongs to its newest frame.
  virtual int newest_row(const PolicySettings& settings) const = 0;
  /// Frames that one of its decisions sees; fewer than observation_steps() where it remembers the others.
  virtual int frames_per_decision(const PolicySettings& settings) const = 0;
  /// The largest normalised action that it can give, in size; nothing: any.
  virtual std::optional<double> reach(const PolicySettings&) const { return std::nullopt; }
  /// What its loss is, for charts.
  virtual std::string loss_name(const PolicySettings& settings) const = 0;
  /// Whether the reference gives its weights other names (`cohort convert-weights`).
  virtual bool renames_weights() const = 0;

  /// Throws Error naming the field of its section that is out of range. An action width of 0 will come from the data.
  virtual void check(const PolicySettings& settings) const = 0;
  /// A network in training mode on the CPU, its weights drawn from `seed`.
  virtual std::shared_ptr<models::PolicyNetwork> make(const PolicySettings& settings,
                                                      models::ObservationEncoderSettings encoder,
                                                      std::uint64_t seed) const = 0;
};

/// All of them; the first is the default.
const std::vector<const Algorithm*>& algorithms();
/// The one that model.algorithm names. Throws Error for another name.
const Algorithm& algorithm_of(const PolicySettings& settings);

}  // namespace cohort::policies
