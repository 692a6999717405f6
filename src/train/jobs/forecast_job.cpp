// Informer on a CSV file with a time axis.
#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "models/informer/informer.h"
#include "tables/csv.h"
#include "tables/date_text.h"
#include "tables/forecast_windows.h"
#include "tables/future_dates.h"
#include "tables/split.h"
#include "train/jobs/job.h"
#include "train/run.h"

namespace cohort::train {
namespace {

/// "=NAME" of a column of numbers whose name says that it counts time; empty where there is none.
std::string counted_dates(const tables::Table& table) {
  for (const std::string& name : table.names(tables::ColumnKind::kNumber)) {
    std::string lower = name;
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (lower == "ts" || lower == "t" || lower.find("year") != std::string::npos ||
        lower.find("time") != std::string::npos || lower.find("date") != std::string::npos)
      return "=" + name;
  }
  return "";
}

class ForecastJob final : public Job {
 public:
  std::string name() const override { return "informer"; }
  std::string summary() const override { return "Informer: forecast the columns of a CSV file over time"; }
  std::vector<std::string> basic_settings() const override {
    return {"data.path",
            "data.windows.target",
            "data.windows.features",
            "data.windows.seq_len",
            "data.windows.label_len",
            "data.windows.pred_len",
            "data.csv.missing",
            "model.d_model",
            "model.n_heads",
            "model.e_layers",
            "model.d_ff",
            "train.early_stopping.patience"};
  }
  std::string remark() const override {
    return "\nA smaller model, for a computer without a GPU: model.d_model=128 model.d_ff=512 model.n_heads=4\n";
  }
  void describe(config::Fields& fields, RunSettings& run) override {
    // The reference's defaults (main_informer.py): Adam at 1e-4, halved every epoch, 6 epochs, patience 3.
    run.train.batch_size = 32;
    run.train.epochs = 6;
    run.train.lr = 1e-4;
    run.train.optimizer.kind = "adam";
    run.train.schedule.kind = "halving";
    run.train.early_stopping.patience = 3;
    run.drop_last = true;
    fields.section("data", [&] {
      fields.add("path", path_, "the CSV file");
      fields.section("csv", [&] { tables::describe(fields, csv_); });
      fields.section("split", [&] { tables::describe(fields, split_); });
      fields.section("windows", [&] { tables::describe(fields, windows_); });
      fields.section("scaler", [&] { tables::describe(fields, scaler_); });
    });
    fields.section("model", [&] { models::describe(fields, model_); });
    fields_ = &fields;
    for (const char* key : {"seq_len", "label_len", "pred_len"})
      fields.alias(format("model.{}", key), format("data.windows.{}", key));
    for (const char* key : {"features", "target", "freq"})
      fields.alias(format("data.{}", key), format("data.windows.{}", key));
  }

  void load() override {
    COHORT_THROW_UNLESS(!path_.empty(), "which file? write data.path=FILE.csv");
    if (model_.embed != "timeF") windows_.time_encoding = "fields";
    const tables::Table table = tables::read_csv(path_, csv_);
    const tables::TimeSplit split = tables::split_by_time(table.rows(), split_, table.name());
    series_ = tables::ForecastSeries::make(table, split.train, windows_, scaler_);
    const tables::RowRange ranges[] = {split.train, split.validation, split.test};
    for (const Part part : {Part::kTrain, Part::kValidation, Part::kTest}) {
      const tables::RowRange range = ranges[static_cast<int>(part)];
      if (range.size() > 0)
        parts_[static_cast<int>(part)] = std::make_shared<tables::ForecastWindows>(series_, range, to_string(part));
    }
    take_lengths();
    follow_data(*fields_, "model.enc_in", model_.enc_in, static_cast<int>(series_->n_columns()));
    follow_data(*fields_, "model.dec_in", model_.dec_in, static_cast<int>(series_->n_columns()));
    follow_data(*fields_, "model.c_out", model_.c_out, static_cast<int>(series_->n_target()));
    COHORT_THROW_UNLESS(series_->frequency(),
                        "{}: no date column was found; Informer embeds the time of every row: name the column with "
                        "data.csv.date_columns{} (seconds or milliseconds since 1970 and years are dates where they "
                        "are named so; of other "
                        "numbers data.csv.date_unit says what they count), "
                        "or train the regressor on tables without time",
                        path_, counted_dates(table));
    check_time_features();
    // Quarters have the features of months, and the network embeds these.
    const bool quarters = *series_->frequency() == tables::Frequency::kQuarter;
    follow_data(*fields_, "model.freq", model_.freq,
                std::string(quarters ? "m" : tables::frequency_letter(*series_->frequency())));
  }

  /// One window: the file's last seq_len rows, and the pred_len rows behind its end.
  PredictionRequest load_request(const config::Json& statistics, const std::string&) override {
    if (model_.embed != "timeF") windows_.time_encoding = "fields";
    const tables::Scaler scaler = tables::Scaler::from_json(statistics, "the checkpoint's statistics");
    const tables::Table known = tables::read_csv(path_, csv_);
    const std::int64_t rows = known.rows();
    COHORT_THROW_UNLESS(rows >= windows_.seq_len, "{}: {} rows, but a forecast looks back {} (data.windows.seq_len)",
                        path_, rows, windows_.seq_len);
    std::vector<std::string> dates = known.names(tables::ColumnKind::kDate);
    if (!windows_.date_column.empty()) dates = {windows_.date_column};
    COHORT_THROW_UNLESS(dates.size() == 1,
                        "{}: {} date columns; name the one that counts with data.windows.date_column", path_,
                        dates.size());
    const auto past = known.column(dates.front()).float64();
    const tables::Frequency frequency =
        windows_.freq == "auto" ? tables::infer_frequency(past) : tables::parse_frequency(windows_.freq);
    const std::vector<double> future = tables::dates_after(past, frequency, windows_.pred_len);
    // What a forecast is to find stands as a value that the decoder never sees: it gets zeros there.
    tables::Table table(known.name());
    for (const tables::Column& column : known.columns()) {
      if (column.kind() == tables::ColumnKind::kText) continue;
      std::vector<double> values;
      for (std::int64_t row = 0; row < rows; ++row) values.push_back(column.at(row));
      if (column.name() == dates.front())
        values.insert(values.end(), future.begin(), future.end());
      else
        values.resize(values.size() + future.size(), values.back());
      table.add(tables::Column(column.name(), values, column.kind()));
    }
    series_ = tables::ForecastSeries::make(table, scaler, windows_);
    take_lengths();
    PredictionRequest request{.label = dates.front()};
    for (const double date : future) request.labels.push_back(tables::format_date(date));
    request.samples = std::make_shared<tables::ForecastWindows>(
        series_, tables::RowRange{rows, rows + windows_.pred_len}, "rows to forecast");
    return request;
  }

  std::shared_ptr<const data::Dataset> dataset(Part part) const override { return parts_[static_cast<int>(part)]; }

  std::string data_summary() const override {
    std::string text = format("{}: {} rows, {} columns, windows of {} + {} rows", path_, series_->rows(),
                              series_->n_columns(), windows_.seq_len, windows_.pred_len);
    for (const Part part : {Part::kTrain, Part::kValidation, Part::kTest})
      if (dataset(part)) text += format(", {} {}", dataset(part)->size(), to_string(part));
    return text;
  }

  config::Json statistics() const override { return series_->scaler().to_json(); }

  std::shared_ptr<torch::nn::Module> make_model(std::uint64_t seed) const override {
    return models::make_informer(model_, seed);
  }

  Prediction predict(torch::nn::Module& model, const parallel::Batch& batch) const override {
    const at::Tensor& y = batch.at("y");
    const at::Tensor predicted = models::informer_forward(model, {.x_enc = batch.at("x"),
                                                                  .x_mark_enc = batch.at("x_mark"),
                                                                  .x_dec = models::informer_decoder_input(y, model_),
                                                                  .x_mark_dec = batch.at("y_mark")});
    const std::int64_t targets = series_->n_target();
    return {predicted, y.slice(1, y.size(1) - windows_.pred_len).slice(2, y.size(2) - targets)};
  }

  std::vector<std::string> target_names() const override {
    const auto& columns = series_->columns();
    return {columns.end() - series_->n_target(), columns.end()};
  }

  std::size_t main_target() const override { return static_cast<std::size_t>(series_->n_target() - 1); }

  void to_data_units(std::span<float> rows) const override { target_scaler().inverse(rows); }

  std::vector<std::int64_t> example_samples() const override {
    const std::int64_t size = parts_[static_cast<int>(Part::kTest)]->size();
    std::vector<std::int64_t> samples;
    for (const double place : {0.1, 0.4, 0.7, 0.95})
      samples.push_back(static_cast<std::int64_t>(place * static_cast<double>(size - 1)));
    return samples;
  }

  report::ForecastWindow example(std::int64_t index, std::span<const float> predicted) const override {
    const auto& windows = *parts_[static_cast<int>(Part::kTest)];
    const std::int64_t first = windows.first_row(index), columns = series_->n_columns(), targets = series_->n_target();
    const auto column = static_cast<std::size_t>(columns - 1);  // the target stands last
    const std::string& name = series_->columns()[column];
    const auto value = [&](std::int64_t row) {
      return series_->scaler().inverse(column, series_->values()[static_cast<std::size_t>(row * columns) + column]);
    };
    report::ForecastWindow window;
    window.title = format("{}, test window {}", name, index);
    window.y_label = name;
    for (std::int64_t i = 0; i < windows_.seq_len; ++i) window.history.push_back(value(first + i));
    for (std::int64_t i = 0; i < windows_.pred_len; ++i) {
      window.truth.push_back(value(first + windows_.seq_len + i));
      window.prediction.push_back(predicted[static_cast<std::size_t>(i * targets + targets - 1)]);
    }
    return window;
  }

  std::string time_label() const override { return "rows from the forecast"; }

 private:
  void take_lengths() {
    model_.seq_len = static_cast<int>(windows_.seq_len);
    model_.label_len = static_cast<int>(windows_.label_len);
    model_.pred_len = static_cast<int>(windows_.pred_len);
  }

  /// Informer embeds what the frequency of the rows gives it; some frequencies give it too little.
  void check_time_features() const {
    const std::string letter = tables::frequency_letter(*series_->frequency());
    COHORT_THROW_UNLESS(letter != "y",
                        "{}: its rows are a year apart, and yearly dates give no time features, which Informer embeds; "
                        "set data.freq=m (the month), or train the regressor",
                        path_);
    if (model_.embed == "timeF") return;
    models::InformerSettings wanted = model_;
    wanted.freq = letter;
    COHORT_THROW_UNLESS(series_->n_mark() == models::time_columns(wanted),
                        "{}: model.embed={} looks up month, day, weekday and hour, and rows of data.freq={} give {} of "
                        "them; set model.embed=timeF, or data.freq=h",
                        path_, model_.embed, letter, series_->n_mark());
  }

  tables::Scaler target_scaler() const { return series_->scaler().select(target_names()); }

  const config::Fields* fields_ = nullptr;
  std::string path_;
  tables::CsvSettings csv_;
  tables::SplitSettings split_;
  tables::WindowSettings windows_;
  tables::ScalerSettings scaler_;
  models::InformerSettings model_;
  std::shared_ptr<const tables::ForecastSeries> series_;
  std::shared_ptr<const tables::ForecastWindows> parts_[3];
};

}  // namespace

std::unique_ptr<Job> make_forecast_job() {
  return std::make_unique<ForecastJob>();
}

}  // namespace cohort::train
