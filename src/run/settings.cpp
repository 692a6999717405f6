#include "run/settings.h"

namespace cohort::run {

void describe(config::Fields& fields, RunSettings& s, const SettingTexts& texts) {
  fields.add("name", s.name, texts.name);
  fields.add("output_dir", s.output_dir, "folder of all runs");
  fields.add("resume", s.resume,
             "run to continue, on the command line only: its folder, or one of its checkpoints; auto: this job's own "
             "run, else the newest of this name; empty: a new run, or its own where the job was restarted");
  fields.add("init_from", s.init_from, texts.init_from);
  fields.add_choice("backend", s.backend, texts.backends, texts.backend);
  fields.add("devices", s.devices, texts.devices);
  fields.add("threads", s.threads, texts.threads);
  fields.add("tensorboard", s.tensorboard,
             "write TensorBoard events: output_dir/name/tensorboard/<date-time>; the metrics of metrics.jsonl");
  fields.add("tensorboard_charts", s.tensorboard_charts, "show the report's charts in TensorBoard, too, as pictures");
  fields.add("charts", s.charts, "draw charts and report.html at the end");
  fields.add("rank_status", s.rank_status,
             "every rank says in ranks/rank_N.json of the run's folder what it is doing, at most once a second, for "
             "cohort top and cohort doctor");
  fields.section("dist", [&] {
    fields.add("store_timeout_s", s.store_timeout_s, "seconds that ranks wait for each other at the start");
    fields.add("collective_timeout_s", s.collective_timeout_s,
               "seconds that one collective may take; a rank that is later counts as lost");
  });
}

}  // namespace cohort::run
