// Models that the batched engine does not run: each feature is named, and what nothing uses is none.
#include <gtest/gtest.h>

#include "core/format.h"
#include "core/message_of.h"
#include "sim/host/compile.h"
#include "sim/host/model.h"

namespace cohort::sim {
namespace {

TEST(Unsupported, FeaturesAreListedByNameInTheFile) {
  const EntityDeclaration e{"m", Mjcf{.file = "", .xml = R"(<mujoco><option integrator="implicit"/><worldbody>
      <body><joint name="j" range="-1 1" limited="true"/><geom size="0.1"/></body></worldbody>
      <sensor><e_kinetic name="energy"/></sensor></mujoco>)"}};
  const std::string text = message_of([&] { import_model(compile_scene(std::span(&e, 1), {}, {}).mjb); });
  for (const char* word : {"implicit", "energy", "mujoco"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word << " in: " << text;
  }
}

TEST(Unsupported, EveryRefusalNamesTheElementAndWhatNothingUsesIsNone) {
  const auto refusal = [](const std::string& option, const std::string& world, const std::string& rest) {
    const EntityDeclaration e{
        "m", Mjcf{.file = "",
                  .xml = "<mujoco>" + option + R"(<asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>
        <worldbody>)" + world +
                         R"(<body name="b"><joint name="j"/><geom name="g" type="mesh" mesh="m"/><site name="s"/></body>
        </worldbody>)" + rest +
                         "</mujoco>"}};
    return to_string(find_unsupported(compile_scene(std::span(&e, 1), {}, {}).mjb));
  };
  const std::string box = "<geom name='floor' type='box' size='1 1 1' pos='0 0 -1'/>",
                    plane = "<geom type='plane' size='1 1 1'/>";
  const auto option = [](const char* attributes) { return std::string("<option ") + attributes + "/>"; };
  // What a search would need matters where something is searched: a mesh on a plane is not.
  for (const std::string& o : {option("ccd_iterations='20'"), option("ccd_tolerance='1e-3'")}) {
    EXPECT_NE(refusal(o, box, ""), "") << o;
    EXPECT_EQ(refusal(o, plane, ""), "") << o;
  }
  EXPECT_EQ(refusal(option("ccd_iterations='100' ccd_tolerance='1e-8'"), box, ""), "");
  const std::string motor = "<actuator><motor name='pull' joint='j' group='2'/></actuator>";
  EXPECT_EQ(refusal(option("actuatorgroupdisable='3'"), "", motor), "");
  EXPECT_NE(refusal(option("actuatorgroupdisable='2'"), "", motor).find("`pull`"), std::string::npos);
  const std::string late = "<actuator><motor name='late' joint='j' nsample='4' delay='0.004'/></actuator>";
  EXPECT_EQ(refusal("", "", late), "");
  EXPECT_EQ(refusal(option("integrator='RK4'"), "", late), "");
  EXPECT_EQ(refusal("", "", "<sensor><jointpos name='echo' joint='j' nsample='4' interval='0.01 0'/></sensor>"), "");
  EXPECT_NE(refusal("", "<geom name='belt' type='plane' size='1 1 1' surfacevel='1 0 0 0 0 0'/>", "").find("`belt`"),
            std::string::npos);
  const std::pair<const char*, const char*> sensors[] = {
      {"<e_kinetic name='x'/>", "e_kinetic"},
      {"<e_potential name='x'/>", "e_potential"},
      {"<user name='x' dim='1'/>", "user"},
      {"<insidesite name='x' site='s' objtype='body' objname='b'/>", "insidesite"}};
  for (const auto& [sensor, type] : sensors) {
    EXPECT_EQ(refusal("", box, std::string("<sensor>") + sensor + "</sensor>"), format("sensor {} `x`", type));
  }
}

TEST(Unsupported, LibccdIsAnsweredByOurOwnSearchWithALine) {
  const auto line = [](const char* floor) {
    const EntityDeclaration e{
        "m", Mjcf{.file = "",
                  .xml = std::string("<mujoco><option solver='PGS'><flag nativeccd='disable'/></option><worldbody>") +
                         floor +
                         "<body pos='0 0 1'><freejoint/><geom type='ellipsoid' size='.1 .2 .3'/></body></worldbody>"
                         "</mujoco>"}};
    const Model model = import_model(compile_scene(std::span(&e, 1), {}, {}).mjb);
    return taken_otherwise(model.info);
  };
  const std::string searched = line("<geom type='box' size='1 1 .1'/>");
  EXPECT_NE(searched.find("libccd"), std::string::npos) << searched;
  EXPECT_NE(searched.find("PGS"), std::string::npos) << searched;
  // An ellipsoid on a plane is not searched: there is nothing to say.
  EXPECT_EQ(line("<geom type='plane' size='1 1 .1'/>").find("libccd"), std::string::npos);
}

TEST(Unsupported, AModelTooLargeIsRefusedWithItsNumbers) {
  // Chains of links, so that every pair of their last geoms has hundreds of dofs.
  const auto chain = [](const char* place) {
    std::string open, close;
    for (int i = 0; i < 300; ++i) {
      open += std::string("<body") + (i == 0 ? place : "") +
              "><joint/><inertial pos='0 0 0' mass='1' diaginertia='1 1 1'/>";
      close += "</body>";
    }
    return open + "<replicate count='2000' offset='0 0 1'><geom size='0.1'/></replicate>" + close;
  };
  const EntityDeclaration e{
      "m",
      Mjcf{.file = "", .xml = "<mujoco><worldbody>" + chain("") + chain(" pos='9 0 0'") + "</worldbody></mujoco>"}};
  const CompiledScene scene = compile_scene(std::span(&e, 1), {}, {});
  const std::string text = message_of([&] { import_model(scene.mjb); });
  EXPECT_NE(text.find("4000000 pairs of 4000 geoms"), std::string::npos) << text;
  EXPECT_NE(text.find("contype"), std::string::npos) << text;
}

}  // namespace
}  // namespace cohort::sim
