// The list of features that the batched engine promises (issue "Batched simulation", section 2): a model for each,
// which it must take. What they compute is compared in the parity tests.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sim/host/compile.h"
#include "sim/host/model.h"
#include "sim/host/model_check.h"

namespace cohort::sim {
namespace {

using Feature = std::pair<std::string, std::string>;

struct Parts {
  std::string option, world, rest, body = "<freejoint name='f'/><geom name='g' size='0.1'/>", asset;
};

std::string model(const Parts& p) {
  return "<mujoco><option " + p.option + "/><asset>" + p.asset + "</asset><worldbody>" + p.world + "<body name='b'>" +
         p.body + "</body></worldbody>" + p.rest + "</mujoco>";
}

const std::string kMesh =
    "<mesh name='m' vertex='0 0 0 1 0 0 0 1 0 0 0 1 1 1 1'/><hfield name='h' nrow='3' ncol='3' size='2 2 1 0.1' "
    "elevation='0 1 0 1 0 1 0 1 0'/>";
const std::string kSites =
    "<site name='s' pos='0 0 1'/><site name='t' pos='1 0 1'/><site name='u' pos='0.5 0.5 0.5'/>"
    "<geom name='ball' type='sphere' size='0.1' pos='0 1 1'/><geom name='rod' type='cylinder' size='0.1 0.2' pos='0 2 "
    "1'/>";

void joints(std::vector<Feature>& list) {
  for (const char* type : {"free", "ball", "slide", "hinge"}) {
    list.push_back(
        {std::string("joint ") + type, model({.body = std::string("<joint type='") + type + "'/><geom size='0.1'/>"})});
  }
  const std::string rest[] = {"<joint type='ball'/>", "<joint type='slide'/>", "<joint type='hinge'/>"};
  for (const std::string& first : rest) {
    // MuJoCo itself refuses a rotation after a ball joint.
    if (first != rest[0]) {
      list.push_back({"ball joint after " + first, model({.body = first + rest[0] + "<geom size='0.1'/>"})});
    }
  }
  list.push_back({"slide after a ball joint", model({.body = rest[0] + rest[1] + "<geom size='0.1'/>"})});
  list.push_back({"limits, friction loss, springs, armature",
                  model({.body = "<joint type='hinge' range='-10 10' frictionloss='1' stiffness='2' damping='1' "
                                 "armature='0.1' ref='3' springref='4' margin='0.1' actuatorfrcrange='-1 1'/>"
                                 "<geom size='0.1'/><body gravcomp='1'><joint type='ball' range='0 30' stiffness='1' "
                                 "damping='1' frictionloss='0.1'/><geom size='0.1'/></body>"})});
  list.push_back({"gravity compensation by actuators",
                  model({.rest = "<actuator><motor joint='j'/></actuator>",
                         .body = "<joint name='j' actuatorgravcomp='true'/><geom size='0.1'/>"})});
  list.push_back({"mocap body", model({.world = "<body mocap='true'><geom size='0.1'/></body>"})});
  list.push_back({"fluid by inertia box", model({.option = "density='1000' viscosity='0.1' wind='1 0 0'"})});
}

void contacts(std::vector<Feature>& list) {
  const Feature shapes[] = {{"sphere", "type='sphere' size='0.1'"},
                            {"capsule", "type='capsule' size='0.1 0.1'"},
                            {"ellipsoid", "type='ellipsoid' size='0.1 0.2 0.3'"},
                            {"cylinder", "type='cylinder' size='0.1 0.1'"},
                            {"box", "type='box' size='0.1 0.1 0.1'"},
                            {"mesh", "type='mesh' mesh='m'"}};
  const Feature grounds[] = {{"plane", "type='plane' size='1 1 1'"}, {"height field", "type='hfield' hfield='h'"}};
  const auto pair = [&](const Feature& a, const Feature& b) {
    list.push_back(
        {"contact of " + a.first + " and " + b.first,
         model({.world = "<geom " + a.second + "/>", .body = "<freejoint/><geom " + b.second + "/>", .asset = kMesh})});
  };
  for (const Feature& b : shapes) {
    for (const Feature& a : shapes) pair(a, b);
    for (const Feature& a : grounds) pair(a, b);
  }
  for (const char* cone : {"pyramidal", "elliptic"}) {
    for (const char* dim : {"1", "3", "4", "6"}) {
      list.push_back({std::string(cone) + " cone, condim " + dim,
                      model({.option = std::string("impratio='5' cone='") + cone + "'",
                             .world = std::string("<geom type='plane' size='1 1 1' condim='") + dim + "'/>"})});
    }
  }
  list.push_back({"contact parameters",
                  model({.world = "<geom type='plane' size='1 1 1' solref='-1000 -10' solimp='0.8 0.9 0.01 0.3 3' "
                                  "margin='0.1' gap='0.05' priority='2' solmix='3' contype='3' conaffinity='2'/>"})});
  list.push_back({"pairs and exclusions",
                  model({.world = "<geom name='p' type='plane' size='1 1 1'/><body name='c'><freejoint/>"
                                  "<geom name='d' size='1'/></body>",
                         .rest = "<contact><pair geom1='p' geom2='g' condim='6' friction='1 2 0.1 0.1 0.2'/>"
                                 "<exclude body1='b' body2='c'/></contact>"})});
}

void constraints(std::vector<Feature>& list) {
  const std::string other =
      "<body name='c' pos='1 0 0'><freejoint/><geom size='0.1'/><site name='cs'/></body>" + kSites;
  for (const char* equality :
       {"<connect body1='b' body2='c' anchor='0 0 1'/>", "<connect body1='b' anchor='0 0 1'/>",
        "<connect site1='s' site2='cs'/>", "<weld body1='b' body2='c' torquescale='2'/>", "<weld body1='b'/>",
        "<weld site1='s' site2='cs'/>", "<weld body1='b' active='false'/>"}) {
    list.push_back({equality, model({.world = other, .rest = std::string("<equality>") + equality + "</equality>"})});
  }
  const std::string arm = "<joint name='j'/><joint name='k' type='slide'/><geom size='0.1'/><site name='hand'/>";
  const std::string tendons =
      "<tendon><fixed name='ft'><joint joint='j' coef='2'/></fixed><spatial name='st'><site site='s'/><site "
      "site='hand'/></spatial></tendon>";
  for (const char* equality : {"<joint joint1='j' joint2='k' polycoef='0 1 2 3 4'/>", "<joint joint1='j'/>",
                               "<tendon tendon1='ft'/>", "<tendon tendon1='st' tendon2='ft' polycoef='0 1 2 3 4'/>"}) {
    list.push_back(
        {equality, model({.world = kSites, .rest = tendons + "<equality>" + equality + "</equality>", .body = arm})});
  }
}

void tendons(std::vector<Feature>& list) {
  const std::string arm = "<joint name='j'/><geom size='0.1'/><site name='hand'/>";
  const auto add = [&](const std::string& what, const std::string& tendon, const std::string& rest = "") {
    list.push_back({what, model({.world = kSites, .rest = "<tendon>" + tendon + "</tendon>" + rest, .body = arm})});
  };
  const std::string settings =
      " stiffness='1' damping='1' springlength='0.1 0.2' range='0 2' frictionloss='1' solreflimit='0.1 1' "
      "solimpfriction='0.8 0.9 0.1' margin='0.1' actuatorfrcrange='-1 1'";
  add("fixed tendon", "<fixed armature='1'" + settings + "><joint joint='j' coef='2'/></fixed>");
  add("spatial tendon over sites",
      "<spatial armature='1'" + settings + "><site site='s'/><site site='hand'/></spatial>");
  for (const char* geom : {"ball", "rod"}) {
    for (const char* side : {"", " sidesite='u'"}) {
      add(std::string("spatial tendon around ") + geom + side, "<spatial" + settings + "><site site='s'/><geom geom='" +
                                                                   geom + "'" + side +
                                                                   "/><site site='hand'/></spatial>");
    }
  }
  add("pulley",
      "<spatial><site site='s'/><site site='hand'/><pulley divisor='2'/><site site='t'/><site site='hand'/>"
      "</spatial>");
}

void actuators(std::vector<Feature>& list) {
  const std::string body =
      "<joint name='slide' type='slide'/><joint name='ball' type='ball'/><geom size='0.1'/><site name='hand'/>";
  const auto add = [&](const std::string& what) {
    list.push_back(
        {what, model({.world = kSites + "<body pos='3 0 0'><freejoint name='free'/><geom size='0.1'/></body>",
                      .rest = "<tendon><fixed name='ft'><joint joint='slide' coef='2'/></fixed><spatial "
                              "name='st'><site site='s'/><site site='hand'/></spatial></tendon><actuator>" +
                              what + "</actuator>",
                      .body = body})});
  };
  for (const char* target :
       {"joint='slide'", "joint='ball' gear='1 2 3'", "joint='free' gear='1 2 3 4 5 6'",
        "jointinparent='ball' gear='1 2 3'", "jointinparent='free' gear='1 2 3 4 5 6'", "tendon='ft'", "tendon='st'",
        "site='hand' gear='1 2 3 4 5 6'", "site='hand' refsite='s' gear='1 2 3 4 5 6'"}) {
    for (const char* kind :
         {"<motor ctrlrange='-1 1' forcerange='-2 2' %/>", "<position kp='10' kv='1' %/>", "<velocity kv='1' %/>",
          "<general gaintype='affine' gainprm='1 2 3' biastype='affine' biasprm='1 2 3' %/>"}) {
      std::string text = kind;
      add(text.replace(text.find('%'), 1, target));
    }
  }
  add("<intvelocity joint='slide' kp='3' actrange='-1 1'/>");
  add("<damper joint='slide' kv='2' ctrlrange='0 1'/>");
  add("<position joint='slide' timeconst='0.1' kp='2'/>");
  add("<muscle joint='slide' lengthrange='0 1'/>");
  add("<adhesion body='b' ctrlrange='0 1' gain='2'/>");
  add("<motor joint='slide' delay='0.01' nsample='6' interp='cubic'/>");
  for (const char* dynamics : {"none", "integrator", "filter", "filterexact"}) {
    add(std::string("<general joint='slide' dynprm='0.1' dyntype='") + dynamics +
        (std::string(dynamics) == "none" ? "'/>" : "' actlimited='true' actrange='-1 1' actearly='true'/>"));
  }
}

void sensors(std::vector<Feature>& list) {
  const auto add = [&](const std::string& sensor) {
    list.push_back({sensor, model({.world = kSites,
                                   .rest = "<tendon><spatial name='st' range='0 9'><site site='s'/><site "
                                           "site='hand'/></spatial></tendon><actuator><motor "
                                           "name='a' tendon='st'/><motor joint='h'/></actuator><sensor>" +
                                           sensor + "</sensor>",
                                   .body = "<joint name='h' range='-1 1'/><joint name='ball' type='ball'/><geom "
                                           "name='g' size='0.1'/><site name='hand'/>"
                                           "<camera name='eye'/>"})});
  };
  for (const char* s : {"<jointpos joint='h'/>",
                        "<jointvel joint='h'/>",
                        "<jointactuatorfrc joint='h'/>",
                        "<ballquat joint='ball'/>",
                        "<ballangvel joint='ball'/>",
                        "<tendonpos tendon='st'/>",
                        "<tendonvel tendon='st'/>",
                        "<tendonactuatorfrc tendon='st'/>",
                        "<actuatorpos actuator='a'/>",
                        "<actuatorvel actuator='a'/>",
                        "<actuatorfrc actuator='a'/>",
                        "<accelerometer site='hand'/>",
                        "<gyro site='hand'/>",
                        "<velocimeter site='hand'/>",
                        "<magnetometer site='hand'/>",
                        "<force site='hand'/>",
                        "<torque site='hand'/>",
                        "<touch site='hand'/>",
                        "<rangefinder site='hand'/>",
                        "<rangefinder site='hand' data='dist dir origin point depth'/>",
                        "<contact geom1='g' data='found force torque dist pos normal tangent linvel angvel'/>",
                        "<contact body1='b' reduce='netforce'/>",
                        "<contact site='hand' num='3' reduce='mindist'/>",
                        "<clock/>",
                        "<subtreecom body='b'/>",
                        "<subtreelinvel body='b'/>",
                        "<subtreeangmom body='b'/>",
                        "<camprojection site='hand' camera='eye'/>",
                        "<distance geom1='g' body2='world' cutoff='3'/>",
                        "<normal body1='b' geom2='rod' cutoff='3'/>",
                        "<fromto geom1='g' geom2='ball' cutoff='3'/>",
                        "<jointlimitpos joint='h'/>",
                        "<jointlimitvel joint='h'/>",
                        "<jointlimitfrc joint='h'/>",
                        "<tendonlimitfrc tendon='st'/>",
                        "<jointpos joint='h' delay='0.01' nsample='6'/>",
                        "<jointpos joint='h' delay='0.01' nsample='6' interval='0.007 -0.001' interp='cubic'/>"}) {
    add(s);
  }
  list.push_back({"rangefinder among meshes and height fields",
                  model({.world = "<geom type='mesh' mesh='m'/><geom type='hfield' hfield='h'/>",
                         .rest = "<sensor><rangefinder site='hand'/></sensor>",
                         .body = "<freejoint/><geom size='0.1'/><site name='hand'/>",
                         .asset = kMesh})});
  for (const char* value : {"pos", "quat", "xaxis", "yaxis", "zaxis", "linvel", "angvel", "linacc", "angacc"}) {
    for (const char* object : {"body' objname='b'", "xbody' objname='b'", "geom' objname='g'", "site' objname='hand'",
                               "camera' objname='eye'"}) {
      add(std::string("<frame") + value + " objtype='" + object + "/>");
    }
    if (std::string(value).find("acc") == std::string::npos) {
      add(std::string("<frame") + value + " objtype='site' objname='hand' reftype='site' refname='s'/>");
    }
  }
}

TEST(Coverage, TheBatchedEngineTakesAModelOfEveryFeatureOfItsList) {
  std::vector<Feature> list;
  joints(list);
  contacts(list);
  constraints(list);
  tendons(list);
  actuators(list);
  sensors(list);
  for (const char* integrator : {"Euler", "implicitfast", "RK4"}) {
    for (const char* solver : {"Newton", "CG", "PGS"}) {
      list.push_back({std::string(integrator) + ", " + solver,
                      model({.option = std::string("integrator='") + integrator + "' solver='" + solver + "'"})});
    }
  }
  for (const auto& [name, xml] : list) {
    const EntityDeclaration entity{"model", Mjcf{.file = "", .xml = xml}};
    const CompiledScene scene = compile_scene(std::span(&entity, 1), {}, {});
    EXPECT_EQ(to_string(find_unsupported(scene.mjb)), "") << name;
    EXPECT_NO_THROW(check_model(import_model(scene.mjb))) << name;
  }
}

}  // namespace
}  // namespace cohort::sim
