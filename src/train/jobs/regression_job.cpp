// The encoder-only regressor on a CSV file: some columns predict others.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "models/regressor/regressor.h"
#include "tables/csv.h"
#include "tables/regression_rows.h"
#include "tables/split.h"
#include "train/jobs/job.h"
#include "train/run.h"

namespace cohort::train {
namespace {

/// "a, b, c", at most six of them: "a, b, c, d, e, f and 3 more".
std::string names_of(const std::vector<std::string>& all) {
  constexpr std::size_t kMost = 6;
  const std::span<const std::string> shown(all.data(), std::min(all.size(), kMost));
  return join(shown, ", ") + (all.size() > kMost ? format(" and {} more", all.size() - kMost) : "");
}

class RegressionJob final : public Job {
 public:
  std::string name() const override { return "regressor"; }
  std::string summary() const override { return "encoder-only regressor: predict columns of a CSV file from others"; }
  std::vector<std::string> basic_settings() const override {
    return {"data.path",
            "data.columns.inputs",
            "data.columns.targets",
            "data.split.kind",
            "data.split.test_fraction",
            "data.csv.missing",
            "model.d_model",
            "model.e_layers",
            "model.hidden",
            "train.early_stopping.patience"};
  }
  void describe(config::Fields& fields, RunSettings& run) override {
    // The beginners' guide: AdamW at 1e-3, batch 1024, 300 epochs; 60 epochs bring nearly all of its accuracy.
    run.train.batch_size = 1024;
    run.train.epochs = 60;
    run.train.lr = 1e-3;
    run.train.optimizer.kind = "adamw";
    run.train.schedule.kind = "cosine";
    split_.kind = "random";
    split_.train_fraction = 0.8;
    split_.test_fraction = 0.1;
    columns_.n_targets = 2;
    fields.section("data", [&] {
      fields.add("path", path_, "the CSV file");
      fields.section("csv", [&] { tables::describe(fields, csv_); });
      fields.section("split", [&] { tables::describe(fields, split_); });
      fields.section("columns", [&] { tables::describe(fields, columns_); });
      fields.section("scaler", [&] { tables::describe(fields, scaler_); });
    });
    fields.section("model", [&] { models::describe(fields, model_); });
    fields_ = &fields;
    for (const char* key : {"inputs", "targets", "n_inputs", "n_targets"})
      fields.alias(format("data.{}", key), format("data.columns.{}", key));
  }

  void load() override {
    COHORT_THROW_UNLESS(!path_.empty(), "which file? write data.path=FILE.csv");
    const tables::Table table = tables::read_csv(path_, csv_);
    tables::RowSplit split = tables::split_rows(table.rows(), split_, table.name());
    table_ = tables::RegressionTable::make(table, split.train, columns_, scaler_);
    std::vector<std::int64_t>* rows[] = {&split.train, &split.validation, &split.test};
    for (const Part part : {Part::kTrain, Part::kValidation, Part::kTest})
      if (auto& list = *rows[static_cast<int>(part)]; !list.empty())
        parts_[static_cast<int>(part)] =
            std::make_shared<tables::RegressionRows>(table_, std::move(list), to_string(part));
    follow_data(*fields_, "model.inputs", model_.inputs, static_cast<int>(table_->inputs().size()));
    follow_data(*fields_, "model.outputs", model_.outputs, static_cast<int>(table_->targets().size()));
  }

  PredictionRequest load_request(const config::Json& statistics, const std::string&) override {
    const tables::Scaler scaler = tables::Scaler::from_json(statistics, "the checkpoint's statistics");
    // The scaler's columns are the inputs, then the targets.
    tables::RegressionSettings columns;
    for (std::size_t i = 0; i < scaler.size(); ++i)
      (static_cast<int>(i) < model_.inputs ? columns.inputs : columns.targets).push_back(scaler.statistics(i).name);
    tables::Table table = tables::read_csv(path_, csv_);
    PredictionRequest request{.label = "row", .has_truth = true};
    const auto n_rows = static_cast<std::size_t>(table.rows());
    for (const std::string& target : columns.targets)
      if (!table.find(target)) {
        request.has_truth = false;
        const double mean = scaler.statistics(scaler.index_of(target)).mean;
        table.add(tables::Column(target, std::vector<double>(n_rows, mean)));
      }
    table_ = tables::RegressionTable::make(table, scaler, columns);
    std::vector<std::int64_t> rows(n_rows);
    for (std::size_t i = 0; i < n_rows; ++i) {
      rows[i] = static_cast<std::int64_t>(i);
      request.labels.push_back(std::to_string(i));
    }
    request.samples = std::make_shared<tables::RegressionRows>(table_, std::move(rows), "rows to predict");
    return request;
  }

  std::shared_ptr<const data::Dataset> dataset(Part part) const override { return parts_[static_cast<int>(part)]; }

  std::string data_summary() const override {
    std::string text = format("{}: {} rows, {} predict {}{}", path_, table_->rows(), names_of(table_->inputs()),
                              names_of(table_->targets()),
                              columns_.targets.empty() && !fields_->was_set("data.columns.n_targets")
                                  ? " (the last columns; data.targets=NAME,NAME takes others)"
                                  : "");
    for (const Part part : {Part::kTrain, Part::kValidation, Part::kTest})
      if (dataset(part)) text += format(", {} {}", dataset(part)->size(), to_string(part));
    return text;
  }

  config::Json statistics() const override { return table_->scaler().to_json(); }

  std::shared_ptr<torch::nn::Module> make_model(std::uint64_t seed) const override {
    return models::make_regressor(model_, seed);
  }

  Prediction predict(torch::nn::Module& model, const parallel::Batch& batch) const override {
    return {models::regressor_forward(model, batch.at("x")), batch.at("y")};
  }

  std::vector<std::string> target_names() const override { return table_->targets(); }

  void to_data_units(std::span<float> rows) const override { table_->scaler().select(table_->targets()).inverse(rows); }

 private:
  const config::Fields* fields_ = nullptr;
  std::string path_;
  tables::CsvSettings csv_;
  tables::SplitSettings split_;
  tables::RegressionSettings columns_;
  tables::ScalerSettings scaler_;
  models::RegressorSettings model_;
  std::shared_ptr<const tables::RegressionTable> table_;
  std::shared_ptr<const tables::RegressionRows> parts_[3];
};

}  // namespace

std::unique_ptr<Job> make_regression_job() {
  return std::make_unique<RegressionJob>();
}

}  // namespace cohort::train
