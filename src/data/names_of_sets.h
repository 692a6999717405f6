/// Data sets that call the same thing differently, or mean the opposite by it: one list of names for all sets, and what
/// single sets have in its place, "1: top=laptop" in data.names.
///
///   const NamesOfSets names({"1: top=laptop", "1: action[2] = action[2] | invert"}, /*sets=*/2);
///   names.picture(1, "observation.images.top");      // "laptop"
///   names.component(1, "action[2]");                 // "action[2] | invert"
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace cohort::data {

class NamesOfSets {
 public:
  /// Throws Error for a text of another form and for a set that there is not.
  NamesOfSets(const std::vector<std::string>& names, std::size_t sets);

  /// What a set has for a component (transforms/component.h): the whole component that stands in its place, or the same
  /// one of the field that stands in its field's.
  std::string component(std::size_t set, const std::string& text) const;
  std::string picture(std::size_t set, const std::string& field) const;
  std::vector<std::string> components(std::size_t set, const std::vector<std::string>& texts) const;
  std::vector<std::string> pictures(std::size_t set, const std::vector<std::string>& fields) const;

  /// Throws Error for a name that stands in the place of none of these.
  void check_used(const std::vector<std::string>& components, const std::vector<std::string>& pictures) const;

 private:
  struct Name {
    std::string text;  ///< as it was written
    std::size_t set = 0;
    std::string common, own;
  };
  std::vector<Name> names_;
};

/// Entries of a list that are for single sets, "1: action[2] | invert", as names: `list` becomes what set 0 has, `names`
/// gets what others have in the place of each. Throws Error where sets come to lists of different lengths.
void take_entries_of_sets(std::vector<std::string>& list, std::vector<std::string>& names, std::size_t sets,
                          const std::string& what);

}  // namespace cohort::data
