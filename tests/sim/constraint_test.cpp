// Constraint rows, solver and whole steps against MuJoCo C (dense Jacobian, same options), outputs poisoned first.
#include <algorithm>
#include <tuple>

#include <gtest/gtest.h>

#include "constraint_rows.h"
#include "features.h"

namespace cohort::sim {
namespace {

using test::Block;
using test::cost_of;
using test::our_rows;
using test::Row;
using test::take;

/// Rows: reference accelerations carry stiffness 1/s^2 of thousands times positions of single precision.
constexpr double kRowTolerance = 2e-4;
/// The demanded bound on the solution's cost.
constexpr double kCostRatio = 1.025;
/// Accelerations: two solvers that stop at a cost difference of 1e-8 (scaled) agree to its square root, not better.
constexpr double kConstrainedAccelerationTolerance = 5e-3;
/// The demanded bound, where both go on until nothing is to be gained. Stiff rows leave small accelerations of large
/// ones: a single element may differ by kConstrainedAccelerationTolerance.
constexpr double kConvergedTolerance = 5e-4;
/// Of friction without slip. The normal forces that bound it are weights times rows, and a stiff row is the difference
/// of numbers a thousand times larger. Pyramids agree to kConvergedTolerance, cones to this, small accelerations beside
/// large ones to kSlipOfElement. Rolling friction of cones is found as the minimum here, where MuJoCo's twenty inner
/// steps end before it.
constexpr double kSlipTolerance = 5e-3, kSlipOfElement = 0.3, kRollingTolerance = 0.15;
/// Integration of one step from the same acceleration.
constexpr double kStepTolerance = 5e-5;

std::string model(const std::string& body, const std::string& rest = "", const std::string& option = "") {
  return "<mujoco><option " + option +
         "/><default><geom solref='0.02 1'/></default><worldbody>"
         "<geom name='floor' type='plane' size='5 5 1' contype='3' conaffinity='3' condim='1'/>" +
         body + "</worldbody>" + rest + "</mujoco>";
}

const std::string kChain = R"(
  <body pos="0 0 0.22"><freejoint/><geom type="capsule" size="0.08 0.2" euler="80 0 10"/>
    <body pos="0.25 0 0"><joint axis="0 1 0" range="-20 30" damping="0.2"/><geom type="capsule" size="0.05 0.15" euler="0 70 0"/>
      <body pos="0.2 0 0"><joint axis="0 0 1" range="-10 10" frictionloss="0.3"/><geom type="sphere" size="0.08"/></body></body>
    <body pos="-0.25 0.05 0"><joint axis="0 1 0.3" range="-20 30" armature="0.01"/><geom type="capsule" size="0.05 0.15" euler="0 70 0"/>
      <body pos="0 0.05 -0.2"><joint axis="1 0 0" range="-10 10"/><geom type="box" size="0.06 0.05 0.04" contype="2" conaffinity="2"/></body></body>
  </body>)";

/// A finger of four hinges with a tip on a fifth, and a free body with a lever; the geoms of all three touch at many
/// places. `all`: how a geom ends.
std::string many_contacts(const std::string& all, const std::string& option) {
  const auto turned = [&](const char* euler, const char* pos) {
    return std::string("<geom type='capsule' size='0.04 0.1' euler='") + euler + "' pos='" + pos + "'" + all;
  };
  const auto capsule = [&](const char* pos) { return turned("0 90 0", pos); };
  const auto across = [&](const char* pos) {
    return std::string("<geom type='capsule' size='0.04 0.12' euler='80 0 5' pos='") + pos + "'" + all;
  };
  const auto ball = [&](const char* pos) { return std::string("<geom size='0.05' pos='") + pos + "'" + all; };
  return "<mujoco><option " + option +
         "/><worldbody><body pos='0 0 0.8'><joint axis='0 1 0'/><geom type='capsule' fromto='0 0 0 0.2 0 0' "
         "size='0.03' contype='0' conaffinity='0'/><body pos='0.2 0 0'><joint axis='0 0 1' damping='0.1'/><joint "
         "axis='0 1 0.1'/><geom size='0.03' contype='0' conaffinity='0'/><body name='finger' pos='0.15 0 0'><joint "
         "axis='1 0 0'/>" +
         capsule("0 0 0") + capsule("0 0.1 0.01") + capsule("0.02 -0.1 0") + ball("0.1 0.05 0.02") +
         "<body pos='0.09 0 0.01'><joint axis='0 1 0' damping='0.05'/>" + turned("12 80 0", "0.06 0.06 0.01") +
         turned("-10 85 20", "0.05 -0.06 0.02") + ball("0.08 0 0.05") + ball("0 0 0.05") +
         "</body></body></body></body><body name='thing' pos='0.36 0.02 0.87'><freejoint/>" + across("-0.06 0 0") +
         across("0.03 0.01 0.01") + across("0.1 0 0") + ball("-0.02 0.14 0.02") + "</body></worldbody></mujoco>";
}

std::vector<std::pair<std::string, std::string>> features() {
  std::vector<std::pair<std::string, std::string>> list;
  for (const char* cone : {"pyramidal", "elliptic"}) {
    for (const char* dim : {"1", "3", "4", "6"}) {
      std::string body = kChain;
      const std::string with = std::string("<geom condim=\"") + dim + "\" friction=\"0.7 0.01 0.002\"";
      for (std::size_t at = 0; (at = body.find("<geom", at)) != std::string::npos; at += with.size())
        body.replace(at, 5, with);
      list.push_back(
          {std::string(cone) + " contacts of condim " + dim, model(body, "", std::string("cone='") + cone + "'")});
    }
  }
  for (const char* cone : {"pyramidal", "elliptic"}) {
    for (const char* dim : {"1", "3", "4", "6"}) {
      const std::string all = std::string(" condim='") + dim + "' friction='0.6 0.02 0.01'/>";
      list.push_back({std::string(cone) + " contacts of bodies that touch at many places, condim " + dim,
                      many_contacts(all, std::string("cone='") + cone + "'")});
    }
  }
  list.push_back({"elliptic with impratio", model(kChain, "", "cone='elliptic' impratio='10'")});
  list.push_back({"pyramidal with impratio", model(kChain, "", "impratio='4'")});
  list.push_back({"conjugate gradients", model(kChain, "", "solver='CG' iterations='400'")});
  list.push_back(
      {"several trees that touch",
       model("<body pos='0 0 0.15'><freejoint/><geom size='0.15' mass='1'/></body>"
             "<body pos='0 0.05 0.4'><freejoint/><geom type='capsule' size='0.1 0.15' euler='85 0 0'/></body>"
             "<body pos='0.1 0 0.6'><freejoint/><geom size='0.12' priority='1' friction='0.4'/></body>")});
  list.push_back(
      {"margin, gap, explicit pair, direct reference",
       model("<body pos='0 0 0.15'><freejoint/><geom name='a' size='0.15' margin='0.03' gap='0.02' solref='-2000 "
             "-50'/></body>"
             "<body pos='0 0.02 0.44'><freejoint/><geom name='b' size='0.15' contype='0' conaffinity='0'/></body>",
             "<contact><pair geom1='a' geom2='b' condim='4' friction='0.5 0.3 0.02 0.001 0.001' solimp='0.8 0.95 0.01 "
             "0.3 3'/></contact>")});
  list.push_back({"friction loss and limits only",
                  "<mujoco><worldbody><body><joint axis='0 1 0' frictionloss='0.5' range='-10 10'/>"
                  "<geom size='0.1' pos='0.2 0 0'/><body pos='0.3 0 0'><joint type='ball' range='0 20'/>"
                  "<geom type='capsule' size='0.05 0.1' pos='0.1 0 0'/></body></body></worldbody></mujoco>"});
  const std::string pair =
      "<body><joint name='j' axis='0 1 0'/><geom size='0.1' pos='0.2 0 0'/></body>"
      "<body pos='0 1 0'><joint name='k' axis='0 1 0'/><geom size='0.1' pos='0.2 0 0'/></body>";
  list.push_back({"joint and tendon equality, tendon limits and friction",
                  "<mujoco><worldbody>" + pair +
                      "</worldbody><tendon><fixed name='t' range='-0.1 0.1' frictionloss='0.2'>"
                      "<joint joint='j' coef='0.5'/><joint joint='k' coef='-1'/></fixed><fixed name='s'><joint "
                      "joint='k' coef='2'/></fixed></tendon>"
                      "<equality><joint joint1='j' joint2='k' polycoef='0.05 0.8 0.3 -0.1 0.02'/><joint joint1='j' "
                      "polycoef='0.1 0 0 0 0'/>"
                      "<tendon tendon1='t' tendon2='s' polycoef='0 1.2 0 0 0'/></equality></mujoco>"});
  const auto limbs = [&](const std::string& rest) {
    return "<mujoco><default><geom contype='0' conaffinity='0'/></default><worldbody>" + std::string(test::kLimbs) +
           "</worldbody>" + rest + "</mujoco>";
  };
  list.push_back(
      {"limits and friction loss of spatial tendons",
       limbs("<tendon><spatial range='0.1 0.42' frictionloss='0.3'><site site='w'/><site site='a'/>"
             "<geom geom='rod' sidesite='side'/><site site='b'/></spatial>"
             "<spatial range='0.15 0.2' margin='0.02' solreflimit='0.05 1' frictionloss='0.1'><site site='a'/>"
             "<geom geom='round'/><site site='b'/></spatial>"
             "<spatial range='0.2 0.5' solimplimit='0.8 0.9 0.05'><site site='b2'/><site site='c'/>"
             "<pulley divisor='2'/><site site='c'/><site site='d'/></spatial></tendon>")});
  list.push_back(
      {"equality of spatial tendons",
       limbs("<tendon><spatial name='s'><site site='a'/><geom geom='rod'/><site site='b'/></spatial>"
             "<spatial name='t'><site site='w'/><site site='a'/><site site='c'/></spatial>"
             "<fixed name='u'><joint joint='shoulder' coef='0.3'/><joint joint='reach' coef='1'/></fixed></tendon>"
             "<equality><joint joint1='reach'/><tendon tendon1='s' polycoef='0.02 0 0 0 0'/><tendon tendon1='t' "
             "tendon2='s' "
             "polycoef='0 1.2 0.5 0 0'/><tendon tendon1='u' tendon2='s' solref='0.05 1'/></equality>")});
  const std::string loops =
      "<body name='a' pos='0 0 1'><joint axis='0 1 0'/><geom size='0.03 0.2' type='capsule' pos='0 0 -0.2'/>"
      "<site name='sa' pos='0.05 0.02 -0.35' euler='20 30 0'/>"
      "<body name='a2' pos='0 0 -0.4'><joint type='ball'/><geom size='0.03 0.15' type='capsule' pos='0 0 "
      "-0.15'/></body></body>"
      "<body name='b' pos='0.3 0 1'><joint axis='0 1 0.2' damping='0.1'/><joint type='slide' axis='1 0 0'/>"
      "<geom size='0.03 0.2' type='capsule' pos='0 0 -0.2'/><site name='sb' pos='0 0 -0.3' euler='0 20 50'/></body>"
      "<body name='c' pos='0.1 0.4 1'><freejoint/><geom type='box' size='0.1 0.05 0.08'/><site name='sc' pos='0.1 0 "
      "0'/></body>"
      "<body name='d' mocap='true' pos='0.1 0.7 1'><geom size='0.02' contype='0' conaffinity='0'/></body>"
      "<site name='sw' pos='0.2 0.1 0.9' euler='0 0 70'/>";
  const auto loop = [&](const std::string& equality, const std::string& option = "") {
    return "<mujoco><option " + option + "/><worldbody>" + loops + "</worldbody><equality>" + equality +
           "</equality></mujoco>";
  };
  list.push_back({"connect of bodies", loop("<connect body1='a2' body2='b' anchor='0.02 0.03 -0.3'/>"
                                            "<connect body1='c' anchor='-0.1 0.02 0' solref='0.05 0.8'/>")});
  list.push_back({"connect within a chain", loop("<connect body1='a' body2='a2' anchor='0.05 0 -0.4'/>")});
  list.push_back({"weld of bodies, to the world and to a mocap body",
                  loop("<weld body1='a2' body2='b' relpose='0.25 0.02 0.1 0.9 0.1 0.3 0' torquescale='0.3'/>"
                       "<weld body1='c' body2='d' solimp='0.8 0.99 0.1 0.4 3'/><weld body1='b'/>")});
  list.push_back(
      {"connect and weld of sites", loop("<connect site1='sa' site2='sb'/><weld site1='sc' site2='sw' torquescale='2'/>"
                                         "<weld site1='sb' site2='sc'/>")});
  list.push_back(
      {"weld under conjugate gradients and one that starts inactive",
       loop("<weld body1='a2' body2='b'/><weld body1='c' active='false'/>", "solver='CG' iterations='400'")});
  list.push_back(
      {"conjugate gradients and elliptic cones", model(kChain, "", "solver='CG' cone='elliptic' iterations='400'")});
  for (const char* integrator : {"implicitfast", "RK4"}) {
    list.push_back({std::string("contacts and limits under ") + integrator,
                    model(kChain, "", std::string("integrator='") + integrator + "'")});
    list.push_back({std::string("elliptic contacts and limits under ") + integrator,
                    model(kChain, "", std::string("cone='elliptic' integrator='") + integrator + "'")});
    list.push_back({std::string("equalities under ") + integrator,
                    loop("<connect body1='a2' body2='b' anchor='0.02 0.03 -0.3'/><weld body1='c' body2='d'/>",
                         std::string("integrator='") + integrator + "'")});
  }
  return list;
}

/// Free bodies keep the model's orientation, so that they touch what they should.
void near_the_model(test::Pair& p) {
  for (int j = 0; j < p.mj->njnt; ++j) {
    if (p.mj->jnt_type[j] != mjJNT_FREE) continue;
    const int a = p.mj->jnt_qposadr[j];
    for (int k = 0; k < 4; ++k) p.data->qpos[a + 3 + k] = p.mj->qpos0[a + 3 + k];
  }
}

/// Half of the states of a feature of contacts have some.
void expect_touching(const std::string& feature, int touching, int states) {
  if (feature.find("contacts") != std::string::npos) {
    EXPECT_GE(2 * touching, states) << "the bodies hardly touch";
  }
}

/// A feature's number, and the rows up to which the row space is used.
class Constraint : public ::testing::TestWithParam<std::tuple<std::size_t, int>> {};

TEST_P(Constraint, RowsCostAndAccelerationEqualMujocoOnRandomStates) {
  const auto [name, xml] = features()[std::get<0>(GetParam())];
  SCOPED_TRACE(name);
  test::Pair p(test::compile_xml(xml), std::get<1>(GetParam()));
  Block block(p.view);
  int compared = 0, touching = 0;
  for (std::uint64_t sample = 0; sample < 60; ++sample) {
    SCOPED_TRACE("sample " + std::to_string(sample));
    p.randomize(sample, 0.1, 0.5);
    near_the_model(p);
    mj_forward(p.mj.get(), p.data.get());
    block.load(p.view, *p.data);
    BlockSpace<ScalarLane>& b = block.space;
    test::smooth_dynamics(p.view, b.w);
    test::make_rows(p.view, b);
    EXPECT_EQ(static_cast<int>(b.c.contacts), p.data->ncon);
    const std::vector<Row> ours = our_rows(p.view, b.c);
    // A distance within rounding of the margin may fall on either side.
    if (static_cast<int>(ours.size()) != p.data->nefc) {
      ADD_FAILURE() << ours.size() << " rows, MuJoCo has " << p.data->nefc;
      continue;
    }
    // Every row of MuJoCo has one of ours: matched by Jacobian and reference, since the order is free.
    const int nv = p.view.nv;
    std::vector<bool> used(ours.size(), false);
    for (int i = 0; i < p.data->nefc; ++i) {
      const double* J = p.data->efc_J + i * nv;
      double best = 1e9;
      std::size_t which = 0;
      for (std::size_t k = 0; k < ours.size(); ++k) {
        if (used[k]) continue;
        // A quaternion and its opposite are one orientation, so that a weld's row may be the opposite of MuJoCo's.
        double distance = 1e9;
        for (double sign : {1.0, -1.0}) {
          if (sign < 0 && p.data->efc_type[i] != mjCNSTR_EQUALITY) continue;
          double here = std::abs(sign * ours[k].aref - p.data->efc_aref[i]) / (100 + std::abs(p.data->efc_aref[i]));
          for (int d = 0; d < nv; ++d)
            here = std::max(here, std::abs(sign * ours[k].jacobian[static_cast<std::size_t>(d)] - J[d]));
          // Contacts with one normal have the same rows about it: their weights tell them apart.
          here = std::max(here, 1e-3 * std::abs(ours[k].weight / p.data->efc_D[i] - 1));
          distance = std::min(distance, here);
        }
        if (distance < best) best = distance, which = k;
      }
      used[which] = true;
      EXPECT_LT(best, kRowTolerance) << "row " << i << " of type " << p.data->efc_type[i];
      EXPECT_NEAR(ours[which].weight / p.data->efc_D[i], 1, 1e-3)
          << "weight of row " << i << " of type " << p.data->efc_type[i];
    }
    const float iterations = test::solve_constraints(p.view, b);
    const std::vector<double> qacc = take(b.w.qacc, nv), theirs = take(p.data->qacc, nv);
    if (p.data->nefc == 0) continue;
    ++compared;
    touching += p.data->ncon > 0;
    const double ours_cost = cost_of(p.mj.get(), p.data.get(), qacc),
                 their_cost = cost_of(p.mj.get(), p.data.get(), theirs);
    const double scale = 1 / (p.mj->stat.meaninertia * nv);
    EXPECT_LE(ours_cost * scale, their_cost * scale * kCostRatio + 1e-7) << "iterations " << iterations;
    test::expect_near(qacc, theirs, kConstrainedAccelerationTolerance, "qacc");
  }
  EXPECT_GE(compared, 20) << "the states hardly touch anything";
  expect_touching(name, touching, 60);
}

TEST_P(Constraint, SolutionEqualsMujocosWhereBothSolversConverge) {
  const auto [name, xml] = features()[std::get<0>(GetParam())];
  SCOPED_TRACE(name);
  test::Pair p(test::compile_xml(xml), std::get<1>(GetParam()));
  p.mj->opt.iterations = p.view.option.iterations = 1000;
  p.mj->opt.ls_iterations = p.view.option.ls_iterations = 200;
  p.mj->opt.tolerance = 1e-14;
  p.view.option.tolerance = 1e-14f;
  Block block(p.view);
  int touching = 0;
  for (std::uint64_t sample = 0; sample < 30; ++sample) {
    p.randomize(sample, 0.1, 0.5);
    near_the_model(p);
    mj_forward(p.mj.get(), p.data.get());
    if (p.data->nefc == 0) continue;
    touching += p.data->ncon > 0;
    block.load(p.view, *p.data);
    test::evaluate(p.view, block.space);
    test::expect_near(take(block.space.w.qacc, p.view.nv), take(p.data->qacc, p.view.nv), kConvergedTolerance,
                      format("qacc of sample {}", sample), kConstrainedAccelerationTolerance);
  }
  expect_touching(name, touching, 30);
}

TEST_P(Constraint, FrictionWithoutSlipEqualsMujocosWhereBothSweepToTheEnd) {
  const auto [name, xml] = features()[std::get<0>(GetParam())];
  SCOPED_TRACE(name);
  constexpr int kSweeps = 400;
  const auto is = [&](const char* word) { return name.find(word) != std::string::npos; };
  const double tolerance = is("elliptic") && is("condim 6") ? kRollingTolerance : kSlipTolerance;
  test::Pair p(test::compile_xml(xml), std::get<1>(GetParam()));
  p.mj->opt.iterations = p.view.option.iterations = 1000;
  p.mj->opt.ls_iterations = p.view.option.ls_iterations = 200;
  p.mj->opt.tolerance = 1e-14;
  p.view.option.tolerance = 1e-14f;
  p.mj->opt.noslip_iterations = p.view.option.noslip_iterations = kSweeps;
  p.mj->opt.noslip_tolerance = 0;
  p.view.option.noslip_tolerance = 0;
  Block block(p.view);
  int compared = 0;
  double changed = 0;
  for (std::uint64_t sample = 0; sample < 30; ++sample) {
    p.randomize(sample, 0.1, 0.5);
    near_the_model(p);
    mj_forward(p.mj.get(), p.data.get());
    if (p.data->nefc == 0) continue;
    ++compared;
    block.load(p.view, *p.data);
    test::evaluate(p.view, block.space);
    test::expect_near(take(block.space.w.qacc, p.view.nv), take(p.data->qacc, p.view.nv), tolerance,
                      format("qacc of sample {}", sample), kSlipOfElement);
    test::expect_near(take(block.space.w.constraint, p.view.nv), take(p.data->qfrc_constraint, p.view.nv), tolerance,
                      format("forces of sample {}", sample), kSlipOfElement);
    // What the sweeps change is more by far than that, or this would compare nothing.
    const std::vector<double> without_slip = take(p.data->qacc, p.view.nv);
    p.mj->opt.noslip_iterations = 0;
    mj_forward(p.mj.get(), p.data.get());
    p.mj->opt.noslip_iterations = kSweeps;
    double scale = 1;
    for (double x : without_slip) scale = std::max(scale, std::abs(x));
    for (int d = 0; d < p.view.nv; ++d) {
      changed = std::max(changed, std::abs(without_slip[static_cast<std::size_t>(d)] - p.data->qacc[d]) / scale);
    }
  }
  EXPECT_GT(compared, 0);
  if (is("contacts") && !is("condim 1")) EXPECT_GT(changed, 10 * kSlipTolerance);
}

TEST_P(Constraint, OneStepFromTheSameStateEqualsMujoco) {
  const auto [name, xml] = features()[std::get<0>(GetParam())];
  SCOPED_TRACE(name);
  test::Pair p(test::compile_xml(xml), std::get<1>(GetParam()));
  Block block(p.view);
  // Along a trajectory of MuJoCo's, re-synchronised at every step.
  p.randomize(1, 0.1, 0.3);
  for (int j = 0; j < p.mj->njnt; ++j) {
    if (p.mj->jnt_type[j] != mjJNT_FREE) continue;
    const int a = p.mj->jnt_qposadr[j];
    for (int k = 0; k < 7; ++k) p.data->qpos[a + k] = p.mj->qpos0[a + k];
  }
  mju_zero(p.data->xfrc_applied, 6 * static_cast<int>(p.mj->nbody));
  for (int step = 0; step < 1000; ++step) {
    block.load(p.view, *p.data);
    test::evaluate_and_step(p.view, block.space);
    mj_step(p.mj.get(), p.data.get());
    SCOPED_TRACE("step " + std::to_string(step));
    test::expect_near(take(block.space.w.q, p.view.nq), take(p.data->qpos, p.mj->nq), kStepTolerance, "qpos");
    // What the acceleration may differ by, both solvers stopping where the model says, the velocity gathers over a
    // step.
    double largest = 0;
    for (int d = 0; d < p.view.nv; ++d) largest = std::max(largest, std::abs(p.data->qacc[d]));
    const double gathered = kConstrainedAccelerationTolerance * p.mj->opt.timestep * largest;
    // Of a small one beside large ones, the same in absolute numbers.
    test::expect_near(take(block.space.w.v, p.view.nv), take(p.data->qvel, p.mj->nv),
                      test::kElementTolerance + gathered, "qvel", 2 * test::kElementTolerance);
    if (HasFatalFailure()) return;
  }
}

/// `steps` steps of MuJoCo's, ours from the same state before each: largest difference of a velocity, relative to 1 and
/// it.
double worst_velocity(const char* xml, int row_space, int steps, double spread) {
  test::Pair p(test::compile_xml(xml), row_space);
  Block block(p.view);
  if (spread > 0) p.randomize(1, spread, spread);
  double worst = 0;
  for (int step = 0; step < steps; ++step) {
    block.load(p.view, *p.data);
    test::evaluate_and_step(p.view, block.space);
    mj_step(p.mj.get(), p.data.get());
    for (int d = 0; d < p.view.nv; ++d) {
      const double theirs = p.data->qvel[d], ours = static_cast<double>(block.space.w.v[d]);
      worst = std::max(worst, std::abs(ours - theirs) / (1 + std::abs(theirs)));
    }
  }
  return worst;
}

/// A paddle that turns about its centre of mass has no inverse weight of translation: its contacts are as stiff as can
/// be, and with damping the velocity does not come from the acceleration alone.
TEST(Adhesion, PullsAtABodysContactsAsMujocoDoes) {
  for (const char* cone : {"pyramidal", "elliptic"}) {
    SCOPED_TRACE(cone);
    // Contacts that touch, those within a gap, several of one body and none.
    const std::string world =
        "<body name='pad' pos='0 0 0.099'><freejoint/><geom type='box' size='0.2 0.1 0.1' gap='0.05' margin='0.05'/>"
        "<body name='cup' pos='0.3 0 0.05'><joint name='j' axis='0 1 0' actuatorfrcrange='-2 2' damping='0.1'/>"
        "<geom size='0.14' condim='1'/></body></body>"
        "<body name='lid' pos='-0.1 0 0.27'><freejoint/><geom type='capsule' size='0.075 0.1' euler='90 0 0'/></body>"
        "<body name='away' pos='9 9 3'><freejoint/><geom size='0.1'/></body>";
    const std::string acts =
        "<actuator><adhesion body='pad' ctrlrange='0 1' gain='30'/><adhesion body='cup' ctrlrange='0 1' gain='9'/>"
        "<adhesion body='lid' ctrlrange='0 1' gain='5' forcerange='0 2'/><adhesion body='away' ctrlrange='0 1' "
        "gain='5'/><general body='lid' dyntype='filter' dynprm='0.1' gainprm='3' biastype='affine' biasprm='0.4 0 "
        "-0.2'/><motor joint='j' gear='2'/></actuator>";
    test::Pair p(test::compile_xml(model(world, acts, std::string("cone='") + cone + "' integrator='implicitfast'")));
    p.mj->opt.iterations = p.view.option.iterations = 1000;
    p.mj->opt.tolerance = 1e-14;
    p.view.option.tolerance = 1e-14f;
    Block block(p.view);
    int pulled = 0;
    for (std::uint64_t sample = 0; sample < 40; ++sample) {
      SCOPED_TRACE("sample " + std::to_string(sample));
      p.randomize(sample, 0.01, 0.2);
      near_the_model(p);
      for (int i = 0; i < p.mj->nu; ++i) p.data->ctrl[i] = std::abs(p.data->ctrl[i]);
      mj_forward(p.mj.get(), p.data.get());
      pulled += p.data->ncon > 1;
      block.load(p.view, *p.data);
      test::evaluate(p.view, block.space);
      const Workspace<ScalarLane>& w = block.space.w;
      test::expect_near(take(w.actuator_force, p.view.nact), take(p.data->actuator_force, p.view.nact), 1e-4,
                        "actuator_force");
      test::expect_near(take(w.qfrc_actuator, p.view.nv), take(p.data->qfrc_actuator, p.view.nv), 1e-4,
                        "qfrc_actuator");
      test::expect_near(take(w.qacc, p.view.nv), take(p.data->qacc, p.view.nv), kConvergedTolerance, "qacc",
                        kConstrainedAccelerationTolerance);
    }
    EXPECT_GE(pulled, 20) << "the bodies hardly touch";
  }
}

TEST(StiffRows, MoveWithDampingAsTheAccelerationSays) {
  const char* xml =
      "<mujoco><worldbody><geom type='box' size='.05 .05 .05' pos='0.3 0.1 0.05'/><body pos='0 0 0.05'>"
      "<joint axis='0 0 1' damping='0.01'/><geom type='box' size='0.3 0.051 0.01'/></body></worldbody></mujoco>";
  for (int rows : {0, 64}) EXPECT_LT(worst_velocity(xml, rows, 100, 0), 5e-3) << rows;
}

/// The edges of a flat pyramid push almost along the normal: stiffer by 1 / (2 mu^2) than a contact that grips.
TEST(StiffRows, OfLittleFrictionStaySolvable) {
  for (const char* friction : {"0.02", "0.005", "0.0005"}) {
    const std::string xml =
        std::string(
            "<mujoco><worldbody><geom type='plane' size='5 5 1' priority='1' solimp='0.99 0.999 0.001' "
            "friction='") +
        friction +
        "'/><body pos='0 0 0.11' euler='3 4 0'><freejoint/><geom type='box' size='.2 .15 "
        ".1'/></body></worldbody></mujoco>";
    for (int rows : {0, 64}) {
      SCOPED_TRACE(std::string(friction) + ", rows " + std::to_string(rows));
      // The impedance rises within a millimetre, of which single precision knows the ten-thousandth.
      EXPECT_LT(worst_velocity(xml.c_str(), rows, 300, 0), 0.1);
      // And on its own.
      test::Pair p(test::compile_xml(xml), rows);
      Block block(p.view);
      block.load(p.view, *p.data);
      for (int step = 0; step < 300; ++step) {
        for (int d = 0; d < p.view.nv; ++d) block.space.w.warm[d] = step > 0 ? block.space.w.qacc[d] : 0.0f;
        test::evaluate_and_step(p.view, block.space);
      }
      EXPECT_NEAR(block.space.w.q[2], 0.1, 0.02);
    }
  }
}

/// An impratio that is not positive counts as MuJoCo's smallest number: no friction to speak of.
TEST(Impratio, NotAboveZeroIsTakenAsMujocoTakesIt) {
  for (const char* cone : {"elliptic", "pyramidal"}) {
    for (const char* impratio : {"0", "-1"}) {
      const std::string xml = format(
          "<mujoco><option cone='{}' impratio='{}'/><worldbody><geom type='plane' size='1 1 1' euler='0 10 0'/>"
          "<body pos='0 0 .1'><freejoint/><geom size='.1'/></body></worldbody></mujoco>",
          cone, impratio);
      EXPECT_LT(worst_velocity(xml.c_str(), 0, 100, 0), 1e-3) << cone << impratio;
    }
  }
}

TEST(LineSearch, OfOneIterationLooksAtAPoint) {
  const char* xml =
      "<mujoco><option ls_iterations='1'/><worldbody><geom type='plane' size='2 2 1'/><body pos='0 0 0.09'><freejoint/>"
      "<geom size='0.1' margin='0.01' friction='0.5 0.1 0.1' condim='6'/><body pos='0.3 0 0'><joint axis='0 1 0' "
      "range='-1 0.2' limited='true' ref='0.3' stiffness='3' damping='0.4' frictionloss='0.1'/><geom type='capsule' "
      "size='0.05 0.1'/></body></body></worldbody></mujoco>";
  EXPECT_LT(worst_velocity(xml, 0, 100, 0.3), 0.1);
}

INSTANTIATE_TEST_SUITE_P(Features, Constraint,
                         ::testing::Combine(::testing::Range(std::size_t{0}, features().size()),
                                            ::testing::Values(0, kMostRowSpaceRows)));

}  // namespace
}  // namespace cohort::sim
