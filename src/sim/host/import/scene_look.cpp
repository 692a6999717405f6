#include "sim/host/import/scene_look.h"

#include <algorithm>
#include <initializer_list>
#include <string>

namespace cohort::sim::mj {
namespace {

// Names that no file has by chance: `/` stands between an entity's name and its parts.
constexpr const char* kChecker = "plane//checker";
constexpr const char* kSky = "sky//gradient";

template <class To>
void put(std::initializer_list<double> from, To* to) {
  std::transform(from.begin(), from.end(), to, [](double v) { return static_cast<To>(v); });
}

bool has(mjSpec* spec, mjtObj type, const char* name) {
  for (mjsElement* e = mjs_firstElement(spec, type); e; e = mjs_nextElement(spec, e))
    if (std::string(mjs_getString(mjs_getName(e))) == name) return true;
  return false;
}

}  // namespace

void add_sky_and_light(mjSpec* spec) {
  mjsTexture* sky = mjs_addTexture(spec, nullptr);
  mjs_setName(sky->element, kSky);
  sky->type = mjTEXTURE_SKYBOX;
  sky->builtin = mjBUILTIN_GRADIENT;
  put({0.46, 0.62, 0.80}, sky->rgb1);
  put({0.86, 0.91, 0.96}, sky->rgb2);
  sky->width = sky->height = 256;
  // What is near the horizon goes over into the sky.
  put({0.80, 0.86, 0.92, 1}, spec->visual.rgba.haze);
  put({0.35, 0.35, 0.35}, spec->visual.headlight.ambient);
  put({0.30, 0.30, 0.30}, spec->visual.headlight.diffuse);
  put({0.05, 0.05, 0.05}, spec->visual.headlight.specular);
  mjsLight* sun = mjs_addLight(mjs_findBody(spec, "world"), nullptr);
  sun->type = mjLIGHT_DIRECTIONAL;
  put({-2, -3, 6}, sun->pos);
  put({0.33, 0.5, -1}, sun->dir);
  put({0.55, 0.55, 0.52}, sun->diffuse);
  put({0.15, 0.15, 0.15}, sun->specular);
  put({0, 0, 0}, sun->ambient);
  sun->castshadow = 1;
}

void give_checker(mjSpec* spec, mjsGeom* plane) {
  if (!has(spec, mjOBJ_MATERIAL, kChecker)) {
    mjsTexture* texture = mjs_addTexture(spec, nullptr);
    mjs_setName(texture->element, kChecker);
    texture->type = mjTEXTURE_2D;
    texture->builtin = mjBUILTIN_CHECKER;
    put({0.66, 0.68, 0.70}, texture->rgb1);
    put({0.54, 0.56, 0.58}, texture->rgb2);
    texture->width = texture->height = 256;
    mjsMaterial* material = mjs_addMaterial(spec, nullptr);
    mjs_setName(material->element, kChecker);
    mjs_setInStringVec(material->textures, mjTEXROLE_RGB, kChecker);
    material->texuniform = 1;
    put({1, 1}, material->texrepeat);
    put({1, 1, 1, 1}, material->rgba);
    material->specular = 0.1f;
  }
  mjs_setString(plane->material, kChecker);
  put({0.5, 0.5, 0.5, 1}, plane->rgba);  // MuJoCo's default: the material's holds
}

}  // namespace cohort::sim::mj
