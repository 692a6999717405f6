#include "sim/backends/cpu/block_runner_impl.h"
#include "sim/kernels/contact_list.h"
#include "sim/kernels/lane/lane.h"

namespace cohort::sim {

const BlockRunner& scalar_block_runner() {
  using R = RunnerOf<ScalarLane>;
  static const BlockRunner runner{ScalarLane::kWidth, R::workspace_bytes, R::step, R::forward, R::inverse_weights};
  return runner;
}

int list_scalar_contacts(const ModelView& m, const DataView& d, int env, void* workspace, ListedContact* out,
                         int most) {
  BlockSpace<ScalarLane> b;
  RunnerOf<ScalarLane>::prepare(m, workspace, b);
  return list_contacts<ScalarLane>(m, d, env, b, out, most);
}

}  // namespace cohort::sim
