/// A policy that is known in closed form, for tests of whoever serves or asks: it adds up what it has seen in its episode.
///
/// Sees "observation/x" (1), and "observation/top_image" where asked. An answer has `chunk` rows of one number: minus the sum of
/// x over the episode so far, plus the row's number / 1000, plus the seed / 1e6, plus the picture's first byte / 1e5.
#pragma once
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "serve/policy.h"

namespace cohort::testing {

struct SumPolicySettings {
  bool picture = false, prompt = false;
  std::int64_t chunk = 3, frames = 1;
};

class SumPolicy final : public serve::Policy {
 public:
  explicit SumPolicy(const SumPolicySettings& settings = {}) {
    info_.summary = "sums";
    info_.observations.push_back({.name = "observation/x", .shape = {1}, .picture = false});
    if (settings.picture)
      info_.observations.push_back({.name = "observation/top_image", .shape = {8, 8, 3}, .picture = true});
    info_.prompt = settings.prompt;
    info_.action_names = {"speed"};
    info_.action_width = 1;
    info_.chunk = settings.chunk;
    info_.frames = settings.frames;
  }
  const serve::PolicyInfo& info() const override { return info_; }
  std::unique_ptr<serve::Session> new_session() override { return std::make_unique<Sums>(info_); }

 private:
  class Sums final : public serve::Session {
   public:
    explicit Sums(const serve::PolicyInfo& info) : info_(info) {}
    void begin(std::uint64_t seed) override { sum_ = 0, seed_ = static_cast<float>(seed); }
    void see(const serve::Frame& frame, const std::string&) override { sum_ += frame.numbers.at(0); }
    std::vector<float> act(std::span<const serve::Frame> frames, const std::string& prompt) override {
      if (prompt == "fail") throw std::runtime_error("the sums have failed");
      for (const serve::Frame& frame : frames) see(frame, prompt);
      const float picture = info_.observations.size() > 1 ? static_cast<float>(frames.back().pictures.at(0).rgb[0]) : 0;
      std::vector<float> rows;
      for (std::int64_t i = 0; i < info_.chunk; ++i)
        rows.push_back(-sum_ + static_cast<float>(i) / 1000 + seed_ / 1e6f + picture / 1e5f);
      return rows;
    }

    std::vector<float> act_each(std::span<const serve::Frame> robots, const std::string&) override {
      std::vector<float> rows;
      for (const serve::Frame& robot : robots)
        for (std::int64_t i = 0; i < info_.chunk; ++i)
          rows.push_back(-robot.numbers.at(0) + static_cast<float>(i) / 1000);
      return rows;
    }

   private:
    const serve::PolicyInfo& info_;
    float sum_ = 0, seed_ = 0;
  };

  serve::PolicyInfo info_;
};

}  // namespace cohort::testing
