/// The parts of random_model.cpp's models, in the order in which they are drawn.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "draw.h"
#include "random_model.h"

namespace cohort::sim::test {

/// What has been drawn so far, by name, for the parts that refer to it.
struct Names {
  std::vector<std::string> hinges;  ///< and slides
  std::vector<std::string> balls, frees, bodies, sites, geoms, cameras, tendons, actuators;
  std::vector<std::string> round;                           ///< geoms that a tendon may wrap around
  std::vector<std::pair<std::string, std::string>> solids;  ///< geoms but height fields, and whose they are

  /// "j7": a letter and a number that no other element has.
  std::string fresh(const char* letter) { return letter + std::to_string(count_++); }

 private:
  int count_ = 0;
};

/// A model in the making.
struct Sketch {
  Draw draw;
  Choice choice;
  Names names;
};

Element random_worldbody(Sketch& sketch);
/// Empty where the bodies leave nothing to choose from; so are the following.
Element random_tendons(Sketch& sketch);
/// Exclusions and explicit pairs.
Element random_contact(Sketch& sketch);
Element random_equalities(Sketch& sketch);
Element random_actuators(Sketch& sketch);
Element random_sensors(Sketch& sketch);

}  // namespace cohort::sim::test
