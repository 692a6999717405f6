#include "sim/listed_contacts.h"

#include <cstdlib>
#include <cstring>

#include "core/error.h"
#include "sim/backends/cpu/block_runner.h"
#include "sim/freed_memory.h"
#include "sim/kernels/sense/listed_contact.h"

namespace cohort::sim {

namespace {

std::array<double, 3> triple(const float* from) {
  return {static_cast<double>(from[0]), static_cast<double>(from[1]), static_cast<double>(from[2])};
}

}  // namespace

std::vector<Contact> list_contacts(const Model& model, ModelView view, DataView data, int env) {
  view.keep_contacts = 1;
  const BlockRunner& runner = scalar_block_runner();
  const auto bytes = static_cast<std::size_t>(runner.workspace_bytes(view)) + 64;
  const FreedMemory workspace(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
  COHORT_THROW_UNLESS(workspace != nullptr, "there is no memory for a list of contacts");
  std::memset(workspace.get(), 0, bytes);
  std::vector<ListedContact> listed(64);
  int count = list_scalar_contacts(view, data, env, workspace.get(), listed.data(), static_cast<int>(listed.size()));
  if (count > static_cast<int>(listed.size())) {
    listed.resize(static_cast<std::size_t>(count));
    count = list_scalar_contacts(view, data, env, workspace.get(), listed.data(), count);
  }
  listed.resize(static_cast<std::size_t>(count));
  std::vector<Contact> contacts;
  contacts.reserve(listed.size());
  for (const ListedContact& c : listed) {
    const auto link = [&](int geom) { return model.info.geoms[static_cast<std::size_t>(geom)].link; };
    contacts.push_back({c.geom1, c.geom2, link(c.geom1), link(c.geom2), static_cast<double>(c.dist), triple(c.pos),
                        triple(c.normal), triple(c.force)});
  }
  return contacts;
}

}  // namespace cohort::sim
