// OpenGL without a display: which one is taken, and what is said where there is none.
#include <chrono>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "core/message_of.h"
#include "scenes.h"

namespace cohort::render {
namespace {

using test::built_scene;
using test::model_file;

class WithVariable {
 public:
  WithVariable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    setenv(name, value, 1);
  }
  ~WithVariable() {
    if (old_.empty()) {
      unsetenv(name_);
    } else {
      setenv(name_, old_.c_str(), 1);
    }
  }

 private:
  const char* name_;
  std::string old_;
};

TEST(MujocoRenderer, AnUnknownPlatformIsRefusedByName) {
  const auto scene = built_scene(model_file("shapes.xml"));
  const WithVariable platform("MUJOCO_GL", "glfw");
  EXPECT_NE(message_of([&] { make_renderer(*scene, {.kind = "mujoco"}); }).find("MUJOCO_GL is `glfw`"),
            std::string::npos);
}

TEST(MujocoRenderer, ADeviceThatThereIsNotIsRefusedWithItsVariable) {
  const auto scene = built_scene(model_file("shapes.xml"));
  const WithVariable platform("MUJOCO_GL", "egl");
  const WithVariable device("EGL_DEVICE_ID", "97");
  const std::string text = message_of([&] { make_renderer(*scene, {.kind = "mujoco"}); });
  EXPECT_TRUE(text.find("EGL_DEVICE_ID is `97`") != std::string::npos || text.find("libegl1") != std::string::npos)
      << text;
}

TEST(MujocoRenderer, NormalsAreRefused) {
  const auto scene = built_scene(model_file("shapes.xml"));
  std::unique_ptr<Renderer> renderer;
  try {
    renderer = make_renderer(*scene, {.kind = "mujoco"});
  } catch (const Error& e) {
    GTEST_SKIP() << e.what();
  }
  const std::vector<std::int32_t> envs{0};
  EXPECT_NE(message_of([&] { renderer->render(0, envs, 16, 16, {.normal = true}); }).find("no normals"),
            std::string::npos);
}

/// In a process of its own: MuJoCo takes OpenGL's functions from one library for as long as a process lives.
TEST(MujocoRenderer, OsMesaDrawsWhatEglDraws) {
  const auto scene = built_scene(model_file("shapes.xml"));
  const std::vector<std::int32_t> envs{0};
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  constexpr int kSide = 48;
  constexpr std::size_t kBytes = 3 * kSide * kSide;
  const pid_t child = fork();
  if (child == 0) {
    setenv("MUJOCO_GL", "osmesa", 1);
    try {
      const auto renderer = make_renderer(*scene, {.kind = "mujoco"});
      const Frames f = renderer->render(renderer->camera("front"), envs, kSide, kSide);
      const bool whole = write(pipes[1], f.rgb.data(), f.rgb.size()) == static_cast<ssize_t>(f.rgb.size());
      _exit(whole ? 0 : 1);
    } catch (const Error&) {
      _exit(2);
    }
  }
  close(pipes[1]);
  std::vector<std::uint8_t> theirs(kBytes);
  std::size_t got = 0;
  for (ssize_t n = 1; n > 0 && got < kBytes; got += static_cast<std::size_t>(n)) {
    n = read(pipes[0], theirs.data() + got, kBytes - got);
    if (n < 0) break;
  }
  close(pipes[0]);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "there is no OSMesa";
  ASSERT_EQ(WEXITSTATUS(status), 0);
  const auto ours = make_renderer(*scene);
  const Frames f = ours->render(ours->camera("front"), envs, kSide, kSide);
  int near = 0;
  for (std::size_t i = 0; i < kBytes; ++i) near += std::abs(int{f.rgb[i]} - int{theirs[i]}) <= 16;
  EXPECT_GE(near / static_cast<double>(kBytes), 0.95);
}

}  // namespace
}  // namespace cohort::render
