// Video, text, mosaics and PNG files.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#if defined(COHORT_FFMPEG)
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
}
#endif

#include "core/files.h"
#include "core/message_of.h"
#include "render/video.h"

namespace cohort::render {
namespace {

namespace fs = std::filesystem;

std::vector<std::uint8_t> grey(int width, int height, int level) {
  return std::vector<std::uint8_t>(static_cast<std::size_t>(3 * width * height), static_cast<std::uint8_t>(level));
}

#if defined(COHORT_FFMPEG)

struct Decoded {
  int width = 0, height = 0, frames = 0, profile = 0;
  AVPixelFormat format = AV_PIX_FMT_NONE;
  AVCodecID codec = AV_CODEC_ID_NONE;
  double fps = 0;
  std::vector<double> luma;  ///< mean of each frame
};

Decoded decode(const fs::path& file) {
  Decoded d;
  AVFormatContext* format = nullptr;
  if (avformat_open_input(&format, file.c_str(), nullptr, nullptr) < 0) return d;
  avformat_find_stream_info(format, nullptr);
  const AVStream* stream = format->streams[0];
  const AVCodec* decoder = avcodec_find_decoder(stream->codecpar->codec_id);
  AVCodecContext* codec = avcodec_alloc_context3(decoder);
  avcodec_parameters_to_context(codec, stream->codecpar);
  avcodec_open2(codec, decoder, nullptr);
  d.codec = stream->codecpar->codec_id;
  d.width = codec->width, d.height = codec->height;
  d.fps = av_q2d(stream->avg_frame_rate);
  AVPacket* packet = av_packet_alloc();
  AVFrame* frame = av_frame_alloc();
  const auto drain = [&] {
    while (avcodec_receive_frame(codec, frame) == 0) {
      ++d.frames;
      d.format = static_cast<AVPixelFormat>(frame->format);
      double sum = 0;
      for (int y = 0; y < frame->height; ++y) {
        for (int x = 0; x < frame->width; ++x) sum += frame->data[0][y * frame->linesize[0] + x];
      }
      d.luma.push_back(sum / (frame->width * frame->height));
    }
  };
  while (av_read_frame(format, packet) == 0) {
    avcodec_send_packet(codec, packet);
    drain();
    av_packet_unref(packet);
  }
  avcodec_send_packet(codec, nullptr);
  drain();
  av_frame_free(&frame), av_packet_free(&packet), avcodec_free_context(&codec), avformat_close_input(&format);
  return d;
}

TEST(Video, IsH264InMp4ThatABrowserPlays) {
  if (!video_unavailable().empty()) GTEST_SKIP() << video_unavailable();
  const TemporaryFolder folder("cohort-video");
  const fs::path file = folder.path() / "run.mp4";
  VideoWriter video(file, 64, 48, 25);
  for (int i = 0; i < 30; ++i) video.add(grey(64, 48, 8 * i));
  EXPECT_FALSE(fs::exists(file)) << "before finish() there is none";
  video.finish();
  const Decoded d = decode(file);
  EXPECT_EQ(d.codec, AV_CODEC_ID_H264);
  EXPECT_EQ(d.format, AV_PIX_FMT_YUV420P);
  EXPECT_EQ(d.width, 64);
  EXPECT_EQ(d.height, 48);
  EXPECT_EQ(d.frames, 30);
  EXPECT_NEAR(d.fps, 25, 1e-9);
  // BT.601's range: 16 for black, 235 for white.
  for (int i = 0; i < d.frames; ++i) EXPECT_NEAR(d.luma[static_cast<std::size_t>(i)], 16 + 219 * 8 * i / 255.0, 3) << i;
  const std::string bytes = read_file(file);
  EXPECT_LT(bytes.find("moov"), bytes.find("mdat")) << "the index comes first";
}

TEST(Video, OddSidesGetABlackEdge) {
  if (!video_unavailable().empty()) GTEST_SKIP() << video_unavailable();
  const TemporaryFolder folder("cohort-video");
  VideoWriter video(folder.path() / "odd.mp4", 33, 17, 30);
  for (int i = 0; i < 3; ++i) video.add(grey(33, 17, 200));
  video.finish();
  const Decoded d = decode(folder.path() / "odd.mp4");
  EXPECT_EQ(d.width, 34);
  EXPECT_EQ(d.height, 18);
  EXPECT_EQ(d.frames, 3);
}

TEST(Video, NothingRemainsOfOneThatIsNotFinished) {
  if (!video_unavailable().empty()) GTEST_SKIP() << video_unavailable();
  const TemporaryFolder folder("cohort-video");
  {
    VideoWriter video(folder.path() / "cut.mp4", 32, 32, 30);
    for (int i = 0; i < 20; ++i) video.add(grey(32, 32, 10 * i));
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(Video, WhatMakesNoVideoIsRefusedByName) {
  if (!video_unavailable().empty()) GTEST_SKIP() << video_unavailable();
  const TemporaryFolder folder("cohort-video");
  EXPECT_NE(message_of([&] { VideoWriter(folder.path() / "run.avi", 32, 32, 30); }).find("ends in .mp4"),
            std::string::npos);
  EXPECT_NE(message_of([&] { VideoWriter(folder.path() / "run.mp4", 1, 32, 30); }).find("1 x 32 pixels"),
            std::string::npos);
  EXPECT_NE(message_of([&] { VideoWriter(folder.path() / "run.mp4", 32, 32, 0); }).find("frames per second"),
            std::string::npos);
  EXPECT_NE(message_of([&] { VideoWriter("/proc/nowhere/run.mp4", 32, 32, 30); }).find("/proc/nowhere"),
            std::string::npos);
  VideoWriter empty(folder.path() / "run.mp4", 32, 32, 30);
  EXPECT_NE(message_of([&] { empty.finish(); }).find("without a picture"), std::string::npos);
}

#endif

TEST(Pictures, AMosaicPutsEachPictureInItsPlace) {
  const Mosaic m = mosaic_of(5, 4, 2);
  EXPECT_EQ(m.columns, 3);
  EXPECT_EQ(m.rows, 2);
  EXPECT_EQ(m.width, 12);
  EXPECT_EQ(m.height, 4);
  std::vector<std::uint8_t> pictures;
  for (int i = 0; i < 5; ++i) {
    const auto one = grey(4, 2, 10 + i);
    pictures.insert(pictures.end(), one.begin(), one.end());
  }
  std::vector<std::uint8_t> whole(static_cast<std::size_t>(3 * m.width * m.height), 99);
  tile(m, pictures, 5, whole);
  for (int y = 0; y < m.height; ++y) {
    for (int x = 0; x < m.width; ++x) {
      const int place = y / 2 * 3 + x / 4;
      EXPECT_EQ(whole[static_cast<std::size_t>(3 * (y * m.width + x))], place < 5 ? 10 + place : 0);
    }
  }
}

TEST(Pictures, TextIsDrawnWhereItFitsAndNowhereElse) {
  std::vector<std::uint8_t> rgb = grey(40, 12, 90);
  draw_text({rgb, 40, 12}, 1, 1, "Hi\n?");
  const auto at = [&](int x, int y) { return rgb[static_cast<std::size_t>(3 * (y * 40 + x))]; };
  // The left stroke of H, its bar, and the ground between.
  EXPECT_EQ(at(1, 2), 255);
  EXPECT_EQ(at(3, 5), 255);
  EXPECT_EQ(at(2, 2), 30);
  EXPECT_EQ(at(30, 5), 90) << "beyond the text";
  draw_text({rgb, 40, 12}, -100, 500, "out of the picture");
}

TEST(Pictures, APngHoldsItsPixels) {
  const TemporaryFolder folder("cohort-png");
  std::vector<std::uint8_t> rgb = grey(5, 3, 0);
  std::iota(rgb.begin(), rgb.end(), std::uint8_t{7});
  write_png(folder.path() / "a.png", rgb, 5, 3);
  const std::string bytes = read_file(folder.path() / "a.png");
  EXPECT_EQ(bytes.substr(1, 3), "PNG");
#if defined(COHORT_FFMPEG)
  const AVCodec* decoder = avcodec_find_decoder(AV_CODEC_ID_PNG);
  if (decoder == nullptr) GTEST_SKIP() << "FFmpeg's libraries here have no decoder for PNG";
  AVCodecContext* codec = avcodec_alloc_context3(decoder);
  avcodec_open2(codec, decoder, nullptr);
  AVPacket* packet = av_packet_alloc();
  av_new_packet(packet, static_cast<int>(bytes.size()));
  std::copy(bytes.begin(), bytes.end(), packet->data);
  AVFrame* frame = av_frame_alloc();
  ASSERT_EQ(avcodec_send_packet(codec, packet), 0);
  ASSERT_EQ(avcodec_receive_frame(codec, frame), 0);
  EXPECT_EQ(frame->width, 5);
  EXPECT_EQ(frame->height, 3);
  for (int y = 0; y < 3; ++y) {
    EXPECT_TRUE(std::equal(frame->data[0] + y * frame->linesize[0], frame->data[0] + y * frame->linesize[0] + 15,
                           rgb.begin() + 15 * y));
  }
  av_frame_free(&frame), av_packet_free(&packet), avcodec_free_context(&codec);
#endif
}

}  // namespace
}  // namespace cohort::render
