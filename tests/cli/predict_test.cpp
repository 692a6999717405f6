// `cohort predict`: a trained model's answers for a file that it has not seen.
#include <cmath>
#include <cstdio>
#include <tuple>

#include <gtest/gtest.h>

#include "core/files.h"
#include "support/process.h"

namespace cohort::testing {
namespace {

class Predict : public ::testing::Test {
 protected:
  fs::path at(const std::string& name) const { return folder_.path() / name; }
  std::string file(const std::string& name, const std::string& content) const {
    write_file_atomically(at(name), content);
    return at(name).string();
  }
  /// Rows first, first + 1, ... of a table whose target follows from its inputs; with_target: its last column.
  std::string table(const std::string& name, int first, int rows, bool with_target) const {
    std::string text = with_target ? "a,b,target\n" : "a,b\n";
    for (int i = first; i < first + rows; ++i) {
      const double a = std::sin(0.7 * i), b = std::cos(1.3 * i);
      text += std::to_string(a) + "," + std::to_string(b);
      text += with_target ? "," + std::to_string(3 * a - b + 10) + "\n" : "\n";
    }
    return file(name, text);
  }
  /// 200 hours of a wave.
  std::string wave(const std::string& name) const {
    std::string text = "date,OT\n";
    for (int i = 0; i < 200; ++i) {
      char row[64];
      std::snprintf(row, sizeof row, "2016-07-%02d %02d:00:00,%.4f\n", i / 24 + 1, i % 24, std::sin(0.26 * i));
      text += row;
    }
    return file(name, text);
  }
  Outcome cohort(const std::vector<std::string>& words) const {
    std::vector<std::string> command{cohort_path()};
    command.insert(command.end(), words.begin(), words.end());
    return run(command, {{"OMP_NUM_THREADS", "1"}});
  }
  /// A regressor that has learnt; the file's name behind the job, and settings in all three spellings.
  std::string trained() const {
    const Outcome outcome = cohort({"train", "regressor", table("train.csv", 0, 600, true), "--name", "r",
                                    "--output_dir=" + at("out").string(), "backend=cpu", "data.columns.n_targets=1",
                                    "--train.batch_size", "64", "train.epochs=15", "charts=false", "loader.workers=1"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return (at("out") / "r" / "latest").string();
  }
  /// What a policy has learnt of reaching, and 10 episodes that it has not seen.
  struct Reacher {
    std::string run, unseen;
  };
  Reacher trained_reacher(const std::string& format) const {
    const std::string suffix = format == "hdf5" ? "/reach.hdf5" : "/reach";
    for (const auto& [name, episodes, seed] : {std::tuple{"seen", "40", "1000"}, std::tuple{"unseen", "10", "2000"}}) {
      const Outcome recorded = cohort({"collect", "reach", "--episodes", episodes, "--first-seed", seed, "--format",
                                       format, "--threads", "1", "--out", at(name).string()});
      EXPECT_EQ(recorded.code, 0) << recorded.err;
    }
    const std::string field = format == "hdf5" ? "obs/" : "observation/";
    const Outcome outcome =
        cohort({"train", "policy", "--config", COHORT_SOURCE_DIR "/examples/policies/pick_and_place.json",
                "data.paths=[" + at("seen").string() + suffix + "]", "data.splits=auto", "validation.splits=[]",
                format == "hdf5" ? "data.actions=actions" : "data.actions=action",
                "data.proprio=[" + field + "eef_pos," + field + "goal_to_eef]", "name=p",
                "output_dir=" + at("out").string(), "devices=cpu", "train.steps=300", "train.batch_size=64",
                "train.validate_every=0", "rollout.enabled=false", "charts=false", "loader.workers=1"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return {(at("out") / "p" / "latest").string(), at("unseen").string() + suffix};
  }
  TemporaryFolder folder_;
};

TEST_F(Predict, ARegressorAnswersForRowsWithAndWithoutTheirTargets) {
  const std::string run_folder = trained();
  const Outcome known =
      cohort({"predict", run_folder, table("known.csv", 5000, 40, true), "--out", at("known_out.csv").string()});
  ASSERT_EQ(known.code, 0) << known.err;
  EXPECT_TRUE(contains(known.out, "against what the data hold")) << known.out;
  const Outcome unknown =
      cohort({"predict", run_folder, table("unknown.csv", 5000, 40, false), "--out", at("unknown_out.csv").string()});
  ASSERT_EQ(unknown.code, 0) << unknown.err;
  EXPECT_FALSE(contains(unknown.out, "against what the data hold")) << unknown.out;
  const std::vector<std::string> lines = lines_of(read_file(at("known_out.csv")));
  ASSERT_EQ(lines.size(), 41u);
  EXPECT_EQ(lines[0], "row,target");
  EXPECT_EQ(read_file(at("known_out.csv")), read_file(at("unknown_out.csv")))
      << "what the target is in the file has no influence";
  double squared = 0, spread = 0;
  for (int i = 0; i < 40; ++i) {
    const double truth = 3 * std::sin(0.7 * (5000 + i)) - std::cos(1.3 * (5000 + i));
    const double answer =
        std::stod(lines[static_cast<std::size_t>(i) + 1].substr(lines[static_cast<std::size_t>(i) + 1].find(',') + 1)) -
        10;
    squared += (answer - truth) * (answer - truth);
    spread += truth * truth;
  }
  EXPECT_LT(squared, 0.2 * spread) << "in the units of the data, and better than their mean";
}

TEST_F(Predict, InformerForecastsTheHoursBehindTheFile) {
  const std::string hours = wave("hours.csv");
  const Outcome outcome =
      cohort({"train", "informer", hours, "name=i", "output_dir=" + at("out").string(), "backend=cpu", "train.steps=3",
              "train.batch_size=8", "model.d_model=16", "model.n_heads=2", "model.d_ff=16", "data.windows.seq_len=24",
              "data.windows.label_len=12", "data.windows.pred_len=6", "charts=false", "loader.workers=1"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Outcome answer =
      cohort({"predict", (at("out") / "i" / "latest").string(), hours, "--out", at("forecast.csv").string()});
  ASSERT_EQ(answer.code, 0) << answer.err;
  const std::vector<std::string> lines = lines_of(read_file(at("forecast.csv")));
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_EQ(lines[0], "date,OT");
  EXPECT_TRUE(lines[1].starts_with("2016-07-09 08:00:00,")) << lines[1];
  EXPECT_TRUE(lines[6].starts_with("2016-07-09 13:00:00,")) << lines[6];
}

TEST_F(Predict, APolicySaysForEveryRecordedStepWhatItWouldDo) {
  const Reacher reacher = trained_reacher("rlds");
  const Outcome answer = cohort({"predict", reacher.run, reacher.unseen, "--out", at("actions.csv").string()});
  ASSERT_EQ(answer.code, 0) << answer.err;
  EXPECT_TRUE(contains(answer.out, "against what the data hold")) << answer.out;
  for (const char* name : {"dx ", "dy ", "dz ", "RMSE"}) EXPECT_TRUE(contains(answer.out, name)) << name << answer.out;
  const std::vector<std::string> lines = lines_of(read_file(at("actions.csv")));
  EXPECT_EQ(lines[0], "episode,step,dx,dx recorded,dy,dy recorded,dz,dz recorded");
  EXPECT_TRUE(lines[1].starts_with("0,0,")) << lines[1];
  EXPECT_TRUE(lines.back().starts_with("9,")) << lines.back();
  double squared = 0, spread = 0;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    double values[8];
    ASSERT_EQ(std::sscanf(lines[i].c_str(), "%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf", &values[0], &values[1], &values[2],
                          &values[3], &values[4], &values[5], &values[6], &values[7]),
              8);
    for (const int k : {2, 4, 6}) {
      squared += (values[k] - values[k + 1]) * (values[k] - values[k + 1]);
      spread += values[k + 1] * values[k + 1];
    }
  }
  EXPECT_LT(squared, 0.3 * spread) << "it has learnt something";
  const Outcome half = cohort({"predict", reacher.run, reacher.unseen, "data.splits=train[:50%]", "--batch-size", "7",
                               "--out", at("half.csv").string()});
  ASSERT_EQ(half.code, 0) << half.err;
  const std::vector<std::string> first = lines_of(read_file(at("half.csv")));
  EXPECT_TRUE(first.back().starts_with("4,")) << first.back();
  const auto place = [](const std::string& line) { return line.substr(0, line.find(',', line.find(',') + 1)); };
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(place(first[i]), place(lines[i])) << "of the same steps";
}

TEST_F(Predict, Hdf5AnswersOfAPolicyHoldWhatWasRecordedDemoByDemo) {
  const std::string python = python_path();
  if (run({python, "-c", "import h5py"}).code != 0) GTEST_SKIP() << "no Python with h5py";
  const Reacher reacher = trained_reacher("hdf5");
  const std::string out = at("actions.hdf5").string();
  const Outcome answer = cohort({"predict", reacher.run, reacher.unseen, "--out", out});
  ASSERT_EQ(answer.code, 0) << answer.err;
  const Outcome compared =
      run({python, "-c",
           "import sys, h5py, numpy as np\n"
           "a, b = (h5py.File(p)['data'] for p in sys.argv[1:3])\n"
           "demos = [k for k in a if k.startswith('demo_')]\n"
           "assert len(demos) == 10 and sorted(demos) == sorted(k for k in b if k.startswith('demo_'))\n"
           "for d in demos:\n"
           "  assert np.array_equal(a[d]['actions'], b[d]['actions']), d\n"
           "  assert b[d]['predicted_actions'].shape == a[d]['actions'].shape, d\n"
           "  assert np.array_equal(b[d]['step'], np.arange(len(a[d]['actions']))), d\n"
           "p, t = (np.concatenate([b[d][k] for d in demos]) for k in ('predicted_actions', 'actions'))\n"
           "printed = [float(line.split()[-2]) for line in sys.argv[3].splitlines() if line.startswith('actions ')]\n"
           "assert np.allclose(printed, np.abs(p - t).mean(0), rtol=1e-3), (printed, p, t)",
           reacher.unseen, out, answer.out});
  ASSERT_EQ(compared.code, 0) << compared.err;
  const Outcome again = cohort({"predict", reacher.run, reacher.unseen, "--out", out});
  EXPECT_EQ(again.code, 1);
  EXPECT_TRUE(contains(again.err, "exists already")) << again.err;
}

TEST_F(Predict, BadInputLeavesNoAnswers) {
  const std::string out = at("answers.csv").string();
  const auto refused = [&](const std::vector<std::string>& words, const std::string& part) {
    const Outcome outcome = cohort(words);
    EXPECT_NE(outcome.code, 0);
    EXPECT_TRUE(contains(outcome.err, part)) << outcome.err;
    EXPECT_EQ(lines_of(outcome.err).size(), 1u) << outcome.err;
    EXPECT_FALSE(fs::exists(out));
  };
  refused({"predict", at("no_run").string(), table("t.csv", 0, 9, true), "--out", out}, "no such run or checkpoint");
  const std::string run_folder = trained();
  refused({"predict", run_folder, file("other.csv", "a,c\n1,2\n"), "--out", out}, "'b'");
  refused({"predict", run_folder, table("t.csv", 0, 9, true)}, "--out");
  refused({"predict", run_folder, table("t.csv", 0, 9, true), "--out", (at("t.csv") / "a.csv").string()},
          "t.csv/a.csv");
}

TEST_F(Predict, RanksThatWouldAllWriteTheSameFileAreRefused) {
  const Outcome outcome = run({cohort_path(), "predict", "run", "t.csv", "--out", at("answers.csv").string()},
                              {{"OMPI_COMM_WORLD_RANK", "0"},
                               {"OMPI_COMM_WORLD_SIZE", "2"},
                               {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                               {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(contains(outcome.err, "2 were started (from Open MPI)")) << outcome.err;
}

}  // namespace
}  // namespace cohort::testing
