#include "serve/remote_policy.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/error.h"
#include "serve/policy_client.h"
#include "serve/server_url.h"

namespace cohort::serve {
namespace {

/// Several moments as one observation: arrays get one more dimension in front.
Map stack(std::span<const Map> moments) {
  Map all = moments.front();
  for (Entry& entry : all) {
    NumpyArray* array = std::get_if<NumpyArray>(&entry.value.of);
    if (array == nullptr) continue;
    array->shape.insert(array->shape.begin(), std::ssize(moments));
    for (const Map& next : moments.subspan(1)) array->data += std::get<NumpyArray>(find(next, entry.key)->of).data;
  }
  return all;
}

/// What the i-th environment of a frame sees, by name.
Map message_of(const std::vector<policy::Observation>& observations, const policy::Frame& frame, std::size_t n,
               std::size_t i) {
  Map message;
  std::size_t width = 0;
  for (const policy::Observation& o : observations)
    if (!o.picture) width += static_cast<std::size_t>(o.shape.at(0));
  COHORT_CHECK(frame.low_dim.size() == n * width, "{} numbers of {} environments, but {} of each are sent",
               frame.low_dim.size(), n, width);
  std::size_t next = i * width, camera = 0;
  for (const policy::Observation& o : observations) {
    if (o.picture) {
      const ArrayView& all = frame.images[camera++];
      const auto bytes = static_cast<std::size_t>(all.shape[1] * all.shape[2] * all.shape[3]);
      message.push_back({o.name,
                         {byte_array({all.shape[1], all.shape[2], all.shape[3]},
                                     all.span<std::uint8_t>().subspan(i * bytes, bytes))}});
    } else {
      const auto count = static_cast<std::size_t>(o.shape[0]);
      const std::span<const float> numbers = frame.low_dim.subspan(next, count);
      message.push_back({o.name,
                         {o.doubles ? double_array({o.shape[0]}, std::vector<double>(numbers.begin(), numbers.end()))
                                    : float_array({o.shape[0]}, numbers)}});
      next += count;
    }
  }
  return message;
}

class RemotePolicy final : public policy::Policy {
 public:
  RemotePolicy(const std::string& url, const policy::LoadSettings& settings)
      : url_(url),
        settings_(settings),
        thread_(make_client_thread()),
        first_(connect()),
        cohort_(first_->info().cohort),
        spec_(first_->info().policy) {
    COHORT_THROW_UNLESS(!cohort_ || settings.exec_horizon <= spec_.chunk,
                        "--exec-horizon {}: {} gives {} actions at a time; take no more, or start the server with more "
                        "(`cohort serve --exec-horizon`)",
                        settings.exec_horizon, url, spec_.chunk);
    spec_.identity = url;
    if (!spec_.summary.empty()) spec_.identity += ", " + spec_.summary;
    if (settings.exec_horizon > 0) spec_.identity += format(", {} actions of an answer", settings.exec_horizon);
    spec_.all_numbers = spec_.all_pictures = !cohort_;
  }

  const policy::Spec& spec() const override { return spec_; }
  std::unique_ptr<policy::Session> session(const policy::SessionSettings& settings) override {
    return std::make_unique<Remote>(*this, settings);
  }

 private:
  class Remote final : public policy::Session {
   public:
    Remote(RemotePolicy& of, const policy::SessionSettings& settings)
        : policy_(of),
          observations_(of.spec_.all_numbers ? settings.observations : of.spec_.observations),
          width_(settings.action_width > 0 ? settings.action_width : of.spec_.action_width) {
      COHORT_THROW_UNLESS(width_ > 0, "{} does not say how many numbers its actions have: name the task", of.url_);
    }

    void begin(std::span<const std::int32_t> environments, std::span<const std::uint64_t> seeds,
               const std::string& instruction) override {
      for (std::size_t i = 0; i < environments.size(); ++i) {
        const auto at = static_cast<std::size_t>(environments[i]);
        if (at >= clients_.size()) clients_.resize(at + 1);
        Client& client = clients_[at];
        if (client.connection && client.connection->one_episode() && !client.fresh) client.connection.reset();
        if (!client.connection) client.connection = policy_.first_ ? std::move(policy_.first_) : policy_.connect();
        client.connection->begin(instruction, seeds[i]);
        client.instruction = instruction;
        client.fresh = true;
        client.moments.clear();
      }
    }

    void see(std::span<const std::int32_t> environments, const policy::Frame& frame) override {
      const std::size_t n = environments.size();
      for (std::size_t i = 0; i < n; ++i) {
        Client& client = clients_.at(static_cast<std::size_t>(environments[i]));
        if (i < frame.instructions.size() && !frame.instructions[i].empty()) client.instruction = frame.instructions[i];
        client.moments.push_back(message_of(observations_, frame, n, i));
      }
    }

    std::vector<std::vector<float>> act(std::span<const std::int32_t> environments,
                                        const policy::Frame& frame) override {
      see(environments, frame);
      // All questions first: servers with several devices answer side by side.
      for (const std::int32_t environment : environments) ask(clients_[static_cast<std::size_t>(environment)]);
      std::vector<std::vector<float>> answers;
      for (const std::int32_t environment : environments)
        answers.push_back(answer(clients_[static_cast<std::size_t>(environment)]));
      return answers;
    }

   private:
    struct Client {  ///< of an environment
      std::unique_ptr<PolicyClient> connection;
      std::string instruction;
      bool fresh = true;         ///< its episode's first answer is still to come
      std::vector<Map> moments;  ///< seen since the last answer
    };

    void ask(Client& client) const {
      Map message = client.moments.size() == 1 ? std::move(client.moments.front()) : stack(client.moments);
      client.moments.clear();
      client.connection->ask(std::move(message), client.instruction);
    }

    std::vector<float> answer(Client& client) const {
      Chunk chunk = client.connection->answer(width_);
      client.fresh = false;
      const std::int64_t rows = policy_.settings_.exec_horizon > 0 ? policy_.settings_.exec_horizon : chunk.rows;
      COHORT_THROW_UNLESS(rows <= chunk.rows, "--exec-horizon {}: {} has answered with {} actions; take no more", rows,
                          policy_.url_, chunk.rows);
      chunk.actions.resize(static_cast<std::size_t>(rows * width_));
      return std::move(chunk.actions);
    }

    RemotePolicy& policy_;
    std::vector<policy::Observation> observations_;
    std::int64_t width_;
    std::vector<Client> clients_;
  };

  std::unique_ptr<PolicyClient> connect() const {
    return std::make_unique<PolicyClient>(
        thread_, url_,
        ClientSettings{.connect_timeout = settings_.connect_timeout, .answer_timeout = settings_.answer_timeout});
  }

  std::string url_;
  policy::LoadSettings settings_;
  std::shared_ptr<ClientThread> thread_;
  std::unique_ptr<PolicyClient> first_;  ///< whose metadata were read; the first environment takes it
  bool cohort_;
  policy::Spec spec_;
};

}  // namespace

std::unique_ptr<policy::Policy> connect_policy(const std::string& url, const policy::LoadSettings& settings) {
  return std::make_unique<RemotePolicy>(url, settings);
}

void register_remote_policies() {
  policy::register_kind({.name = "ws://HOST:PORT, vla-eval://HOST:PORT",
                         .address = true,
                         .claims = is_server_url,
                         .load = connect_policy});
}

}  // namespace cohort::serve
