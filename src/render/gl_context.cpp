// Constants and signatures: the Khronos registry (EGL 1.5, EGL_EXT_device_enumeration, EGL_EXT_platform_device), and
// Mesa's GL/osmesa.h.
#include "render/gl_context.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <dlfcn.h>

#include "core/error.h"

namespace cohort::render {

namespace {

/// What is missing, for a message that joins what was tried.
class NotHere : public Error {
 public:
  using Error::Error;
};

class Library {
 public:
  /// Names that are tried one after the other. MuJoCo looks for OpenGL among what the whole process sees.
  explicit Library(std::initializer_list<const char*> names) {
    std::string reasons;
    for (const char* name : names) {
      handle_ = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
      if (handle_ != nullptr) return;
      const char* reason = dlerror();
      reasons += (reasons.empty() ? "" : "; ") + std::string(reason ? reason : name);
    }
    throw NotHere(reasons);
  }
  template <class Function>
  Function* get(const char* name) const {
    auto* found = reinterpret_cast<Function*>(dlsym(handle_, name));
    if (found == nullptr) throw NotHere(format("the library has no {}", name));
    return found;
  }

 private:
  void* handle_ = nullptr;
};

/// get_string: glGetString.
std::string renderer_name(void* get_string) {
  constexpr unsigned kRenderer = 0x1F01;
  const auto function = reinterpret_cast<const unsigned char* (*)(unsigned)>(get_string);
  const unsigned char* text = function != nullptr ? function(kRenderer) : nullptr;
  return text != nullptr ? reinterpret_cast<const char*>(text) : "OpenGL";
}

using EglBool = unsigned;
using EglInt = std::int32_t;

class EglContext final : public GlContext {
 public:
  EglContext() : library_({"libEGL.so.1"}) {
    const auto get_proc = library_.get<void*(const char*)>("eglGetProcAddress");
    const auto query_devices = reinterpret_cast<EglBool (*)(EglInt, void**, EglInt*)>(get_proc("eglQueryDevicesEXT"));
    const auto platform_display =
        reinterpret_cast<void* (*)(unsigned, void*, const EglInt*)>(get_proc("eglGetPlatformDisplayEXT"));
    if (!query_devices || !platform_display) throw NotHere("libEGL.so.1 cannot list devices");
    std::array<void*, 64> devices{};
    EglInt count = 0;
    if (!query_devices(static_cast<EglInt>(devices.size()), devices.data(), &count) || count == 0) {
      throw NotHere("EGL has no device");
    }
    const int wanted = wanted_device(count);
    const auto initialise = library_.get<EglBool(void*, EglInt*, EglInt*)>("eglInitialize");
    for (int i = wanted < 0 ? 0 : wanted; i < (wanted < 0 ? count : wanted + 1) && display_ == nullptr; ++i) {
      constexpr unsigned kPlatformDevice = 0x313F;
      void* display = platform_display(kPlatformDevice, devices[static_cast<std::size_t>(i)], nullptr);
      if (display != nullptr && initialise(display, nullptr, nullptr)) display_ = display, device_ = i;
    }
    if (display_ == nullptr)
      throw NotHere(wanted < 0 ? "no EGL device starts" : format("EGL device {} does not start", wanted));
    // 8 bits a colour, 24 of depth, 8 of stencil, pbuffers, desktop OpenGL; 0x3038 ends the list.
    const EglInt attributes[] = {0x3024, 8,      0x3023, 8,      0x3022, 8,      0x3021, 8,     0x3025,
                                 24,     0x3026, 8,      0x3033, 1,      0x3040, 0x0008, 0x3038};
    void* configuration = nullptr;
    EglInt found = 0;
    const auto choose = library_.get<EglBool(void*, const EglInt*, void**, EglInt, EglInt*)>("eglChooseConfig");
    if (!choose(display_, attributes, &configuration, 1, &found) || found < 1) {
      throw NotHere("EGL has no configuration for pictures");
    }
    constexpr unsigned kOpenGl = 0x30A2;
    library_.get<EglBool(unsigned)>("eglBindAPI")(kOpenGl);
    context_ = library_.get<void*(void*, void*, void*, const EglInt*)>("eglCreateContext")(display_, configuration,
                                                                                           nullptr, nullptr);
    if (context_ == nullptr) throw NotHere("EGL makes no OpenGL context");
    make_current_ = library_.get<EglBool(void*, void*, void*, void*)>("eglMakeCurrent");
  }
  ~EglContext() override {
    make_current_(display_, nullptr, nullptr, nullptr);
    library_.get<EglBool(void*, void*)>("eglDestroyContext")(display_, context_);
  }
  void make_current() override {
    library_.get<EglBool(unsigned)>("eglBindAPI")(0x30A2);
    COHORT_THROW_UNLESS(make_current_(display_, nullptr, nullptr, context_), "EGL device {} lends no OpenGL context",
                        device_);
  }
  void release() override { make_current_(display_, nullptr, nullptr, nullptr); }
  std::string renderer() const override {
    return renderer_name(library_.get<void*(const char*)>("eglGetProcAddress")("glGetString"));
  }
  std::string name() const override { return format("EGL device {}", device_); }

 private:
  /// -1: any.
  static int wanted_device(int count) {
    for (const char* variable : {"EGL_DEVICE_ID", "MUJOCO_EGL_DEVICE_ID"}) {
      const char* text = std::getenv(variable);
      if (text == nullptr || *text == '\0') continue;
      const std::string_view all(text);
      int device = -1;
      const auto [end, problem] = std::from_chars(all.data(), all.data() + all.size(), device);
      COHORT_THROW_UNLESS(problem == std::errc() && end == all.data() + all.size() && device >= 0 && device < count,
                          "{} is `{}`: EGL has the devices 0 to {}", variable, text, count - 1);
      return device;
    }
    return -1;
  }

  Library library_;
  void *display_ = nullptr, *context_ = nullptr;
  int device_ = 0;
  EglBool (*make_current_)(void*, void*, void*, void*) = nullptr;
};

class OsMesaContext final : public GlContext {
 public:
  OsMesaContext() : library_({"libOSMesa.so.8", "libOSMesa.so.6", "libOSMesa.so"}), buffer_(4 * kSide * kSide) {
    constexpr unsigned kRgba = 0x1908;
    context_ = library_.get<void*(unsigned, int, int, int, void*)>("OSMesaCreateContextExt")(kRgba, 24, 8, 0, nullptr);
    if (context_ == nullptr) throw NotHere("OSMesa makes no context");
    make_current_ = library_.get<unsigned char(void*, void*, unsigned, int, int)>("OSMesaMakeCurrent");
    setenv("MUJOCO_GL", "osmesa", 0);  // where MuJoCo looks for OpenGL's functions
  }
  ~OsMesaContext() override {
    release();
    library_.get<void(void*)>("OSMesaDestroyContext")(context_);
  }
  void make_current() override {
    constexpr unsigned kUnsignedByte = 0x1401;
    COHORT_THROW_UNLESS(make_current_(context_, buffer_.data(), kUnsignedByte, kSide, kSide),
                        "OSMesa lends no OpenGL context");
  }
  void release() override { make_current_(nullptr, nullptr, 0, 0, 0); }
  std::string renderer() const override {
    return renderer_name(library_.get<void*(const char*)>("OSMesaGetProcAddress")("glGetString"));
  }
  std::string name() const override { return "OSMesa"; }

 private:
  static constexpr int kSide = 16;  ///< of a window that nothing is drawn into
  Library library_;
  std::vector<unsigned char> buffer_;
  void* context_ = nullptr;
  unsigned char (*make_current_)(void*, void*, unsigned, int, int) = nullptr;
};

}  // namespace

std::unique_ptr<GlContext> make_gl_context() {
  const char* text = std::getenv("MUJOCO_GL");
  const std::string wanted = text ? text : "";
  COHORT_THROW_UNLESS(wanted.empty() || wanted == "egl" || wanted == "osmesa",
                      "MUJOCO_GL is `{}`: the renderer mujoco runs on egl or osmesa; unset it for whichever is there",
                      wanted);
  std::string tried;
  if (wanted != "osmesa") {
    try {
      return std::make_unique<EglContext>();
    } catch (const NotHere& e) {
      tried = format("EGL: {}", e.what());
    }
  }
  if (wanted != "egl") {
    try {
      return std::make_unique<OsMesaContext>();
    } catch (const NotHere& e) {
      tried += format("{}OSMesa: {}", tried.empty() ? "" : "; ", e.what());
    }
  }
  throw Error(format(
      "the renderer mujoco needs OpenGL without a display, and there is none ({}). Install the packages libegl1 and "
      "libgl1-mesa-dri, or libosmesa6; MUJOCO_GL=egl or osmesa chooses, EGL_DEVICE_ID the GPU. The renderer raycast "
      "needs none of them",
      tried));
}

}  // namespace cohort::render
