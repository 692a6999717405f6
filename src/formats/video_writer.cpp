#include "formats/video_writer.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/error.h"
#include "core/files.h"
#include "formats/video_functions.h"

namespace cohort {

namespace {

std::size_t as_size(auto i) {
  return static_cast<std::size_t>(i);
}

std::string reason_of(int code) {
  char text[AV_ERROR_MAX_STRING_SIZE] = "";
  av_strerror(code, text, sizeof text);
  return text;
}

std::string no_encoder(const std::string& encoder) {
  return format("FFmpeg's libraries here have no encoder {}", encoder);
}

struct CodecDeleter {
  void operator()(AVCodecContext* c) const { avcodec_free_context(&c); }
};
struct FormatDeleter {
  void operator()(AVFormatContext* f) const { avformat_free_context(f); }
};
struct FrameDeleter {
  void operator()(AVFrame* f) const { av_frame_free(&f); }
};
struct PacketDeleter {
  void operator()(AVPacket* p) const { av_packet_free(&p); }
};
struct ScaleDeleter {
  void operator()(SwsContext* s) const { sws_freeContext(s); }
};

}  // namespace

/// The muxer writes into an AtomicFile through callbacks: nothing is at the path before the file is whole.
struct VideoWriter::Impl {
  Impl(const std::filesystem::path& to, int w, int h, double frames_per_second, const VideoSettings& wanted)
      : path(to), width(w), height(h), rate(frames_per_second), settings(wanted), file(to) {
    even_width = width + width % 2, even_height = height + height % 2;
    encoder = avcodec_find_encoder_by_name(settings.encoder.c_str());
    COHORT_THROW_UNLESS(encoder, "{}: {}", path.string(), no_encoder(settings.encoder));
    AVFormatContext* made = nullptr;
    check(avformat_alloc_output_context2(&made, nullptr, "mp4", nullptr), "no MP4 muxer");
    format_context.reset(made);
    stream = avformat_new_stream(made, nullptr);
    frame.reset(av_frame_alloc());
    packet.reset(av_packet_alloc());
    COHORT_THROW_UNLESS(stream && frame && packet, "{}: no memory for a video", path.string());
    open_encoder();
    check(avcodec_parameters_from_context(stream->codecpar, codec.get()), "the encoder's parameters");
    stream->time_base = codec->time_base;
    stream->avg_frame_rate = codec->framerate;
    constexpr int kBuffer = 1 << 16;
    auto* buffer = static_cast<unsigned char*>(av_malloc(kBuffer));
    made->pb = avio_alloc_context(buffer, kBuffer, 1, this, nullptr, write_bytes, seek_bytes);
    COHORT_THROW_UNLESS(made->pb, "{}: no memory for a video", path.string());
    made->flags |= AVFMT_FLAG_CUSTOM_IO | AVFMT_FLAG_BITEXACT;
    check(avformat_write_header(made, nullptr), "the header");
    frame->format = codec->pix_fmt;
    frame->width = even_width, frame->height = even_height;
    check(av_frame_get_buffer(frame.get(), 0), "a frame's memory");
    scale.reset(sws_getContext(even_width, even_height, AV_PIX_FMT_RGB24, even_width, even_height, codec->pix_fmt,
                               SWS_BILINEAR | SWS_ACCURATE_RND | SWS_BITEXACT, nullptr, nullptr, nullptr));
    COHORT_THROW_UNLESS(scale, "{}: no conversion from RGB", path.string());
    const int* matrix = sws_getCoefficients(codec->colorspace == AVCOL_SPC_BT709 ? SWS_CS_ITU709 : SWS_CS_SMPTE170M);
    sws_setColorspaceDetails(scale.get(), matrix, 1, matrix, 0, 0, 1 << 16, 1 << 16);
    padded.assign(3 * as_size(even_width) * as_size(even_height), 0);
  }
  void open_encoder() {
    codec.reset(avcodec_alloc_context3(encoder));
    COHORT_THROW_UNLESS(codec, "{}: no memory for a video", path.string());
    codec->width = even_width, codec->height = even_height;
    codec->pix_fmt = AV_PIX_FMT_YUV420P;
    const AVRational fps = av_d2q(rate, 1 << 16);
    codec->framerate = fps;
    codec->time_base = av_inv_q(fps);
    codec->gop_size =
        settings.key_every > 0 ? settings.key_every : static_cast<int>(std::clamp(std::lround(2 * rate), 1L, 250L));
    if (settings.independent_parts) codec->max_b_frames = 0;
    codec->color_range = AVCOL_RANGE_MPEG;
    codec->colorspace = even_height >= 720 ? AVCOL_SPC_BT709 : AVCOL_SPC_SMPTE170M;
    codec->color_primaries = codec->colorspace == AVCOL_SPC_BT709 ? AVCOL_PRI_BT709 : AVCOL_PRI_SMPTE170M;
    codec->color_trc = codec->colorspace == AVCOL_SPC_BT709 ? AVCOL_TRC_BT709 : AVCOL_TRC_SMPTE170M;
    codec->thread_count = 1;  // the same bytes on every machine
    if (format_context->oformat->flags & AVFMT_GLOBALHEADER) codec->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    av_opt_set(codec->priv_data, "preset", settings.preset.c_str(), 0);
    av_opt_set(codec->priv_data, "crf", format("{}", settings.crf).c_str(), 0);
    if (settings.encoder == "libsvtav1") av_opt_set(codec->priv_data, "svtav1-params", "lp=1", 0);
    const std::string fault = format("the encoder {} does not start", settings.encoder);
    check(avcodec_open2(codec.get(), encoder, nullptr), fault.c_str());
  }
  ~Impl() {
    if (format_context && format_context->pb) {
      av_freep(&format_context->pb->buffer);
      avio_context_free(&format_context->pb);
    }
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void check(int code, const char* what) const {
    if (code >= 0) return;
    // What the file said, rather than what the muxer made of it.
    COHORT_THROW_UNLESS(write_error.empty(), "{}", write_error);
    throw Error(format("{}: {}: {}", path.string(), what, reason_of(code)));
  }

#if LIBAVFORMAT_VERSION_MAJOR < 61
  using Written = std::uint8_t*;
#else
  using Written = const std::uint8_t*;
#endif
  static int write_bytes(void* self, Written data, int size) {
    auto* impl = static_cast<Impl*>(self);
    try {
      impl->file.write(impl->place, {reinterpret_cast<const char*>(data), as_size(size)});
    } catch (const std::exception& e) {
      impl->write_error = e.what();
      return AVERROR(EIO);
    }
    impl->place += as_size(size);
    return size;
  }
  static std::int64_t seek_bytes(void* self, std::int64_t offset, int whence) {
    auto* impl = static_cast<Impl*>(self);
    if (whence == AVSEEK_SIZE) return static_cast<std::int64_t>(impl->file.size());
    if (whence == SEEK_CUR) offset += static_cast<std::int64_t>(impl->place);
    if (whence == SEEK_END) offset += static_cast<std::int64_t>(impl->file.size());
    if (offset < 0) return AVERROR(EINVAL);
    impl->place = static_cast<std::uint64_t>(offset);
    return offset;
  }

  /// input null: what is left.
  void encode(const AVFrame* input) {
    check(avcodec_send_frame(codec.get(), input), "a picture cannot be encoded");
    for (;;) {
      const int code = avcodec_receive_packet(codec.get(), packet.get());
      if (code == AVERROR(EAGAIN) || code == AVERROR_EOF) return;
      check(code, "a picture cannot be encoded");
      if (settings.independent_parts) packet->dts = packet->pts;  // none is shown later than it is decoded
      av_packet_rescale_ts(packet.get(), codec->time_base, stream->time_base);
      packet->stream_index = stream->index;
      check(av_interleaved_write_frame(format_context.get(), packet.get()), "a picture cannot be written");
      COHORT_THROW_UNLESS(write_error.empty(), "{}", write_error);
    }
  }

  std::filesystem::path path;
  int width, height;
  double rate;
  VideoSettings settings;
  const AVCodec* encoder = nullptr;
  int even_width = 0, even_height = 0;
  AtomicFile file;
  std::uint64_t place = 0;
  std::string write_error;
  std::unique_ptr<AVFormatContext, FormatDeleter> format_context;
  AVStream* stream = nullptr;
  std::unique_ptr<AVCodecContext, CodecDeleter> codec;
  std::unique_ptr<AVFrame, FrameDeleter> frame;
  std::unique_ptr<AVPacket, PacketDeleter> packet;
  std::unique_ptr<SwsContext, ScaleDeleter> scale;
  std::vector<std::uint8_t> padded;
  std::int64_t count = 0;
  bool part_begun = false;
};

namespace {

/// Moves the index of an MP4 file, its last box, before the pictures, so that a browser plays it while it arrives
/// (ISO/IEC 14496-12, 8.1.1 and 8.7.5: every chunk's offset grows by the index' length).
void index_first(AtomicFile& file, const std::string& name) {
  const std::uint64_t size = file.size();
  const auto read_at = [&](std::uint64_t offset, std::size_t n) {
    std::string bytes(n, '\0');
    file.read(offset, bytes);
    return bytes;
  };
  const auto number = [](const std::string& bytes, std::size_t place, int n) {
    std::uint64_t value = 0;
    for (int i = 0; i < n; ++i) value = value << 8 | static_cast<unsigned char>(bytes[place + as_size(i)]);
    return value;
  };
  std::uint64_t data_begin = 0, index_begin = 0, index_size = 0;
  for (std::uint64_t offset = 0; offset + 8 <= size;) {
    std::string head = read_at(offset, 8);
    std::uint64_t length = number(head, 0, 4);
    if (length == 1) length = number(read_at(offset + 8, 8), 0, 8);
    if (length == 0) length = size - offset;
    const std::string type = head.substr(4);
    if (type == "mdat" && data_begin == 0) data_begin = offset;
    if (type == "moov") index_begin = offset, index_size = length;
    COHORT_CHECK(length >= 8, "{}: a box of {} bytes", name, length);
    offset += length;
  }
  COHORT_CHECK(data_begin > 0 && index_begin > data_begin && index_begin + index_size == size,
               "{}: the index is not the last box", name);
  std::string index = read_at(index_begin, index_size);
  // Offsets stand in the boxes stco (32 bits) and co64 within moov/trak/mdia/minf/stbl.
  const auto shift = [&](auto self, std::size_t begin, std::size_t end) -> void {
    for (std::size_t place = begin; place + 8 <= end;) {
      const auto length = static_cast<std::size_t>(number(index, place, 4));
      const std::string type = index.substr(place + 4, 4);
      if (length < 8 || place + length > end) return;
      if (type == "trak" || type == "mdia" || type == "minf" || type == "stbl") self(self, place + 8, place + length);
      const int width = type == "stco" ? 4 : type == "co64" ? 8 : 0;
      const std::uint64_t entries = width > 0 ? number(index, place + 12, 4) : 0;
      for (std::uint64_t i = 0; i < entries; ++i) {
        const std::size_t entry = place + 16 + static_cast<std::size_t>(i) * as_size(width);
        std::uint64_t value = number(index, entry, width) + index_size;
        COHORT_THROW_UNLESS(width == 8 || value >> 32 == 0, "{}: a video of 4 GiB is too long for its index", name);
        for (int b = width - 1; b >= 0; --b, value >>= 8) index[entry + as_size(b)] = static_cast<char>(value & 255u);
      }
      place += length;
    }
  };
  shift(shift, 8, index.size());
  // The pictures go behind, the last ones first.
  constexpr std::uint64_t kPiece = 1 << 20;
  for (std::uint64_t end = index_begin; end > data_begin;) {
    const std::uint64_t begin = end - data_begin > kPiece ? end - kPiece : data_begin;
    file.write(begin + index_size, read_at(begin, static_cast<std::size_t>(end - begin)));
    end = begin;
  }
  file.write(data_begin, index);
}

}  // namespace

std::string video_unavailable(const std::string& encoder) {
  try {
    open_ffmpeg();
  } catch (const Error& e) {
    return e.what();
  }
  return avcodec_find_encoder_by_name(encoder.c_str()) ? "" : no_encoder(encoder);
}

VideoWriter::VideoWriter(const std::filesystem::path& path, int width, int height, double fps,
                         const VideoSettings& settings) {
  COHORT_THROW_UNLESS(path.extension() == ".mp4", "{}: a video's name ends in .mp4", path.string());
  COHORT_THROW_UNLESS(width >= 2 && height >= 2 && width <= 8192 && height <= 8192,
                      "{}: a video of {} x {} pixels; each side has 2 to 8192", path.string(), width, height);
  COHORT_THROW_UNLESS(fps > 0 && fps <= 1000, "{}: {} frames per second; more than 0, at most 1000", path.string(),
                      fps);
  av_log_set_level(AV_LOG_ERROR);
  // Else SVT-AV1 greets on standard error whenever it starts.
  if (settings.encoder == "libsvtav1") ::setenv("SVT_LOG", "1", 0);
  impl_ = std::make_unique<Impl>(path, width, height, fps, settings);
}
VideoWriter::~VideoWriter() = default;

void VideoWriter::add(std::span<const std::uint8_t> rgb) {
  Impl& v = *impl_;
  const std::size_t row = 3 * as_size(v.width), wide = 3 * as_size(v.even_width);
  COHORT_CHECK(rgb.size() == row * as_size(v.height), "{} bytes are no picture of {} x {}", rgb.size(), v.width,
               v.height);
  for (std::size_t y = 0; y < as_size(v.height); ++y) {
    std::copy_n(rgb.begin() + static_cast<std::ptrdiff_t>(y * row), row,
                v.padded.begin() + static_cast<std::ptrdiff_t>(y * wide));
  }
  v.check(av_frame_make_writable(v.frame.get()), "a frame's memory");
  const std::uint8_t* from[1] = {v.padded.data()};
  const int stride[1] = {static_cast<int>(wide)};
  sws_scale(v.scale.get(), from, stride, 0, v.even_height, v.frame->data, v.frame->linesize);
  if (!v.part_begun && v.count > 0) v.open_encoder();
  v.part_begun = true;
  v.frame->pts = v.count++;
  v.encode(v.frame.get());
}

void VideoWriter::cut() {
  Impl& v = *impl_;
  COHORT_CHECK(v.settings.independent_parts, "a video of one part is not cut");
  if (!v.part_begun) return;
  v.encode(nullptr);
  avio_flush(v.format_context->pb);
  COHORT_THROW_UNLESS(v.write_error.empty(), "{}", v.write_error);
  v.part_begun = false;
}

void VideoWriter::finish() {
  Impl& v = *impl_;
  COHORT_THROW_UNLESS(v.count > 0, "{}: a video without a picture", v.path.string());
  if (v.part_begun) v.encode(nullptr);
  v.check(av_write_trailer(v.format_context.get()), "the index");
  avio_flush(v.format_context->pb);
  COHORT_THROW_UNLESS(v.write_error.empty(), "{}", v.write_error);
  index_first(v.file, v.path.string());
  v.file.commit();
}

std::int64_t VideoWriter::frames() const {
  return impl_->count;
}

std::int64_t VideoWriter::bytes() const {
  return static_cast<std::int64_t>(impl_->file.size());
}

}  // namespace cohort
