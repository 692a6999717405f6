#include "report/html_parts.h"

#include <ctime>

#include "core/format.h"
#include "core/markup.h"
#include "report/html_style.h"

namespace cohort::report {

std::string page_head(const std::string& title) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
         "media-src 'self' file:; frame-src 'self' file:\">\n<title>" +
         html_escape(title) + "</title>\n<style>\n" + std::string(kHtmlStyle) + "</style>\n</head>\n";
}

std::string section(const std::string& id, const std::string& title, const std::string& body) {
  if (body.empty()) return "";
  return format("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", id, html_escape(title), body);
}

std::string name_table(const std::vector<std::pair<std::string, std::string>>& rows, const std::string& css_class) {
  if (rows.empty()) return "";
  std::string html = format("<div class=\"scroll\"><table class=\"{}\">\n", css_class);
  for (const auto& [name, value] : rows)
    html += format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", html_escape(name), html_escape(value));
  return html + "</table></div>\n";
}

std::string now_text() {
  const std::time_t seconds = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  char text[64];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %z", &local));
}

}  // namespace cohort::report
