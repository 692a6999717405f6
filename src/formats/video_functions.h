/// The functions of FFmpeg's libraries that write and read videos (formats/ffmpeg.h).
#pragma once
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/opt.h>
#include <libswscale/swscale.h>
}

#include "formats/ffmpeg.h"

namespace cohort {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored \
    "-Wignored-attributes"  // of results that must be looked at; the type does not carry them
#define COHORT_FFMPEG_FUNCTION(name) inline constinit const FfmpegFunction<decltype(::name)> name(#name)
COHORT_FFMPEG_FUNCTION(av_d2q);
COHORT_FFMPEG_FUNCTION(av_find_best_stream);
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
COHORT_FFMPEG_FUNCTION(av_packet_unref);
COHORT_FFMPEG_FUNCTION(av_read_frame);
COHORT_FFMPEG_FUNCTION(av_seek_frame);
COHORT_FFMPEG_FUNCTION(av_strerror);
COHORT_FFMPEG_FUNCTION(av_write_trailer);
COHORT_FFMPEG_FUNCTION(avcodec_alloc_context3);
COHORT_FFMPEG_FUNCTION(avcodec_find_decoder);
COHORT_FFMPEG_FUNCTION(avcodec_find_encoder_by_name);
COHORT_FFMPEG_FUNCTION(avcodec_flush_buffers);
COHORT_FFMPEG_FUNCTION(avcodec_free_context);
COHORT_FFMPEG_FUNCTION(avcodec_get_name);
COHORT_FFMPEG_FUNCTION(avcodec_open2);
COHORT_FFMPEG_FUNCTION(avcodec_parameters_from_context);
COHORT_FFMPEG_FUNCTION(avcodec_parameters_to_context);
COHORT_FFMPEG_FUNCTION(avcodec_receive_frame);
COHORT_FFMPEG_FUNCTION(avcodec_receive_packet);
COHORT_FFMPEG_FUNCTION(avcodec_send_frame);
COHORT_FFMPEG_FUNCTION(avcodec_send_packet);
COHORT_FFMPEG_FUNCTION(avformat_alloc_output_context2);
COHORT_FFMPEG_FUNCTION(avformat_close_input);
COHORT_FFMPEG_FUNCTION(avformat_find_stream_info);
COHORT_FFMPEG_FUNCTION(avformat_free_context);
COHORT_FFMPEG_FUNCTION(avformat_index_get_entry_from_timestamp);
COHORT_FFMPEG_FUNCTION(avformat_new_stream);
COHORT_FFMPEG_FUNCTION(avformat_open_input);
COHORT_FFMPEG_FUNCTION(avformat_seek_file);
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

}  // namespace cohort
