#include "record/episode_record.h"

#include <algorithm>
#include <utility>

#include "data/rlds/example.h"

namespace cohort::record {
namespace {

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : ",") + text;
  return all;
}

using Texts = std::vector<std::string>;

}  // namespace

std::string picture_field(const std::string& camera) {
  return camera + "_image";
}

data::Feature recording_schema(const tasks::TaskSpec& spec, const PictureRecording& pictures) {
  using data::make_dict;
  using data::make_tensor;
  using data::make_text;
  data::Feature observation = make_dict({});
  for (const tasks::FieldSpec& field : spec.observations)
    observation.children.emplace_back(field.name, make_tensor("float32", field.shape));
  for (const std::string& camera : pictures.cameras)
    observation.children.emplace_back(
        picture_field(camera),
        data::make_image(pictures.height, pictures.width, 3,
                         pictures.encoding == "jpeg" ? data::FeatureEncoding::kJpeg : data::FeatureEncoding::kPng));
  data::Feature step = make_dict({{spec.action.field, make_tensor("float32", {spec.action.width()})},
                                  {"discount", make_tensor("float32", {})},
                                  {"is_first", make_tensor("bool", {})},
                                  {"is_last", make_tensor("bool", {})},
                                  {"is_terminal", make_tensor("bool", {})},
                                  {"language_instruction", make_text()},
                                  {"observation", std::move(observation)},
                                  {"reward", make_tensor("float32", {})}});
  data::Feature metadata = make_dict({{"actor", make_text()},
                                      {"description", make_text()},
                                      {"file_path", make_text()},
                                      {"seed", make_tensor("int64", {})},
                                      {"success", make_tensor("bool", {})},
                                      {"task", make_text()}});
  if (!pictures.cameras.empty()) {
    metadata.children.emplace_back("cameras", make_text());
    metadata.children.emplace_back("renderer", make_text());
  }
  if (std::any_of(spec.observations.begin(), spec.observations.end(), [](const auto& f) { return f.privileged; }))
    metadata.children.emplace_back("privileged", make_text());
  return make_dict({{"episode_metadata", std::move(metadata)}, {"steps", data::make_steps(std::move(step))}});
}

void EpisodeRecord::add_step(tasks::Task& task, std::int32_t env, ArrayView actions) {
  const auto append_row = [env](std::vector<float>& out, ArrayView rows, std::int64_t width) {
    const auto row = rows.span<float>().subspan(static_cast<std::size_t>(env * width), static_cast<std::size_t>(width));
    out.insert(out.end(), row.begin(), row.end());
  };
  for (std::size_t i = 0; i < observations_.size(); ++i)
    append_row(observations_[i], task.observation(i), task.spec().observations[i].elements());
  append_row(actions_, actions, task.spec().action.width());
}

void EpisodeRecord::add_picture(std::size_t camera, std::string encoded) {
  if (pictures_.size() <= camera) pictures_.resize(camera + 1);
  pictures_[camera].push_back(std::move(encoded));
}

std::string EpisodeRecord::to_example(const tasks::TaskSpec& spec, const PictureRecording& pictures,
                                      const RecordingNotes& notes, const tasks::EpisodeOutcome& outcome) const {
  const std::size_t steps = rewards_.size();
  const std::vector<std::int64_t> zeros(steps, 0);
  std::vector<std::int64_t> first = zeros, last = zeros, terminal = zeros;
  first.front() = 1;
  last.back() = 1;
  terminal.back() = outcome.terminated ? 1 : 0;
  std::vector<float> discount(steps, 1.0f);
  if (outcome.terminated) discount.back() = 0.0f;
  const auto seed = static_cast<std::int64_t>(outcome.seed);
  data::ExampleWriter example;
  example.add("episode_metadata/actor", Texts{notes.actor});
  if (!pictures.cameras.empty()) example.add("episode_metadata/cameras", Texts{joined(pictures.cameras)});
  example.add("episode_metadata/description", Texts{notes.description});
  example.add("episode_metadata/file_path",
              Texts{format("{}/{}/{}/seed_{}", spec.name, notes.actor, outcome.success ? "success" : "failure", seed)});
  if (!notes.privileged.empty()) example.add("episode_metadata/privileged", Texts{notes.privileged});
  if (!pictures.cameras.empty()) example.add("episode_metadata/renderer", Texts{notes.renderer});
  example.add("episode_metadata/seed", std::vector<std::int64_t>{seed});
  example.add("episode_metadata/success", std::vector<std::int64_t>{outcome.success ? 1 : 0});
  example.add("episode_metadata/task", Texts{notes.task});
  example.add("steps/" + spec.action.field, actions_);
  example.add("steps/discount", discount);
  example.add("steps/is_first", first);
  example.add("steps/is_last", last);
  example.add("steps/is_terminal", terminal);
  example.add("steps/language_instruction", Texts(steps, spec.instruction));
  for (std::size_t i = 0; i < observations_.size(); ++i)
    example.add("steps/observation/" + spec.observations[i].name, observations_[i]);
  for (std::size_t i = 0; i < pictures_.size(); ++i)
    example.add("steps/observation/" + picture_field(pictures.cameras[i]), pictures_[i]);
  example.add("steps/reward", rewards_);
  return example.finish();
}

}  // namespace cohort::record
