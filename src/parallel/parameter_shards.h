/// Which process of a job looks after which parameter, where the state of training is divided among processes (ZeRO:
/// Rajbhandari, Rasley, Ruwase, He 2020, arXiv 1910.02054). Parameters are given out whole, the largest first, each to
/// the process that has least so far: what is computed per parameter is computed as on one process, to the bit.
///
///   ParameterShards shards(parameters_of(model), group);
///   if (shards.owns(parameter)) update(parameter);
///   shards.share_parameters();                       // everybody has the owners' values
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "dist/group.h"
#include "dist/node_memory.h"
#include "parallel/module_layout.h"

namespace cohort::parallel {

/// The rank of each of some parameters of these sizes: what ParameterShards gives out.
std::vector<int> owners_of(const std::vector<std::int64_t>& elements, int ranks);

class ParameterShards {
 public:
  /// Of `parameters` those that are trained; in the same order on all ranks. Collective where ranks may share memory:
  /// on the CPU, unless `through_sockets`.
  ParameterShards(const std::vector<NamedTensor>& parameters, std::shared_ptr<dist::Group> group,
                  bool through_sockets = false);

  /// Rank that looks after a parameter. Throws Error for a tensor that is none of them.
  int owner(const at::Tensor& parameter) const;
  bool owns(const at::Tensor& parameter) const { return owner(parameter) == group_->rank(); }
  /// Elements that a rank looks after.
  std::int64_t elements_of(int rank) const { return elements_[static_cast<std::size_t>(rank)]; }
  /// All of them, in order.
  const std::vector<NamedTensor>& parameters() const { return parameters_; }

  /// In place: tensors[i] becomes what rank owners[i] has in it. Contiguous in memory; alike on all ranks but for the
  /// values. Collective.
  void share(const std::vector<at::Tensor>& tensors, const std::vector<int>& owners) const;
  /// The parameters themselves, from their owners.
  void share_parameters() const;

  /// Rank 0 gets what all ranks have, rank after rank, in its own memory where another rank gave it; the others get an
  /// empty list. Collective.
  using Named = std::vector<std::pair<std::string, at::Tensor>>;
  Named collect(const Named& own) const;

  /// Numbers of which each rank has those of its parameters (in the order of parameters(), 0 elsewhere): their sum.
  /// float64 on the CPU. Collective.
  void sum(at::Tensor& values) const;

 private:
  void share_in_memory(const std::vector<at::Tensor>& tensors, const std::vector<int>& owners) const;

  std::shared_ptr<dist::Group> group_;
  std::vector<NamedTensor> parameters_;
  std::vector<int> owners_;  // of parameters_
  std::vector<std::int64_t> elements_;
  std::unordered_map<const c10::TensorImpl*, int> owner_of_;
  std::unique_ptr<dist::NodeMemory> memory_;  // null: through c10d
};

}  // namespace cohort::parallel
