#include "policy/registry.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "policy/convention_policy.h"

namespace cohort::policy {
namespace {

/// Filled before threads load policies.
std::vector<Kind>& kinds() {
  static std::vector<Kind> all;
  return all;
}

const Kind* kind_of(const std::string& where) {
  const auto& all = kinds();
  const auto kind = std::find_if(all.rbegin(), all.rend(), [&](const Kind& one) { return one.claims(where); });
  return kind == all.rend() ? nullptr : &*kind;
}

}  // namespace

void register_kind(Kind kind) {
  auto& all = kinds();
  const auto same = std::find_if(all.begin(), all.end(), [&](const Kind& one) { return one.name == kind.name; });
  if (same != all.end())
    *same = std::move(kind);
  else
    all.push_back(std::move(kind));
}

bool is_address(const std::string& where) {
  const auto& all = kinds();
  return std::any_of(all.begin(), all.end(), [&](const Kind& one) { return one.address && one.claims(where); });
}

std::unique_ptr<Policy> load(const std::string& where, const LoadSettings& settings) {
  const Kind* kind = kind_of(where);
  if (kind != nullptr) {
    std::unique_ptr<Policy> policy = kind->load(where, settings);
    if (settings.observations == "task") return policy;
    try {
      return shown_as(settings.observations, std::move(policy));
    } catch (const Error& e) {
      throw Error(format("{}: {}", where, e.what()));
    }
  }
  std::vector<std::string> names;
  for (const Kind& one : kinds()) names.push_back(one.name);
  throw Error(
      format("{}: neither a run or checkpoint nor the address of a policy; known here: {}", where, join(names, ", ")));
}

}  // namespace cohort::policy
