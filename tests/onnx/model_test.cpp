#include "onnx/model.h"

#include <string>

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/message_of.h"
#include "onnx/evaluator.h"
#include "onnx/networks.h"
#include "support/fresh_folder.h"

namespace cohort::onnx {
namespace {

TEST(OnnxModel, WhatWasWrittenIsReadAgain) {
  Model model = to_zero();
  model.metadata = {{"joint_names", "hip,knee"}, {"empty", ""}};
  const auto path = test::fresh_folder("onnx") / "model.onnx";
  write_model(path, model);
  const Model read = read_model(path);
  EXPECT_EQ(read.producer, "test");
  EXPECT_EQ(read.opset, 18);
  EXPECT_EQ(read.metadata, model.metadata);
  ASSERT_EQ(read.inputs.size(), 1u);
  EXPECT_EQ(read.inputs[0].shape.at(0).size, -1);
  EXPECT_EQ(read.inputs[0].shape.at(0).name, "batch");
  EXPECT_EQ(read.inputs[0].shape.at(1).size, 3);
  ASSERT_EQ(read.initializers.size(), 2u);
  EXPECT_EQ(read.initializers[0].floats, model.initializers[0].floats);
  EXPECT_EQ(serialized(read), serialized(model));
}

TEST(OnnxModel, AFileThatIsCutOffOrNoneIsAnErrorWithItsName) {
  const std::string bytes = serialized(to_zero());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const std::string message = message_of([&] {
      // A cut between two messages leaves a model that lacks something, which the evaluator says.
      Evaluator{parse_model(bytes.substr(0, length), "cut.onnx")};
    });
    // What stands behind the graph is the opset, without which all is there.
    if (length < bytes.size() - 8) EXPECT_NE(message, "") << length;
    if (!message.empty() && length < bytes.size() / 2)
      EXPECT_TRUE(message.find("cut.onnx") != std::string::npos) << length << ": " << message;
  }
  EXPECT_NE(message_of([] { parse_model("PK\x03\x04 a zip file", "policy.zip"); }).find("policy.zip: no ONNX model"),
            std::string::npos);
}

TEST(OnnxModel, TensorsThatAreNotWhatTheySayAreAnError) {
  Model model = to_zero();
  model.initializers[1].floats.push_back(1);  // one more than its shape
  EXPECT_NE(message_of([&] { parse_model(serialized(model), "m"); }).find("tensor 'b' has the shape (1) and 2 numbers"),
            std::string::npos);
  model.initializers[1] = {.name = "b", .shape = {1ll << 40, 1ll << 40}, .floats = {}, .ints = {}};
  EXPECT_NE(message_of([&] { parse_model(serialized(model), "m"); }).find("tensor 'b' has the shape"),
            std::string::npos);
}

}  // namespace
}  // namespace cohort::onnx
