/// The configuration files of RDT's reference (configs/ of thu-ml/RoboticsDiffusionTransformer) as settings: base.yaml,
/// and beside it <type>_datasets.json, <type>_sample_weights.json (type: finetune, pretrain), dataset_control_freq.json,
/// dataset_img_keys.json and dataset_stat.json. Every key of base.yaml is honoured, without meaning here (a line says
/// why), or refused by name.
///
///   RdtConfig config = read_rdt_config({.path = "configs/base.yaml", .dataset_type = "finetune"});
///   for (const std::string& text : config.overrides) fields.apply_override(text);
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace cohort::policies {

struct RdtConfigRequest {
  std::string path;                       ///< of base.yaml
  std::string dataset_type = "pretrain";  ///< --dataset_type
  bool load_from_hdf5 = false;            ///< --load_from_hdf5
  bool names_images = false;              ///< data.images is set by the user
};

struct RdtConfig {
  std::vector<std::string> overrides;  ///< settings of the job
  std::vector<std::string> notes;      ///< what has no effect here, with the reason
};

/// Throws Error naming the file, the key, and what is allowed or to be done: a key that cannot be honoured, a data set
/// that a file beside it does not name.
RdtConfig read_rdt_config(const RdtConfigRequest& request);

}  // namespace cohort::policies
