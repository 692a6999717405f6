#include "report/html_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "core/files.h"
#include "core/format.h"
#include "core/json_text.h"
#include "core/markup.h"
#include "core/typed_text.h"
#include "report/evaluation_section.h"
#include "report/html_parts.h"
#include "report/inline_svg.h"
#include "report/saved_content.h"

namespace cohort::report {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kLogLines = 200;
constexpr std::size_t kMostFiles = 500;
constexpr std::uintmax_t kMostLogBytes = 64 << 10;

std::string read_if_there(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) ? read_file(path) : "";
}

std::string tiles(const NamedTexts& highlights) {
  if (highlights.empty()) return "";
  std::string html = "<dl class=\"tiles\">\n";
  for (const auto& [name, value] : highlights)
    html += format("<div><dt>{}</dt><dd>{}</dd></div>\n", html_escape(name), html_escape(value));
  return html + "</dl>\n";
}

std::string metric_cell(double value, const char* unless) {
  return std::isfinite(value) ? format("<td class=\"number\">{:.5g}</td>", value)
                              : format("<td class=\"number muted\">{}</td>", unless);
}

std::string metric_row(const ErrorMetrics& m, const char* css_class) {
  const char* no_r2 = std::isfinite(m.mse) ? "constant" : "not finite";
  return format("<tr{}><th scope=\"row\">{}</th>{}{}{}{}<td class=\"number\">{}</td></tr>\n", css_class,
                html_escape(m.target), metric_cell(m.r2, no_r2), metric_cell(m.rmse, "not finite"),
                metric_cell(m.mae, "not finite"), metric_cell(m.mse, "not finite"), m.count);
}

std::string test_table(const ReportContent& content) {
  if (!content.test) return "";
  std::string html =
      "<div class=\"scroll\"><table class=\"metrics\">\n<thead><tr><th scope=\"col\">target</th><th "
      "scope=\"col\">R²</th>"
      "<th scope=\"col\">RMSE</th><th scope=\"col\">MAE</th><th scope=\"col\">MSE</th><th "
      "scope=\"col\">values</th></tr>"
      "</thead>\n<tbody>\n";
  for (const ErrorMetrics& m : content.test->targets) html += metric_row(m, "");
  if (content.test->targets.size() > 1) html += metric_row(content.test->overall, " class=\"overall\"");
  html += "</tbody>\n</table></div>\n";
  if (!content.test_note.empty()) html += "<p class=\"muted\">" + html_escape(content.test_note) + "</p>\n";
  return html;
}

/// folder: of the page.
std::string relative_link(const fs::path& file, const fs::path& folder, const std::string& text) {
  const std::string target = fs::absolute(file).lexically_relative(fs::absolute(folder)).generic_string();
  return format("<a href=\"{}\">{}</a>", html_escape(percent_encode(target)), html_escape(text));
}

std::string charts(const fs::path& folder, const ReportContent& content) {
  std::string html;
  std::set<std::string> problems;
  for (std::size_t i = 0; i < content.figures.size(); ++i) {
    const DrawnFigure& figure = content.figures[i];
    if (!figure.error.empty()) problems.insert(figure.error);
    if (figure.svg.empty()) continue;
    html += "<figure>\n" + inline_svg(read_if_there(figure.svg), format("c{}-", i), figure.caption) + "\n<figcaption>" +
            html_escape(figure.caption) + " " + relative_link(figure.svg, folder, "SVG");
    if (!figure.png.empty()) html += " " + relative_link(figure.png, folder, "PNG");
    html += "</figcaption>\n</figure>\n";
  }
  std::string notes;
  for (const std::string& problem : problems) notes += "<p class=\"warning\">" + html_escape(problem) + "</p>\n";
  return notes + html;
}

/// {"a":{"b":1}} as "a.b" -> "1".
void flatten(const nlohmann::ordered_json& json, const std::string& path, NamedTexts& rows) {
  if (json.is_object() && !json.empty()) {
    for (const auto& [name, value] : json.items()) flatten(value, path.empty() ? name : path + "." + name, rows);
    return;
  }
  rows.emplace_back(path, typed_text(json, BadUtf8::kReplaced));
}

std::string settings(const RunFolder& run) {
  const auto json = try_json<nlohmann::ordered_json>(read_if_there(run.config_file()));
  if (json.is_discarded()) return "";
  NamedTexts rows;
  flatten(json, "", rows);
  std::set<std::string> overridden;
  const std::string overrides = read_if_there(run.overrides_file());
  for (std::size_t begin = 0; begin < overrides.size();) {
    const std::size_t end = std::min(overrides.find('\n', begin), overrides.size());
    const std::string line = overrides.substr(begin, end - begin);
    if (!line.starts_with("#")) overridden.insert(line.substr(0, line.find('=')));
    begin = end + 1;
  }
  std::string html = "<div class=\"scroll\"><table class=\"names code\">\n";
  for (const auto& [name, value] : rows)
    html += format("<tr{}><th scope=\"row\">{}</th><td>{}</td></tr>\n",
                   overridden.contains(name) ? " class=\"overridden\" title=\"set on the command line\"" : "",
                   html_escape(name), html_escape(value));
  html += "</table></div>\n";
  if (!overridden.empty()) html += "<p class=\"muted\">Marked: set on the command line.</p>\n";
  return format("<details><summary>{} settings</summary>\n{}</details>\n", rows.size(), html);
}

std::string log_tail(const RunFolder& run, const fs::path& folder) {
  const std::string text = read_if_there(run.log_file());
  std::size_t begin = text.size() > kMostLogBytes ? text.size() - kMostLogBytes : 0;
  std::size_t lines = 0;
  for (std::size_t i = text.size(); i > begin; --i)
    if (text[i - 1] == '\n' && i != text.size() && ++lines == kLogLines) {
      begin = i;
      break;
    }
  if (text.empty()) return "";
  return format(
      "<details><summary>{}</summary>\n<pre>{}</pre></details>\n{}",
      begin > 0 ? format("the last {} lines", kLogLines) : "all lines",
      html_escape(std::string_view(text).substr(begin)),
      begin > 0 ? "<p>" + relative_link(run.log_file(), folder, "training.log") + " holds all of it.</p>\n" : "");
}

std::string files(const RunFolder& run, const fs::path& folder) {
  const std::vector<fs::path> found = run.files();
  std::string html = "<div class=\"scroll\"><table class=\"files\">\n";
  std::size_t shown = 0;
  for (const fs::path& file : found) {
    if (file == run.report_file().filename()) continue;
    if (++shown > kMostFiles) break;
    std::error_code error;
    const auto size = fs::file_size(run.path() / file, error);
    html += format("<tr><td>{}</td><td class=\"number\">{}</td></tr>\n",
                   relative_link(run.path() / file, folder, file.generic_string()),
                   error ? "" : format_bytes(static_cast<double>(size)));
  }
  html += "</table></div>\n";
  if (shown > kMostFiles) html += format("<p class=\"muted\">{} files more.</p>\n", found.size() - kMostFiles);
  return format("<details><summary>{} files</summary>\n{}</details>\n", found.size(), html);
}

}  // namespace

std::string html_report(const RunFolder& run, const ReportContent& content, const fs::path& folder) {
  std::string html = page_head(content.title);
  html += "<body>\n<main>\n<header>\n<h1>" + html_escape(content.title) + "</h1>\n";
  html += format("<p><span class=\"status{}\">{}</span> <span class=\"muted\">{}, {}</span></p>\n",
                 content.failed ? " failed" : "", html_escape(content.status),
                 html_escape(run.path().lexically_normal().string()), now_text());
  // Success comes before the figures of the training.
  NamedTexts leading = success_tiles(run.path());
  leading.insert(leading.end(), content.highlights.begin(), content.highlights.end());
  html += tiles(leading) + "</header>\n";
  html += section("summary", "Summary", name_table(content.summary));
  html += evaluation_sections(run.path(), folder);
  html += section("test", "Errors on the " + content.test_name, test_table(content));
  html += section("charts", "Charts", charts(folder, content));
  html += section("settings", "Settings", settings(run));
  html += section("environment", "Environment",
                  name_table(content.environment.empty() ? content.machine.rows() : content.environment));
  html += section("log", "Log", log_tail(run, folder));
  html += section("files", "Files", files(run, folder));
  return html + "</main>\n</body>\n</html>\n";
}

void write_html_report(const RunFolder& run, const ReportContent& content) {
  write_file_atomically(run.report_file(), html_report(run, content, run.path()));
  save_content(run, content);
}

}  // namespace cohort::report
