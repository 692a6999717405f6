#include "serve/task_observations.h"

#include <utility>

#include "core/error.h"
#include "serve/libero_observations.h"
#include "tasks/recorded_names.h"
#include "tasks/task.h"

namespace cohort::serve {
namespace {

class TaskObservations final : public ObservationWriter {
 public:
  TaskObservations(const tasks::Task& task, const ServerInfo& server, const std::string& url) {
    const tasks::TaskSpec& spec = task.spec();
    for (const ObservationInfo& o : server.policy.observations) {
      if (o.picture) {
        const std::string camera = tasks::camera_of_field(spec, o.name);
        COHORT_THROW_UNLESS(!camera.empty(), "{} sees the pictures {}, but {} has {}", url, o.name, spec.name,
                            spec.cameras.empty() ? "no cameras" : "the cameras " + join(spec.cameras, ", ") + " only");
        cameras_.emplace_back(o.name, camera);
        continue;
      }
      Sent sent{.name = o.name, .places = {}, .width = 0};
      try {
        sent.places = tasks::places_of_field(spec, o.name, o.elements);
      } catch (const Error& e) {
        throw Error(format("{} sees '{}', but {}", url, o.name, e.what()));
      }
      for (const tasks::FieldPlace& place : sent.places) sent.width += place.count;
      COHORT_THROW_UNLESS(sent.width == o.shape.at(0), "{} sees '{}' of {} numbers, but {}'s has {}", url, o.name,
                          o.shape[0], spec.name, sent.width);
      fields_.push_back(std::move(sent));
    }
    if (server.cohort) return;
    for (std::size_t i = 0; i < spec.observations.size(); ++i) {
      const std::int64_t width = spec.observations[i].elements();
      fields_.push_back({spec.observations[i].name, {{i, 0, width}}, width});
    }
    for (const std::string& camera : spec.cameras) cameras_.emplace_back(camera, camera);
  }

  std::vector<Map> write(tasks::Task& task, std::span<const std::int32_t> envs) const override {
    std::vector<Map> messages(envs.size());
    for (const Sent& sent : fields_)
      for (std::size_t i = 0; i < envs.size(); ++i) {
        std::vector<float> row;
        for (const tasks::FieldPlace& place : sent.places) {
          const std::int64_t width = task.spec().observations[place.field].elements();
          const auto numbers = task.observation(place.field)
                                   .span<float>()
                                   .subspan(static_cast<std::size_t>(envs[i] * width + place.begin),
                                            static_cast<std::size_t>(place.count));
          row.insert(row.end(), numbers.begin(), numbers.end());
        }
        messages[i].push_back({sent.name, {float_array({sent.width}, row)}});
      }
    for (const auto& [name, camera] : cameras_) {
      const ArrayView all = task.picture(camera, envs);
      const auto pixels = all.span<std::uint8_t>();
      const auto bytes = static_cast<std::size_t>(all.shape[1] * all.shape[2] * all.shape[3]);
      for (std::size_t i = 0; i < envs.size(); ++i)
        messages[i].push_back({name,
                               {byte_array({all.shape[1], all.shape[2], all.shape[3]},
                                           pixels.subspan(static_cast<std::size_t>(envs[i]) * bytes, bytes))}});
    }
    return messages;
  }

 private:
  struct Sent {
    std::string name;
    std::vector<tasks::FieldPlace> places;
    std::int64_t width;
  };
  std::vector<Sent> fields_;
  std::vector<std::pair<std::string, std::string>> cameras_;
};

}  // namespace

std::unique_ptr<ObservationWriter> make_observation_writer(const std::string& form, const tasks::Task& task,
                                                           const ServerInfo& server, const std::string& url) {
  if (form == "openpi-libero") return make_libero_observations(task);
  COHORT_THROW_UNLESS(form == "task", "--remote-observations {}: task and openpi-libero are known", form);
  return std::make_unique<TaskObservations>(task, server, url);
}

int picture_size_of(const std::string& form) {
  return form == "openpi-libero" ? kLiberoPictures : 0;
}

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

}  // namespace cohort::serve
