#include "policy/convention_policy.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/observation_names.h"
#include "policy/libero_convention.h"

namespace cohort::policy {
namespace {

/// Numbers of the hand's place, its orientation (x y z w) and the fingers, by LIBERO's names.
constexpr std::size_t kPlace = 3, kQuaternion = 4, kFingers = 2, kOfLibero = kPlace + kQuaternion + kFingers;

std::vector<Observation> observations_of(const LiberoConvention& c, std::int64_t side) {
  std::vector<Observation> all{{.name = c.picture, .shape = {side, side, 3}, .picture = true}};
  if (c.with_wrist) all.push_back({.name = c.wrist_picture, .shape = {side, side, 3}, .picture = true});
  if (c.with_state) all.push_back({.name = c.state, .shape = {c.state_width()}, .doubles = c.doubles});
  return all;
}

bool same(const Observation& a, const Observation& b) {
  return a.picture == b.picture && (a.picture ? same_camera(a.name, b.name) : same_observation(a.name, b.name));
}

std::string names_of(const std::vector<Observation>& observations) {
  std::vector<std::string> names;
  for (const Observation& o : observations) names.push_back(o.name);
  return join(names, ", ");
}

/// Pictures of n environments that a Frame points to.
class Pictures {
 public:
  void clear() { bytes_.clear(), views_.clear(); }
  /// One camera's, made by of(environment).
  template <class Of>
  void add(std::size_t n, std::int64_t height, std::int64_t width, const Of& of) {
    std::vector<std::uint8_t>& all = bytes_.emplace_back();
    for (std::size_t i = 0; i < n; ++i) {
      const std::vector<std::uint8_t> one = of(i);
      all.insert(all.end(), one.begin(), one.end());
    }
    views_.push_back(make_view(all.data(), {static_cast<std::int64_t>(n), height, width, 3}));
  }
  std::span<const ArrayView> views() const { return views_; }

 private:
  std::vector<std::vector<std::uint8_t>> bytes_;
  std::vector<ArrayView> views_;
};

std::span<const std::uint8_t> picture_of(const ArrayView& view, std::size_t i) {
  const auto bytes = static_cast<std::size_t>(view.shape[1] * view.shape[2] * 3);
  return view.span<std::uint8_t>().subspan(i * bytes, bytes);
}

/// What both directions have alike: another frame is shown to the policy within, and its actions' gripper is translated.
class Translated : public Policy {
 public:
  /// By reference, since the convention may depend on what the policy asks for.
  Translated(LiberoConvention convention, std::unique_ptr<Policy>&& within)
      : convention_(std::move(convention)), within_(std::move(within)), spec_(within_->spec()) {}
  const Spec& spec() const override { return spec_; }
  std::unique_ptr<Session> session(const SessionSettings& settings) override {
    return std::make_unique<TranslatedSession>(*this, within_->session(inner_settings(settings)));
  }

 protected:
  /// numbers (n, width) and pictures of n environments as the policy within sees them.
  virtual void translate(const Frame& frame, std::size_t n, std::vector<float>& numbers, Pictures& pictures) const = 0;
  virtual float gripper(float action) const = 0;
  virtual SessionSettings inner_settings(const SessionSettings& settings) const { return settings; }

  LiberoConvention convention_;
  std::unique_ptr<Policy> within_;
  Spec spec_;

 private:
  class TranslatedSession final : public Session {
   public:
    TranslatedSession(const Translated& of, std::unique_ptr<Session> within) : of_(of), within_(std::move(within)) {}
    void begin(std::span<const std::int32_t> environments, std::span<const std::uint64_t> seeds,
               const std::string& instruction) override {
      within_->begin(environments, seeds, instruction);
    }
    void see(std::span<const std::int32_t> environments, const Frame& frame) override {
      within_->see(environments, translated(frame, environments.size()));
    }
    std::vector<std::vector<float>> act(std::span<const std::int32_t> environments, const Frame& frame) override {
      std::vector<std::vector<float>> chunks = within_->act(environments, translated(frame, environments.size()));
      for (std::vector<float>& chunk : chunks)
        for (std::size_t i = 6; i < chunk.size(); i += 7) chunk[i] = of_.gripper(chunk[i]);
      return chunks;
    }

   private:
    Frame translated(const Frame& frame, std::size_t n) {
      numbers_.clear();
      pictures_.clear();
      of_.translate(frame, n, numbers_, pictures_);
      return {.low_dim = numbers_, .images = pictures_.views(), .instructions = frame.instructions};
    }
    const Translated& of_;
    std::unique_ptr<Session> within_;
    std::vector<float> numbers_;
    Pictures pictures_;
  };
};

class ShownAs final : public Translated {
 public:
  ShownAs(const std::string& text, std::unique_ptr<Policy> policy)
      : Translated(libero_convention(text, policy->spec().wishes), std::move(policy)) {
    const std::int64_t side = convention_.size > 0 ? convention_.size : convention_.drawn;
    const std::vector<Observation> all = observations_of(convention_, side);
    shown_ = spec_.all_numbers || spec_.all_pictures ? all : spec_.observations;
    for (const Observation& o : shown_) {
      const auto found = std::find_if(all.begin(), all.end(), [&](const Observation& one) { return same(one, o); });
      COHORT_THROW_UNLESS(found != all.end(), "it sees '{}', but --observations {} shows {}", o.name,
                          convention_.text(), names_of(all));
      COHORT_THROW_UNLESS(o.picture || o.shape.at(0) == convention_.state_width(),
                          "its '{}' has {} numbers, but that of --observations {} has {}: look at rotation and fingers",
                          o.name, o.shape[0], convention_.text(), convention_.state_width());
    }
    spec_.all_numbers = spec_.all_pictures = false;
    spec_.observations.clear();
    if (std::any_of(shown_.begin(), shown_.end(), [](const Observation& o) { return !o.picture; }))
      spec_.observations = {{.name = "robot0_eef_pos", .shape = {kPlace}},
                            {.name = "robot0_eef_quat", .shape = {kQuaternion}},
                            {.name = "robot0_gripper_qpos", .shape = {kFingers}}};
    // Pictures in the order of the policy within.
    for (std::size_t k = 0; k < shown_.size(); ++k)
      if (shown_[k].picture)
        spec_.observations.push_back({.name = same(shown_[k], all.front()) ? "agentview_rgb" : "eye_in_hand_rgb",
                                      .shape = {convention_.drawn, convention_.drawn, 3},
                                      .picture = true});
    spec_.identity += ", shown " + convention_.text();
    spec_.lacking = format(
        ": --observations {} sends what LIBERO's tasks show, and this is none of LIBERO's tasks; leave the flag out to "
        "send the task's own observations",
        convention_.name);
    spec_.learnt.settings.insert({"warmup_steps", format("{}", kLiberoWait)});
    if (spec_.learnt.remedy.empty()) spec_.learnt.remedy = "protocol=lerobot has them";
  }

 private:
  SessionSettings inner_settings(const SessionSettings& settings) const override {
    SessionSettings inner = settings;
    inner.observations = shown_;
    return inner;
  }
  void translate(const Frame& frame, std::size_t n, std::vector<float>& numbers, Pictures& pictures) const override {
    for (std::size_t i = 0; i < n && !frame.low_dim.empty(); ++i) {
      const auto row = frame.low_dim.subspan(i * kOfLibero, kOfLibero);
      const std::vector<float> state =
          convention_state(convention_, row.first(kPlace), row.subspan(kPlace, kQuaternion), row.last(kFingers));
      numbers.insert(numbers.end(), state.begin(), state.end());
    }
    for (const ArrayView& view : frame.images) {
      const bool resized = convention_.size > 0;
      pictures.add(n, resized ? convention_.size : view.shape[1], resized ? convention_.size : view.shape[2],
                   [&](std::size_t i) {
                     return convention_picture(convention_, picture_of(view, i), view.shape[1], view.shape[2]);
                   });
    }
  }
  float gripper(float action) const override { return robosuite_gripper(convention_, action); }

  std::vector<Observation> shown_;  ///< what the policy within sees, in its order
};

/// Which of LIBERO's observations can be made of a convention's state, and how.
enum class Part { kPos, kQuat, kAxisAngle, kPosAndAxisAngle, kGripper };
struct NamedPart {
  const char* name;
  Part part;
  std::int64_t width;
};
constexpr NamedPart kParts[] = {{"robot0_eef_pos", Part::kPos, 3},        {"ee_pos", Part::kPos, 3},
                                {"robot0_eef_quat", Part::kQuat, 4},      {"ee_ori", Part::kAxisAngle, 3},
                                {"ee_states", Part::kPosAndAxisAngle, 6}, {"robot0_gripper_qpos", Part::kGripper, 2},
                                {"gripper_states", Part::kGripper, 2}};

class Answering final : public Translated {
 public:
  Answering(const std::string& text, std::unique_ptr<Policy> policy)
      : Translated(libero_convention(text), std::move(policy)) {
    LiberoConvention& c = convention_;
    COHORT_THROW_UNLESS(c.crop >= 1, "--observations {}: what a crop has cut off cannot be shown to the policy",
                        c.text());
    c.with_wrist = c.with_state = false;
    COHORT_THROW_UNLESS(spec_.action_width == 7, "its actions have {} numbers, those of LIBERO's robot 7",
                        spec_.action_width);
    bool first = false;
    for (const Observation& o : spec_.observations) o.picture ? add_picture(o, first) : add_numbers(o);
    std::int64_t side = -1;
    for (const Observation& o : spec_.observations)
      if (o.picture) side = o.shape[0];
    spec_.observations = observations_of(c, side);
    if (!first) spec_.observations.erase(spec_.observations.begin());
    if (c.name == "vla-eval-libero") {
      spec_.wishes["send_wrist_image"] = c.with_wrist;
      spec_.wishes["send_state"] = c.with_state;
      // With robosuite's sign axis times angle says the quaternion's, which LIBERO's data have.
      spec_.wishes["quat_no_antipodal"] = true;
      c.quaternion = "as-is";
    }
    spec_.identity += ", asked by " + c.text();
  }

 private:
  void add_picture(const Observation& o, bool& first) {
    const std::string camera = bare_camera(o.name);
    const bool wrist = camera == "eye_in_hand_rgb" || camera == "robot0_eye_in_hand";
    COHORT_THROW_UNLESS(wrist || camera == "agentview_rgb" || camera == "agentview",
                        "it sees the pictures '{}', which cannot be made of those of --observations {}: agentview_rgb, "
                        "agentview_image, eye_in_hand_rgb and robot0_eye_in_hand_image can",
                        o.name, convention_.text());
    (wrist ? convention_.with_wrist : first) = true;
    wrist_.push_back(wrist);
    upright_.push_back(!camera.ends_with("_rgb"));
  }
  void add_numbers(const Observation& o) {
    const auto* part = std::find_if(std::begin(kParts), std::end(kParts), [&](const NamedPart& one) {
      return bare_observation(o.name) == one.name && o.shape.at(0) == one.width;
    });
    COHORT_THROW_UNLESS(part != std::end(kParts),
                        "it sees '{}' ({} numbers), which cannot be made of the state of --observations {}: the hand's "
                        "place and orientation and the fingers can",
                        o.name, o.shape.at(0), convention_.text());
    COHORT_THROW_UNLESS(part->part != Part::kGripper || convention_.fingers == "both",
                        "it sees '{}', both fingers, but --observations {} has the first", o.name, convention_.text());
    parts_.push_back(part->part);
    convention_.with_state = true;
  }

  void translate(const Frame& frame, std::size_t n, std::vector<float>& numbers, Pictures& pictures) const override {
    const bool quaternion = convention_.rotation == "quaternion";
    const std::size_t turn = quaternion ? 4 : 3,
                      width = parts_.empty() ? 0 : static_cast<std::size_t>(convention_.state_width());
    for (std::size_t i = 0; i < n; ++i) {
      const auto row = frame.low_dim.subspan(i * width, width);
      for (const Part part : parts_) {
        if (part == Part::kPos || part == Part::kPosAndAxisAngle)
          numbers.insert(numbers.end(), row.begin(), row.begin() + 3);
        if (part == Part::kGripper) numbers.insert(numbers.end(), row.end() - 2, row.end());
        if (part == Part::kPos || part == Part::kGripper) continue;
        std::vector<double> orientation(row.begin() + 3, row.begin() + 3 + static_cast<std::ptrdiff_t>(turn));
        if (part == Part::kQuat && !quaternion) {
          const auto q = quaternion_of(orientation);
          orientation.assign(q.begin(), q.end());
        } else if (part != Part::kQuat && quaternion) {
          orientation = axis_angle(orientation);
        }
        for (const double x : orientation) numbers.push_back(static_cast<float>(x));
      }
    }
    for (std::size_t k = 0; k < wrist_.size(); ++k) {
      const ArrayView& view = frame.images[wrist_[k] ? frame.images.size() - 1 : 0];
      LiberoConvention upright = convention_;
      upright.turn = "rows";
      pictures.add(n, view.shape[1], view.shape[2], [&](std::size_t i) {
        const auto raw = raw_picture(convention_, picture_of(view, i), view.shape[1], view.shape[2]);
        return upright_[k] ? raw_picture(upright, raw, view.shape[1], view.shape[2]) : raw;
      });
    }
  }
  float gripper(float action) const override { return convention_gripper(convention_, action); }

  std::vector<Part> parts_;            ///< of the numbers that the policy within sees, in its order
  std::vector<bool> wrist_, upright_;  ///< likewise of its pictures
};

}  // namespace

std::unique_ptr<Policy> shown_as(const std::string& convention, std::unique_ptr<Policy> policy) {
  return std::make_unique<ShownAs>(convention, std::move(policy));
}
std::unique_ptr<Policy> answering(const std::string& convention, std::unique_ptr<Policy> policy) {
  return std::make_unique<Answering>(convention, std::move(policy));
}

}  // namespace cohort::policy
