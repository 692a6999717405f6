#include "formats/xml_elements.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace cohort {

namespace {

constexpr const char* kXmlSpace = " \t\r\n";

std::string without_entities(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, char>, 5> kEntities{
      {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}}};
  std::string result;
  while (!text.empty()) {
    std::size_t taken = 1;
    char c = text.front();
    for (const auto& [entity, meaning] : kEntities) {
      if (text.starts_with(entity)) c = meaning, taken = entity.size();
    }
    result += c;
    text.remove_prefix(taken);
  }
  return result;
}

/// Length of a tag from its '<' to before its '>', which may also stand inside quotes.
std::size_t tag_length(std::string_view from) {
  char quote = '\0';
  std::size_t end = 1;
  for (; end < from.size() && (quote != '\0' || from[end] != '>'); ++end) {
    const char c = from[end];
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    }
  }
  return end;
}

/// `tag`: what stands behind the element's name.
std::map<std::string, std::string> attributes_of(std::string_view tag) {
  std::map<std::string, std::string> all;
  for (;;) {
    const std::size_t equals = tag.find('=');
    if (equals == std::string_view::npos) return all;
    std::string_view name = tag.substr(0, equals);
    const std::size_t first = name.find_last_of(kXmlSpace, name.find_last_not_of(kXmlSpace));
    name.remove_prefix(first == std::string_view::npos ? 0 : first + 1);
    name = name.substr(0, name.find_first_of(kXmlSpace));
    const std::size_t open = tag.find_first_of("'\"", equals);
    const std::size_t close = open == std::string_view::npos ? open : tag.find(tag[open], open + 1);
    if (close == std::string_view::npos) return all;
    all.emplace(name, without_entities(tag.substr(open + 1, close - open - 1)));
    tag.remove_prefix(close + 1);
  }
}

}  // namespace

std::vector<XmlElement> xml_elements(std::string_view xml) {
  std::vector<XmlElement> all;
  const std::string_view whole = xml;
  int depth = 0, line = 1;
  const char* counted = whole.data();  // lines up to here
  const auto skip_behind = [&xml](std::string_view end) {
    const std::size_t at = xml.find(end);
    xml.remove_prefix(at == std::string_view::npos ? xml.size() : at + end.size());
  };
  for (;;) {
    const std::size_t begin = xml.find('<');
    if (begin == std::string_view::npos) return all;
    xml.remove_prefix(begin);
    if (xml.starts_with("<!--")) {
      skip_behind("-->");
    } else if (xml.starts_with("<![CDATA[")) {
      skip_behind("]]>");
    } else if (xml.starts_with("<?")) {
      skip_behind("?>");
    } else if (xml.starts_with("<!")) {
      // A document type may hold declarations in brackets.
      skip_behind(xml.find('[') < xml.find('>') ? "]>" : ">");
    } else if (xml.starts_with("</")) {
      --depth;
      skip_behind(">");
    } else {
      const std::size_t length = tag_length(xml);
      const std::string_view tag = xml.substr(1, length - 1);
      const std::string_view name = tag.substr(0, tag.find_first_of(" \t\r\n/"));
      line += static_cast<int>(std::count(counted, xml.data(), '\n'));
      counted = xml.data();
      const std::size_t behind = static_cast<std::size_t>(xml.data() - whole.data()) + length + 1;
      all.push_back({std::string(name), depth, line, behind, attributes_of(tag.substr(name.size()))});
      if (!tag.ends_with('/')) ++depth;
      xml.remove_prefix(length);
    }
  }
}

}  // namespace cohort
