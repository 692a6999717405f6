#include "render/mujoco_renderer.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/real_at.h"
#include "render/gl_context.h"
#include "render/own_looks.h"
#include "sim/host/import/handle.h"
#include "sim/host/import/library.h"
#include "sim/index.h"

namespace cohort::render {

using sim::at;

namespace {

namespace mj = sim::mj;

/// Writes an environment's row of a field into MuJoCo's data.
void copy_row(const ArrayView& view, int env, double* to) {
  for (std::int64_t i = 0; i < view.shape[1]; ++i) to[i] = real_at(view, env, i);
}

/// The rows of a picture that OpenGL gives from the bottom to the top.
template <class T>
void flip_rows(T* picture, int height, std::size_t row) {
  for (int y = 0; y < height / 2; ++y) {
    std::swap_ranges(picture + at(y) * row, picture + at(y + 1) * row, picture + at(height - 1 - y) * row);
  }
}

class MujocoRenderer final : public Renderer {
 public:
  MujocoRenderer(sim::Scene& scene, const RendererSettings& settings)
      : Renderer(scene, settings), gl_(make_gl_context()), model_(mj::load(scene.binary_model())) {
    mjModel& m = *model_;
    if (settings.samples >= 0) m.vis.quality.offsamples = settings.samples;
    if (settings.slices > 0) m.vis.quality.numslices = settings.slices, m.vis.quality.numstacks = settings.slices;
    data_.reset(mj::mj_makeData(&m));
    COHORT_THROW_UNLESS(data_, "there is no memory for MuJoCo's data of this model");
    gl_->make_current();
    mj::mjr_defaultContext(&context_);
    mj::mjr_makeContext(&m, &context_, mjFONTSCALE_100);
    context_.readDepthMap = mjDEPTH_ZEROFAR;
    renderer_ = gl_->renderer();
    mj::mjv_defaultScene(&drawn_);
    constexpr int kMostGeoms = 10000;  // of tendons, rays and the like, beyond the model's own
    mj::mjv_makeScene(&m, &drawn_, kMostGeoms + static_cast<int>(m.ngeom + m.nsite));
    mj::mjv_defaultOption(&option_);
    for (std::size_t i = 0; i < 6; ++i) {
      option_.geomgroup[i] = settings.geom_groups[i], option_.sitegroup[i] = settings.site_groups[i];
    }
    gl_->release();
  }
  ~MujocoRenderer() override {
    mj::mjv_freeScene(&drawn_);
    try {
      gl_->make_current();
      mj::mjr_freeContext(&context_);
      gl_->release();
    } catch (const Error&) {  // the context goes, and with it what it holds
    }
  }
  MujocoRenderer(const MujocoRenderer&) = delete;
  MujocoRenderer& operator=(const MujocoRenderer&) = delete;

  std::string description() const override {
    return format("mujoco {} on {} ({})", mj::mj_versionString(), gl_->name(), renderer_);
  }

 protected:
  void draw(const Request& q) override {
    COHORT_THROW_UNLESS(q.out.normal.data == nullptr,
                        "the renderer mujoco draws no normals: leave them out, or take the renderer raycast");
    const ArrayView qpos = scene_.host_view(sim::Field::kQpos), pos = scene_.host_view(sim::Field::kLinkPos),
                    quat = scene_.host_view(sim::Field::kLinkQuat);
    gl_->make_current();
    struct Release {
      GlContext& gl;
      ~Release() { gl.release(); }
    } release{*gl_};
    mj::mjr_setBuffer(mjFB_OFFSCREEN, &context_);
    mj::mjr_resizeOffscreen(q.width, q.height, &context_);
    for (std::size_t i = 0; i < q.envs.size(); ++i) {
      const int env = q.envs[i];
      take_looks(env);
      copy_row(qpos, env, data_->qpos);
      if (model_->nmocap > 0) {
        copy_row(scene_.host_view(sim::Field::kMocapPos), env, data_->mocap_pos);
        copy_row(scene_.host_view(sim::Field::kMocapQuat), env, data_->mocap_quat);
      }
      mj::mj_kinematics(model_.get(), data_.get());
      mj::mj_comPos(model_.get(), data_.get());
      mj::mj_camlight(model_.get(), data_.get());
      mj::mj_flex(model_.get(), data_.get());
      mj::mj_tendon(model_.get(), data_.get());
      LinkPoses poses;
      read_poses(pos, quat, env, poses);
      draw_one(q, i, eye_of(model(), camera_record(q, env), poses), lens(q, env));
    }
  }

 private:
  /// Colours and lights that the environment has of its own, into the model.
  void take_looks(int env) {
    const sim::Looks* const looks = scene_.looks_in_use();
    if (looks == nullptr) return;
    mjModel& m = *model_;
    if (looks->has(sim::Look::kGeomRgba)) {
      // MuJoCo takes a geom's colour before its material's, but for the standard grey.
      const float* const rgba = looks->of(sim::Look::kGeomRgba, env);
      std::copy_n(rgba, looks->size(sim::Look::kGeomRgba), m.geom_rgba);
    }
    const auto take = [&](sim::Look look, mjtNum* to) {
      if (looks->has(look)) std::copy_n(looks->of(look, env), looks->size(look), to);
      return looks->has(look);
    };
    const bool moved = take(sim::Look::kGeomPos, m.geom_pos), turned = take(sim::Look::kGeomQuat, m.geom_quat);
    // A frame that coincided with its link's need not do so any more.
    if (moved || turned) std::fill_n(m.geom_sameframe, m.ngeom, static_cast<mjtByte>(mjSAMEFRAME_NONE));
    take(sim::Look::kGeomSize, m.geom_size);
    for (int i = 0; i < m.nlight; ++i) {
      const sim::VisualLight light = own_light(model().lights[at(i)], *looks, i, env);
      std::copy_n(light.pos.begin(), 3, m.light_pos + 3 * i), std::copy_n(light.pos0.begin(), 3, m.light_pos0 + 3 * i);
      std::copy_n(light.pos_com0.begin(), 3, m.light_poscom0 + 3 * i);
      std::copy_n(light.dir.begin(), 3, m.light_dir + 3 * i), std::copy_n(light.dir0.begin(), 3, m.light_dir0 + 3 * i);
      std::copy_n(light.ambient.begin(), 3, m.light_ambient + 3 * i);
      std::copy_n(light.diffuse.begin(), 3, m.light_diffuse + 3 * i);
      std::copy_n(light.specular.begin(), 3, m.light_specular + 3 * i);
    }
  }

  void draw_one(const Request& q, std::size_t index, const EyeRecord& eye, const LensRecord& v) {
    mjvCamera user;
    mj::mjv_defaultCamera(&user);
    user.type = mjCAMERA_USER;
    const double scale = v.orthographic ? 1 : v.near;
    for (mjvGLCamera& c : drawn_.camera) {
      for (std::size_t k = 0; k < 3; ++k) {
        c.pos[k] = static_cast<float>(eye.pos[k]);
        c.forward[k] = static_cast<float>(-eye.axes[3 * k + 2]);
        c.up[k] = static_cast<float>(eye.axes[3 * k + 1]);
      }
      c.frustum_center = static_cast<float>(scale * (v.left + v.right) / 2);
      c.frustum_width = static_cast<float>(scale * (v.right - v.left) / 2);
      c.frustum_bottom = static_cast<float>(scale * v.bottom), c.frustum_top = static_cast<float>(scale * v.top);
      c.frustum_near = static_cast<float>(v.near), c.frustum_far = static_cast<float>(v.far);
      c.orthographic = v.orthographic;
    }
    mj::mjv_updateScene(model_.get(), data_.get(), &option_, nullptr, &user, mjCAT_ALL, &drawn_);
    drawn_.flags[mjRND_SHADOW] = settings_.shadows;
    drawn_.flags[mjRND_REFLECTION] = settings_.reflections;
    const mjrRect whole{0, 0, q.width, q.height};
    const std::size_t pixels = at(q.width) * at(q.height);
    if (q.out.rgb.data != nullptr) {
      auto* rgb = static_cast<unsigned char*>(q.out.rgb.data) + 3 * pixels * index;
      mj::mjr_render(whole, &drawn_, &context_);
      mj::mjr_readPixels(rgb, nullptr, whole, &context_);
      flip_rows(rgb, q.height, 3 * at(q.width));
    }
    if (q.out.depth.data != nullptr) {
      // Without the sky, which would be as far as its cylinder.
      auto* depth = static_cast<float*>(q.out.depth.data) + pixels * index;
      drawn_.flags[mjRND_SKYBOX] = 0;
      mj::mjr_render(whole, &drawn_, &context_);
      drawn_.flags[mjRND_SKYBOX] = 1;
      mj::mjr_readPixels(nullptr, depth, whole, &context_);
      flip_rows(depth, q.height, at(q.width));
      for (std::size_t i = 0; i < pixels; ++i) {
        const double d = static_cast<double>(depth[i]);  // 1 at the near plane, 0 at the far one
        const double metres =
            v.orthographic ? v.far - d * (v.far - v.near) : v.near * v.far / (v.near + d * (v.far - v.near));
        depth[i] = static_cast<float>(metres);
      }
    }
    if (q.out.segmentation.data != nullptr) {
      drawn_.flags[mjRND_SEGMENT] = 1, drawn_.flags[mjRND_IDCOLOR] = 1;
      mj::mjr_render(whole, &drawn_, &context_);
      drawn_.flags[mjRND_SEGMENT] = 0, drawn_.flags[mjRND_IDCOLOR] = 0;
      colours_.resize(3 * pixels);
      mj::mjr_readPixels(colours_.data(), nullptr, whole, &context_);
      flip_rows(colours_.data(), q.height, 3 * at(q.width));
      auto* ids = static_cast<std::int32_t*>(q.out.segmentation.data) + pixels * index;
      for (std::size_t i = 0; i < pixels; ++i) {
        const int id = colours_[3 * i] + 256 * colours_[3 * i + 1] + 65536 * colours_[3 * i + 2] - 1;
        const bool geom = id >= 0 && id < drawn_.ngeom && drawn_.geoms[id].objtype == mjOBJ_GEOM;
        ids[i] = geom ? drawn_.geoms[id].objid : -1;
      }
    }
  }

  std::unique_ptr<GlContext> gl_;
  mj::ModelPtr model_;
  mj::DataPtr data_;
  mjrContext context_{};
  mjvScene drawn_{};
  mjvOption option_{};
  std::string renderer_;
  std::vector<unsigned char> colours_;
};

}  // namespace

std::unique_ptr<Renderer> make_mujoco_renderer(sim::Scene& scene, const RendererSettings& settings) {
  COHORT_THROW_UNLESS(
      !scene.binary_model().empty(),
      "the renderer mujoco draws models from their files, and this scene was built from a compiled one: "
      "take the renderer raycast, or the model's file");
  return std::make_unique<MujocoRenderer>(scene, settings);
}

}  // namespace cohort::render
