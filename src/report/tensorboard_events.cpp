#include "report/tensorboard_events.h"

#include <algorithm>
#include <chrono>
#include <protozero/pbf_writer.hpp>

#include <unistd.h>

#include "core/error.h"
#include "core/markup.h"
#include "formats/tfrecord.h"

namespace cohort::report {
namespace fs = std::filesystem;
namespace {

constexpr const char* kPrefix = "events.out.tfevents.";

// Field numbers of the messages, named as in the .proto files.
enum class Event : protozero::pbf_tag_type { wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7 };
enum class SessionLog : protozero::pbf_tag_type { status = 1 };
enum class Summary : protozero::pbf_tag_type { value = 1 };
enum class Value : protozero::pbf_tag_type { tag = 1, simple_value = 2, image = 4, tensor = 8, metadata = 9 };
enum class Image : protozero::pbf_tag_type { height = 1, width = 2, colorspace = 3, encoded_image_string = 4 };
enum class Metadata : protozero::pbf_tag_type { plugin_data = 1 };
enum class PluginData : protozero::pbf_tag_type { plugin_name = 1 };
enum class Tensor : protozero::pbf_tag_type { dtype = 1, tensor_shape = 2, string_val = 8 };
enum class TensorShape : protozero::pbf_tag_type { dim = 2 };
enum class Dim : protozero::pbf_tag_type { size = 1 };
constexpr int kSessionStart = 1;  // SessionLog.START
constexpr int kTypeString = 7;    // DT_STRING
constexpr int kColorspaceRgba = 4;

template <class Tag>
constexpr protozero::pbf_tag_type n(Tag tag) {
  return static_cast<protozero::pbf_tag_type>(tag);
}

std::string event_head(double wall_time, std::int64_t step) {
  std::string data;
  protozero::pbf_writer event(data);
  event.add_double(n(Event::wall_time), wall_time);
  event.add_int64(n(Event::step), step);
  return data;
}

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  std::string clean = name;
  std::replace_if(
      clean.begin(), clean.end(), [](char c) { return c == '/' || c <= ' '; }, '_');
  return clean;
}

/// TensorBoard reads a folder's files in the order of their names.
fs::path next_file(const fs::path& folder) {
  auto seconds = static_cast<std::int64_t>(now_seconds());
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    const std::int64_t its_seconds = std::strtoll(name.c_str() + std::string_view(kPrefix).size(), nullptr, 10);
    if (its_seconds < (std::int64_t{1} << 40)) seconds = std::max(seconds, its_seconds + 1);
  }
  return folder / format("{}{:010}.{}.{}", kPrefix, seconds, host_name(), ::getpid());
}

std::string framed(std::string_view data) {
  std::string record;
  append_tfrecord(record, data);
  return record;
}

}  // namespace

std::pair<std::uint32_t, std::uint32_t> png_size(std::string_view png) {
  constexpr std::string_view kSignature("\x89PNG\r\n\x1a\n", 8);
  COHORT_THROW_UNLESS(png.size() >= 24 && png.starts_with(kSignature) && png.substr(12, 4) == "IHDR",
                      "the image is no PNG file ({} bytes)", png.size());
  const auto big_endian = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(png[at + i]);
    return value;
  };
  return {big_endian(16), big_endian(20)};
}

TensorboardEvents::TensorboardEvents(const fs::path& folder, std::optional<std::int64_t> first_step)
    : file_(next_file(folder)) {
  std::string version = event_head(now_seconds(), 0);
  protozero::pbf_writer(version).add_string(n(Event::file_version), "brain.Event:2");
  file_.append(framed(version));
  if (!first_step) return;
  std::string log;
  protozero::pbf_writer(log).add_enum(n(SessionLog::status), kSessionStart);
  std::string event = event_head(now_seconds(), *first_step);
  protozero::pbf_writer(event).add_message(n(Event::session_log), log);
  file_.append(framed(event));
}

void TensorboardEvents::scalars(std::int64_t step, double wall_time, std::span<const TagValue> values) {
  std::string data = event_head(wall_time, step);
  {
    protozero::pbf_writer event(data);
    protozero::pbf_writer summary(event, n(Event::summary));
    for (const TagValue& v : values) {
      protozero::pbf_writer value(summary, n(Summary::value));
      value.add_string(n(Value::tag), clean_utf8(v.tag));
      value.add_float(n(Value::simple_value), static_cast<float>(v.value));
    }
  }
  file_.append(framed(data));
}

void TensorboardEvents::text(const std::string& tag, std::int64_t step, double wall_time, const std::string& markdown) {
  std::string data = event_head(wall_time, step);
  {
    protozero::pbf_writer event(data);
    protozero::pbf_writer summary(event, n(Event::summary));
    protozero::pbf_writer value(summary, n(Summary::value));
    value.add_string(n(Value::tag), clean_utf8(tag) + "/text_summary");
    {
      protozero::pbf_writer tensor(value, n(Value::tensor));
      tensor.add_enum(n(Tensor::dtype), kTypeString);
      {
        protozero::pbf_writer shape(tensor, n(Tensor::tensor_shape));
        protozero::pbf_writer dim(shape, n(TensorShape::dim));
        dim.add_int64(n(Dim::size), 1);
      }
      tensor.add_bytes(n(Tensor::string_val), clean_utf8(markdown, true));
    }
    protozero::pbf_writer metadata(value, n(Value::metadata));
    protozero::pbf_writer plugin(metadata, n(Metadata::plugin_data));
    plugin.add_string(n(PluginData::plugin_name), "text");
  }
  file_.append(framed(data));
}

void TensorboardEvents::image(const std::string& tag, std::int64_t step, double wall_time, std::string_view png) {
  const auto [width, height] = png_size(png);
  std::string data = event_head(wall_time, step);
  {
    protozero::pbf_writer event(data);
    protozero::pbf_writer summary(event, n(Event::summary));
    protozero::pbf_writer value(summary, n(Summary::value));
    value.add_string(n(Value::tag), clean_utf8(tag));
    protozero::pbf_writer image(value, n(Value::image));
    image.add_int32(n(Image::height), static_cast<std::int32_t>(height));
    image.add_int32(n(Image::width), static_cast<std::int32_t>(width));
    image.add_int32(n(Image::colorspace), kColorspaceRgba);
    image.add_bytes(n(Image::encoded_image_string), png.data(), png.size());
  }
  file_.append(framed(data));
}

}  // namespace cohort::report
