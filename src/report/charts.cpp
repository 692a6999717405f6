#include "report/charts.h"

#include <algorithm>
#include <cstdio>
#include <memory>

#include "core/error.h"
#include "core/files.h"
#include "core/log.h"
#include "core/markup.h"
#include "report/gnuplot_script.h"
#include "report/svg_figure.h"

namespace cohort::report {
namespace fs = std::filesystem;
namespace {

bool is_figure_name(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

/// Moves a finished file into place; an empty one means that the disk was full or gnuplot gave up.
fs::path take_over(const fs::path& aside, const fs::path& final) {
  std::error_code error;
  const auto size = fs::file_size(aside, error);
  if (error || size == 0) {
    fs::remove(aside, error);
    return {};
  }
  fs::rename(aside, final, error);
  return error ? fs::path() : final;
}

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
}

/// Removes every element <name>...</name>. Names in texts are escaped, so that no text is taken for one.
void remove_elements(std::string& text, const std::string& name) {
  const std::string open = "<" + name + ">", close = "</" + name + ">";
  for (std::size_t begin = 0; (begin = text.find(open, begin)) != std::string::npos;) {
    const std::size_t end = text.find(close, begin);
    if (end == std::string::npos) return;
    text.erase(begin, end + close.size() - begin);
  }
}

/// Puts the caption in place of gnuplot's titles and description, which viewers show when the mouse rests on a part of
/// the picture, and says "bold" as SVG does (gnuplot 5.4 leaves it in the family's name).
void finish_svg(const fs::path& svg, const std::string& caption) {
  std::string text = read_file(svg);
  remove_elements(text, "title");
  remove_elements(text, "desc");
  const std::size_t root = text.find("<svg");
  const std::size_t content = root == std::string::npos ? root : text.find('>', root);
  if (content != std::string::npos && !caption.empty())
    text.insert(content + 1, "\n<title>" + html_escape(caption) + "</title>");
  replace_all(text, "font-family=\"sans-serif:Bold\"", "font-family=\"sans-serif\" font-weight=\"bold\"");
  write_file_atomically(svg, text);
}

/// gnuplot ignores what the disk says when it closes a file: a picture counts when its end is there.
bool ends_with(const fs::path& file, std::string_view end) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  if (error || size < end.size()) return false;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> opened(std::fopen(file.c_str(), "rb"), &std::fclose);
  if (!opened || std::fseek(opened.get(), static_cast<long>(size - end.size()), SEEK_SET) != 0) return false;
  std::string tail(end.size(), '\0');
  return std::fread(tail.data(), 1, tail.size(), opened.get()) == tail.size() && tail == end;
}

/// The code points of a text, of what is valid UTF-8.
std::vector<char32_t> code_points(std::string_view text) {
  std::vector<char32_t> points;
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const std::size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    char32_t point = length == 1 ? first : first & (0x7Fu >> length);
    for (std::size_t k = 1; k < length && i + k < text.size(); ++k)
      point = (point << 6) | (static_cast<unsigned char>(text[i + k]) & 0x3Fu);
    points.push_back(point);
    i += length;
  }
  return points;
}

/// Whether fontconfig, by which gnuplot finds fonts for PNG, knows one with this character; true where it cannot be
/// asked.
bool has_font_for(char32_t point) {
  const std::string command = format("fc-list ':charset={:x}' family 2>/dev/null", static_cast<std::uint32_t>(point));
  std::FILE* answer = ::popen(command.c_str(), "r");
  if (answer == nullptr) return true;
  const bool any = std::fgetc(answer) != EOF;
  return ::pclose(answer) != 0 || any;
}

/// The SVG alone, by svg_figure(); `why` says why there is no PNG.
DrawnFigure draw_svg(const Figure& figure, const fs::path& folder, const std::string& why) {
  DrawnFigure drawn{figure.name, figure.caption, {}, {}, why};
  const fs::path file = folder / (figure.name + ".svg");
  try {
    std::error_code error;
    fs::create_directories(folder, error);
    COHORT_THROW_UNLESS(!error, "cannot create the folder {}: {}", folder.string(), error.message());
    write_file_atomically(file, svg_figure(figure));
    drawn.svg = file;
  } catch (const Error& e) {
    drawn.error = e.what();
    log::warning("chart {}: {}", figure.name, drawn.error);
  }
  return drawn;
}

}  // namespace

std::string missing_font(std::span<const Figure> figures) {
  // From here on the fonts that come with gnuplot (DejaVu) have nothing: Chinese, Japanese, Korean.
  constexpr char32_t kFirstCjk = 0x2E80, kLastCjk = 0x3FFFF;
  std::string texts;
  for (const Figure& figure : figures)
    for (const Chart& chart : figure.panels) {
      texts += chart.title + chart.x_label + chart.y_label;
      for (const Series& series : chart.series) texts += series.name;
    }
  for (const char32_t point : code_points(clean_utf8(texts)))
    if (point >= kFirstCjk && point <= kLastCjk && !(point >= 0xE000 && point < 0xF900)) {
      if (has_font_for(point)) return "";
      return "no font of this machine has Chinese, Japanese or Korean characters: titles of charts/*.png show boxes "
             "(Debian and Ubuntu: apt-get install fonts-noto-cjk); report.html and charts/*.svg take the fonts of the "
             "browser that shows them";
    }
  return "";
}

DrawnFigure draw(const Figure& figure, const fs::path& folder, const GnuplotSettings& settings) {
  COHORT_CHECK(is_figure_name(figure.name),
               "a figure's name becomes a file name: lower-case letters, digits, _ and -, not {}", figure.name);
  DrawnFigure drawn{figure.name, figure.caption, {}, {}, ""};
  const std::string svg = figure.name + ".svg.part", png = figure.name + ".png.part";
  try {
    std::error_code error;
    fs::create_directories(folder, error);
    COHORT_THROW_UNLESS(!error, "cannot create the folder {}: {}", folder.string(), error.message());
    run_gnuplot(gnuplot_script(figure, svg, png), folder, settings);
  } catch (const Error& e) {
    drawn.error = e.what();
  }
  static constexpr std::string_view kPngEnd("IEND\xAE\x42\x60\x82", 8);
  const bool svg_whole = ends_with(folder / svg, "</svg>\n\n") || ends_with(folder / svg, "</svg>\n");
  const bool png_whole = ends_with(folder / png, kPngEnd);
  std::error_code ignored;
  if (!svg_whole) fs::remove(folder / svg, ignored);
  if (!png_whole) fs::remove(folder / png, ignored);
  if (svg_whole) finish_svg(folder / svg, figure.caption);
  drawn.svg = take_over(folder / svg, folder / (figure.name + ".svg"));
  drawn.png = take_over(folder / png, folder / (figure.name + ".png"));
  if ((drawn.svg.empty() || drawn.png.empty()) && drawn.error.empty())
    drawn.error = format("gnuplot left an incomplete file in {}; is the disk full?", folder.string());
  return drawn;
}

std::vector<DrawnFigure> draw_all(std::span<const Figure> figures, const fs::path& folder,
                                  const GnuplotSettings& settings) {
  std::vector<DrawnFigure> drawn;
  if (find_gnuplot(settings).empty()) {
    const std::string message = gnuplot_missing_message(settings);
    log::info("{}", message);
    for (const Figure& figure : figures) drawn.push_back(draw_svg(figure, folder, message));
    return drawn;
  }
  if (const std::string hint = missing_font(figures); !hint.empty()) log::warning("{}", hint);
  for (const Figure& figure : figures) {
    drawn.push_back(draw(figure, folder, settings));
    if (!drawn.back().error.empty()) log::warning("chart {}: {}", figure.name, drawn.back().error);
  }
  return drawn;
}

}  // namespace cohort::report
