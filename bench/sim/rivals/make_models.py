"""The models that both engines step (launch.cpp, mujoco_warp_speed.py), from public wheels.

    PYTHON bench/sim/rivals/make_models.py WHEELS OUT

WHEELS: a folder with the wheels mujoco-warp, mjlab and genesis-world. Writes OUT/humanoid.xml (MuJoCo Warp's benchmark),
OUT/g1.xml (mjlab's Unitree G1) and OUT/franka.xml (Genesis' copy of menagerie's Panda). Of the robots the geoms that are
meshes are taken away, so that no file but the model travels; their inertias are written out in the files. The G1 gets a
floor, position servos and a keyframe in which it stands, as mjlab has them: servos of 10 Hz and damping ratio 2 over an
armature of 0.01 kg m^2, implicitfast; the Franka keeps its own.
"""
import pathlib
import sys
import xml.etree.ElementTree as ElementTree
import zipfile

SOURCES = {
    "humanoid": ("mujoco_warp", "mujoco_warp/test_data/humanoid/humanoid.xml"),
    "g1": ("mjlab", "mjlab/asset_zoo/robots/unitree_g1/xmls/g1.xml"),
    "franka": ("genesis_world", "genesis/assets/xml/franka_emika_panda/panda.xml"),
}
ARMATURE, STIFFNESS, DAMPING = "0.01", "39.5", "2.5"


def read(wheels, package, member):
    found = sorted(wheels.glob(package + "-*.whl"))
    if not found:
        sys.exit(f"{wheels} holds no wheel of {package}")
    return ElementTree.fromstring(zipfile.ZipFile(found[-1]).read(member))


def without_meshes(root):
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == "mesh" and parent.tag == "asset" or child.tag == "geom" and child.get("mesh"):
                parent.remove(child)


def with_servos(root):
    world = root.find("worldbody")
    ElementTree.SubElement(world, "geom", type="plane", size="0 0 1", name="floor")
    joints = [j for j in root.iter("joint") if j.get("name") and j.get("type", "hinge") == "hinge" and j.get("range")]
    actuator = ElementTree.SubElement(root, "actuator")
    root.insert(1, ElementTree.Element("option", integrator="implicitfast"))
    for joint in joints:
        joint.set("armature", ARMATURE)
        ElementTree.SubElement(actuator, "position", name=joint.get("name"), joint=joint.get("name"), kp=STIFFNESS,
                               kv=DAMPING, ctrlrange=joint.get("range"))
    height = next(b for b in root.iter("body")).get("pos")
    zeros = " ".join("0" for _ in joints)
    keyframe = ElementTree.SubElement(root, "keyframe")
    ElementTree.SubElement(keyframe, "key", name="stand", qpos=f"{height} 1 0 0 0 {zeros}", ctrl=zeros)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    wheels, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    for name, (package, member) in SOURCES.items():
        root = read(wheels, package, member)
        without_meshes(root)
        if name == "g1":
            with_servos(root)
        ElementTree.ElementTree(root).write(out / f"{name}.xml", encoding="unicode")
        print(out / f"{name}.xml")


if __name__ == "__main__":
    main()
