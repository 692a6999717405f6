// COLLADA meshes, and robots that are seen by them.
#include "sim/host/collada.h"

#include <algorithm>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/files.h"
#include "core/format.h"
#include "sim/host/obj_mesh.h"
#include "sim/host/scene.h"
#include "sim/host/visual_model.h"

namespace cohort::sim {
namespace {

/// A tetrahedron of 1 cm edges along the axes, of one quadrilateral's half and three triangles.
std::string tetrahedron(const std::string& primitives, const std::string& node, const std::string& unit = "0.01") {
  return format(
      R"(<?xml version="1.0"?><COLLADA version="1.4.1"><asset><unit name="cm" meter="{}"/><up_axis>Y_UP</up_axis></asset>
<library_effects><effect id="red-effect"><profile_COMMON><technique sid="common"><lambert><diffuse>
<color>0.8 0.1 0 1</color></diffuse></lambert></technique></profile_COMMON></effect></library_effects>
<library_materials><material id="red"><instance_effect url="#red-effect"/></material></library_materials>
<library_geometries><geometry id="g"><mesh>
<source id="p"><float_array id="p-array" count="12">0 0 0 1 0 0 0 1 0 0 0 1</float_array><technique_common>
<accessor source="#p-array" count="4" stride="3"/></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>{}</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s">{}</visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#s"/></scene></COLLADA>)",
      unit, primitives, node);
}

const std::string kInput =
    R"(<input semantic="VERTEX" source="#v" offset="0"/><input semantic="NORMAL" source="#n" offset="1"/>)";
const std::string kTriangles = R"(<triangles material="m" count="4">)" + kInput +
                               "<p>0 9 2 9 1 9  0 9 1 9 3 9  0 9 3 9 2 9  1 9 2 9 3 9</p></triangles>";
const std::string kInstance =
    R"(<instance_geometry url="#g"><bind_material><technique_common><instance_material symbol="m" target="#red"/>
</technique_common></bind_material></instance_geometry>)";

float largest(const TriangleMesh& mesh, std::size_t axis) {
  float most = -1e9f;
  for (std::size_t i = axis; i < mesh.vertex.size(); i += 3) most = std::max(most, mesh.vertex[i]);
  return most;
}

TEST(Collada, IsReadInMetresWhereItsNodesPutIt) {
  const TriangleMesh plain = read_collada(tetrahedron(kTriangles, "<node>" + kInstance + "</node>"));
  EXPECT_EQ(plain.vertex.size(), 12u);
  EXPECT_EQ(plain.face, (std::vector<int>{0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3}));
  EXPECT_FLOAT_EQ(largest(plain, 1), 0.01f) << "the y axis stays one, as in ROS' viewer";
  ASSERT_TRUE(plain.colour.has_value());
  EXPECT_FLOAT_EQ((*plain.colour)[0], 0.8f);
  // Twice as large, turned by 90 degrees about z, then moved by 3 cm along x: x goes to y.
  const TriangleMesh placed = read_collada(
      tetrahedron(kTriangles, "<node><translate>3 0 0</translate><node><rotate>0 0 1 90</rotate><scale>2 2 2</scale>" +
                                  kInstance + "</node></node>"));
  EXPECT_NEAR(largest(placed, 0), 0.03, 1e-6);
  EXPECT_NEAR(largest(placed, 1), 0.02, 1e-6);
  EXPECT_NEAR(placed.vertex[6], 0.03 - 0.02, 1e-6);
  // A mirror turns triangles inside out, unless their corners change places.
  const TriangleMesh mirrored =
      read_collada(tetrahedron(kTriangles, "<node><scale>-1 1 1</scale>" + kInstance + "</node>"));
  EXPECT_EQ(mirrored.face[1], plain.face[2]);
}

TEST(Collada, PolygonsBecomeTriangles) {
  const std::string list =
      "<polylist count='2'>" + kInput + "<vcount>4 3</vcount><p>0 0 1 0 2 0 3 0  0 0 3 0 1 0</p></polylist>";
  const std::string polygons = "<polygons count='2'>" + kInput + "<p>0 0 1 0 2 0 3 0</p><p>0 0 3 0 1 0</p></polygons>";
  const std::vector<int> expected{0, 1, 2, 0, 2, 3, 0, 3, 1};
  EXPECT_EQ(read_collada(tetrahedron(list, "<node>" + kInstance + "</node>")).face, expected);
  EXPECT_EQ(read_collada(tetrahedron(polygons, "<node>" + kInstance + "</node>")).face, expected);
  const std::string strip = "<tristrips count='1'>" + kInput + "<p>0 0 1 0 2 0 3 0</p></tristrips>";
  EXPECT_EQ(read_collada(tetrahedron(strip, "<node>" + kInstance + "</node>")).face,
            (std::vector<int>{0, 1, 2, 2, 1, 3}));
}

TEST(Collada, WhatCannotBeAMeshIsAnError) {
  EXPECT_THROW(read_collada("solid a\nendsolid"), Error);
  EXPECT_THROW(read_collada(tetrahedron("", "<node>" + kInstance + "</node>")), Error);
  EXPECT_THROW(read_collada(tetrahedron("<triangles>" + kInput + "<p>0 0 1 0 9 0</p></triangles>",
                                        "<node>" + kInstance + "</node>")),
               Error)
      << "a corner beyond the vertices";
  EXPECT_THROW(read_collada(tetrahedron(kTriangles, "<node id='a'><instance_node url='#a'/></node>")), Error);
  const std::string whole = tetrahedron(kTriangles, "<node>" + kInstance + "</node>");
  for (std::size_t cut = 0; cut < whole.size(); cut += 7) {
    try {
      read_collada(std::string_view(whole).substr(0, cut));
    } catch (const Error&) {  // or a mesh, but no crash
    }
  }
}

TEST(Collada, AUrdfFileIsSeenByItsMeshesAndCollidesWithThem) {
  const TemporaryFolder folder("cohort-collada");
  std::filesystem::create_directories(folder.path() / "meshes");
  write_file_atomically(folder.path() / "meshes" / "part.dae",
                        tetrahedron(kTriangles, "<node>" + kInstance + "</node>", "0.1"));
  const std::string mesh = "<geometry><mesh filename='meshes/part.dae'/></geometry>";
  const auto build = [&](const std::string& shapes) {
    write_file_atomically(
        folder.path() / "robot.urdf",
        "<robot name='r'><link name='a'><inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' "
        "ixz='0' iyz='0'/></inertial>" +
            shapes + "</link></robot>");
    auto scene = std::make_unique<Scene>();
    scene->add_entity(Urdf{.file = (folder.path() / "robot.urdf").string()}, "robot");
    scene->build(1);
    return scene;
  };
  const auto seen =
      build("<visual>" + mesh + "</visual><collision><geometry><box size='.1 .1 .1'/></geometry></collision>");
  EXPECT_TRUE(seen->warnings().empty());
  const auto& geoms = seen->visual_model()->geoms;
  const auto part =
      std::find_if(geoms.begin(), geoms.end(), [](const VisualGeom& g) { return g.shape == VisualShape::kMesh; });
  ASSERT_NE(part, geoms.end());
  EXPECT_EQ(part->group, 1);
  EXPECT_NEAR(part->rgba[0], 0.8, 1e-6) << "the file's own colour";
  EXPECT_EQ(seen->visual_model()->meshes.front().face.size(), 12u);
  EXPECT_EQ(build("<collision>" + mesh + "</collision>")->info().geoms.size(), 1u);
}

TEST(ObjMesh, FacesWithAndWithoutTextureCoordinatesAreAllRead) {
  const std::string vertices = "v 0 0 0\nv 1 0 0\r\nv 1 1 0\nv 0 1 .5e0\nvt 0 0\nvn 0 0 1\n";
  const std::string mixed = vertices + "o a\nf 1//1 2//1 3//1\nusemtl b\nf -4/1/1 -2/1/1 -1/1/1\n";
  EXPECT_TRUE(mixes_texture_coordinates(mixed));
  EXPECT_FALSE(mixes_texture_coordinates(vertices + "f 1//1 2//1 3//1\nf 1 3 4\n"));
  EXPECT_FALSE(mixes_texture_coordinates(vertices + "f 1/1 2/1 3/1\nf 1/1/1 3/1/1 4/1/1\n"));
  const TriangleMesh mesh = read_obj(mixed);
  EXPECT_EQ(mesh.face, (std::vector<int>{0, 1, 2, 0, 2, 3}));
  EXPECT_FLOAT_EQ(mesh.vertex[11], 0.5f);
  EXPECT_EQ(read_obj(vertices + "f 1 2 3 4\n").face, (std::vector<int>{0, 1, 2, 0, 2, 3}));
  EXPECT_THROW(read_obj(vertices), Error);
  EXPECT_THROW(read_obj(vertices + "f 1 2 9\n"), Error);
  EXPECT_THROW(read_obj("v 0 zero 0\nf 1 1 1\n"), Error);
}

TEST(TextStl, IsReadAsABinaryOneIsInBothKindsOfModelFiles) {
  constexpr int kFaces[4][3] = {{0, 2, 1}, {0, 1, 3}, {0, 3, 2}, {1, 2, 3}};
  constexpr float kCorners[4][3] = {{0, 0, 0}, {0.1f, 0, 0}, {0, 0.1f, 0}, {0, 0, 0.1f}};
  std::string text = "solid part\r\n", binary = "solid that is binary";
  binary.resize(80, ' ');
  binary += std::string("\4\0\0\0", 4);
  for (const auto& face : kFaces) {
    text += " facet normal 0 0 0\r\n  outer loop\r\n";
    binary.append(12, '\0');
    for (const int corner : face) {
      text += format("   vertex {:+e} {:e} {}\r\n", kCorners[corner][0], kCorners[corner][1], kCorners[corner][2]);
      binary.append(reinterpret_cast<const char*>(kCorners[corner]), 12);
    }
    text += "  endloop\r\n endfacet\r\n";
    binary.append(2, '\0');
  }
  text += "endsolid part\r\n";
  EXPECT_TRUE(is_text_stl(text));
  EXPECT_FALSE(is_text_stl(binary));
  const TriangleMesh read = read_text_stl(text);
  EXPECT_EQ(read.vertex.size(), 12u) << "a corner of several facets is one vertex";
  EXPECT_EQ(read.face.size(), 12u);
  EXPECT_THROW(read_text_stl(text.substr(0, text.find("endfacet") - 40)), Error);
  EXPECT_THROW(read_text_stl("solid empty\nendsolid empty\n"), Error);

  const TemporaryFolder folder("cohort-text-stl");
  std::filesystem::create_directories(folder.path() / "meshes");
  write_file_atomically(folder.path() / "meshes" / "text.stl", text);
  write_file_atomically(folder.path() / "meshes" / "binary.stl", binary);
  const auto mass = [&](const std::string& name, bool urdf) {
    Scene scene({.engine = EngineKind::kMujoco});
    if (urdf) {
      write_file_atomically(
          folder.path() / "part.urdf",
          format("<robot name='r'><link name='base'><collision><geometry><mesh filename='meshes/{}'/></geometry>"
                 "</collision></link></robot>",
                 name));
      scene.add_entity(Urdf{.file = (folder.path() / "part.urdf").string()}, "part");
    } else {
      write_file_atomically(folder.path() / "part.xml",
                            format("<mujoco><compiler meshdir='meshes'/><asset><mesh file='{0}.stl'/></asset>"
                                   "<worldbody><body><freejoint/><geom type='mesh' mesh='{0}'/></body></worldbody>"
                                   "</mujoco>",
                                   name.substr(0, name.find('.'))));
      scene.add_entity(Mjcf{.file = (folder.path() / "part.xml").string()}, "part");
    }
    scene.build(1);
    double sum = 0;
    for (const LinkInfo& link : scene.info().links) sum += link.mass;
    return sum;
  };
  for (const bool urdf : {false, true}) {
    EXPECT_NEAR(mass("text.stl", urdf), 1000 * 1e-3 / 6, 1e-6) << "of 1,000 kg/m^3";
    EXPECT_NEAR(mass("text.stl", urdf), mass("binary.stl", urdf), 1e-9);
  }
}

}  // namespace
}  // namespace cohort::sim
