/// The elements of an XML text as they stand there, for what has to be known of a model's file beside what MuJoCo's
/// parser makes of it. Whether the text is well-formed is that parser's to say.
///
///   for (const XmlElement& e : xml_elements(read_file("arm.urdf"))) {
///     if (e.depth == 1 && e.name == "joint") names.push_back(e.attribute("name"));
///   }
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cohort {

struct XmlElement {
  std::string name;
  int depth = 0;                                  ///< 0: the root
  int line = 1;                                   ///< where its tag begins
  std::size_t end = 0;                            ///< offset behind its tag
  std::map<std::string, std::string> attributes;  ///< values with the five entities of XML resolved

  bool has(const std::string& key) const { return attributes.count(key) > 0; }
  /// "" where there is none.
  std::string attribute(const std::string& key) const { return has(key) ? attributes.at(key) : ""; }
};

/// In the order of the text, an element before those inside it. Comments, declarations and character data are left out;
/// of a damaged text come the elements that can be told.
std::vector<XmlElement> xml_elements(std::string_view xml);

}  // namespace cohort
