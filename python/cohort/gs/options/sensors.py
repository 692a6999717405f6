"""What a sensor is: `scene.add_sensor(gs.sensors.IMU(...))`."""

from __future__ import annotations

from .._errors import GenesisException, refuse
from .._options import Options, numbers

__all__ = ["IMU", "BatchRendererCameraOptions", "Contact", "ContactForce", "JointTorque", "RasterizerCameraOptions"]


class _SensorOptions(Options):
    """entity_idx, link_idx_local: the link that bears it; delay, jitter: s by which a measurement is late, at most that much more."""

    entity_idx: int = -1
    link_idx_local: int = 0
    delay: float = 0.0
    jitter: float = 0.0
    _without_effect = frozenset({
        "draw_debug", "interpolate", "history_length", "debug_sphere_radius", "debug_color", "debug_scale", "update_ground_truth_only",
        "debug_acc_color", "debug_acc_scale", "debug_gyro_color", "debug_gyro_scale", "debug_mag_color", "debug_mag_scale",
    })  # fmt: skip


class _PlacedOptions(_SensorOptions):
    """pos_offset: m, euler_offset: degrees, in the link's frame."""

    pos_offset: tuple = (0.0, 0.0, 0.0)
    euler_offset: tuple = (0.0, 0.0, 0.0)

    def _check(self) -> None:
        self.pos_offset = numbers("pos_offset", self.pos_offset, 3)
        self.euler_offset = numbers("euler_offset", self.euler_offset, 3)


class IMU(_PlacedOptions):
    """Acceleration without gravity's pull (m/s^2: up at rest), angular velocity (rad/s) and the magnetic field, in the sensor's
    frame. noise, random_walk: standard deviations of each reading and of the bias's step; cross_axis_coupling: a number, three, or
    a 3 x 3 matrix."""

    acc_resolution: float = 0.0
    acc_cross_axis_coupling: float = 0.0
    acc_bias: float = 0.0
    acc_noise: float = 0.0
    acc_random_walk: float = 0.0
    gyro_resolution: float = 0.0
    gyro_cross_axis_coupling: float = 0.0
    gyro_bias: float = 0.0
    gyro_noise: float = 0.0
    gyro_random_walk: float = 0.0
    mag_resolution: float = 0.0
    mag_cross_axis_coupling: float = 0.0
    mag_bias: float = 0.0
    mag_noise: float = 0.0
    mag_random_walk: float = 0.0
    magnetic_field: tuple = (0.0, 0.0, 0.5)


class Contact(_SensorOptions):
    """Whether anything presses on the link with more than `threshold` N."""

    threshold: float = 0.0


class ContactForce(_SensorOptions):
    """The sum of the contact forces on the link (N), in its frame; 0 below min_force, cut off at max_force, of each component."""

    resolution: float = 0.0
    bias: float = 0.0
    noise: float = 0.0
    random_walk: float = 0.0
    min_force: float = 0.0
    max_force: float = float("inf")


class JointTorque(_SensorOptions):
    """The generalized force that drives each dof (N, N m)."""

    dofs_idx_local: tuple | None = None
    resolution: float = 0.0
    bias: float = 0.0
    noise: float = 0.0
    random_walk: float = 0.0


class RasterizerCameraOptions(_SensorOptions):
    """A camera of every environment, drawn when it is read. fov: degrees, vertical; offset_T: (4, 4) of a camera on a link."""

    res: tuple = (512, 512)
    pos: tuple = (3.5, 0.0, 1.5)
    lookat: tuple = (0.0, 0.0, 0.0)
    up: tuple = (0.0, 0.0, 1.0)
    fov: float = 60.0
    offset_T: object = None
    pos_offset: tuple = (0.0, 0.0, 0.0)
    euler_offset: tuple = (0.0, 0.0, 0.0)
    _without_effect = _SensorOptions._without_effect | {"near", "far", "lights", "use_rasterizer", "model", "env_idx", "spp", "denoise"}

    def _check(self) -> None:
        if len(tuple(self.res)) != 2 or min(self.res) < 1:
            raise GenesisException(f"res is {self.res!r}: width and height, pixels")


class BatchRendererCameraOptions(RasterizerCameraOptions):
    """The same: there is one renderer."""


def __getattr__(name: str):
    if name[:1].isupper():
        raise refuse(f"sensors.{name}", f"Sensors: {', '.join(__all__)}; heights by rays: a task file's scanner.")
    raise AttributeError(name)
