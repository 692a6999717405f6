/// The extension cohort._policy: policies of every kind that the programs load, acting on NumPy's arrays.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "cli/policy_kinds.h"
#include "core/array_view.h"
#include "core/error.h"
#include "dist/usable_devices.h"
#include "policy/registry.h"
#include "tasks/run_library.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace cohort::python {
namespace {

using Rows = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Pictures = nb::ndarray<const std::uint8_t, nb::ndim<4>, nb::c_contig, nb::device::cpu>;

std::size_t as_size(std::int64_t n) {
  return static_cast<std::size_t>(n);
}

/// A policy and the environments of one who asks. An answer's actions are played one a call, as actor::PolicyActor plays
/// them; the policy is asked when they are used up, and in between sees the moments that it looks at.
class ActingPolicy {
 public:
  ActingPolicy(const std::string& where, const std::string& device, std::uint64_t seed, bool exact, bool averaged,
               std::int64_t exec_horizon, const std::string& data_set, std::vector<std::string> overrides) {
    static const bool registered = (cli::register_policy_kinds(), true);
    static_cast<void>(registered);
    const nb::gil_scoped_release others_run;
    if (!policy::is_address(where)) tasks::use_library_of_run(where);
    dist::check_device(parse_device(device));
    policy_ = policy::load(where, {.seed = seed,
                                   .device = device,
                                   .exact = exact,
                                   .averaged = averaged,
                                   .data_set = data_set,
                                   .exec_horizon = exec_horizon,
                                   .overrides = std::move(overrides),
                                   .alone = true});
    spec_ = policy_->spec();
  }

  nb::dict spec() const {
    nb::list observations;
    for (const policy::Observation& o : spec_.observations) {
      nb::dict row;
      row["name"] = o.name;
      row["shape"] = nb::tuple(nb::cast(o.shape));
      row["picture"] = o.picture;
      row["elements"] = o.elements;
      observations.append(row);
    }
    nb::dict result;
    result["summary"] = spec_.summary;
    result["observations"] = observations;
    result["all_numbers"] = spec_.all_numbers;
    result["all_pictures"] = spec_.all_pictures;
    result["unseen"] = spec_.unseen;
    result["instructed"] = spec_.instructed;
    result["action_width"] = spec_.action_width;
    result["action_names"] = spec_.action_names.empty() ? spec_.action_fields : spec_.action_names;
    result["chunk"] = spec_.chunk;
    result["frames"] = spec_.frames;
    result["stride"] = spec_.stride;
    result["control_frequency"] = spec_.control_frequency;
    result["task"] = spec_.learnt.name;
    return result;
  }

  /// Where it acts: what there is to be seen, for policies that do not say, and the width of an action.
  void open(const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& observed, std::int64_t action_width,
            double control_period) {
    policy::SessionSettings settings{.control_period = control_period, .observations = {}, .action_width = action_width, .task = "these arrays"};
    for (const auto& [name, shape] : observed)
      settings.observations.push_back({.name = name, .shape = shape, .picture = shape.size() == 3});
    width_ = action_width;
    const nb::gil_scoped_release others_run;
    session_ = policy_->session(settings);
  }

  void begin(const std::vector<std::int32_t>& envs, const std::vector<std::uint64_t>& seeds, const std::string& instruction) {
    COHORT_THROW_UNLESS(session_, "open() comes before begin()");
    COHORT_THROW_UNLESS(envs.size() == seeds.size(), "{} seeds for {} environments", seeds.size(), envs.size());
    for (const std::int32_t env : envs) {
      COHORT_THROW_UNLESS(env >= 0, "environment {}: numbers begin at 0", env);
      if (as_size(env) >= environments_.size()) environments_.resize(as_size(env) + 1);
      environments_[as_size(env)] = {.actions = {}, .left = 0, .began = true};
    }
    const nb::gil_scoped_release others_run;
    session_->begin(envs, seeds, instruction);
  }

  /// (n, action width) of environments 0 to n - 1, which see the rows of low_dim (n, numbers) and pictures, each (n, height,
  /// width, 3).
  nb::ndarray<nb::numpy, float> act(const Rows& low_dim, const std::vector<Pictures>& pictures) {
    const std::size_t n = low_dim.shape(0);
    COHORT_THROW_UNLESS(session_ && n <= environments_.size() &&
                            std::all_of(environments_.begin(), environments_.begin() + static_cast<std::ptrdiff_t>(n),
                                        [](const Environment& e) { return e.began; }),
                        "reset() comes before act(): {} environments act, {} have begun", n, environments_.size());
    for (const Pictures& p : pictures)
      COHORT_THROW_UNLESS(p.shape(0) == n && p.shape(3) == 3, "pictures of shape ({}, {}, {}, {}): ({}, height, width, 3) is needed",
                          p.shape(0), p.shape(1), p.shape(2), p.shape(3), n);
    auto actions = std::make_unique<float[]>(std::max<std::size_t>(1, n * as_size(width_)));
    {
      const nb::gil_scoped_release others_run;
      act_on(low_dim, pictures, actions.get());
    }
    nb::capsule owner(actions.get(), [](void* p) noexcept { delete[] static_cast<float*>(p); });
    return {actions.release(), {n, as_size(width_)}, owner};
  }

 private:
  struct Environment {
    std::vector<float> actions;
    std::int64_t left = 0;
    bool began = false;
  };

  void act_on(const Rows& low_dim, const std::vector<Pictures>& pictures, float* actions) {
    std::vector<std::int32_t> seeing, asking;
    const auto n = static_cast<std::int32_t>(low_dim.shape(0));
    for (std::int32_t env = 0; env < n; ++env) {
      const std::int64_t left = environments_[as_size(env)].left;
      if (left == 0)
        asking.push_back(env);
      else if (left % spec_.stride == 0 && (spec_.remembers || left < spec_.frames * spec_.stride))
        seeing.push_back(env);
    }
    if (!seeing.empty()) {
      const Seen seen(seeing, low_dim, pictures);
      session_->see(seeing, seen.frame());
    }
    if (!asking.empty()) {
      const Seen seen(asking, low_dim, pictures);
      std::vector<std::vector<float>> chunks = session_->act(asking, seen.frame());
      for (std::size_t i = 0; i < asking.size(); ++i) {
        Environment& environment = environments_[as_size(asking[i])];
        environment.actions = std::move(chunks.at(i));
        environment.left = std::ssize(environment.actions) / width_;
        COHORT_CHECK(environment.left > 0 && environment.left * width_ == std::ssize(environment.actions),
                     "an answer of {} numbers, but an action has {}", environment.actions.size(), width_);
      }
    }
    for (std::int32_t env = 0; env < n; ++env) {
      Environment& environment = environments_[as_size(env)];
      std::copy_n(environment.actions.end() - environment.left * width_, width_, actions + env * width_);
      --environment.left;
    }
  }

  /// The rows of some environments.
  class Seen {
   public:
    Seen(const std::vector<std::int32_t>& envs, const Rows& low_dim, const std::vector<Pictures>& pictures) {
      const std::size_t width = low_dim.shape(1);
      for (const std::int32_t env : envs)
        numbers_.insert(numbers_.end(), low_dim.data() + as_size(env) * width, low_dim.data() + (as_size(env) + 1) * width);
      pixels_.resize(pictures.size());
      for (std::size_t c = 0; c < pictures.size(); ++c) {
        const std::size_t bytes = pictures[c].shape(1) * pictures[c].shape(2) * 3;
        for (const std::int32_t env : envs)
          pixels_[c].insert(pixels_[c].end(), pictures[c].data() + as_size(env) * bytes, pictures[c].data() + (as_size(env) + 1) * bytes);
        views_.push_back(make_view(pixels_[c].data(), {std::ssize(envs), static_cast<std::int64_t>(pictures[c].shape(1)),
                                                       static_cast<std::int64_t>(pictures[c].shape(2)), 3}));
      }
    }
    policy::Frame frame() const { return {.low_dim = numbers_, .images = views_}; }

   private:
    std::vector<float> numbers_;
    std::vector<std::vector<std::uint8_t>> pixels_;
    std::vector<ArrayView> views_;
  };

  std::unique_ptr<policy::Policy> policy_;
  policy::Spec spec_;
  std::unique_ptr<policy::Session> session_;
  std::int64_t width_ = 0;
  std::vector<Environment> environments_;
};

}  // namespace
}  // namespace cohort::python

NB_MODULE(_policy, m) {
  using cohort::python::ActingPolicy;
  m.doc() = "Trained policies, which LibTorch computes.";
  nb::module_::import_("cohort._core");  // whose Error it throws
  nb::class_<ActingPolicy>(m, "Policy", "A trained policy and the environments that it acts for.")
      .def(nb::init<const std::string&, const std::string&, std::uint64_t, bool, bool, std::int64_t, const std::string&,
                    std::vector<std::string>>(),
           "where"_a, nb::kw_only(), "device"_a = "cpu", "seed"_a = 0, "exact"_a = true, "averaged"_a = true,
           "exec_horizon"_a = 0, "data_set"_a = "", "overrides"_a = std::vector<std::string>(),
           "where: a run, a folder of checkpoints, a checkpoint, or a policy server's address. Raises Error where none of them "
           "is there.")
      .def("spec", &ActingPolicy::spec, "What it sees and gives.")
      .def("open", [](ActingPolicy& self, const nb::list& observed, std::int64_t action_width, double control_period) {
             std::vector<std::pair<std::string, std::vector<std::int64_t>>> all;
             for (const nb::handle& row : observed)
               all.emplace_back(nb::cast<std::string>(row[0]), nb::cast<std::vector<std::int64_t>>(row[1]));
             self.open(all, action_width, control_period);
           },
           "observed"_a, "action_width"_a, "control_period"_a,
           "Where it acts: (name, shape) of what there is to be seen, numbers of an action, s between actions (0: not known).")
      .def("begin", &ActingPolicy::begin, "envs"_a, "seeds"_a, "instruction"_a, "Episodes begin in these environments.")
      .def("act", &ActingPolicy::act, "low_dim"_a, "pictures"_a,
           "Actions (n, A) float32 of environments 0 to n - 1 from low_dim (n, numbers) float32 and pictures, each (n, height, "
           "width, 3) uint8. Without Python's lock.");
}
