/// An XML document as a tree that is made, changed and written.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace cohort::sim::test {

struct Element {
  std::string tag;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<Element> children;

  /// Appends an attribute.
  void set(const std::string& name, const std::string& value) { attributes.emplace_back(name, value); }
  /// Appends a child; the reference is valid until the next one is added.
  Element& add(const std::string& child_tag) { return children.emplace_back(Element{child_tag, {}, {}}); }
  void add(Element child) { children.push_back(std::move(child)); }
};

/// Indented by two spaces a level; values hold none of <, & and '.
std::string to_xml(const Element& root);

}  // namespace cohort::sim::test
