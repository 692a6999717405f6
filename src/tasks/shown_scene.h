/// The scene behind a task, for who shows it.
#pragma once

namespace cohort::sim {
class Scene;
}

namespace cohort::tasks {

class Task;

/// A task that a scene simulates, environment i of the one being that of the other, and that is no SceneTask.
class ShowsScene {
 public:
  virtual ~ShowsScene() = default;
  virtual sim::Scene& shown_scene() = 0;
};

/// Null where the task has no scene in three dimensions, as push-t.
sim::Scene* scene_of(Task& task);

}  // namespace cohort::tasks
