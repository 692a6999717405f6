/// TensorBoard event files: TFRecord framing (core/tfrecord.h) around Event messages
/// (tensorflow/core/util/event.proto and framework/summary.proto), written by protozero.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "report/append_file.h"

namespace cohort::report {

struct TagValue {
  std::string_view tag;
  double value;
};

class TensorboardEvents {
 public:
  /// Begins a file events.out.tfevents.<seconds>.<host>.<pid> in `folder`, named so that it sorts behind the ones that
  /// are there. After a resume, `first_step` makes TensorBoard drop what earlier files hold from that step on.
  TensorboardEvents(const std::filesystem::path& folder, std::optional<std::int64_t> first_step = std::nullopt);

  /// Scalars of one step (float32 in this format), at `wall_time` seconds since 1970.
  void scalars(std::int64_t step, double wall_time, std::span<const TagValue> values);

  /// Markdown, shown under "Text".
  void text(const std::string& tag, std::int64_t step, double wall_time, const std::string& markdown);

  /// A PNG file's bytes, shown under "Images". Throws Error when they are no PNG.
  void image(const std::string& tag, std::int64_t step, double wall_time, std::string_view png);

  const std::filesystem::path& path() const { return file_.path(); }

 private:
  AppendFile file_;
};

/// Width and height of a PNG file's bytes, from its header chunk (RFC 2083). Throws Error when it is none.
std::pair<std::uint32_t, std::uint32_t> png_size(std::string_view png);

}  // namespace cohort::report
