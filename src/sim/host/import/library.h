/// MuJoCo's C library, opened when something of it is first called: a program that runs compiled models only does not
/// need it. The functions have MuJoCo's names; in namespace cohort::sim::mj they are found before MuJoCo's own, which
/// nothing links.
#pragma once
#include <atomic>

#include <mujoco/mjbatch.h>
#include <mujoco/mujoco.h>

namespace cohort::sim::mj {

/// Opens the library, if it is not open yet: the file that COHORT_MUJOCO_LIBRARY names; otherwise the one of this
/// build's version, first where the dynamic linker looks, then where it lay when this was built. Throws Error.
void open_library();
/// Address of a function or variable; opens the library. Throws Error.
void* find_symbol(const char* name);
/// Registers MuJoCo's own plugins, which lie in the folder `plugin` beside its library; does nothing where there is
/// none.
void load_plugins();

/// What MuJoCo calls with its errors and warnings; both for the whole process.
using MessageHandler = void (*)(const char* message);
void set_error_handler(MessageHandler handler);
void set_warning_handler(MessageHandler handler);

template <class Signature>
class Function;
/// A function of the library, looked up by its first call.
template <class R, class... A>
class Function<R(A...)> {
 public:
  constexpr explicit Function(const char* name) : name_(name) {}
  R operator()(A... arguments) const {
    void* address = address_.load(std::memory_order_acquire);
    if (address == nullptr) {
      address = find_symbol(name_);
      address_.store(address, std::memory_order_release);
    }
    return reinterpret_cast<R (*)(A...)>(address)(arguments...);
  }

 private:
  const char* name_;
  mutable std::atomic<void*> address_{nullptr};
};

// Every function that Cohort calls; what is not here does not link.
#define COHORT_MUJOCO_FUNCTION(name) inline constinit const Function<decltype(::name)> name(#name)
COHORT_MUJOCO_FUNCTION(mj_addBufferVFS);
COHORT_MUJOCO_FUNCTION(mj_camlight);
COHORT_MUJOCO_FUNCTION(mj_comPos);
COHORT_MUJOCO_FUNCTION(mj_comVel);
COHORT_MUJOCO_FUNCTION(mj_compile);
COHORT_MUJOCO_FUNCTION(mj_contactForce);
COHORT_MUJOCO_FUNCTION(mj_defaultVFS);
COHORT_MUJOCO_FUNCTION(mj_deleteData);
COHORT_MUJOCO_FUNCTION(mj_deleteModel);
COHORT_MUJOCO_FUNCTION(mj_deleteSpec);
COHORT_MUJOCO_FUNCTION(mj_deleteVFS);
COHORT_MUJOCO_FUNCTION(mj_flex);
COHORT_MUJOCO_FUNCTION(mj_forward);
COHORT_MUJOCO_FUNCTION(mj_fullM);
COHORT_MUJOCO_FUNCTION(mj_jacSite);
COHORT_MUJOCO_FUNCTION(mj_kinematics);
COHORT_MUJOCO_FUNCTION(mj_loadAllPluginLibraries);
COHORT_MUJOCO_FUNCTION(mj_loadModelBuffer);
COHORT_MUJOCO_FUNCTION(mj_makeData);
COHORT_MUJOCO_FUNCTION(mj_makeM);
COHORT_MUJOCO_FUNCTION(mj_makeSpec);
COHORT_MUJOCO_FUNCTION(mj_objectVelocity);
COHORT_MUJOCO_FUNCTION(mj_parseXML);
COHORT_MUJOCO_FUNCTION(mj_parseXMLString);
COHORT_MUJOCO_FUNCTION(mj_rne);
COHORT_MUJOCO_FUNCTION(mj_rnePostConstraint);
COHORT_MUJOCO_FUNCTION(mj_saveModel);
COHORT_MUJOCO_FUNCTION(mj_sizeModel);
COHORT_MUJOCO_FUNCTION(mj_stateSize);
COHORT_MUJOCO_FUNCTION(mj_step);
COHORT_MUJOCO_FUNCTION(mj_tendon);
COHORT_MUJOCO_FUNCTION(mj_transmission);
COHORT_MUJOCO_FUNCTION(mj_versionString);
COHORT_MUJOCO_FUNCTION(mjb_apply);
COHORT_MUJOCO_FUNCTION(mjb_defaultConfig);
COHORT_MUJOCO_FUNCTION(mjb_deleteBatch);
COHORT_MUJOCO_FUNCTION(mjb_error);
COHORT_MUJOCO_FUNCTION(mjb_expand);
COHORT_MUJOCO_FUNCTION(mjb_forward);
COHORT_MUJOCO_FUNCTION(mjb_makeBatch);
COHORT_MUJOCO_FUNCTION(mjb_nstate);
COHORT_MUJOCO_FUNCTION(mjb_output);
COHORT_MUJOCO_FUNCTION(mjb_reset);
COHORT_MUJOCO_FUNCTION(mjb_setConst);
COHORT_MUJOCO_FUNCTION(mjb_state);
COHORT_MUJOCO_FUNCTION(mjb_stateComponent);
COHORT_MUJOCO_FUNCTION(mjb_status);
COHORT_MUJOCO_FUNCTION(mjb_step);
COHORT_MUJOCO_FUNCTION(mjb_warning);
COHORT_MUJOCO_FUNCTION(mjp_getPluginAtSlot);
COHORT_MUJOCO_FUNCTION(mjr_defaultContext);
COHORT_MUJOCO_FUNCTION(mjr_freeContext);
COHORT_MUJOCO_FUNCTION(mjr_makeContext);
COHORT_MUJOCO_FUNCTION(mjr_readPixels);
COHORT_MUJOCO_FUNCTION(mjr_render);
COHORT_MUJOCO_FUNCTION(mjr_resizeOffscreen);
COHORT_MUJOCO_FUNCTION(mjr_setBuffer);
COHORT_MUJOCO_FUNCTION(mjs_addActuator);
COHORT_MUJOCO_FUNCTION(mjs_addBody);
COHORT_MUJOCO_FUNCTION(mjs_addCamera);
COHORT_MUJOCO_FUNCTION(mjs_addExclude);
COHORT_MUJOCO_FUNCTION(mjs_addFrame);
COHORT_MUJOCO_FUNCTION(mjs_addFreeJoint);
COHORT_MUJOCO_FUNCTION(mjs_addGeom);
COHORT_MUJOCO_FUNCTION(mjs_addHField);
COHORT_MUJOCO_FUNCTION(mjs_addKey);
COHORT_MUJOCO_FUNCTION(mjs_addLight);
COHORT_MUJOCO_FUNCTION(mjs_addMaterial);
COHORT_MUJOCO_FUNCTION(mjs_addMesh);
COHORT_MUJOCO_FUNCTION(mjs_addSensor);
COHORT_MUJOCO_FUNCTION(mjs_addSite);
COHORT_MUJOCO_FUNCTION(mjs_addTexture);
COHORT_MUJOCO_FUNCTION(mjs_asActuator);
COHORT_MUJOCO_FUNCTION(mjs_asBody);
COHORT_MUJOCO_FUNCTION(mjs_asGeom);
COHORT_MUJOCO_FUNCTION(mjs_asHField);
COHORT_MUJOCO_FUNCTION(mjs_asJoint);
COHORT_MUJOCO_FUNCTION(mjs_asKey);
COHORT_MUJOCO_FUNCTION(mjs_asMesh);
COHORT_MUJOCO_FUNCTION(mjs_asSensor);
COHORT_MUJOCO_FUNCTION(mjs_attach);
COHORT_MUJOCO_FUNCTION(mjs_delete);
COHORT_MUJOCO_FUNCTION(mjs_findBody);
COHORT_MUJOCO_FUNCTION(mjs_firstChild);
COHORT_MUJOCO_FUNCTION(mjs_firstElement);
COHORT_MUJOCO_FUNCTION(mjs_getCompiler);
COHORT_MUJOCO_FUNCTION(mjs_getDouble);
COHORT_MUJOCO_FUNCTION(mjs_getError);
COHORT_MUJOCO_FUNCTION(mjs_getFrame);
COHORT_MUJOCO_FUNCTION(mjs_getId);
COHORT_MUJOCO_FUNCTION(mjs_getName);
COHORT_MUJOCO_FUNCTION(mjs_getParent);
COHORT_MUJOCO_FUNCTION(mjs_getSpecDefault);
COHORT_MUJOCO_FUNCTION(mjs_getString);
COHORT_MUJOCO_FUNCTION(mjs_getWarning);
COHORT_MUJOCO_FUNCTION(mjs_nextChild);
COHORT_MUJOCO_FUNCTION(mjs_nextElement);
COHORT_MUJOCO_FUNCTION(mjs_numWarnings);
COHORT_MUJOCO_FUNCTION(mjs_resolveOrientation);
COHORT_MUJOCO_FUNCTION(mjs_setDeepCopy);
COHORT_MUJOCO_FUNCTION(mjs_setDouble);
COHORT_MUJOCO_FUNCTION(mjs_setFloat);
COHORT_MUJOCO_FUNCTION(mjs_setFrame);
COHORT_MUJOCO_FUNCTION(mjs_setInStringVec);
COHORT_MUJOCO_FUNCTION(mjs_setInt);
COHORT_MUJOCO_FUNCTION(mjs_setName);
COHORT_MUJOCO_FUNCTION(mjs_setString);
COHORT_MUJOCO_FUNCTION(mju_addTo3);
COHORT_MUJOCO_FUNCTION(mju_cross);
COHORT_MUJOCO_FUNCTION(mju_dot3);
COHORT_MUJOCO_FUNCTION(mju_eig3);
COHORT_MUJOCO_FUNCTION(mju_mat2Quat);
COHORT_MUJOCO_FUNCTION(mju_mulMatMat);
COHORT_MUJOCO_FUNCTION(mju_mulMatTVec3);
COHORT_MUJOCO_FUNCTION(mju_mulMatVec3);
COHORT_MUJOCO_FUNCTION(mju_mulQuat);
COHORT_MUJOCO_FUNCTION(mju_norm3);
COHORT_MUJOCO_FUNCTION(mju_normalize3);
COHORT_MUJOCO_FUNCTION(mju_quat2Mat);
COHORT_MUJOCO_FUNCTION(mju_rotVecQuat);
COHORT_MUJOCO_FUNCTION(mjv_defaultCamera);
COHORT_MUJOCO_FUNCTION(mjv_defaultOption);
COHORT_MUJOCO_FUNCTION(mjv_defaultScene);
COHORT_MUJOCO_FUNCTION(mjv_freeScene);
COHORT_MUJOCO_FUNCTION(mjv_makeScene);
COHORT_MUJOCO_FUNCTION(mjv_updateScene);
#undef COHORT_MUJOCO_FUNCTION

}  // namespace cohort::sim::mj
