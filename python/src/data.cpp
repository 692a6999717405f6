#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "bindings.h"
#include "core/config.h"
#include "core/devices_cpu.h"
#include "core/error.h"
#include "core/threads.h"
#include "data/open_episodes.h"
#include "data/robot_windows.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace cohort::python {
namespace {

using Indices = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Windows over the episodes of data sets (data/robot_windows.h).
class Windows {
 public:
  Windows(std::vector<std::string> paths, const std::vector<std::string>& assignments) {
    data::RobotDataSettings settings;
    settings.action_normalization = {"none"};
    config::Fields fields;
    data::describe(fields, settings);
    for (const std::string& assignment : assignments) fields.apply_override(assignment);
    settings.paths = std::move(paths);
    const nb::gil_scoped_release others_run;
    windows_ = std::make_unique<data::RobotWindows>(settings);
    fields_ = windows_->fields();
  }

  std::int64_t size() const { return windows_->size(); }

  nb::list fields() const {
    nb::list all;
    for (const data::FieldSpec& field : fields_)
      all.append(
          nb::make_tuple(field.name, std::string(element_name(field.type)), nb::tuple(nb::cast(field.sample_shape))));
    return all;
  }

  /// An array (n, shape...) for each field, read by `threads` threads.
  nb::dict read(const Indices& indices, std::uint64_t epoch, int threads) const {
    const std::size_t n = indices.shape(0);
    for (std::size_t i = 0; i < n; ++i)
      COHORT_THROW_UNLESS(indices.data()[i] >= 0 && indices.data()[i] < size(),
                          "there is no window {}: they are 0 to {}", indices.data()[i], size() - 1);
    std::vector<std::unique_ptr<std::uint8_t[]>> memory;
    std::vector<ArrayView> samples;  // the first sample of each
    for (const data::FieldSpec& field : fields_) {
      samples.push_back(make_view(nullptr, field.type, field.sample_shape));
      memory.push_back(std::make_unique<std::uint8_t[]>(std::max<std::size_t>(1, n * samples.back().bytes())));
    }
    {
      const nb::gil_scoped_release others_run;
      parallel_for(static_cast<std::int64_t>(n), std::max(1, threads), [&](std::int64_t i) {
        std::vector<ArrayView> rows = samples;
        for (std::size_t f = 0; f < rows.size(); ++f)
          rows[f].data = memory[f].get() + static_cast<std::size_t>(i) * rows[f].bytes();
        windows_->read(indices.data()[i], epoch, rows);
      });
    }
    nb::dict batch;
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      std::vector<std::size_t> shape{n};
      for (const std::int64_t size : fields_[f].sample_shape) shape.push_back(static_cast<std::size_t>(size));
      nb::capsule owner(memory[f].get(), [](void* p) noexcept { delete[] static_cast<std::uint8_t*>(p); });
      batch[fields_[f].name.c_str()] = nb::ndarray<nb::numpy>(memory[f].release(), shape.size(), shape.data(), owner,
                                                              nullptr, dtype_of(fields_[f].type));
    }
    return batch;
  }

  nb::tuple address(std::int64_t index, std::uint64_t epoch) const {
    COHORT_THROW_UNLESS(index >= 0 && index < size(), "there is no window {}: they are 0 to {}", index, size() - 1);
    const data::WindowAddress at = windows_->address(index, epoch);
    return nb::make_tuple(at.set, at.episode, at.step);
  }
  std::vector<std::string> instructions() const { return windows_->instructions(); }
  std::string summary() const { return windows_->summary(); }

 private:
  std::unique_ptr<data::RobotWindows> windows_;
  std::vector<data::FieldSpec> fields_;
};

/// (name, kind, shape of a step) of a data set's fields.
nb::list fields_of_set(const std::string& path) {
  std::vector<data::StepField> fields;
  {
    const nb::gil_scoped_release others_run;
    fields = data::open_episodes(path)->fields();
  }
  nb::list all;
  for (const data::StepField& field : fields) {
    const char* kind = field.kind == data::StepKind::kImage  ? "image"
                       : field.kind == data::StepKind::kText ? "text"
                                                             : "number";
    all.append(nb::make_tuple(field.name, field.fault().empty() ? kind : "other", nb::tuple(nb::cast(field.shape))));
  }
  return all;
}

}  // namespace

void bind_data(nb::module_& m) {
  m.def("fields_of_set", &fields_of_set, "path"_a,
        "(name, kind, shape of a step) of each field of a data set; kind: number, text, image, or other, which no "
        "window takes.");
  nb::class_<Windows>(m, "Windows", "Windows over the episodes of data sets, by index.")
      .def(nb::init<std::vector<std::string>, const std::vector<std::string>&>(), "paths"_a, "settings"_a,
           "paths: RLDS and LeRobot folders, HDF5 files. settings: KEY=VALUE, as `data.` of `cohort train` has them.")
      .def("__len__", &Windows::size)
      .def("fields", &Windows::fields, "(name, type, shape of a sample) of each field.")
      .def("read", &Windows::read, "indices"_a, "epoch"_a, "threads"_a,
           "A dict of arrays (n, shape...), which own their memory, for indices (n) int64. Without Python's lock.")
      .def("address", &Windows::address, "index"_a, "epoch"_a, "(set, episode, step) of a window.")
      .def("instructions", &Windows::instructions, "Texts that the field `instruction` counts among.")
      .def("summary", &Windows::summary);
}

}  // namespace cohort::python
