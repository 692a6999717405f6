// Beside the Python packages of the protocol's own clients.
#include <gtest/gtest.h>

#include "core/files.h"
#include "core/philox.h"
#include "policy/libero_convention.h"
#include "serve/msgpack.h"
#include "support/fresh_folder.h"
#include "support/python.h"

namespace cohort::serve {
namespace {

TEST(OpenpiPeer, ItsClientReadsOursAndWritesTheSameBytes) {
  COHORT_NEEDS_PYTHON();
  const auto folder = test::fresh_folder("serve_msgpack");
  const float floats[] = {1, -2.5f, 3e30f};
  const double doubles[] = {0.1, 0.2};
  const std::uint8_t bytes[] = {0, 255, 7, 8, 9, 10};
  const Value value{Map{{"actions", {float_array({1, 3}, floats)}},
                        {"observation/state", {double_array({2}, doubles)}},
                        {"observation/image", {byte_array({1, 2, 3}, bytes)}},
                        {"prompt", {std::string("öffne die Schublade")}},
                        {"numbers", {List{{std::int64_t{-1}}, {std::int64_t{5}}, {1.25}, {true}, {}}}}}};
  write_file_atomically(folder / "ours", pack(value));
  ASSERT_TRUE(
      test::python_agrees("serve/peer.py", {"msgpack", (folder / "ours").string(), (folder / "theirs").string()}));
  EXPECT_EQ(read_file(folder / "theirs"), pack(value));
}

TEST(OpenpiPeer, PicturesAreResizedAsItsImageToolsDo) {
  COHORT_NEEDS_PYTHON();
  const auto folder = test::fresh_folder("serve_resize");
  for (const auto& [height, width] : std::vector<std::pair<int, int>>{{256, 256}, {128, 128}, {100, 160}}) {
    std::vector<std::uint8_t> rgb(static_cast<std::size_t>(height * width * 3));
    const RandomStream draw(1, RandomPurpose::kTest, static_cast<std::uint64_t>(height), 0);
    for (std::size_t i = 0; i < rgb.size(); ++i) rgb[i] = static_cast<std::uint8_t>(draw.uniform(i) * 256);
    write_file_atomically(folder / "picture", std::string(rgb.begin(), rgb.end()));
    ASSERT_TRUE(test::python_agrees("serve/peer.py", {"resize", (folder / "picture").string(), std::to_string(height),
                                                      std::to_string(width), (folder / "resized").string()}));
    const auto ours = policy::resize_with_pad(rgb, height, width, 224);
    EXPECT_EQ(std::string(ours.begin(), ours.end()), read_file(folder / "resized")) << height << " x " << width;
  }
}

}  // namespace
}  // namespace cohort::serve
