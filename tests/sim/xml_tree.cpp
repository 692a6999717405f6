#include "xml_tree.h"

namespace cohort::sim::test {

namespace {

void append(const Element& e, int level, std::string& text) {
  const std::string indent(2 * static_cast<std::size_t>(level), ' ');
  text += indent + "<" + e.tag;
  for (const auto& [name, value] : e.attributes) text += " " + name + "='" + value + "'";
  if (e.children.empty()) {
    text += "/>\n";
    return;
  }
  text += ">\n";
  for (const Element& child : e.children) append(child, level + 1, text);
  text += indent + "</" + e.tag + ">\n";
}

}  // namespace

std::string to_xml(const Element& root) {
  std::string text;
  append(root, 0, text);
  return text;
}

}  // namespace cohort::sim::test
