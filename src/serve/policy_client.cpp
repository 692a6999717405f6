#include "serve/policy_client.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/log.h"

namespace cohort::serve {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kBetweenTries = std::chrono::milliseconds(500);

std::unique_ptr<WebSocketClient> connect_when_there(const std::shared_ptr<ClientThread>& thread, const ServerUrl& url,
                                                    double seconds) {
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  bool told = false;
  while (true) {
    try {
      return std::make_unique<WebSocketClient>(
          thread, url, std::clamp(std::chrono::duration<double>(end - Clock::now()).count(), 1.0, 10.0));
    } catch (const NoServer& e) {
      COHORT_THROW_UNLESS(
          Clock::now() + kBetweenTries < end,
          "{}: no policy server after {:g} s ({}): start it (`cohort serve RUN`, or openpi's "
          "scripts/serve_policy.py), and look at host and port; --connect-timeout says how long to wait",
          url.text, seconds, e.what());
      if (!told) log::info("{}: nobody is there yet ({}); waiting up to {:g} s", url.text, e.what(), seconds);
      told = true;
    } catch (const Error& e) {
      throw Error(format("{}: {}", url.text, e.what()));
    }
    std::this_thread::sleep_for(kBetweenTries);
  }
}

}  // namespace

PolicyClient::PolicyClient(const std::shared_ptr<ClientThread>& thread, const std::string& url,
                           const ClientSettings& settings)
    : url_(url),
      settings_(settings),
      client_(connect_when_there(thread, parse_url(url), settings.connect_timeout)),
      protocol_(client_protocol(parse_url(url))) {
  try {
    info_ = protocol_->greet(*client_, settings.connect_timeout);
  } catch (const Error& e) {
    throw Error(format("{}: it has not said what it serves, as {} servers do on connection: {}", url_,
                       parse_url(url).scheme == "ws" ? "openpi's" : "vla-eval's", e.what()));
  }
}

void PolicyClient::begin(const std::string& instruction, std::uint64_t seed) {
  protocol_->begin(*client_, instruction, seed);
}

void PolicyClient::ask(Map observation, const std::string& instruction) {
  client_->send(protocol_->observation(std::move(observation), instruction));
}

Chunk PolicyClient::answer(std::int64_t width) {
  WebSocketClient::Message message;
  try {
    message = client_->receive(settings_.answer_timeout);
  } catch (const Error& e) {
    throw Error(format("{}: {}. Look at the server's own log; --answer-timeout says how long an answer may take", url_,
                       e.what()));
  }
  Value value;
  try {
    value = protocol_->actions(message);
  } catch (const Error& e) {
    throw Error(format("{}: {}", url_, e.what()));
  }
  const Value* actions = &value;
  for (const char* name : {"action", "actions"})
    if (const Value* found = find(value, name)) actions = found;
  const NumpyArray* array = std::get_if<NumpyArray>(&actions->of);
  if (const Value* failure = find(value, "error"); array == nullptr && failure != nullptr)
    if (const auto* text = std::get_if<std::string>(&failure->of))
      throw Error(format("{}: it answers with an error: {}", url_, last_lines(*text)));
  COHORT_THROW_UNLESS(array != nullptr && !array->shape.empty() && array->shape.size() <= 2,
                      "{}: its answer is {}, but must hold 'actions', an array (steps, {})", url_, describe(*actions),
                      width);
  Chunk chunk;
  chunk.rows = array->shape.size() == 2 ? array->shape[0] : 1;
  COHORT_THROW_UNLESS(array->shape.back() == width && chunk.rows >= 1,
                      "{}: its actions have the shape {}, but the task's have {} numbers each: is this the policy of "
                      "another robot, or of other action settings?",
                      url_, shape_text(array->shape), width);
  COHORT_THROW_UNLESS(is_number(array->dtype), "{}: its actions are {}: numbers are taken, float32 or the like", url_,
                      describe(*array));
  chunk.actions = to_floats(*array);
  const auto bad = std::find_if(chunk.actions.begin(), chunk.actions.end(), [](float x) { return !std::isfinite(x); });
  COHORT_THROW_UNLESS(bad == chunk.actions.end(),
                      "{}: number {} of action {} of its answer is {}: the policy has failed, or sees what it was not "
                      "trained with",
                      url_, (bad - chunk.actions.begin()) % width, (bad - chunk.actions.begin()) / width, *bad);
  return chunk;
}

}  // namespace cohort::serve
