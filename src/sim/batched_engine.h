/// What the batched engine's backends have in common: fields and where they are kept, saved states, parameters of the
/// environments.
#pragma once
#include <array>
#include <bitset>
#include <string>
#include <vector>

#include "sim/engine.h"
#include "sim/host/model.h"
#include "sim/kernels/lane/data_view.h"
#include "sim/parameter_store.h"

namespace cohort::sim {

/// DataView::left. present: SceneOptions::leave_present.
int left_bits(const FieldSet& step_leaves, bool present);

/// Rows of the state that no field shows: the lower part of the time, then the delays' history.
int hidden_rows(const ModelView& m);

/// What fields of an environment take. besides: bytes of its state that no field shows.
MemoryPlan plan_of_fields(const Model& model, const FieldSet& step_leaves, double besides);

class BatchedEngine : public Engine {
 public:
  EngineKind kind() const override { return EngineKind::kBatched; }
  const ModelInfo& info() const override { return model_.info; }
  int n_envs() const override { return n_; }
  bool has(Field field) const override { return has_field(step_leaves_, field); }
  ArrayView parameter(Parameter parameter) override;
  std::vector<float> model_values(Parameter parameter) const override { return parameters_.defaults(parameter); }
  std::vector<std::uint8_t> save_state() override;
  void load_state(std::span<const std::uint8_t> bytes) override;
  std::vector<std::string> state_names() const override;
  ArrayView state_array(const std::string& name, Access access) override;
  void state_written() override;
  ParameterSet parameters_in_use() const override { return parameters_.taken(); }
  std::string error_text(int) const override { return ""; }

 protected:
  /// block: the environments' memory is padded to a multiple of so many.
  BatchedEngine(Model model, int n_envs, int block, const EngineOptions& options);

  /// Copies between this backend's memory and the host's, done when it returns.
  virtual void read_memory(void* to, const void* from, std::size_t bytes) = 0;
  virtual void write_memory(void* to, const void* from, std::size_t bytes) = 0;
  /// Whether its memory can be read and written as it is.
  virtual bool is_host() const { return true; }
  /// Before its state is read.
  virtual void settle() {}
  /// After a state was loaded, before its parameters are.
  virtual void state_loaded() = 0;
  /// From now on the environments have the model's parameters.
  virtual void share_parameters() = 0;
  /// Throws Error with the numbers where these parameters, those that environments have left out, do not fit beside
  /// what is taken. copies: bytes of an environment while values are written.
  virtual void need_room(const ParameterSet& wanted, const std::string& what, double copies) const = 0;
  /// ", on a GPU" for messages.
  virtual const char* place() const { return ""; }

  int size_of(Field field) const { return has(field) ? field_size(model_.info, field) : 0; }
  std::size_t row_bytes() const { return 4 * static_cast<std::size_t>(n_pad_); }
  std::size_t field_bytes(Field field) const { return static_cast<std::size_t>(size_of(field)) * row_bytes(); }
  std::size_t hidden_bytes() const { return static_cast<std::size_t>(hidden_rows(model_.sizes)) * row_bytes(); }
  /// Of an environment (Separations): they are in no result, so they are in no saved state.
  std::size_t separation_values() const { return 3 * static_cast<std::size_t>(model_.sizes.nseparation); }
  void*& field_memory(Field field) { return memory_[static_cast<std::size_t>(field)]; }
  float* floats(Field field) { return static_cast<float*>(field_memory(field)); }
  /// (n_envs, size) of what is kept at `data` as an engine's memory is: [value][environment].
  ArrayView shape_of(Field field, void* data) const;
  /// The kernels' view. hidden: memory of hidden_bytes(); memory_of(field): null where there is none. The rest is null.
  template <class MemoryOf>
  DataView data_view(float* hidden, const MemoryOf& memory_of) const {
    DataView d{};
    d.n_pad = n_pad_;
    d.time_low = hidden, d.history = hidden + n_pad_;
    d.left = left_bits(step_leaves_, leave_present_);
    for (int f = 0; f < kFieldCount; ++f) point(d, static_cast<Field>(f), memory_of(static_cast<Field>(f)));
    return d;
  }
  /// Gives the environments parameters of their own from the beginning.
  void take_parameters(const ParameterSet& wanted) {
    parameters_.take(wanted, n_, [&] { commit_parameters(); });
  }

  Model model_;
  FieldSet step_leaves_;
  bool leave_present_;
  int n_, n_pad_;
  ParameterStore parameters_;
  void* hidden_ = nullptr;  ///< hidden_bytes(); the backend's, as what field_memory() points at

 private:
  static void point(DataView& data, Field field, void* memory);
  template <class F>
  void for_state(F f);
  std::array<void*, kFieldCount> memory_{};
  std::vector<std::uint8_t> state_copy_;          // of for_state(), where it is not the host's
  std::bitset<kFieldCount + 1> written_in_copy_;  // which of its arrays were asked for to be written
};

}  // namespace cohort::sim
