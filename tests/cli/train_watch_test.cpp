// What a training tells those who watch it: `cohort top` while it runs, its metrics and its report afterwards.
#include <gtest/gtest.h>

#include "cli/training.h"
#include "core/json_text.h"

namespace cohort::testing {
namespace {

nlohmann::json last_metrics(const fs::path& run, const std::string& name) {
  nlohmann::json last;
  for (const std::string& line : lines_of(text_of(run / "metrics.jsonl")))
    if (const auto json = parse_json<nlohmann::json>(line); json.contains(name)) last = json;
  return last;
}

TEST(CliWatch, TopShowsBothRanksOfATrainingThatRuns) {
  const Training training;
  Process job(training.after(launch({"--nproc_per_node=2"}), "watched", {"train.epochs=100000"}),
              Training::variables());
  const fs::path run_folder = training.outputs() / "watched" / "latest";
  ASSERT_TRUE(eventually([&] { return training.step("watched") > 50; })) << job.err();
  nlohmann::json ranks;
  const auto see_both = [&] {
    ranks = nlohmann::json::array();
    const auto all = parse_json<nlohmann::json>(run({cohort_path(), "top", "--json"}).out);
    for (const auto& rank : all["ranks"])
      if (rank["run"] == fs::canonical(run_folder).string() && rank["step"] > 20) ranks.push_back(rank);
    return ranks.size() == 2;
  };
  ASSERT_TRUE(eventually(see_both)) << json_text(ranks, 2);
  for (int i = 0; i < 2; ++i) {
    const auto& rank = ranks[static_cast<std::size_t>(i)];
    EXPECT_EQ(rank["rank"], i);
    EXPECT_EQ(rank["world_size"], 2);
    EXPECT_EQ(rank["job"], "regressor");
    EXPECT_EQ(rank["device"], "cpu");
    EXPECT_EQ(rank["batches_per_epoch"], 10);
    EXPECT_EQ(rank["batch_size"], 16);
    EXPECT_GT(rank["steps_per_s"].get<double>(), 0);
    EXPECT_NEAR(rank["samples_per_s"].get<double>(), 16 * rank["steps_per_s"].get<double>(),
                rank["samples_per_s"].get<double>() * 0.01);
    EXPECT_GT(rank["exchange_s"].get<double>(), 0);
    EXPECT_LT(rank["exchange_s"].get<double>(), rank["step_s"].get<double>())
        << "a part of the steps, on a busy machine too";
    EXPECT_GT(rank["host_bytes"].get<double>(), 1 << 20);
    EXPECT_GT(rank["seconds_left"].get<double>(), 0);
  }
  job.send(SIGTERM);
  job.wait();
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(
        parse_json<nlohmann::json>(text_of(run_folder / "ranks" / ("rank_" + std::to_string(i) + ".json")))["state"],
        "stopped");
}

TEST(CliWatch, MetricsAndReportSayHowAStepIsSpentAndHowRanksCompare) {
  const Training training;
  const Outcome outcome =
      run(training.after(launch({"--nproc_per_node=2"}), "shares", {"train.epochs=3", "charts=true"}),
          Training::variables());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const fs::path folder = training.outputs() / "shares" / "latest";
  const auto last = last_metrics(folder, "speed/compute_s");
  const double step = 1 / last["speed/steps_per_s"].get<double>();
  EXPECT_GT(last["speed/compute_s"].get<double>(), 0);
  // Parts of the same steps, whatever the machine does: the sum of the largest of two is no more than twice the whole.
  EXPECT_LE(last["speed/least_compute_s"].get<double>(), last["speed/compute_s"].get<double>());
  EXPECT_LE(last["speed/compute_s"].get<double>() + last["speed/data_s"].get<double>(), 2 * step);
  EXPECT_GT(last["speed/exchange_s"].get<double>(), 0);
  EXPECT_LT(last["speed/exchange_s"].get<double>(), step);
  EXPECT_GT(last["host/memory_bytes"].get<double>(), 0);
  const std::string report = text_of(folder / "report.html");
  EXPECT_TRUE(contains(report, "a step")) << outcome.err;
  EXPECT_TRUE(contains(report, "communication"));
  for (const char* rank : {"rank 0", "rank 1", "balance"}) EXPECT_TRUE(contains(report, rank)) << rank;
  EXPECT_TRUE(contains(report, "480 samples; a step computes"));
  EXPECT_EQ(parse_json<nlohmann::json>(text_of(folder / "ranks/rank_1.json"))["state"], "finished");
}

TEST(CliWatch, ThroughGlooTheExchangesAreToldApartFromComputing) {
  const Training training;
  // Wide enough that a rank computes most of the time.
  Process job(training.after(launch({"--nproc_per_node=2"}), "gloo",
                             {"train.epochs=100000", "parallel.ddp.cpu_reduction=gloo", "charts=true",
                              "train.log_every=20", "model.hidden=256", "model.d_ff=256"}),
              Training::variables());
  const fs::path latest = training.outputs() / "gloo" / "latest";
  const auto status = [&](int rank) {
    return parse_json<nlohmann::json>(text_of(latest / "ranks" / ("rank_" + std::to_string(rank) + ".json")));
  };
  const auto exchanges = [&](int rank) {
    const auto found = status(rank);
    return found.contains("exchange_s") && found["exchange_s"].is_number() && found["exchange_s"] > 0;
  };
  ASSERT_TRUE(eventually([&] { return training.step("gloo") >= 40 && exchanges(0) && exchanges(1); })) << job.err();
  const auto first = status(0), second = status(1);
  job.send(SIGTERM);
  job.wait();
  for (const auto& rank : {first, second})
    EXPECT_LT(rank["exchange_s"].get<double>(), rank["step_s"].get<double>()) << json_text(rank);
  const fs::path folder = fs::canonical(latest);
  double exchange = 0, whole = 0;
  for (const std::string& line : lines_of(text_of(folder / "metrics.jsonl")))
    if (const auto json = parse_json<nlohmann::json>(line); json.contains("speed/exchange_s")) {
      exchange += json["speed/exchange_s"].get<double>();
      whole += 1 / json["speed/steps_per_s"].get<double>();
    }
  EXPECT_GT(exchange, 0) << "mean of both ranks";
  EXPECT_LT(exchange, whole);
  const std::string report = text_of(folder / "report.html");
  EXPECT_TRUE(contains(report, "communication ")) << job.err();
  EXPECT_TRUE(contains(report, ", exchanges ")) << job.err();
}

TEST(CliWatch, ARunOfOneProcessHasNoExchangeAndMayKeepNoStatus) {
  const Training training;
  const Outcome outcome = run(training.alone("single", {"rank_status=false"}), Training::variables());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const fs::path folder = training.outputs() / "single" / "latest";
  EXPECT_TRUE(last_metrics(folder, "speed/exchange_s").is_null());
  EXPECT_FALSE(last_metrics(folder, "speed/compute_s").is_null());
  EXPECT_FALSE(fs::exists(folder / "ranks"));
}

nlohmann::json findings_of(const nlohmann::json& examined, const std::string& check) {
  auto found = nlohmann::json::array();
  for (const auto& finding : examined["findings"])
    if (finding["check"] == check) found.push_back(finding);
  return found;
}

TEST(CliDoctorMeasures, LoaderAloneAndStepAloneOfARunAndOfAConfiguration) {
  const Training training;
  ASSERT_EQ(
      run(training.after(launch({"--nproc_per_node=2"}), "parts", {"train.epochs=1"}), Training::variables()).code, 0);
  const fs::path folder = fs::canonical(training.outputs() / "parts" / "latest");
  const std::string config = (folder / "config.json").string();
  const auto examine = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {cohort_path(), "doctor", "--measure", "--json"});
    const Outcome outcome = run(more, Training::variables());
    EXPECT_TRUE(outcome.err.empty()) << outcome.err;
    return parse_json<nlohmann::json>(outcome.out);
  };
  for (const auto& words :
       {std::vector<std::string>{folder.string()}, {"--config=" + config, "model.hidden=1024", "model.d_ff=1024"}}) {
    const auto examined = examine(words);
    const auto training_parts = examined["measured"]["training"];
    EXPECT_EQ(training_parts["job"], "regressor");
    EXPECT_EQ(training_parts["device"], "cpu");
    EXPECT_EQ(training_parts["batch_size"], 16);
    EXPECT_EQ(training_parts["loader_workers"], 1);
    const double loader = training_parts["loader_s_per_batch"].get<double>();
    const double step = training_parts["step_s_per_batch"].get<double>();
    EXPECT_GT(loader, 0);
    EXPECT_GT(step, 0);
    EXPECT_EQ(findings_of(examined, "measured-loader").size(), loader > 0 && 1 - step / loader > 0.1 ? 1u : 0u)
        << json_text(examined, 2);
    EXPECT_GT(examined["measured"]["disk_write_bytes_per_s"].get<double>(), 0);
  }
  EXPECT_EQ(training.runs("parts").size(), 1u) << "nothing is written";
}

TEST(CliDoctorMeasures, WhatCannotBeMeasuredIsLeftOutOfARunAndRefusedWhereItIsNamed) {
  const Training training;
  ASSERT_EQ(run(training.alone("gone", {"train.epochs=1"}), Training::variables()).code, 0);
  const std::string folder = fs::canonical(training.outputs() / "gone" / "latest").string();
  const std::string config = folder + "/config.json";
  const auto doctor = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {cohort_path(), "doctor"});
    return run(more, Training::variables());
  };
  const struct {
    std::vector<std::string> words;
    int code;
    std::string says;
  } cases[] = {
      {{"--config=" + config}, 2, "add --measure"},
      {{"--measure", "train.batch_size=8"}, 2, "a setting of which training?"},
      {{"--measure", folder, "loader"}, 2, "'loader' is no setting of the form key.path=value"},
      {{"--measure", "--config=" + folder + "/no.json"}, 2, "no.json"},
      {{"--measure", folder, "loader.wrokers=2"}, 1, "loader.workers"},
      {{"--measure", folder, "train.batch_size=-1"}, 1, "batch_size"},
      {{"--measure", "--config=" + config, "data.path=/no/such.csv"}, 1, "/no/such.csv"},
  };
  for (const auto& c : cases) {
    const Outcome outcome = doctor(c.words);
    EXPECT_EQ(outcome.code, c.code) << c.says << "\n" << outcome.out << outcome.err;
    EXPECT_TRUE(contains(outcome.err, c.says)) << c.says << "\n" << outcome.err;
  }
  fs::remove(training.path() / "table.csv");
  const Outcome outcome = doctor({"--measure", "--json", folder});
  const auto examined = parse_json<nlohmann::json>(outcome.out);
  EXPECT_TRUE(contains(examined["left_out"]["measured-loader"].get<std::string>(), "table.csv")) << outcome.out;
  EXPECT_FALSE(examined["measured"].contains("training"));
  EXPECT_GT(examined["measured"]["disk_write_bytes_per_s"].get<double>(), 0) << "the disk is measured all the same";
}

TEST(CliWatch, AJobThatFindsItsRunFinishedLeavesNoLineInIt) {
  const Training training;
  ASSERT_EQ(run(training.after(launch({"--nproc_per_node=2"}), "again"), Training::variables()).code, 0);
  const fs::path folder = fs::canonical(training.outputs() / "again" / "latest");
  const std::string before = text_of(folder / "jobs.jsonl");
  EXPECT_EQ(lines_of(before).size(), 1u) << before;
  const Outcome again =
      run(training.after(launch({"--nproc_per_node=2"}), "again", {"resume=auto"}), Training::variables());
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(text_of(folder / "jobs.jsonl"), before) << again.err;
}

TEST(CliWatch, AMisspeltPpoIsNamed) {
  const Outcome outcome = run({cohort_path(), "train", "pppo"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(contains(outcome.err, "did you mean 'ppo'?")) << outcome.err;
}

}  // namespace
}  // namespace cohort::testing
