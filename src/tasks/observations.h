/// What is observed in a batch of environments: named fields of numbers and pictures of cameras, as views. A Task is one
/// (tasks/task.h); what somebody else has measured, of a robot or sent over a network, is another, which simulates
/// nothing. Whoever acts needs no more than this.
///
///   GivenObservations seen("my-robot", {{.name = "joint_pos", .shape = {7}, .unit = "rad"}});
///   std::ranges::copy(measured, seen.row(0).begin());
///   seen.observation(seen.observation_index("joint_pos"));   // (1, 7)
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/array_view.h"

namespace cohort::tasks {

/// A named quantity that every environment has, float32.
struct FieldSpec {
  std::string name;                 ///< "eef_pos"
  std::vector<std::int64_t> shape;  ///< of one environment
  std::string unit;                 ///< of every number: "m", "rad", "m/s"; "1" for plain numbers
  std::string summary;
  /// No robot measures it: where a thing or the goal is. `cohort collect` leaves it out of LeRobot's observation.state.
  bool privileged = false;
  std::int64_t elements() const;
};

class Observations {
 public:
  virtual ~Observations() = default;

  /// Whose they are, for messages: the task's name.
  virtual const std::string& observed() const = 0;
  virtual const std::vector<FieldSpec>& fields() const = 0;
  /// Names of pictures; empty: there are none.
  virtual const std::vector<std::string>& cameras() const = 0;
  virtual int n_envs() const = 0;
  /// Where the memory of the views of fields lies; pictures lie in host memory.
  virtual DeviceId device() const { return {}; }

  /// (n_envs, shape...) float32 of fields()[field], contiguous, in device()'s memory; valid as long as the object.
  virtual ArrayView observation(std::size_t field) = 0;

  /// The present pictures of a camera: (n_envs, height, width, 3) uint8, row 0 is the top, in host memory; only the
  /// rows of `envs` are up to date. A picture is drawn once, however often it is asked for. Throws Error for a camera
  /// that there is not, naming the nearest.
  virtual ArrayView picture(const std::string& camera, std::span<const std::int32_t> envs);

  /// Index into fields(). Throws Error naming the nearest field.
  std::size_t observation_index(std::string_view name) const;
};

/// Numbers that somebody else has written, in host memory.
class GivenObservations final : public Observations {
 public:
  GivenObservations(std::string observed, std::vector<FieldSpec> fields, int n_envs = 1);

  const std::string& observed() const override { return observed_; }
  const std::vector<FieldSpec>& fields() const override { return fields_; }
  const std::vector<std::string>& cameras() const override { return cameras_; }
  int n_envs() const override { return n_envs_; }
  ArrayView observation(std::size_t field) override;
  /// A field's numbers of one environment, to be written.
  std::span<float> row(std::size_t field, std::int32_t env = 0);

 private:
  std::string observed_;
  std::vector<FieldSpec> fields_;
  std::vector<std::string> cameras_;
  int n_envs_;
  std::vector<std::vector<float>> rows_;
};

}  // namespace cohort::tasks
