/// FFmpeg's libraries, opened when a video is first written: a program that writes none neither waits for them nor
/// needs them. The functions have FFmpeg's names; in this namespace they are found before FFmpeg's own, which nothing
/// links.
#pragma once
#include <atomic>
#include <string>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/opt.h>
#include <libswscale/swscale.h>
}

namespace cohort::render {

/// Opens the libraries of the versions that this was built with, if they are not open yet. Throws Error naming the
/// packages.
void open_ffmpeg();
/// Address of a function; opens the libraries. Throws Error.
void* find_in_ffmpeg(const char* name);

template <class Signature>
class FfmpegFunction;
/// A function of one of the libraries, looked up by its first call.
template <class R, class... A>
class FfmpegFunction<R(A...)> {
 public:
  constexpr explicit FfmpegFunction(const char* name) : name_(name) {}
  R operator()(A... arguments) const {
    void* address = address_.load(std::memory_order_acquire);
    if (address == nullptr) {
      address = find_in_ffmpeg(name_);
      address_.store(address, std::memory_order_release);
    }
    return reinterpret_cast<R (*)(A...)>(address)(arguments...);
  }

 private:
  const char* name_;
  mutable std::atomic<void*> address_{nullptr};
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored \
    "-Wignored-attributes"  // of results that must be looked at; the type does not carry them
#define COHORT_FFMPEG_FUNCTION(name) inline constinit const FfmpegFunction<decltype(::name)> name(#name)
COHORT_FFMPEG_FUNCTION(av_d2q);
COHORT_FFMPEG_FUNCTION(av_frame_alloc);
COHORT_FFMPEG_FUNCTION(av_frame_free);
COHORT_FFMPEG_FUNCTION(av_frame_get_buffer);
COHORT_FFMPEG_FUNCTION(av_frame_make_writable);
COHORT_FFMPEG_FUNCTION(av_freep);
COHORT_FFMPEG_FUNCTION(av_interleaved_write_frame);
COHORT_FFMPEG_FUNCTION(av_log_set_level);
COHORT_FFMPEG_FUNCTION(av_malloc);
COHORT_FFMPEG_FUNCTION(av_opt_set);
COHORT_FFMPEG_FUNCTION(av_packet_alloc);
COHORT_FFMPEG_FUNCTION(av_packet_free);
COHORT_FFMPEG_FUNCTION(av_packet_rescale_ts);
COHORT_FFMPEG_FUNCTION(av_strerror);
COHORT_FFMPEG_FUNCTION(av_write_trailer);
COHORT_FFMPEG_FUNCTION(avcodec_alloc_context3);
COHORT_FFMPEG_FUNCTION(avcodec_find_encoder_by_name);
COHORT_FFMPEG_FUNCTION(avcodec_free_context);
COHORT_FFMPEG_FUNCTION(avcodec_open2);
COHORT_FFMPEG_FUNCTION(avcodec_parameters_from_context);
COHORT_FFMPEG_FUNCTION(avcodec_receive_packet);
COHORT_FFMPEG_FUNCTION(avcodec_send_frame);
COHORT_FFMPEG_FUNCTION(avformat_alloc_output_context2);
COHORT_FFMPEG_FUNCTION(avformat_free_context);
COHORT_FFMPEG_FUNCTION(avformat_new_stream);
COHORT_FFMPEG_FUNCTION(avformat_write_header);
COHORT_FFMPEG_FUNCTION(avio_alloc_context);
COHORT_FFMPEG_FUNCTION(avio_context_free);
COHORT_FFMPEG_FUNCTION(avio_flush);
COHORT_FFMPEG_FUNCTION(sws_freeContext);
COHORT_FFMPEG_FUNCTION(sws_getCoefficients);
COHORT_FFMPEG_FUNCTION(sws_getContext);
COHORT_FFMPEG_FUNCTION(sws_scale);
COHORT_FFMPEG_FUNCTION(sws_setColorspaceDetails);
#undef COHORT_FFMPEG_FUNCTION
#pragma GCC diagnostic pop

}  // namespace cohort::render
