#include "report/saved_content.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"

namespace cohort::report {
namespace fs = std::filesystem;
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson to_rows(const NamedTexts& texts) {
  OrderedJson rows = OrderedJson::array();
  for (const auto& [name, value] : texts) rows.push_back({name, value});
  return rows;
}

NamedTexts from_rows(const OrderedJson& rows) {
  NamedTexts texts;
  for (const OrderedJson& row : rows) texts.emplace_back(row.at(0).get<std::string>(), row.at(1).get<std::string>());
  return texts;
}

/// What is not finite is null.
double number_or_nan(const OrderedJson& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

OrderedJson error_metrics_to_json(const ErrorMetrics& m) {
  return {{"target", m.target}, {"count", m.count}, {"mse", m.mse}, {"mae", m.mae}, {"rmse", m.rmse}, {"r2", m.r2}};
}

ErrorMetrics error_metrics_from_json(const OrderedJson& json) {
  return {.target = json.at("target").get<std::string>(),
          .count = json.at("count").get<std::int64_t>(),
          .mse = number_or_nan(json.at("mse")),
          .mae = number_or_nan(json.at("mae")),
          .rmse = number_or_nan(json.at("rmse")),
          .r2 = number_or_nan(json.at("r2"))};
}

fs::path saved_file(const RunFolder& run) {
  return run.path() / "report.json";
}

}  // namespace

void save_content(const RunFolder& run, const ReportContent& content) {
  OrderedJson json = {
      {"title", content.title},
      {"status", content.status},
      {"failed", content.failed},
      {"highlights", to_rows(content.highlights)},
      {"summary", to_rows(content.summary)},
      {"test_name", content.test_name},
      {"test_note", content.test_note},
      {"environment", to_rows(content.environment.empty() ? content.machine.rows() : content.environment)},
      {"figures", OrderedJson::array()}};
  if (content.test) {
    json["test"] = {{"overall", error_metrics_to_json(content.test->overall)}, {"targets", OrderedJson::array()}};
    for (const ErrorMetrics& m : content.test->targets) json["test"]["targets"].push_back(error_metrics_to_json(m));
  }
  const auto relative = [&](const fs::path& file) {
    return file.empty() ? std::string() : file.lexically_relative(run.path()).generic_string();
  };
  for (const DrawnFigure& figure : content.figures)
    json["figures"].push_back({{"name", figure.name},
                               {"caption", figure.caption},
                               {"svg", relative(figure.svg)},
                               {"png", relative(figure.png)},
                               {"error", figure.error}});
  write_file_atomically(saved_file(run), json_text(json, 2, BadUtf8::kReplaced) + "\n");
}

std::optional<ReportContent> load_content(const RunFolder& run) {
  const fs::path file = saved_file(run);
  if (!fs::exists(file)) return std::nullopt;
  try {
    const OrderedJson json = parse_json<OrderedJson>(read_file(file));
    ReportContent content;
    content.title = json.at("title").get<std::string>();
    content.status = json.at("status").get<std::string>();
    content.failed = json.at("failed").get<bool>();
    content.highlights = from_rows(json.at("highlights"));
    content.summary = from_rows(json.at("summary"));
    content.test_name = json.at("test_name").get<std::string>();
    content.test_note = json.at("test_note").get<std::string>();
    content.environment = from_rows(json.at("environment"));
    if (json.contains("test")) {
      content.test.emplace();
      content.test->overall = error_metrics_from_json(json.at("test").at("overall"));
      for (const OrderedJson& target : json.at("test").at("targets"))
        content.test->targets.push_back(error_metrics_from_json(target));
    }
    const auto absolute = [&](const OrderedJson& path) {
      const std::string text = path.get<std::string>();
      return text.empty() ? fs::path() : run.path() / text;
    };
    for (const OrderedJson& figure : json.at("figures"))
      content.figures.push_back({.name = figure.at("name").get<std::string>(),
                                 .caption = figure.at("caption").get<std::string>(),
                                 .svg = absolute(figure.at("svg")),
                                 .png = absolute(figure.at("png")),
                                 .error = figure.at("error").get<std::string>()});
    return content;
  } catch (const nlohmann::json::exception& e) {
    throw Error(format("{} is damaged: {}", file.string(), e.what()));
  }
}

}  // namespace cohort::report
