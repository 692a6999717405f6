/// OpenGL without a display: EGL on a device, or OSMesa in memory. Both libraries are opened when first needed; nothing
/// links them.
#pragma once
#include <memory>
#include <string>

namespace cohort::render {

class GlContext {
 public:
  virtual ~GlContext() = default;
  GlContext(const GlContext&) = delete;
  GlContext& operator=(const GlContext&) = delete;
  /// For the calling thread, until release(). Throws Error.
  virtual void make_current() = 0;
  virtual void release() = 0;
  /// What draws, as OpenGL says: "llvmpipe (LLVM 15.0.6, 256 bits)". While the context is current.
  virtual std::string renderer() const = 0;
  /// "EGL device 0", "OSMesa".
  virtual std::string name() const = 0;

 protected:
  GlContext() = default;
};

/// EGL where it is there, otherwise OSMesa; MUJOCO_GL=egl or osmesa asks for one of them. EGL's device is the one with
/// the index that EGL_DEVICE_ID, or MUJOCO_EGL_DEVICE_ID, names among those of eglQueryDevicesEXT; without either the
/// first that starts. Throws Error naming the packages and the variables.
std::unique_ptr<GlContext> make_gl_context();

}  // namespace cohort::render
