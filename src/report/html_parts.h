/// Pieces that the pages of reports share. Texts are plain; they are escaped here.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace cohort::report {

/// From <!DOCTYPE> to </head>. The page may fetch nothing and run nothing, whatever a name or a log line says; videos
/// of its own place it may play.
std::string page_head(const std::string& title);
/// "" where the body is.
std::string section(const std::string& id, const std::string& title, const std::string& body);
/// Names and values in two columns; "" where there are none.
std::string name_table(const std::vector<std::pair<std::string, std::string>>& rows,
                       const std::string& css_class = "names");
/// The local time, with its zone.
std::string now_text();

}  // namespace cohort::report
