/// A policy that is known in closed form, for tests of whoever serves or asks: it adds up what it has seen in its episode.
///
/// Sees "observation/x" (1), and "observation/top_image" where asked. An answer has `chunk` rows of one number: minus the sum of
/// x over the episode so far, plus the row's number / 1000, plus the seed / 1e6 where it is at most 1000, plus the picture's first byte / 1e5.
#pragma once
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "policy/policy.h"

namespace cohort::testing {

struct SumPolicySettings {
  bool picture = false, prompt = false;
  std::int64_t chunk = 3, frames = 1;
};

class SumPolicy final : public policy::Policy {
 public:
  explicit SumPolicy(const SumPolicySettings& settings = {}) {
    spec_.summary = "sums";
    spec_.observations.push_back({.name = "observation/x", .shape = {1}, .picture = false});
    if (settings.picture)
      spec_.observations.push_back({.name = "observation/top_image", .shape = {8, 8, 3}, .picture = true});
    spec_.instructed = settings.prompt;
    spec_.action_names = {"speed"};
    spec_.action_width = 1;
    spec_.chunk = settings.chunk;
    spec_.frames = settings.frames;
  }
  const policy::Spec& spec() const override { return spec_; }
  std::unique_ptr<policy::Session> session(const policy::SessionSettings&) override {
    return std::make_unique<Sums>(spec_);
  }

 private:
  class Sums final : public policy::Session {
   public:
    explicit Sums(const policy::Spec& spec) : spec_(spec) {}
    void begin(std::span<const std::int32_t> environments, std::span<const std::uint64_t> seeds,
               const std::string&) override {
      for (std::size_t i = 0; i < environments.size(); ++i)
        of_[environments[i]] = {.seed = seeds[i] <= 1000 ? static_cast<float>(seeds[i]) : 0};
    }
    void see(std::span<const std::int32_t> environments, const policy::Frame& frame) override {
      for (std::size_t i = 0; i < environments.size(); ++i) of_.at(environments[i]).sum += frame.low_dim[i];
    }
    std::vector<std::vector<float>> act(std::span<const std::int32_t> environments,
                                        const policy::Frame& frame) override {
      if (!frame.instructions.empty() && frame.instructions[0] == "fail")
        throw std::runtime_error("the sums have failed");
      see(environments, frame);
      std::vector<std::vector<float>> chunks(environments.size());
      for (std::size_t i = 0; i < environments.size(); ++i) {
        const Sum& of = of_.at(environments[i]);
        float picture = 0;
        if (!frame.images.empty()) {
          const auto pixels = frame.images[0].span<std::uint8_t>();
          picture = static_cast<float>(pixels[i * pixels.size() / environments.size()]);
        }
        for (std::int64_t row = 0; row < spec_.chunk; ++row)
          chunks[i].push_back(-of.sum + static_cast<float>(row) / 1000 + of.seed / 1e6f + picture / 1e5f);
      }
      return chunks;
    }

   private:
    struct Sum {
      float sum = 0, seed = 0;
    };
    const policy::Spec& spec_;
    std::map<std::int32_t, Sum> of_;
  };

  policy::Spec spec_;
};

}  // namespace cohort::testing
