#include "data/lerobot/video_frames.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <list>
#include <mutex>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "core/placeholder_file.h"
#include "formats/video_functions.h"

namespace cohort::data {
namespace fs = std::filesystem;
namespace {

/// Frames that a decoder keeps, for the count of its memory: references of H.264 and AV1, and what it is about to give.
constexpr std::int64_t kFramesOfDecoder = 10;

std::string video_reason(int code) {
  char text[AV_ERROR_MAX_STRING_SIZE] = "";
  av_strerror(code, text, sizeof text);
  return text;
}

struct InputDeleter {
  void operator()(AVFormatContext* f) const { avformat_close_input(&f); }
};
struct VideoCodecDeleter {
  void operator()(AVCodecContext* c) const { avcodec_free_context(&c); }
};
struct VideoFrameDeleter {
  void operator()(AVFrame* f) const { av_frame_free(&f); }
};
struct VideoPacketDeleter {
  void operator()(AVPacket* p) const { av_packet_free(&p); }
};
struct ScalerDeleter {
  void operator()(SwsContext* s) const { sws_freeContext(s); }
};

void quieten() {
  static std::once_flag quiet;
  std::call_once(quiet, [] { av_log_set_level(AV_LOG_FATAL); });  // what matters is in our messages
}

/// `tick`: s, the stream's unit of time.
VideoSummary summary_of(const AVStream& stream, double tick) {
  const double begin = stream.start_time == AV_NOPTS_VALUE ? 0 : static_cast<double>(stream.start_time) * tick;
  const bool said = stream.duration != AV_NOPTS_VALUE && stream.duration > 0;
  return {.height = stream.codecpar->height,
          .width = stream.codecpar->width,
          .end = said ? begin + static_cast<double>(stream.duration) * tick : 0,
          .begin = begin,
          .frames = stream.nb_frames,
          .codec = avcodec_get_name(stream.codecpar->codec_id)};
}

class VideoDecoder {
 public:
  explicit VideoDecoder(const fs::path& file) : path_(file.string()) {
    quieten();
    std::error_code error;
    COHORT_THROW_UNLESS(fs::is_regular_file(file, error), "there is no video {}; copy it from where the data set is",
                        path_);
    refuse_placeholder(file);
    AVFormatContext* opened = nullptr;
    check(avformat_open_input(&opened, path_.c_str(), nullptr, nullptr), "it is no video that can be opened");
    input_.reset(opened);
    check(avformat_find_stream_info(opened, nullptr), "its streams are damaged");
    const int number = av_find_best_stream(opened, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
    check(number, "there is no video in it");
    stream_ = opened->streams[number];
    const AVCodecParameters& parameters = *stream_->codecpar;
    const AVCodec* decoder = avcodec_find_decoder(parameters.codec_id);
    COHORT_THROW_UNLESS(decoder,
                        "{}: FFmpeg's libraries here have no decoder for {}: install a build of FFmpeg with it{}",
                        path_, avcodec_get_name(parameters.codec_id), of_codec());
    codec_.reset(avcodec_alloc_context3(decoder));
    frame_.reset(av_frame_alloc());
    packet_.reset(av_packet_alloc());
    COHORT_THROW_UNLESS(codec_ && frame_ && packet_, "{}: no memory for a decoder", path_);
    check(avcodec_parameters_to_context(codec_.get(), &parameters), "its parameters");
    codec_->thread_count = 1;  // whoever reads has threads of its own
    codec_->pkt_timebase = stream_->time_base;
    check(avcodec_open2(codec_.get(), decoder, nullptr), "its decoder does not start");
    tick_ = av_q2d(stream_->time_base);
    COHORT_THROW_UNLESS(tick_ > 0, "{}: the video says no unit of time", path_);
  }

  const std::string& path() const { return path_; }
  VideoSummary summary() const { return summary_of(*stream_, tick_); }
  std::int64_t bytes() const {
    const std::int64_t pixels = std::int64_t{stream_->codecpar->height} * stream_->codecpar->width;
    return std::int64_t{1 << 18} + pixels * 3 / 2 * kFramesOfDecoder + pixels * 3;
  }
  /// Whether the frame lies ahead, without a key frame between.
  bool leads_to(double seconds) const {
    return has_frame_ && time_ <= seconds + kFrameTolerance && !key_between(seconds);
  }
  double time() const { return time_; }
  std::int64_t seeks() const { return seeks_; }

  VideoFrame read(double seconds, double tolerance, std::string& rgb) {
    if (!(has_frame_ && std::abs(time_ - seconds) <= tolerance)) go_to(seconds, tolerance);
    COHORT_THROW_UNLESS(!std::isfinite(painted_), "{}: the frame at {:.3f} s is damaged{}: copy the video again", path_,
                        painted_, painted_ == time_ ? "" : format(", and that at {:.3f} s is made from it", time_));
    to_rgb(rgb);
    return {.height = frame_->height, .width = frame_->width, .time = time_};
  }

 private:
  void check(int code, const char* what) const {
    COHORT_THROW_UNLESS(code >= 0, "{}: {} ({}){}", path_, what, video_reason(code), of_codec());
  }
  std::string of_codec() const {
    return stream_ && stream_->codecpar->codec_id == AV_CODEC_ID_AV1
               ? "; AV1 needs FFmpeg's libraries with libdav1d, as Debian's and Ubuntu's packages are"
               : "";
  }

  std::int64_t ticks(double seconds) const { return std::llround(seconds / tick_); }

  bool key_between(double seconds) const {
    const AVIndexEntry* key = avformat_index_get_entry_from_timestamp(stream_, ticks(seconds), AVSEEK_FLAG_BACKWARD);
    return key && key->timestamp > sent_;
  }

  void go_to(double seconds, double tolerance) {
    const double early = seconds - tolerance, late = seconds + tolerance;
    double before = -std::numeric_limits<double>::infinity();
    if (!leads_to(seconds)) seek_before(seconds, late);
    while (has_frame_ && time_ < early) {
      before = time_;
      if (!next()) {
        has_frame_ = false;
        throw Error(
            format("{}: no frame at {:.6f} s, its last one is at {:.6f} s: the video is too short, or the "
                   "timestamps are another video's",
                   path_, seconds, before));
      }
    }
    COHORT_THROW_UNLESS(has_frame_, "{}: it holds no frame that can be decoded{}", path_, of_codec());
    COHORT_THROW_UNLESS(time_ <= late,
                        "{}: no frame within {:g} s of {:.6f} s: the nearest are at {} and {:.6f} s; timestamp in the "
                        "data and from_timestamp in meta/episodes must say when frames begin",
                        path_, tolerance, seconds, std::isfinite(before) ? format("{:.6f}", before) : "no time", time_);
  }

  /// To a key frame that is not later. One that the index has before the time may be shown after it: then further back.
  void seek_before(double seconds, double late) {
    const std::int64_t begin = stream_->start_time == AV_NOPTS_VALUE ? 0 : stream_->start_time;
    for (double back = 0;; back = back * 4 + 1) {
      const std::int64_t target = std::max(begin, ticks(seconds - back));
      int code = av_seek_frame(input_.get(), stream_->index, target, AVSEEK_FLAG_BACKWARD);
      if (code < 0 && target > begin) continue;
      if (code < 0)
        code = avformat_seek_file(input_.get(), stream_->index, std::numeric_limits<std::int64_t>::min(), begin,
                                  std::numeric_limits<std::int64_t>::max(), 0);
      check(code, "no key frame is found in it");
      avcodec_flush_buffers(codec_.get());
      ++seeks_;
      sent_ = std::numeric_limits<std::int64_t>::min();
      ended_ = has_frame_ = false;
      painted_ = kNever;
      if ((next() && time_ <= late) || target == begin) return;
    }
  }

  /// The next frame; false at the end.
  bool next() {
    for (;;) {
      const int code = avcodec_receive_frame(codec_.get(), frame_.get());
      if (code == 0) {
        const std::int64_t pts = frame_->pts != AV_NOPTS_VALUE ? frame_->pts : frame_->best_effort_timestamp;
        if (pts == AV_NOPTS_VALUE) continue;
        time_ = static_cast<double>(pts) * tick_;
        if (frame_->pict_type == AV_PICTURE_TYPE_I) painted_ = kNever;
        if (frame_->decode_error_flags != 0 && !std::isfinite(painted_)) painted_ = time_;
        return has_frame_ = true;
      }
      if (code == AVERROR_EOF) return false;
      if (code != AVERROR(EAGAIN)) damaged(code);
      send();
    }
  }

  void send() {
    for (;;) {
      const int code = ended_ ? AVERROR_EOF : av_read_frame(input_.get(), packet_.get());
      if (code == AVERROR_EOF) {
        ended_ = true;
        avcodec_send_packet(codec_.get(), nullptr);
        return;
      }
      if (code < 0) damaged(code);
      if (packet_->stream_index != stream_->index) {
        av_packet_unref(packet_.get());
        continue;
      }
      if (packet_->dts != AV_NOPTS_VALUE) sent_ = packet_->dts;
      const int sent = avcodec_send_packet(codec_.get(), packet_.get());
      av_packet_unref(packet_.get());
      if (sent < 0) damaged(sent);
      return;
    }
  }

  [[noreturn]] void damaged(int code) {
    has_frame_ = false;
    throw Error(format("{}: it cannot be decoded after {:.3f} s: {}{}", path_, time_, video_reason(code), of_codec()));
  }

  void to_rgb(std::string& rgb) {
    const auto key = std::tuple(frame_->width, frame_->height, frame_->format, static_cast<int>(frame_->colorspace),
                                static_cast<int>(frame_->color_range));
    if (!scaler_ || key != scaled_) {
      scaler_.reset(sws_getContext(frame_->width, frame_->height, static_cast<AVPixelFormat>(frame_->format),
                                   frame_->width, frame_->height, AV_PIX_FMT_RGB24,
                                   SWS_BILINEAR | SWS_ACCURATE_RND | SWS_BITEXACT, nullptr, nullptr, nullptr));
      COHORT_THROW_UNLESS(scaler_, "{}: its pixels cannot become RGB", path_);
      const int matrix = frame_->colorspace == AVCOL_SPC_BT709        ? SWS_CS_ITU709
                         : frame_->colorspace == AVCOL_SPC_BT2020_NCL ? SWS_CS_BT2020
                                                                      : SWS_CS_ITU601;
      const int full = frame_->color_range == AVCOL_RANGE_JPEG ? 1 : 0;
      sws_setColorspaceDetails(scaler_.get(), sws_getCoefficients(matrix), full, sws_getCoefficients(SWS_CS_ITU601), 1,
                               0, 1 << 16, 1 << 16);
      picture_.reset(av_frame_alloc());
      COHORT_THROW_UNLESS(picture_, "{}: no memory for a picture", path_);
      picture_->format = AV_PIX_FMT_RGB24;
      picture_->width = frame_->width, picture_->height = frame_->height;
      check(av_frame_get_buffer(picture_.get(), 0), "no memory for a picture");
      scaled_ = key;
    }
    sws_scale(scaler_.get(), frame_->data, frame_->linesize, 0, frame_->height, picture_->data, picture_->linesize);
    const auto row = static_cast<std::size_t>(frame_->width) * 3;
    rgb.resize(row * static_cast<std::size_t>(frame_->height));
    for (int y = 0; y < frame_->height; ++y)
      std::copy_n(reinterpret_cast<const char*>(picture_->data[0]) + std::ptrdiff_t{y} * picture_->linesize[0], row,
                  rgb.data() + static_cast<std::size_t>(y) * row);
  }

  const std::string path_;
  std::unique_ptr<AVFormatContext, InputDeleter> input_;
  AVStream* stream_ = nullptr;
  std::unique_ptr<AVCodecContext, VideoCodecDeleter> codec_;
  std::unique_ptr<AVFrame, VideoFrameDeleter> frame_, picture_;
  std::unique_ptr<AVPacket, VideoPacketDeleter> packet_;
  std::unique_ptr<SwsContext, ScalerDeleter> scaler_;
  std::tuple<int, int, int, int, int> scaled_{};
  double tick_ = 0, time_ = 0;
  std::int64_t sent_ = std::numeric_limits<std::int64_t>::min();  // decoding time of the packet that was sent last
  std::int64_t seeks_ = 0;
  bool has_frame_ = false, ended_ = false;
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  double painted_ =
      kNever;  // s, the first frame since a key frame in which FFmpeg painted over what it could not decode
};

}  // namespace

struct VideoFrames::Impl {
  /// Of this file: one that need not seek, the nearest; else any; else a new one.
  std::unique_ptr<VideoDecoder> take(const fs::path& file, double seconds) {
    {
      const std::lock_guard lock(mutex);
      auto best = idle.end();
      for (auto at = idle.begin(); at != idle.end(); ++at) {
        if ((*at)->path() != file.native()) continue;
        const bool leads = (*at)->leads_to(seconds);
        if (best == idle.end() || (leads && (!(*best)->leads_to(seconds) || (*at)->time() > (*best)->time())))
          best = at;
      }
      if (best != idle.end()) {
        auto taken = std::move(*best);
        idle.erase(best);
        held -= taken->bytes();
        return taken;
      }
    }
    return std::make_unique<VideoDecoder>(file);
  }
  void put_back(std::unique_ptr<VideoDecoder> decoder) {
    std::list<std::unique_ptr<VideoDecoder>> dropped;  // closed without the lock
    const std::lock_guard lock(mutex);
    held += decoder->bytes();
    idle.push_front(std::move(decoder));
    while (held > budget && idle.size() > 1) {
      held -= idle.back()->bytes();
      dropped.splice(dropped.end(), idle, std::prev(idle.end()));
    }
  }

  std::int64_t budget = 0;
  mutable std::mutex mutex;
  std::list<std::unique_ptr<VideoDecoder>> idle;  // first: used last
  std::int64_t held = 0;
  std::atomic<std::int64_t> seeks{0};
};

VideoFrames::VideoFrames(std::int64_t idle_bytes) : impl_(std::make_unique<Impl>()) {
  impl_->budget = idle_bytes;
}
VideoFrames::~VideoFrames() = default;

VideoFrame VideoFrames::read(const fs::path& file, double seconds, double tolerance, std::string& rgb) const {
  COHORT_THROW_UNLESS(std::isfinite(seconds), "{}: a frame at {} s is asked for", file.string(), seconds);
  auto decoder = impl_->take(file, seconds);
  const std::int64_t before = decoder->seeks();
  const VideoFrame frame = decoder->read(seconds, tolerance, rgb);  // one that failed is not used again
  impl_->seeks += decoder->seeks() - before;
  impl_->put_back(std::move(decoder));
  return frame;
}

VideoSummary VideoFrames::look(const fs::path& file) const {
  auto decoder = impl_->take(file, 0);
  const VideoSummary summary = decoder->summary();
  impl_->put_back(std::move(decoder));
  return summary;
}

std::int64_t VideoFrames::bytes() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->held;
}

std::int64_t VideoFrames::seeks() const {
  return impl_->seeks;
}

VideoSummary read_video_index(const fs::path& file) {
  quieten();
  std::error_code error;
  COHORT_THROW_UNLESS(fs::is_regular_file(file, error), "there is no video {}; copy it from where the data set is",
                      file.string());
  refuse_placeholder(file);
  AVFormatContext* opened = nullptr;
  const int code = avformat_open_input(&opened, file.c_str(), nullptr, nullptr);
  COHORT_THROW_UNLESS(code >= 0, "{}: it is no video that can be opened ({}): it may be cut; copy it again",
                      file.string(), video_reason(code));
  const std::unique_ptr<AVFormatContext, InputDeleter> input(opened);
  for (unsigned int s = 0; s < opened->nb_streams; ++s) {
    const AVStream& stream = *opened->streams[s];
    if (stream.codecpar->codec_type == AVMEDIA_TYPE_VIDEO) return summary_of(stream, av_q2d(stream.time_base));
  }
  throw Error(format("{}: there is no video in it", file.string()));
}

std::string video_frames_unavailable() {
  try {
    open_ffmpeg();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace cohort::data
