#include "tasks/task_check.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <utility>

#include "core/config.h"
#include "core/error.h"
#include "core/format.h"
#include "core/json_text.h"
#include "core/philox.h"
#include "tasks/actor.h"
#include "tasks/rollout.h"
#include "tasks/scene_task.h"

namespace cohort::tasks {
namespace {

using Outcome = CheckRow::Outcome;

constexpr int kEnvs = 3;
constexpr std::uint64_t kSeed = 20, kOtherSeed = 21, kThirdSeed = 22;
/// A NaN that no arithmetic makes: what still holds it was not written.
constexpr std::uint32_t kUnwritten = 0x7fc5eed5u;

std::size_t to_size(std::int64_t n) {
  return static_cast<std::size_t>(n);
}

CheckRow passed(std::string name, std::string found) {
  return {std::move(name), Outcome::kPass, std::move(found), ""};
}
CheckRow failed(std::string name, std::string found, std::string remedy) {
  return {std::move(name), Outcome::kFail, std::move(found), std::move(remedy)};
}
CheckRow skipped(std::string name, std::string found) {
  return {std::move(name), Outcome::kSkipped, std::move(found), ""};
}

/// Actions of an episode: by its seed and the step alone.
void draw_actions(const ActionSpec& spec, std::uint64_t seed, std::int64_t step, std::span<float> row) {
  const RandomStream random(seed, RandomPurpose::kAction, 0, static_cast<std::uint64_t>(step));
  for (std::size_t i = 0; i < row.size(); ++i)
    row[i] = spec.low[i] + (spec.high[i] - spec.low[i]) * random.uniform(static_cast<std::uint64_t>(i));
}

/// What is wrong with the task's numbers of an environment, the first thing of each kind.
struct Findings {
  std::string observations, rewards, broken;
  void note(std::string& first, std::string text) {
    if (first.empty()) first = std::move(text);
  }
};

/// A task that is played by seeds, and looked at.
class Player {
 public:
  explicit Player(std::unique_ptr<Task> task)
      : task_(std::move(task)),
        spec_(task_->spec()),
        actions_(to_size(task_->n_envs() * spec_.action.width())),
        seeds_(to_size(task_->n_envs())),
        ages_(to_size(task_->n_envs())) {
    if (auto* scene = dynamic_cast<SceneTask*>(task_.get())) scene->watch_writes();
  }

  Task& task() { return *task_; }
  const TaskSpec& spec() const { return spec_; }

  void reset(const std::vector<std::int32_t>& envs, const std::vector<std::uint64_t>& seeds) {
    poison(envs);
    task_->reset(envs, seeds);
    for (std::size_t i = 0; i < envs.size(); ++i) seeds_[to_size(envs[i])] = seeds[i], ages_[to_size(envs[i])] = 0;
    for (const std::int32_t env : envs) look_at_observations(env, "after a reset");
  }

  /// A step of every environment, each with the actions of its episode.
  void step() {
    const std::int64_t width = spec_.action.width();
    std::vector<std::int32_t> going;
    for (std::int32_t env = 0; env < task_->n_envs(); ++env) {
      draw_actions(spec_.action, seeds_[to_size(env)], ages_[to_size(env)],
                   std::span(actions_).subspan(to_size(env * width), to_size(width)));
      ++ages_[to_size(env)];
      if (!broken(env)) going.push_back(env);
    }
    poison(going);
    task_->step(make_view(actions_.data(), {task_->n_envs(), width}));
    for (const std::int32_t env : going) {
      const std::string when = format("in step {} of seed {}", ages_[to_size(env)], seeds_[to_size(env)]);
      if (broken(env)) {
        found_.note(found_.broken, format("the simulation breaks {}, under random actions", when));
        continue;
      }
      look_at_observations(env, when);
      look_at_rewards(env, when);
    }
  }

  bool broken(std::int32_t env) { return task_->broken().span<std::uint8_t>()[to_size(env)] != 0; }

  /// The bits of all that an environment shows.
  void append_bits(std::int32_t env, std::vector<std::uint32_t>& bits) {
    for (std::size_t f = 0; f < spec_.observations.size(); ++f)
      for (const float x : row_of(f, env)) bits.push_back(std::bit_cast<std::uint32_t>(x));
    bits.push_back(std::bit_cast<std::uint32_t>(task_->reward().span<float>()[to_size(env)]));
    for (const ArrayView& flags : {task_->success(), task_->terminated(), task_->truncated(), task_->broken()})
      bits.push_back(flags.span<std::uint8_t>()[to_size(env)]);
  }

  /// The episode of `seed` in this environment, the others going on: the bits of every moment.
  std::vector<std::vector<std::uint32_t>> play(std::int32_t env, std::uint64_t seed, std::int64_t steps) {
    std::vector<std::vector<std::uint32_t>> moments;
    reset({env}, {seed});
    append_bits(env, moments.emplace_back());
    for (std::int64_t i = 0; i < steps; ++i) {
      step();
      append_bits(env, moments.emplace_back());
    }
    return moments;
  }

  /// Goes on where the other one is.
  void load(Player& other) {
    task_->load(other.task_->save(), "the check");
    seeds_ = other.seeds_, ages_ = other.ages_;
  }

  const Findings& found() const { return found_; }

 private:
  std::span<float> row_of(std::size_t field, std::int32_t env) {
    const auto width = to_size(spec_.observations[field].elements());
    const std::span<float> all = task_->observation(field).span<float>();
    return all.size() < (to_size(env) + 1) * width ? std::span<float>() : all.subspan(to_size(env) * width, width);
  }
  void poison(const std::vector<std::int32_t>& envs) {
    for (std::size_t f = 0; f < spec_.observations.size(); ++f)
      for (const std::int32_t env : envs)
        for (float& x : row_of(f, env)) x = std::bit_cast<float>(kUnwritten);
  }

  void look_at_observations(std::int32_t env, const std::string& when) {
    for (std::size_t f = 0; f < spec_.observations.size(); ++f) {
      const FieldSpec& field = spec_.observations[f];
      const ArrayView view = task_->observation(f);
      std::vector<std::int64_t> shape{task_->n_envs()}, own(view.shape.begin(), view.shape.begin() + view.rank);
      shape.insert(shape.end(), field.shape.begin(), field.shape.end());
      if (view.type != ElementType::kFloat32 || own != shape)
        found_.note(found_.observations, format("'{}' is shown as ({}), and its spec says ({})", field.name,
                                                join_numbers(own), join_numbers(shape)));
      const std::span<float> row = row_of(f, env);
      for (std::size_t i = 0; i < row.size(); ++i) {
        if (std::isfinite(row[i])) continue;
        const bool unwritten = std::bit_cast<std::uint32_t>(row[i]) == kUnwritten;
        found_.note(found_.observations, unwritten ? format("'{}' [{}] is not written {}", field.name, i, when)
                                                   : format("'{}' [{}] is {} {}", field.name, i, row[i], when));
      }
    }
  }

  void look_at_rewards(std::int32_t env, const std::string& when) {
    const float reward = task_->reward().span<float>()[to_size(env)];
    if (!std::isfinite(reward)) found_.note(found_.rewards, format("the reward is {} {}", reward, when));
    const ArrayView terms = task_->reward_terms();
    if (terms.shape[1] == 0) return;
    if (terms.shape[1] != std::ssize(spec_.reward_terms)) {
      found_.note(found_.rewards,
                  format("{} terms are shown, and the spec names {}", terms.shape[1], spec_.reward_terms.size()));
      return;
    }
    double sum = 0, size = 0;
    for (std::size_t i = 0; i < spec_.reward_terms.size(); ++i) {
      const auto term = static_cast<double>(terms.span<float>()[to_size(env) * spec_.reward_terms.size() + i]);
      if (!std::isfinite(term))
        found_.note(found_.rewards, format("the term '{}' is {} {}", spec_.reward_terms[i], term, when));
      sum += term, size += std::abs(term);
    }
    if (std::abs(sum - static_cast<double>(reward)) > 1e-5 * (1 + size))
      found_.note(found_.rewards, format("the reward is {:g} {}, and the sum of its terms {:g}", reward, when, sum));
  }

  static std::string join_numbers(const std::vector<std::int64_t>& numbers) {
    std::string text;
    for (const std::int64_t n : numbers) text += format("{}{}", text.empty() ? "" : ", ", n);
    return text;
  }

  std::unique_ptr<Task> task_;
  const TaskSpec& spec_;
  std::vector<float> actions_;
  std::vector<std::uint64_t> seeds_;
  std::vector<std::int64_t> ages_;
  Findings found_;
};

std::vector<std::int32_t> all_of(const Task& task) {
  std::vector<std::int32_t> envs(to_size(task.n_envs()));
  std::iota(envs.begin(), envs.end(), 0);
  return envs;
}

std::string wrong_with_spec(const TaskSpec& spec) {
  if (!(spec.control_period > 0)) return format("control_period is {:g} s", spec.control_period);
  if (spec.horizon < 1) return format("the horizon is {} steps", spec.horizon);
  std::set<std::string> names;
  for (const FieldSpec& field : spec.observations) {
    if (field.name.empty()) return "an observation has no name";
    if (!names.insert(field.name).second) return format("two observations are called '{}'", field.name);
    if (field.elements() < 1) return format("the observation '{}' has no numbers", field.name);
  }
  if (!spec.reward_best.empty() && spec.reward_best.size() != spec.reward_terms.size())
    return format("reward_best has {} numbers, and there are {} reward_terms", spec.reward_best.size(),
                  spec.reward_terms.size());
  return "";
}

std::string wrong_with_bounds(const ActionSpec& action) {
  if (action.names.empty()) return "there are no actions";
  if (action.low.size() != action.names.size() || action.high.size() != action.names.size())
    return format("{} actions have {} lower and {} upper bounds", action.names.size(), action.low.size(),
                  action.high.size());
  for (std::size_t i = 0; i < action.names.size(); ++i)
    if (!std::isfinite(action.low[i]) || !std::isfinite(action.high[i]) || action.low[i] >= action.high[i])
      return format("the bounds of '{}' are {:g} and {:g}", action.names[i], action.low[i], action.high[i]);
  return "";
}

/// Actions at the bounds and far beyond them: what breaks, and whether what lies outside counts.
CheckRow check_bounds(const MakeTask& make) {
  constexpr float kBeyond = 10;
  const std::unique_ptr<Task> task = make(4);  // low, high, and both far outside
  const ActionSpec& action = task->spec().action;
  const std::vector<std::int32_t> envs = all_of(*task);
  task->reset(envs, std::vector<std::uint64_t>(4, kSeed));
  std::vector<float> actions;
  for (const float beyond : {0.0f, kBeyond})
    for (const bool high : {false, true})
      for (std::size_t i = 0; i < action.names.size(); ++i)
        actions.push_back((high ? action.high[i] : action.low[i]) +
                          (high ? beyond : -beyond) * (action.high[i] - action.low[i]));
  bool clipped = true;
  for (int step = 1; step <= 5; ++step) {
    task->step(make_view(actions.data(), {4, action.width()}));
    const auto broken = task->broken().span<std::uint8_t>();
    for (std::size_t env = 0; env < 2; ++env)
      if (broken[env])
        return failed(
            "bounds",
            format("actions at their {} bounds break the simulation in step {}", env == 0 ? "lower" : "upper", step),
            "bounds that the model bears, a smaller timestep, limits of its actuators");
    const auto reward = task->reward().span<float>();
    for (std::size_t env = 0; env < 2; ++env) clipped = clipped && !broken[env + 2] && reward[env] == reward[env + 2];
  }
  return passed("bounds", clipped ? "at the bounds nothing breaks; what lies outside is clipped"
                                  : "at the bounds nothing breaks; what lies outside counts as it is");
}

/// Where two episodes that should be one part.
std::string where_they_part(const std::vector<std::vector<std::uint32_t>>& a,
                            const std::vector<std::vector<std::uint32_t>>& b, const TaskSpec& spec) {
  for (std::size_t t = 0; t < a.size(); ++t)
    for (std::size_t i = 0; i < a[t].size(); ++i) {
      if (a[t][i] == b[t][i]) continue;
      std::size_t at = i;
      for (const FieldSpec& field : spec.observations) {
        if (at < to_size(field.elements())) return format("'{}' [{}] in step {}", field.name, at, t);
        at -= to_size(field.elements());
      }
      constexpr const char* kOthers[] = {"the reward", "success", "terminated", "truncated", "broken"};
      return format("{} in step {}", kOthers[std::min<std::size_t>(at, 4)], t);
    }
  return "";
}

constexpr const char* kOfItsEpisode =
    "an episode must be a function of its seed: draw in start() from its random numbers, set what you remember there "
    "anew, and keep no counter over episodes (randomize_parameter with a draw of its own, a level that stays)";

CheckRow check_replay(Player& used, std::int64_t steps) {
  const auto first = used.play(1, kSeed, steps);
  used.play(1, kOtherSeed, steps / 2);
  used.reset({0, 2}, {kThirdSeed, kThirdSeed + 1});
  const auto again = used.play(1, kSeed, steps);
  if (const std::string where = where_they_part(first, again, used.spec()); !where.empty())
    return failed("replay", format("seed {} played again with the same actions differs: {}", kSeed, where),
                  kOfItsEpisode);
  const auto elsewhere = used.play(2, kSeed, steps);
  if (const std::string where = where_they_part(first, elsewhere, used.spec()); !where.empty())
    return failed("replay", format("seed {} in environment 2 is not what it was in 1: {}", kSeed, where),
                  "what happens may not depend on the environment's index or on its neighbours");
  return passed("replay", format("{} steps of a seed have the same bits again, after others, elsewhere", steps));
}

/// As a training resumes: a program that has just started loads what was saved in the middle of an episode, and goes on
/// with that episode and the next.
CheckRow check_resume(Player& used, const MakeTask& make, std::int64_t steps) {
  used.play(1, kOtherSeed, steps / 2);
  Player fresh(make(kEnvs));
  fresh.load(used);
  std::vector<std::vector<std::uint32_t>> moments[2];
  for (Player* player : {&used, &fresh}) {
    auto& seen = moments[player == &fresh];
    player->append_bits(1, seen.emplace_back());
    for (std::int64_t i = 0; i < steps / 2; ++i) {
      player->step();
      player->append_bits(1, seen.emplace_back());
    }
    const auto next = player->play(1, kThirdSeed, steps / 2);
    seen.insert(seen.end(), next.begin(), next.end());
  }
  if (const std::string where = where_they_part(moments[0], moments[1], used.spec()); !where.empty())
    return failed(
        "resume",
        format("a task that was saved does not go on in a program that has just started: {}; a run that goes on "
               "has other bits",
               where),
        "visit_variables() adds whatever the task remembers, and an episode is a function of its seed");
  return passed("resume", "what was saved goes on with the same bits in a program that has just started");
}

/// What steps pay, up to the first success of each episode.
class Payments final : public RolloutObserver {
 public:
  explicit Payments(std::size_t episodes) : last_(episodes), done_(episodes) {}
  void stepped(Task& task, std::span<const RunningEpisode> running) override {
    const auto reward = task.reward().span<float>();
    const auto success = task.success().span<std::uint8_t>(), over = task.terminated().span<std::uint8_t>(),
               broken = task.broken().span<std::uint8_t>();
    for (const RunningEpisode& r : running) {
      const std::size_t env = to_size(r.env);
      if (done_[r.episode] || broken[env]) continue;
      const auto paid = static_cast<double>(reward[env]);
      if (!success[env]) {
        last_[r.episode] = paid, sum_ += paid, ++steps_;
        continue;
      }
      done_[r.episode] = true;
      ++successes_, before_ += last_[r.episode], at_success_ += paid;
      ending_ += over[env];
    }
  }
  std::int64_t successes() const { return successes_; }
  bool ends() const { return 2 * ending_ > successes_; }
  double before() const { return before_ / static_cast<double>(std::max<std::int64_t>(1, successes_)); }
  double at_success() const { return at_success_ / static_cast<double>(std::max<std::int64_t>(1, successes_)); }
  double of_a_step() const { return sum_ / static_cast<double>(std::max<std::int64_t>(1, steps_)); }

 private:
  std::vector<double> last_;
  std::vector<bool> done_;
  double sum_ = 0, before_ = 0, at_success_ = 0;
  std::int64_t steps_ = 0, successes_ = 0, ending_ = 0;
};

/// Of a task's description; an empty object where it names none.
config::Json settings_of(const Task& task) {
  const config::Json json = try_json<config::Json>(task.description());
  if (!json.is_object() || !json.contains("settings") || !json.at("settings").is_object())
    return config::Json::object();
  return json.at("settings");
}

CheckRow check_success(const MakeTask& make, const CheckSettings& settings) {
  constexpr const char* kRemedy =
      "end_on_success=false (also where there is no goal), a bonus that outweighs it in the step that succeeds, or a "
      "reward below 0 until then";
  const std::unique_ptr<Task> task = make(static_cast<int>(std::min<std::int64_t>(settings.episodes, 8)));
  if (task->spec().reward_terms.empty()) return skipped("success", "the task pays nothing");
  std::unique_ptr<Actor> actor = task->make_expert(0);
  const bool by_expert = actor != nullptr;
  if (!actor) actor = make_random_actor(1);
  Payments payments(to_size(settings.episodes));
  // Random actions seldom succeed late.
  const std::int64_t steps = by_expert ? 0 : std::min<std::int64_t>(task->spec().horizon, 5 * settings.steps);
  run_episodes(*task, *actor, consecutive_seeds(1000, settings.episodes), {.max_steps = steps, .instruction = ""},
               &payments);
  const char* who = by_expert ? "the expert" : "random actions";
  if (payments.successes() > 0) {
    if (!payments.ends()) return passed("success", format("episodes go on after success, which {} reached", who));
    const std::string why = why_hovering_pays(payments.before(), payments.at_success(), settings.gamma);
    if (!why.empty()) return failed("success", why, kRemedy);
    return passed("success", format("it is worth more than going on: {:g} before it, {:g} with it", payments.before(),
                                    payments.at_success()));
  }
  if (by_expert)
    return failed("success", format("the expert succeeds in none of {} episodes", settings.episodes),
                  "an expert that can do it, or has_expert=false");
  if (!settings_of(*task).value("end_on_success", true)) return passed("success", "episodes go on after success");
  if (!ends_on_success_with_dense_reward(*task) || payments.of_a_step() <= 0)
    return skipped("success", "no expert, and random actions never succeed: nobody knows what success pays");
  return failed(
      "success",
      format("a step without success pays {:g} under random actions, and success ends the episode: going on is "
             "worth {:g} (over 1 - {:g}), which success must outweigh",
             payments.of_a_step(), payments.of_a_step() / (1 - settings.gamma), settings.gamma),
      kRemedy);
}

}  // namespace

bool ends_on_success_with_dense_reward(const Task& task) {
  const config::Json settings = settings_of(task);
  return settings.value("end_on_success", false) && settings.value("reward", "") != "sparse";
}

std::string why_hovering_pays(double before, double success, double gamma) {
  const double going_on = before / (1 - gamma);
  if (!(before > 0) || success >= going_on) return "";
  return format(
      "the step before success pays {:g}, the one that succeeds {:g} and ends the episode; going on just short "
      "of the goal is worth {:g} ({:g} / (1 - {:g})): a learner hovers there",
      before, success, going_on, before, gamma);
}

std::vector<CheckRow> check_task(const MakeTask& make, const CheckSettings& settings) {
  std::vector<CheckRow> rows;
  /// What is thrown by the task is the row's text.
  const auto row = [&rows](const std::string& name, const std::function<CheckRow()>& look, const char* remedy) {
    try {
      rows.push_back(look());
      rows.back().name = name;
    } catch (const std::exception& e) {
      rows.push_back(failed(name, e.what(), remedy));
    }
  };
  std::unique_ptr<Player> player;
  const auto player_or_throw = [&]() -> Player& {
    if (!player) throw Error("not looked at: the checks above come first");
    return *player;
  };
  std::int64_t steps = settings.steps;
  row(
      "spec",
      [&] {
        auto task = make(kEnvs);
        const std::string wrong = wrong_with_spec(task->spec());
        if (!wrong.empty()) return failed("", wrong, "mend TaskSpec");
        const std::string bounds = wrong_with_bounds(task->spec().action);
        if (!bounds.empty()) return failed("", bounds, "mend TaskSpec::action: finite bounds, low below high");
        steps = std::min(steps, task->spec().horizon);
        player = std::make_unique<Player>(std::move(task));
        return passed("", format("{} observations, {} actions, {} reward terms, {} steps at most",
                                 player->spec().observations.size(), player->spec().action.width(),
                                 player->spec().reward_terms.size(), player->spec().horizon));
      },
      "mend what the task is made from: its file, or its constructor");
  row(
      "writes",
      [&] {
        Player& p = player_or_throw();
        try {
          p.reset(all_of(p.task()), {kThirdSeed, kSeed, kOtherSeed});
          for (std::int64_t i = 0; i < steps; ++i) p.step();
        } catch (...) {
          player.reset();
          throw;
        }
        return passed("", format("nothing is written outside of fields, terms and controls in {} steps", steps));
      },
      "mend the task where the text says");
  row(
      "observations",
      [&] {
        const std::string& wrong = player_or_throw().found().observations;
        return wrong.empty() ? passed("", "shaped as the spec says, all written, finite")
                             : failed("", wrong, "observe() writes every number of every field, finite ones");
      },
      "mend what is above");
  row(
      "rewards",
      [&] {
        const std::string& wrong = player_or_throw().found().rewards;
        return wrong.empty() ? passed("", "finite, the sum of their terms")
                             : failed("", wrong, "judge() writes finite terms, whose sum the reward is");
      },
      "mend what is above");
  row(
      "unbroken",
      [&] {
        const std::string& wrong = player_or_throw().found().broken;
        return wrong.empty() ? passed("", "random actions break nothing")
                             : failed("", wrong, "a smaller timestep, weaker actuators, limits");
      },
      "mend what is above");
  row(
      "bounds", [&] { return player_or_throw(), check_bounds(make); }, "mend what is above");
  row(
      "replay", [&] { return check_replay(player_or_throw(), steps); }, "mend what is above");
  row(
      "resume", [&] { return check_resume(player_or_throw(), make, steps); }, "mend what is above");
  row(
      "success", [&] { return player_or_throw(), check_success(make, settings); }, "mend what is above");
  return rows;
}

}  // namespace cohort::tasks
