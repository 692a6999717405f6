#include "report/inline_svg.h"

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/markup.h"
#include "report/gnuplot_script.h"

namespace cohort::report {
namespace {

std::string variable_of(const std::string& color) {
  const std::pair<const char*, const char*> roles[] = {{kInkColor, "--ink"},
                                                       {kAxisColor, "--axis"},
                                                       {kGridColor, "--grid"},
                                                       {kReferenceColor, "--reference"},
                                                       {kPaperColor, "--paper"}};
  for (const auto& [role, variable] : roles)
    if (color == role) return format("var({})", variable);
  for (std::size_t i = 0; i < std::size(kPalette); ++i)
    if (color == kPalette[i]) return format("var(--series-{})", i);
  return "";
}

/// A colour at the beginning of `text` ("rgb( 31, 35, 40)" or "#1f2328"): its length and "#rrggbb".
std::optional<std::pair<std::size_t, std::string>> color_at(std::string_view text) {
  if (text.starts_with("#") && text.size() >= 7) {
    std::string color = "#";
    for (const char c : text.substr(1, 6)) {
      if (!std::isxdigit(static_cast<unsigned char>(c))) return std::nullopt;
      color += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return std::pair(std::size_t{7}, color);
  }
  if (!text.starts_with("rgb(")) return std::nullopt;
  const std::size_t end = text.find(')');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string inside(text.substr(4, end - 4));
  int r = 0, g = 0, b = 0;
  if (std::sscanf(inside.c_str(), "%d , %d , %d", &r, &g, &b) != 3) return std::nullopt;
  return std::pair(end + 1, format("#{:02x}{:02x}{:02x}", r & 0xFF, g & 0xFF, b & 0xFF));
}

/// Changes the attributes of one tag, "<...>".
std::string rewrite_tag(std::string_view tag, const std::string& id_prefix) {
  std::string out;
  for (std::size_t i = 0; i < tag.size();) {
    const std::string_view rest = tag.substr(i);
    if (const auto color = color_at(rest)) {
      const std::string variable = variable_of(color->second);
      out += variable.empty() ? std::string(rest.substr(0, color->first)) : variable;
      i += color->first;
      continue;
    }
    bool named = false;
    for (const std::string_view before : {" id='", " id=\"", "href='#", "href=\"#", "url(#"})
      if (rest.starts_with(before)) {
        out.append(before).append(id_prefix);
        i += before.size();
        named = true;
        break;
      }
    if (!named) out += tag[i++];
  }
  return out;
}

/// "viewBox="0 0 880 380"": the third number.
int view_width(std::string_view svg) {
  const std::size_t at = svg.find("viewBox=\"");
  int x = 0, y = 0, width = 0;
  if (at == std::string_view::npos ||
      std::sscanf(std::string(svg.substr(at + 9, 60)).c_str(), "%d %d %d", &x, &y, &width) != 3)
    return 0;
  return width;
}

}  // namespace

std::string inline_svg(std::string_view svg, const std::string& id_prefix, const std::string& label) {
  const std::size_t begin = svg.find("<svg");
  const std::size_t end = svg.rfind("</svg>");
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return "";
  svg = svg.substr(begin, end + 6 - begin);
  const int width = view_width(svg);
  std::string out = format("<svg role=\"img\" aria-label=\"{}\"", html_escape(label));
  if (width > 0) out += format(" style=\"max-width:{}px\"", width);
  svg.remove_prefix(4);
  bool in_tag = true;  // the rest of <svg
  while (!svg.empty()) {
    const std::size_t next = in_tag ? svg.find('>') : svg.find('<');
    const std::size_t size = next == std::string_view::npos ? svg.size() : next + (in_tag ? 1 : 0);
    out += in_tag ? rewrite_tag(svg.substr(0, size), id_prefix) : std::string(svg.substr(0, size));
    svg.remove_prefix(size);
    in_tag = !in_tag;
  }
  return out;
}

}  // namespace cohort::report
