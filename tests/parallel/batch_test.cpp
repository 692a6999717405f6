#include "parallel/batch.h"

#include <gtest/gtest.h>

#include <torch/types.h>

#include "core/error.h"

namespace cohort::parallel {
namespace {

TEST(Batch, SliceKeepsSampleIdsAndFieldOrder) {
  Batch batch;
  batch.add("x", torch::arange(12).reshape({6, 2}));
  batch.add("y", torch::arange(6));
  batch.sample_ids = torch::arange(100, 106);
  const Batch part = batch.slice(2, 3);
  EXPECT_EQ(part.size(), 3);
  EXPECT_EQ(part.at("x")[0][0].item<int>(), 4);
  EXPECT_EQ(part.sample_ids[0].item<int>(), 102);
  EXPECT_THROW(part.at("z"), Error);
  EXPECT_THROW(batch.add("z", torch::zeros({5})), Error);
}

}  // namespace
}  // namespace cohort::parallel
