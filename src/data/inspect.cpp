#include "data/inspect.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "data/images/canvas.h"
#include "data/images/resize.h"
#include "data/several_episodes.h"

namespace cohort::data {
namespace {

constexpr Colour kPaper{250, 250, 248}, kInk{40, 40, 44}, kGrey{150, 150, 156}, kPlot{255, 255, 255},
    kFault{200, 40, 40};
/// Paul Tol's "bright" and "vibrant" schemes: apart from one another for most colour-blind people.
constexpr Colour kCurves[] = {{68, 119, 170}, {238, 102, 119}, {34, 136, 51}, {204, 187, 68},  {102, 204, 238},
                              {170, 51, 119}, {238, 119, 51},  {0, 153, 136}, {187, 187, 187}, {0, 119, 187}};
constexpr std::int64_t kMargin = 12, kGap = 4, kTextHeight = 10, kCurveHeight = 72, kMaxSheetHeight = 20000;

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t n : shape)
    text += (text.empty() ? "" : " x ") + (n < 0 ? std::string("?") : std::to_string(n));
  return text.empty() ? "scalar" : text;
}

/// Takes the image out of its file; false when there is none or it is damaged.
bool load_frame(const Episode& episode, std::size_t field, std::int64_t step, Image& image) {
  std::string scratch;
  try {
    const StoredImage stored = episode.image(field, step, scratch);
    if (stored.bytes.empty()) return false;
    if (stored.encoding == ImageEncoding::kJpegOrPng) {
      decode_image(stored.bytes, 3, image);
    } else {
      image.resize(stored.height, stored.width, stored.channels);
      std::copy(stored.bytes.begin(), stored.bytes.end(), image.pixels.begin());
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::vector<std::size_t> chosen_curves(const EpisodeSource& source, const ContactSheetSettings& settings) {
  std::vector<std::size_t> curves;
  for (const std::string& name : settings.curves) {
    curves.push_back(source.field_index(name));
    COHORT_THROW_UNLESS(
        source.fields()[curves.back()].kind == StepKind::kNumber && source.fields()[curves.back()].elements() > 0,
        "the field {} cannot be drawn as a curve", name);
  }
  if (settings.curves.empty())
    for (std::size_t f = 0; f < source.fields().size(); ++f) {
      const StepField& field = source.fields()[f];
      if (field.kind == StepKind::kNumber && field.elements() > 0 && field.elements() <= 64 &&
          field.name.find("action") != std::string::npos && curves.size() < 4)
        curves.push_back(f);
    }
  return curves;
}

void draw_curves(Canvas& canvas, const Episode& episode, const StepField& field, std::size_t index, std::int64_t top,
                 std::int64_t width) {
  const auto elements = static_cast<std::size_t>(field.elements());
  std::vector<float> values(static_cast<std::size_t>(episode.steps()) * elements);
  episode.read(index, 0, episode.steps(), std::span(values));
  float low = std::numeric_limits<float>::infinity(), high = -low;
  for (const float value : values)
    if (std::isfinite(value)) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
  if (low > high) low = high = 0;
  constexpr std::int64_t kLetter = 8;  // pixels
  const std::string title = format("{}  {:.3g} to {:.3g}", field.name, low, high);
  canvas.text(top, kMargin, title, kInk);
  // The legend: every element's number in the colour of its curve.
  std::int64_t left = kMargin + (static_cast<std::int64_t>(title.size()) + 3) * kLetter;
  for (std::size_t e = 0; e < elements && elements > 1; ++e) {
    const std::string label = std::to_string(e);
    if (left + static_cast<std::int64_t>(label.size()) * kLetter > kMargin + width) break;
    canvas.text(top, left, label, kCurves[e % std::size(kCurves)]);
    left += (static_cast<std::int64_t>(label.size()) + 1) * kLetter;
  }
  top += kTextHeight + kGap;
  canvas.fill(top, kMargin, kCurveHeight, width, kPlot);
  if (low < 0 && high > 0) {
    const double zero = static_cast<double>(top + kCurveHeight - 1) +
                        static_cast<double>(low / (high - low)) * static_cast<double>(kCurveHeight - 1);
    canvas.line(static_cast<double>(kMargin), zero, static_cast<double>(kMargin + width - 1), zero, kGrey);
  }
  std::vector<float> column(static_cast<std::size_t>(episode.steps()));
  for (std::size_t e = 0; e < elements; ++e) {
    for (std::size_t t = 0; t < column.size(); ++t) column[t] = values[t * elements + e];
    canvas.curve(top, kMargin, kCurveHeight, width, column, low, high, kCurves[e % std::size(kCurves)]);
  }
}

/// Where a frame cannot be read.
void draw_fault(Canvas& canvas, std::int64_t top, std::int64_t left, std::int64_t height, std::int64_t width) {
  canvas.fill(top, left, height, width, kPlot);
  const auto x = static_cast<double>(left), y = static_cast<double>(top);
  const auto right = static_cast<double>(left + width - 1), bottom = static_cast<double>(top + height - 1);
  canvas.line(x, y, right, bottom, kFault);
  canvas.line(right, y, x, bottom, kFault);
}

}  // namespace

std::string inspect_text(const EpisodeSource& source, const std::vector<std::int64_t>& episodes) {
  std::vector<std::int64_t> lengths, chosen = episodes;
  std::int64_t total = 0;
  if (chosen.empty())
    for (std::int64_t e = 0; e < source.size(); ++e) chosen.push_back(e);
  for (const std::int64_t e : chosen) {
    lengths.push_back(source.steps(e));
    total += lengths.back();
  }
  std::sort(lengths.begin(), lengths.end());
  std::string text = format("{}\n{} episodes, {} steps; an episode has {} to {}, in the middle {}\n\n", source.name(),
                            lengths.size(), total, lengths.front(), lengths.back(), lengths[lengths.size() / 2]);
  if (static_cast<std::int64_t>(chosen.size()) < source.size())
    text.insert(text.size() - 1, format("{} of {} episodes are chosen\n", chosen.size(), source.size()));
  if (!source.selection().empty()) text.insert(text.size() - 1, source.selection() + "\n");
  std::size_t widest = 10;
  for (const StepField& field : source.fields()) widest = std::max(widest, field.name.size());
  for (const std::string& name : source.metadata_names()) widest = std::max(widest, name.size());
  text += format("{:<{}}  kind    type      shape of a step\n", "field", widest);
  for (const StepField& field : source.fields()) {
    const char* kind = field.kind == StepKind::kNumber ? "number" : field.kind == StepKind::kText ? "text" : "image";
    text += format("{:<{}}  {:<6}  {:<8}  {}\n", field.name, widest, kind, field.type_name(), shape_text(field.shape));
  }
  if (const std::string line = holds_several(source, chosen); !line.empty()) text += "\n" + line + "\n";
  const auto first = source.open(chosen.front());
  if (!source.metadata_names().empty()) text += "\nmetadata of an episode (the first one's)\n";
  for (const std::string& name : source.metadata_names()) {
    std::string example(first->metadata(name).substr(0, 100));
    std::replace(example.begin(), example.end(), '\n', ' ');
    text += format("{:<{}}  {}{}\n", name, widest, example, first->metadata(name).size() > 100 ? "…" : "");
  }
  const std::vector<std::string> others = source.left_out();
  if (!others.empty()) text += "\nin the data, but no fields of a step:\n";
  for (const std::string& other : others) text += "  " + other + "\n";
  if (!source.skipped().empty()) text += format("\n{} damaged ones left out:\n", source.skipped_count());
  for (const std::string& fault : source.skipped()) text += "  " + fault + "\n";
  return text;
}

Image contact_sheet(const EpisodeSource& source, const ContactSheetSettings& settings) {
  COHORT_THROW_UNLESS(settings.episodes >= 1 && settings.frames >= 1 && settings.frame_height >= 8 &&
                          settings.frame_height <= 1024 && settings.frames <= 64,
                      "a contact sheet needs at least one episode and 1 to 64 frames of 8 to 1024 pixels height");
  const auto place = [&](std::int64_t i) {
    return settings.among.empty() ? i : settings.among[static_cast<std::size_t>(i)];
  };
  const std::int64_t all = settings.among.empty() ? source.size() : static_cast<std::int64_t>(settings.among.size());
  const std::int64_t episodes = std::min(settings.episodes, all);
  std::vector<std::size_t> cameras;
  for (std::size_t f = 0; f < source.fields().size(); ++f)
    if (source.fields()[f].kind == StepKind::kImage && source.fields()[f].fault().empty()) cameras.push_back(f);
  const std::vector<std::size_t> curves = chosen_curves(source, settings);
  // Frames keep the proportions of the first one of their camera.
  std::vector<std::int64_t> widths;
  const auto first = source.open(place(0));
  std::int64_t widest = 64;
  for (const std::size_t camera : cameras) {
    Image image;
    std::int64_t width = settings.frame_height * 4 / 3;
    if (load_frame(*first, camera, 0, image))
      width = std::clamp<std::int64_t>(settings.frame_height * image.width / image.height, 8, 4096);
    widths.push_back(width);
    widest = std::max(widest, width);
  }
  const std::int64_t inner = std::max<std::int64_t>(640, settings.frames * (widest + kGap));
  const std::int64_t block =
      kTextHeight + 2 * kGap +
      static_cast<std::int64_t>(cameras.size()) * (settings.frame_height + kTextHeight + 3 * kGap) +
      static_cast<std::int64_t>(curves.size()) * (kCurveHeight + kTextHeight + 3 * kGap) + kMargin;
  const std::int64_t height = 2 * kMargin + episodes * block;
  COHORT_THROW_UNLESS(height <= kMaxSheetHeight, "the contact sheet would be {} pixels high; ask for fewer episodes",
                      height);
  Canvas canvas(height, inner + 2 * kMargin, kPaper);
  Resizer resizer;
  Image decoded, small;
  std::int64_t top = kMargin;
  for (std::int64_t b = 0; b < episodes; ++b) {
    const std::int64_t chosen = episodes == 1 ? 0 : b * (all - 1) / (episodes - 1);
    const auto episode = source.open(place(chosen));
    const std::int64_t number =
        settings.numbers.empty() ? place(chosen) : settings.numbers[static_cast<std::size_t>(chosen)];
    std::string title = format("episode {} of {}: {} steps", number, source.size(), episode->steps());
    for (std::size_t f = 0; f < source.fields().size(); ++f)
      if (source.fields()[f].kind == StepKind::kText && source.fields()[f].fault().empty() &&
          !episode->text(f, 0).empty()) {
        title += format(": {}", episode->text(f, 0));
        break;
      }
    canvas.text(top, kMargin, title.substr(0, static_cast<std::size_t>(inner / 8)), kInk);
    std::int64_t y = top + kTextHeight + 2 * kGap;
    for (std::size_t c = 0; c < cameras.size(); ++c) {
      canvas.text(y, kMargin, source.fields()[cameras[c]].name, kGrey);
      y += kTextHeight + kGap;
      for (std::int64_t k = 0; k < std::min(settings.frames, episode->steps()); ++k) {
        const std::int64_t count = std::min(settings.frames, episode->steps());
        const std::int64_t step = count == 1 ? 0 : k * (episode->steps() - 1) / (count - 1);
        const std::int64_t left = kMargin + k * (widths[c] + kGap);
        if (!load_frame(*episode, cameras[c], step, decoded)) {
          draw_fault(canvas, y, left, settings.frame_height, widths[c]);
          continue;
        }
        small.resize(settings.frame_height, widths[c], decoded.channels);
        resizer.resize(decoded, settings.frame_height, widths[c], ResizeMethod::kBilinearAntialias,
                       small.pixels.data());
        canvas.paste(small, y, left);
      }
      y += settings.frame_height + 2 * kGap;
    }
    for (const std::size_t curve : curves) {
      draw_curves(canvas, *episode, source.fields()[curve], curve, y, inner);
      y += kTextHeight + kCurveHeight + 3 * kGap;
    }
    top += block;
  }
  return canvas.image();
}

}  // namespace cohort::data
