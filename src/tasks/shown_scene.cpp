#include "tasks/shown_scene.h"

#include "tasks/scene_task.h"

namespace cohort::tasks {

sim::Scene* scene_of(Task& task) {
  if (auto* scene_task = dynamic_cast<SceneTask*>(&task)) return &scene_task->scene();
  if (auto* shows = dynamic_cast<ShowsScene*>(&task)) return &shows->shown_scene();
  return nullptr;
}

}  // namespace cohort::tasks
