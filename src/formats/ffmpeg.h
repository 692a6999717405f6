/// FFmpeg's libraries, opened when a video is first written or read: a program that does neither waits for them nor
/// needs them. Their functions are listed by their names as objects of namespace cohort (formats/video_functions.h), where
/// they are found before FFmpeg's own, which nothing links.
#pragma once
#include <atomic>
#include <string>

namespace cohort {

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

}  // namespace cohort
