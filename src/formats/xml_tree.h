/// XML as a tree that can be changed: elements and their attributes; text and comments are left out.
///
///   XmlNode model = read_xml("robot.xml");
///   model.section("worldbody").children.push_back({"body", {{"name", "table"}}, {}});
///   write_file_atomically("scene.xml", to_xml(model));
#pragma once
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace cohort {

struct XmlNode {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::vector<XmlNode> children;

  bool has(const std::string& key) const { return attributes.count(key) > 0; }
  std::string get(const std::string& key, const std::string& otherwise = "") const;
  void set(const std::string& key, std::string value) { attributes[key] = std::move(value); }

  /// The first child of this element's name, made where there is none.
  XmlNode& section(const std::string& of);
  /// The first child of this element's name; null without one.
  const XmlNode* child(const std::string& of) const;
  /// The first child of this element's and this name; null without one.
  XmlNode* child(const std::string& of, const std::string& called);
};

/// Calls act(node) for the node, then for those inside it, in the order of the text.
template <class Node, class Act>
void for_each_node(Node& node, const Act& act) {
  act(node);
  for (auto& child : node.children) for_each_node(child, act);
}

/// The first element of this kind and name in the tree; null without one.
XmlNode* find_node(XmlNode& root, const std::string& of, const std::string& called);

/// Throws Error naming the file: not there, no XML, more than one root, or more than 200 elements in one another.
XmlNode read_xml(const std::filesystem::path& file);
std::string to_xml(const XmlNode& root);

/// "0 1.5 2e-05" as numbers. Throws Error naming `what`.
std::vector<double> numbers_of(const std::string& text, const std::string& what);
/// The other way: each in as few digits as tell it from all others.
std::string text_of(std::span<const double> numbers);
inline std::string text_of(double number) {
  return text_of(std::span(&number, 1));
}

}  // namespace cohort
