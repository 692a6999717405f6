#include "formats/xml_tree.h"

#include <cstdlib>

#include "core/error.h"
#include "core/files.h"
#include "core/format.h"
#include "formats/xml_elements.h"

namespace cohort {
namespace {

constexpr int kDeepest = 200;

XmlNode tree_from(std::vector<XmlElement>& all, std::size_t& at, const std::string& file) {
  const int depth = all[at].depth;
  COHORT_THROW_UNLESS(depth <= kDeepest, "{}: more than {} elements in one another", file, kDeepest);
  XmlNode node{std::move(all[at].name), std::move(all[at].attributes), {}};
  ++at;
  while (at < all.size() && all[at].depth > depth) node.children.push_back(tree_from(all, at, file));
  return node;
}

std::string escaped(const std::string& value) {
  std::string out;
  for (const char c : value) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

void write_node(const XmlNode& node, std::size_t indent, std::string& out) {
  out.append(indent, ' ') += "<" + node.name;
  for (const auto& [key, value] : node.attributes) out += " " + key + "=\"" + escaped(value) + "\"";
  if (node.children.empty()) {
    out += " />\n";
    return;
  }
  out += ">\n";
  for (const XmlNode& child : node.children) write_node(child, indent + 1, out);
  out.append(indent, ' ') += "</" + node.name + ">\n";
}

}  // namespace

std::string XmlNode::get(const std::string& key, const std::string& otherwise) const {
  const auto found = attributes.find(key);
  return found == attributes.end() ? otherwise : found->second;
}

XmlNode& XmlNode::section(const std::string& of) {
  for (XmlNode& child : children)
    if (child.name == of) return child;
  children.push_back({of, {}, {}});
  return children.back();
}

const XmlNode* XmlNode::child(const std::string& of) const {
  for (const XmlNode& child : children)
    if (child.name == of) return &child;
  return nullptr;
}

XmlNode* XmlNode::child(const std::string& of, const std::string& called) {
  for (XmlNode& child : children)
    if (child.name == of && child.get("name") == called) return &child;
  return nullptr;
}

XmlNode* find_node(XmlNode& root, const std::string& of, const std::string& called) {
  if (root.name == of && root.get("name") == called) return &root;
  for (XmlNode& child : root.children)
    if (XmlNode* found = find_node(child, of, called)) return found;
  return nullptr;
}

XmlNode read_xml(const std::filesystem::path& file) {
  std::vector<XmlElement> all = xml_elements(read_file(file));
  COHORT_THROW_UNLESS(!all.empty() && all.front().depth == 0, "{}: holds no XML element", file.string());
  std::size_t at = 0;
  XmlNode root = tree_from(all, at, file.string());
  COHORT_THROW_UNLESS(at == all.size(), "{}: damaged XML: <{}> stands behind the root element", file.string(),
                      all[at].name);
  return root;
}

std::string to_xml(const XmlNode& root) {
  std::string out;
  write_node(root, 0, out);
  return out;
}

std::vector<double> numbers_of(const std::string& text, const std::string& what) {
  std::vector<double> numbers;
  const char* at = text.c_str();
  for (char* end = nullptr;; at = end) {
    const double value = std::strtod(at, &end);
    if (end == at) break;
    numbers.push_back(value);
  }
  COHORT_THROW_UNLESS(
      text.find_first_not_of(" \t\r\n", static_cast<std::size_t>(at - text.c_str())) == std::string::npos,
      "{}: `{}` is no list of numbers", what, text);
  return numbers;
}

std::string text_of(std::span<const double> numbers) {
  std::string text;
  for (const double number : numbers) text += format("{}{}", text.empty() ? "" : " ", number);
  return text;
}

}  // namespace cohort
