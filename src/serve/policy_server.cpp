#include "serve/policy_server.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/fnv.h"
#include "core/log.h"
#include "serve/observation.h"
#include "serve/server_protocol.h"

namespace cohort::serve {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostWaiting = 4;  // messages of a client that has not waited for its answers

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

/// Of all requests, and of a connection's.
struct Tally {
  std::int64_t requests = 0;
  double milliseconds = 0;  ///< of inference
  void add(double ms) { ++requests, milliseconds += ms; }
  std::string mean() const {
    return requests > 0 ? format("{:.1f} ms of inference each", milliseconds / static_cast<double>(requests)) : "";
  }
};

/// One client. Used by the thread of its replica.
struct Client {
  std::unique_ptr<policy::Session> session;
  std::string peer, prompt;
  std::uint64_t episodes = 0, seed = 0;
  bool told = false;                    ///< it has been given a prompt in this episode
  bool answered = false;                ///< it has asked for actions in this episode
  std::int64_t robots = 1;              ///< that have begun the episode: environments 0, 1, ... of the session
  std::vector<float> rest;              ///< actions that are still to be handed out one by one
  std::optional<double> last_total_ms;  ///< from the last message to the end of its answer
  Tally tally;
};

struct Job {
  enum class Kind { kOpened, kMessage, kRefused, kClosed } kind;
  std::uint64_t client = 0;
  std::string text;  ///< the peer, the message, what is wrong with it, why it was closed
  Clock::time_point came = Clock::now();
};

}  // namespace

struct PolicyServer::Impl final : WebSocketHandler {
  /// A policy, its clients and the thread that answers them, one message after another.
  struct Replica {
    std::unique_ptr<policy::Policy> policy;
    std::map<std::uint64_t, Client> clients;
    std::deque<Job> jobs;
    std::thread thread;
  };

  Impl(std::vector<std::unique_ptr<policy::Policy>> policies, const PolicyServerSettings& wanted)
      : settings(wanted), protocol(server_protocol(wanted.protocol)) {
    COHORT_CHECK(!policies.empty(), "no policy is to be served");
    for (auto& policy : policies) {
      policy->session(session_settings());  // what is wrong with it is told before anybody connects
      replicas.push_back({.policy = std::move(policy)});
    }
    policy::Spec spec = replicas.front().policy->spec();
    if (settings.control_period > 0 && spec.control_frequency == 0)
      spec.control_frequency = 1 / settings.control_period;
    greeting = protocol->greeting(spec);
    network = std::make_unique<WebSocketServer>(settings.network, *this);
    for (Replica& replica : replicas) replica.thread = std::thread([this, &replica] { work(replica); });
  }

  /// GET /health: where vla-eval's harness looks whether a server is ready.
  std::optional<HttpAnswer> answer(const HttpRequest& request) override {
    if (request.target == "/health") return HttpAnswer{200, "application/json", "{\"status\": \"ok\"}\n"};
    return {};
  }

  // In the network's thread, which may be quicker than this constructor: the network itself is for the replicas' threads.
  // Whoever connects is answered here, however long a replica is busy with others.
  std::string opened(std::uint64_t client, const std::string& peer) override {
    {
      const std::lock_guard lock(mutex);
      waiting[client] = 0;
      log::info("client {} ({}) has connected; {} now", client, peer, waiting.size());
    }
    add({Job::Kind::kOpened, client, peer});
    return greeting;
  }
  void message(std::uint64_t client, std::string bytes, bool is_text) override {
    if (is_text)
      return add({Job::Kind::kRefused, client,
                  "the message is a text frame, but observations are binary: msgpack, as openpi_client.msgpack_numpy "
                  "packs them"});
    {
      const std::lock_guard lock(mutex);
      if (waiting[client] < kMostWaiting) {
        ++waiting[client];
        return add_locked({Job::Kind::kMessage, client, std::move(bytes)});
      }
    }
    add({Job::Kind::kRefused, client,
         format("more than {} messages without waiting for their answers: wait for each answer before the next message",
                kMostWaiting)});
  }
  void closed(std::uint64_t client, const std::string& reason) override {
    {
      const std::lock_guard lock(mutex);
      waiting.erase(client);
    }
    add({Job::Kind::kClosed, client, reason});
  }

  void add(Job job) {
    const std::lock_guard lock(mutex);
    add_locked(std::move(job));
  }
  void add_locked(Job job) {
    const auto of = static_cast<std::size_t>(job.client % replicas.size());
    replicas[of].jobs.push_back(std::move(job));
    changed.notify_all();
  }

  void work(Replica& replica) {
    while (true) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return stopping || !replica.jobs.empty(); });
      if (stopping) return;
      Job job = std::move(replica.jobs.front());
      replica.jobs.pop_front();
      if (job.kind == Job::Kind::kMessage && !waiting.contains(job.client)) continue;  // it has gone
      lock.unlock();
      try {
        if (job.kind == Job::Kind::kOpened) welcome(replica, job);
        if (job.kind == Job::Kind::kMessage) take(replica, job);
        if (job.kind == Job::Kind::kRefused) refuse(replica, job.client, nullptr, job.text);
        if (job.kind == Job::Kind::kClosed) part(replica, job);
      } catch (const std::exception& e) {  // one client's trouble is not that of the others
        refuse(replica, job.client, job.kind == Job::Kind::kMessage ? &job.text : nullptr, e.what());
      }
      if (job.kind != Job::Kind::kMessage) continue;
      lock.lock();
      if (const auto count = waiting.find(job.client); count != waiting.end()) --count->second;
    }
  }

  void welcome(Replica& replica, const Job& job) {
    Client& client = replica.clients[job.client];
    client.session = replica.policy->session(session_settings());
    begin(client, client.episodes++);
    client.peer = job.text;
  }

  policy::SessionSettings session_settings() const {
    return {.control_period = settings.control_period, .observations = {}, .action_width = 0, .task = ""};
  }

  /// Of a client's one robot, or of the first of its robots.
  static void begin(Client& client, std::uint64_t seed) {
    const std::int32_t first = 0;
    client.session->begin(std::span(&first, 1), std::span(&seed, 1), "");
    client.seed = seed;
    client.robots = 1;
  }
  /// Each further robot has a seed that no episode of a client is likely to have, so that what is drawn at random differs.
  static void begin_robots(Client& client, std::int64_t count) {
    for (; client.robots < count; ++client.robots) {
      const auto robot = static_cast<std::int32_t>(client.robots);
      const std::uint64_t seed = fnv1a_of(static_cast<std::uint64_t>(client.robots), fnv1a_of(client.seed, kFnvBegin));
      client.session->begin(std::span(&robot, 1), std::span(&seed, 1), "");
    }
  }

  /// A moment of each of a client's robots as the policy sees it.
  struct Shown {
    Shown(std::span<const Moment> robots, const std::string& prompt) : pixels(robots.front().pictures.size()) {
      for (std::size_t i = 0; i < robots.size(); ++i) {
        environments.push_back(static_cast<std::int32_t>(i));
        numbers.insert(numbers.end(), robots[i].numbers.begin(), robots[i].numbers.end());
        for (std::size_t camera = 0; camera < pixels.size(); ++camera) {
          const std::vector<std::uint8_t>& rgb = robots[i].pictures[camera].rgb;
          pixels[camera].insert(pixels[camera].end(), rgb.begin(), rgb.end());
        }
      }
      for (std::size_t camera = 0; camera < pixels.size(); ++camera) {
        const Picture& first = robots.front().pictures[camera];
        pictures.push_back(make_view(pixels[camera].data(), {std::ssize(robots), first.height, first.width, 3}));
      }
      frame = {.low_dim = numbers, .images = pictures};
      if (!prompt.empty()) frame.instructions.assign(robots.size(), prompt);
    }
    Shown(const Shown&) = delete;
    Shown& operator=(const Shown&) = delete;
    std::vector<std::int32_t> environments;
    std::vector<float> numbers;
    std::vector<std::vector<std::uint8_t>> pixels;
    std::vector<ArrayView> pictures;
    policy::Frame frame;
  };
  static void see(Client& client, const Moment& moment) {
    const Shown shown(std::span(&moment, 1), client.prompt);
    client.session->see(shown.environments, shown.frame);
  }
  /// The robots' actions one behind the other.
  static std::vector<float> act(Client& client, std::span<const Moment> robots) {
    const Shown shown(robots, client.prompt);
    std::vector<float> rows;
    for (const std::vector<float>& chunk : client.session->act(shown.environments, shown.frame))
      rows.insert(rows.end(), chunk.begin(), chunk.end());
    return rows;
  }

  void part(Replica& replica, const Job& job) {
    const auto found = replica.clients.find(job.client);
    if (found == replica.clients.end()) return;
    const Client& client = found->second;
    log::info("client {} ({}) has gone ({}): {} requests{}{}", job.client, client.peer, job.text, client.tally.requests,
              client.tally.requests > 0 ? ", " : "", client.tally.mean());
    replica.clients.erase(found);
  }

  void take(Replica& replica, const Job& job) {
    const auto found = replica.clients.find(job.client);
    if (found == replica.clients.end()) return;  // its error has been told
    answer(*replica.policy, found->second, job);
  }

  /// `message`: the one that is wrong, behind which a protocol may go on; null: the client itself does wrong.
  void refuse(Replica& replica, std::uint64_t id, const std::string* message, const std::string& why) {
    const auto found = replica.clients.find(id);
    if (found == replica.clients.end()) return;
    log::warning("client {} ({}): {}", id, found->second.peer, why);
    if (const auto told = message != nullptr ? protocol->error(*message, why) : std::nullopt) {
      found->second.rest.clear();
      return network->send(id, *told);
    }
    network->fail(id, why);
    replica.clients.erase(found);
  }

  void answer(const policy::Policy& policy, Client& client, const Job& job) {
    const policy::Spec& info = policy.spec();
    const Request request = protocol->read(job.text, info);
    if (request.reset) {
      begin(client, request.seed.value_or(client.episodes));
      ++client.episodes;
      client.rest.clear();
      client.prompt.clear();
      client.told = client.answered = false;
    }
    if (request.prompt) client.prompt = *request.prompt, client.told = true;
    if (request.frames.empty()) {
      if (std::optional<Reply> reply = protocol->acknowledge(request, info))
        reply->text ? network->send_text(job.client, std::move(reply->bytes))
                    : network->send(job.client, std::move(reply->bytes));
      return;
    }
    const bool says_something = client.prompt.find_first_not_of(" \t\r\n") != std::string::npos;
    COHORT_THROW_UNLESS(!info.instructed || says_something,
                        "{} '{}'{}: the policy must be told what to do; send \"{}\": \"close the drawer\" with the "
                        "observations",
                        client.told ? "the message's" : "the message lacks", protocol->instruction(),
                        client.told ? " holds no word" : "", protocol->instruction());
    if (!client.answered) refuse_robots(info, request);
    client.answered = true;
    if (client.tally.requests == 0) look_at_first(info, request, job.client);
    const auto begin = Clock::now();
    const auto width = static_cast<std::size_t>(info.action_width);
    const bool one_by_one = protocol->one_by_one();
    const bool alone = !protocol->several_robots(request);
    const bool robots_asked = request.robots && !(alone && request.frames.size() == 1);
    COHORT_THROW_UNLESS(!robots_asked || !alone,
                        "the observations have a dimension more than those of one robot: this client's protocol "
                        "answers one robot on a connection");
    const std::int64_t robots = robots_asked ? std::ssize(request.frames) : 1;
    if (robots_asked) {
      begin_robots(client, robots);
      client.rest = act(client, request.frames);
    } else if (one_by_one && !client.rest.empty()) {
      // The moments of all control steps come. It sees those that it looks at, as in a task (actor/policy_actor.h).
      const auto left = static_cast<std::int64_t>(client.rest.size() / width);
      for (const Moment& moment : request.frames)
        if (left % info.stride == 0 && (info.remembers || left < info.frames * info.stride)) see(client, moment);
    } else {
      const std::span<const Moment> moments = request.frames;
      for (const Moment& moment : moments.first(moments.size() - 1)) see(client, moment);
      client.rest = act(client, moments.last(1));
    }
    const double infer_ms = milliseconds_since(begin);
    client.tally.add(infer_ms);
    {
      const std::lock_guard lock(mutex);
      recent.add(infer_ms);
    }
    NumpyArray actions;
    if (one_by_one) {
      actions = float_array({info.action_width}, std::span(client.rest).first(width));
      client.rest.erase(client.rest.begin(), client.rest.begin() + static_cast<std::ptrdiff_t>(width));
    } else {
      const std::int64_t rows = static_cast<std::int64_t>(client.rest.size() / width) / robots;
      actions = robots_asked ? float_array({robots, rows, info.action_width}, client.rest)
                             : float_array({rows, info.action_width}, client.rest);
      client.rest.clear();
    }
    network->send(job.client, protocol->answer(request, std::move(actions), {infer_ms, client.last_total_ms}));
    client.last_total_ms = milliseconds_since(job.came);
  }

  /// More rows at an episode's beginning than a decision looks at are no moments, but several robots.
  static void refuse_robots(const policy::Spec& info, const Request& request) {
    const std::int64_t moments = std::ssize(request.frames);
    if (request.robots || info.remembers || moments <= info.frames * info.stride) return;
    throw Error(format(
        "the observations have {} rows, which are taken for moments of one robot, but the policy looks at {} and the "
        "episode begins: if they are several robots, let each have a connection of its own; if they are moments, send "
        "the last {}",
        moments, info.frames, info.frames * info.stride));
  }

  /// An instruction to a policy that takes none, and other pictures than those that it learnt from, are often why it does
  /// nothing right. The first is said once: many clients send one with every message.
  void look_at_first(const policy::Spec& info, const Request& request, std::uint64_t client) {
    if (!info.instructed && request.prompt && !request.prompt->empty() && !instruction_said.exchange(true))
      log::info(
          "client {}: it sends an instruction, but the policy takes none: it does what it learnt, whatever it is "
          "told",
          client);
    for (const std::string& picture : request.unseen_pictures)
      log::info("client {}: it sends the picture '{}', which the policy does not look at", client, picture);
    const Moment& frame = request.frames.back();
    std::size_t at = 0;
    for (const policy::Observation& o : info.observations) {
      if (!o.picture) continue;
      const Picture& picture = frame.pictures.at(at++);
      if (o.shape[0] > 0 && (picture.height != o.shape[0] || picture.width != o.shape[1]))
        log::warning("client {}: {} is {} x {} px; the policy learnt from pictures of {} x {} px, and scales these",
                     client, o.name, picture.height, picture.width, o.shape[0], o.shape[1]);
    }
  }

  std::string rates() {
    const std::lock_guard lock(mutex);
    const double seconds = std::chrono::duration<double>(Clock::now() - recent_since).count();
    std::string text;
    if (recent.requests > 0)
      text = format("{} connections, {:.1f} requests/s, {}", waiting.size(),
                    static_cast<double>(recent.requests) / std::max(seconds, 1e-3), recent.mean());
    recent = {};
    recent_since = Clock::now();
    return text;
  }

  void stop() {
    {
      const std::lock_guard lock(mutex);
      if (stopping) return;
      stopping = true;
    }
    changed.notify_all();
    for (Replica& replica : replicas)
      if (replica.thread.joinable()) replica.thread.join();
    if (network) network->stop();
  }

  PolicyServerSettings settings;
  std::deque<Replica> replicas;  // sessions before their policies: Replica's members in reverse
  std::unique_ptr<const ServerProtocol> protocol;
  std::string greeting;

  std::mutex mutex;  // of what follows, and of the replicas' jobs
  std::condition_variable changed;
  std::map<std::uint64_t, std::size_t> waiting;  // messages that are not answered yet, by client
  Tally recent;
  Clock::time_point recent_since = Clock::now();
  bool stopping = false;

  std::atomic<bool> instruction_said = false;

  std::unique_ptr<WebSocketServer> network;
};

PolicyServer::PolicyServer(std::vector<std::unique_ptr<policy::Policy>> replicas, const PolicyServerSettings& settings)
    : impl_(std::make_unique<Impl>(std::move(replicas), settings)) {}
PolicyServer::~PolicyServer() {
  stop();
}
int PolicyServer::port() const {
  return impl_->network->port();
}
std::string PolicyServer::rates() {
  return impl_->rates();
}
void PolicyServer::stop() {
  impl_->stop();
}

}  // namespace cohort::serve
