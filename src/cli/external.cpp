// Subcommands that are executables of their own: they link LibTorch, which takes a quarter of a second to load, or
// other libraries that the rest can do without.
#include "cli/subcommand.h"

namespace cohort::cli {
namespace {

const Register kTrain(
    {"train", "train a model on one device, on all of them, or as one rank of a job", {}, "cohort-train"});
const Register kPredict({"predict", "a trained model's answers for a file", {}, "cohort-predict"});
const Register kConvertWeights({"convert-weights",
                                "weights of policies to and from the names of the Python reference",
                                {},
                                "cohort-convert-weights"});
const Register kCollect({"collect", "record episodes of a task as a data set", {}, "cohort-collect"});
const Register kEvaluate(
    {"evaluate", "run policies in simulated tasks and say how often they succeed", {}, "cohort-evaluate"});
const Register kExport({"export", "a trained policy as an ONNX file, with what it relies on", {}, "cohort-export"});
const Register kServe(
    {"serve", "a trained policy for robots and simulators, by openpi's protocol", {}, "cohort-serve"});
const Register kView({"view", "a model, a task or a run in a browser", {}, "cohort-view"});
const Register kData({"data", "inspect, measure and convert data sets", {}, "cohort-data"});

}  // namespace
}  // namespace cohort::cli
