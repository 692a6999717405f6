#include "core/observation_names.h"

#include <array>

namespace cohort {
namespace {

constexpr std::array<std::string_view, 6> kBefore{"observation/", "observations/", "obs/",
                                                  "observation.", "observations.", "obs."};

std::string_view without_word(std::string_view name) {
  for (const std::string_view word : kBefore)
    if (name.starts_with(word) && name.size() > word.size()) return name.substr(word.size());
  return name;
}

}  // namespace

bool is_observation(std::string_view name) {
  return without_word(name).size() != name.size();
}

std::string bare_observation(std::string_view name) {
  return std::string(without_word(name));
}

std::string bare_camera(std::string_view name) {
  name = without_word(name);
  for (const std::string_view word :
       {std::string_view("images."), std::string_view("images/"), std::string_view("images_")})
    if (name.starts_with(word) && name.size() > word.size()) {
      name.remove_prefix(word.size());
      break;
    }
  constexpr std::string_view kBehind = "_image";
  if (name.ends_with(kBehind) && name.size() > kBehind.size()) name.remove_suffix(kBehind.size());
  return std::string(name);
}

bool same_observation(std::string_view a, std::string_view b) {
  return without_word(a) == without_word(b);
}

bool same_camera(std::string_view a, std::string_view b) {
  return bare_camera(a) == bare_camera(b);
}

}  // namespace cohort
