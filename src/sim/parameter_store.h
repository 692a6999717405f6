/// Parameters that environments have of their own, in host memory: what the caller writes, and what the kernels read of it.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <new>
#include <numeric>
#include <span>
#include <vector>

#include "sim/backends/cpu/block_runner.h"
#include "sim/engine.h"
#include "sim/host/model.h"

namespace cohort::sim {

/// Memory that begins where a vector register's load may begin: rows of n_pad values are whole blocks of 64 bytes.
template <class T>
struct BlockAligned {
  using value_type = T;
  BlockAligned() = default;
  template <class U>
  BlockAligned(const BlockAligned<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(64))); }
  void deallocate(T* p, std::size_t) { ::operator delete(p, std::align_val_t(64)); }
  friend bool operator==(const BlockAligned&, const BlockAligned&) { return true; }
};
using LaneValues = std::vector<float, BlockAligned<float>>;

class ParameterStore {
 public:
  /// Takes memory only once a parameter is asked for.
  ParameterStore(const Model& model, int n_pad) : model_(model), n_pad_(n_pad) {}

  /// Values per environment.
  static int size(const Model& model, Parameter parameter);
  int size(Parameter parameter) const { return size(model_, parameter); }
  /// The model's own values.
  std::vector<float> defaults(Parameter parameter) const;
  /// The values, [value][environment]; the model's when they are asked for the first time.
  float* values(Parameter parameter);
  /// Those of the first n environments, (n, size): what an engine shows.
  ArrayView view(Parameter parameter, int n) {
    ArrayView v;
    v.data = values(parameter);
    v.type = ElementType::kFloat32;
    v.rank = 2;
    v.shape = {n, size(parameter)};
    v.strides = {1, n_pad_};
    return v;
  }
  bool any() const { return taken().any(); }
  /// Those that have values.
  ParameterSet taken() const;
  /// Gives the n environments these parameters, with the model's values, and commits them by `commit`. Where that
  /// throws or there is no memory (Error), nothing has changed.
  void take(const ParameterSet& wanted, int n, const std::function<void()>& commit);
  /// Bits of Varies.
  static int varies(const ParameterSet& parameters);
  int varies() const { return varies(taken()); }
  /// Of an environment: values, and what the kernels read of them.
  static double bytes_per_environment(const Model& model, const ParameterSet& parameters);
  /// Values of an environment in DataView::weight_ratio.
  static int ratio_rows(const ModelView& sizes);
  /// What the kernels read alone.
  static double bytes_for_kernels(const ModelView& sizes, int varies);

  /// Works out what the kernels read and points `data` at it. Throws Error, naming the environment, for what
  /// check_parameter() refuses and what the model has no place for. view: with varies() set. envs: those whose
  /// values have changed since the last time; empty: any may have.
  void commit(const ModelView& view, DataView& data, std::span<const std::int32_t> envs = {});

  /// Everything as bytes, and back. load returns how many bytes it took; it throws Error for bytes that do not fit and
  /// for impossible values, and then changes nothing.
  void save(std::vector<std::uint8_t>& to) const;
  std::size_t load(std::span<const std::uint8_t> from);
  /// The parameters that such bytes hold. Throws Error for bytes that are cut off.
  static ParameterSet saved_in(std::span<const std::uint8_t> bytes);
  /// Takes another's values, of the same model, and gives it its own.
  void exchange_values(ParameterStore& other) { values_.swap(other.values_); }

 private:
  float at(const LaneValues& v, int i, int env) const {
    return v[static_cast<std::size_t>(i) * static_cast<std::size_t>(n_pad_) + static_cast<std::size_t>(env)];
  }
  float& at(LaneValues& v, int i, int env) const {
    return v[static_cast<std::size_t>(i) * static_cast<std::size_t>(n_pad_) + static_cast<std::size_t>(env)];
  }
  std::span<const std::int32_t> every() {
    if (every_.empty()) {
      every_.resize(static_cast<std::size_t>(n_pad_));
      std::iota(every_.begin(), every_.end(), 0);
    }
    return every_;
  }
  /// Takes the values of the others away.
  void keep_only(const ParameterSet& kept);
  float defaults(Parameter parameter, int i) const;
  void check(Parameter parameter, const LaneValues& values, std::span<const std::int32_t> envs) const;
  /// Sizes and orientations of geoms that are other than the model's.
  void check_geoms(Parameter parameter, const LaneValues& values, std::span<const std::int32_t> envs) const;
  /// Makes room for what the kernels read; the environments to work out: all of them where there was none.
  std::span<const std::int32_t> resize(LaneValues& v, int rows, std::span<const std::int32_t> envs);
  /// Of an environment's value, or the model's where environments have none of their own.
  float value(Parameter parameter, int i, int env) const {
    const LaneValues& v = values_[static_cast<std::size_t>(parameter)];
    return v.empty() ? defaults(parameter, i) : at(v, i, env);
  }
  /// Centre of mass of a link in its body's frame, and inertia about it along the body's axes. False where they are the
  /// model's, which they then are to the last bit.
  bool centre_of(int link, std::int32_t env, double* centre) const;
  bool inertia_of(int link, std::int32_t env, double* inertia) const;
  /// Mass, centre, inertia, lifted mass and its centre of links together; false where all are as in the
  /// model.
  bool mass_of(std::span<const int> links, std::int32_t env, double* sum);
  /// What follows from the links' masses.
  void bodies(std::span<const std::int32_t> envs);
  void drags(int fluid, std::int32_t env);
  void frictions(std::span<const std::int32_t> envs);
  void gains(std::span<const std::int32_t> envs);
  void centres(std::span<const std::int32_t> envs);
  void losses(std::span<const std::int32_t> envs);
  void springs(std::span<const std::int32_t> envs);
  void limits(std::span<const std::int32_t> envs);
  void geoms(std::span<const std::int32_t> envs);
  void ratios(const ModelView& view, DataView& data, std::span<const std::int32_t> envs);

  const Model& model_;
  int n_pad_;
  std::array<LaneValues, kParameterCount> values_;
  LaneValues body_, pair_, actuator_, ratio_, centre_, loss_, stiffness_, limit_, geom_;
  std::vector<std::vector<int>> body_links_;
  std::vector<std::int32_t> every_;  ///< 0 to n_pad_ - 1, once every() was asked for
  int committed_ = 0;                ///< varies() of the last commit
};

}  // namespace cohort::sim
