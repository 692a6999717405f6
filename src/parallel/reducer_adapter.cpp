#include "parallel/reducer_adapter.h"

#include <limits>

#include "core/error.h"

namespace cohort::parallel {

ReducerPair make_reducer(const std::vector<at::Tensor>& parameters, const std::vector<bool>& sparse,
                         const std::vector<std::string>& names, const c10::intrusive_ptr<c10d::ProcessGroup>& group,
                         const ReducerSettings& settings) {
  // Without find_unused_parameters the Reducer lays its buckets out again before its second iteration. Until then one
  // bucket holds all: buckets in an order that is not the real one could meet other collectives of the model in a
  // different order on different ranks.
  const bool rebuilt_later = settings.static_graph || !settings.find_unused_parameters;
  const std::vector<std::size_t> limits =
      rebuilt_later ? std::vector<std::size_t>{static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max())}
                    : std::vector<std::size_t>{static_cast<std::size_t>(settings.first_bucket_bytes),
                                               static_cast<std::size_t>(settings.bucket_bytes)};
  auto buckets = std::get<0>(c10d::compute_bucket_assignment_by_size(parameters, limits, sparse));

  std::unordered_map<std::size_t, std::string> names_by_index;
  for (std::size_t i = 0; i < names.size(); ++i) names_by_index[i] = names[i];

  ReducerPair pair;
  pair.reducer = std::make_shared<c10d::Reducer>(parameters, std::move(buckets), group, sparse, settings.bucket_bytes,
                                                 settings.find_unused_parameters, settings.gradient_as_bucket_view,
                                                 std::move(names_by_index), settings.first_bucket_bytes,
                                                 /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false,
                                                 /*bucket_bytes_cap_list=*/std::vector<std::int64_t>{});
  pair.logger = std::make_shared<c10d::Logger>(pair.reducer);
  pair.reducer->set_logger(pair.logger);
  const at::Device device = parameters.front().device();
  std::vector<int> device_ids;
  if (device.is_cuda()) device_ids.push_back(device.index());
  pair.logger->set_construction_data_and_log(settings.model_name, device_ids,
                                             device_ids.empty() ? -1 : device_ids.front(), settings.broadcast_buffers,
                                             /*has_sync_bn=*/false, settings.static_graph);
  if (settings.static_graph) {
    pair.reducer->set_static_graph();
    pair.logger->set_static_graph();
  }
  if (rebuilt_later && settings.buckets_fixed_at_start) {
    pair.reducer->push_rebuilt_params_for_all_indices();
    COHORT_CHECK(pair.reducer->rebuild_buckets(), "the reducer did not lay out its buckets");
  }
  return pair;
}

}  // namespace cohort::parallel
