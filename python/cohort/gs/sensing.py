"""Sensors: `read_ground_truth()` is what physics says, `read()` what a device with noise, bias and delay would."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np
import torch

from ._arrays import choose, host, tensor
from ._errors import GenesisException
from .options.sensors import IMU, Contact, ContactForce, JointTorque, RasterizerCameraOptions, _SensorOptions
from .utils.geom import inv_quat, transform_by_quat, transform_quat_by_quat, trans_quat_to_T, xyz_to_quat
from .vis.camera import Camera


class IMUData(NamedTuple):
    lin_acc: torch.Tensor  # (n, 3) m/s^2
    ang_vel: torch.Tensor  # (n, 3) rad/s
    mag: torch.Tensor  # (n, 3)


class CameraData(NamedTuple):
    rgb: torch.Tensor  # (n, h, w, 3) uint8


def _coupling(value) -> np.ndarray:
    """(3, 3): 1 on the diagonal, else the number, or that of the column."""
    value = np.asarray(host(value), dtype=np.float32)
    if value.shape == (3, 3):
        return value
    matrix = np.array(np.broadcast_to(value, (3, 3)))
    np.fill_diagonal(matrix, 1.0)
    return matrix


class _Channel:
    """Bias, noise and resolution of some numbers."""

    def __init__(self, resolution, bias, noise, random_walk) -> None:
        self.resolution, self.bias, self.noise, self.walk = (np.asarray(host(v), dtype=np.float32) for v in (resolution, bias, noise, random_walk))
        self.drift = np.float32(0)

    def measure(self, truth: np.ndarray, random: np.random.Generator) -> np.ndarray:
        if np.any(self.walk):
            self.drift = self.drift + random.standard_normal(truth.shape, dtype=np.float32) * self.walk
        value = truth + self.bias + self.drift
        if np.any(self.noise):
            value = value + random.standard_normal(truth.shape, dtype=np.float32) * self.noise
        step = np.where(self.resolution > 0, self.resolution, 1)
        return np.where(self.resolution > 0, np.round(value / step) * step, value).astype(np.float32)


class Sensor:
    """What Scene.add_sensor returns."""

    def __init__(self, scene, options) -> None:
        self._scene, self._options, self.idx = scene, options, len(scene.sensors)
        if not 0 <= options.entity_idx < len(scene.entities):
            raise GenesisException(f"{type(options).__name__}.entity_idx is {options.entity_idx}: the idx of an entity of the scene")
        self._entity = scene.entities[options.entity_idx]
        links = self._entity.links
        if not 0 <= options.link_idx_local < len(links):
            raise GenesisException(f"{type(options).__name__}.link_idx_local is {options.link_idx_local}: {self._entity.name} has {len(links)} links")
        self._link = links[options.link_idx_local]
        self._late = round(options.delay / scene.dt), round(options.jitter / scene.dt)
        self._kept: deque = deque(maxlen=sum(self._late) + 1)
        self._random = np.random.default_rng([scene.seed, self.idx])

    def _built(self) -> None:
        pass

    def _truth(self) -> np.ndarray:
        raise NotImplementedError

    def _measure(self, truth: np.ndarray) -> np.ndarray:
        return truth

    def _stepped(self) -> None:
        self._kept.append(self._measure(self._truth()))

    def _give(self, values: np.ndarray, envs_idx):
        envs = choose(envs_idx, self._scene._n, "environment")
        return self._scene._out(np.ascontiguousarray(values if envs.indices is None else values[envs.indices]))

    def read(self, envs_idx=None):
        """The measurement of the last step, or of `delay` before."""
        self._scene._need_built()
        if not self._kept:
            self._stepped()
        late = self._late[0] + (int(self._random.integers(self._late[1] + 1)) if self._late[1] else 0)
        return self._give(self._kept[max(0, len(self._kept) - 1 - late)], envs_idx)

    def read_ground_truth(self, envs_idx=None):
        self._scene._need_built()
        return self._give(self._truth(), envs_idx)

    def start_recording(self, rec_options):
        return self._scene.start_recording(lambda: self._as_data(self.read()), rec_options)

    @staticmethod
    def _as_data(value):
        return value._asdict() if hasattr(value, "_asdict") else value


class IMUSensor(Sensor):
    def __init__(self, scene, options) -> None:
        super().__init__(scene, options)
        name = f"gs_imu_{self.idx}"
        if self._entity._model is None or self._link.name == "":
            raise GenesisException(f"an IMU on {self._entity.name}: on a link that has a name")
        self._names = [f"{self._entity.name}/{name}_{kind}" for kind in ("framelinacc", "frameangacc", "frameangvel")]
        self._entity._sensors += [(kind, self._link.name, f"{name}_{kind}") for kind in ("framelinacc", "frameangacc", "frameangvel")]
        self._offset = np.array(options.pos_offset, dtype=np.float32)
        self._turn = xyz_to_quat(np.array(options.euler_offset, dtype=np.float32), rpy=True, degrees=True)
        self._couplings = [_coupling(getattr(options, f"{k}_cross_axis_coupling")) for k in ("acc", "gyro", "mag")]
        self._channels = [_Channel(*(getattr(options, f"{k}_{what}") for what in ("resolution", "bias", "noise", "random_walk")))
                          for k in ("acc", "gyro", "mag")]  # fmt: skip

    def _truth(self) -> np.ndarray:
        """(n, 9)."""
        core = self._scene._core
        acc, alpha, omega = (core.sensor(n) for n in self._names)
        quat = core.links("quat", np.array([self._link.idx], dtype=np.int32))[:, 0]
        arm = transform_by_quat(np.broadcast_to(self._offset, acc.shape), quat)
        acc = acc + np.cross(alpha, arm) + np.cross(omega, np.cross(omega, arm))
        back = inv_quat(transform_quat_by_quat(np.broadcast_to(self._turn, quat.shape), quat))
        field = np.broadcast_to(np.array(self._options.magnetic_field, dtype=np.float32), acc.shape)
        return np.concatenate([transform_by_quat(v, back) for v in (acc, omega, field)], axis=1).astype(np.float32)

    def _measure(self, truth: np.ndarray) -> np.ndarray:
        parts = [truth[:, 3 * k : 3 * k + 3] @ self._couplings[k].T for k in range(3)]
        return np.concatenate([c.measure(p, self._random) for c, p in zip(self._channels, parts)], axis=1)

    def _give(self, values: np.ndarray, envs_idx) -> IMUData:
        return IMUData(*(super(IMUSensor, self)._give(values[:, 3 * k : 3 * k + 3], envs_idx) for k in range(3)))


class ContactSensor(Sensor):
    def _force(self) -> np.ndarray:
        return self._scene._core.links_contact_force()[:, self._link.idx]

    def _truth(self) -> np.ndarray:
        return np.linalg.norm(self._force(), axis=-1, keepdims=True) > self._options.threshold


class ContactForceSensor(ContactSensor):
    def __init__(self, scene, options) -> None:
        super().__init__(scene, options)
        self._channel = _Channel(options.resolution, options.bias, options.noise, options.random_walk)

    def _truth(self) -> np.ndarray:
        quat = self._scene._core.links("quat", np.array([self._link.idx], dtype=np.int32))[:, 0]
        return transform_by_quat(self._force(), inv_quat(quat)).astype(np.float32)

    def _measure(self, truth: np.ndarray) -> np.ndarray:
        value = self._channel.measure(truth, self._random)
        least, most = (np.asarray(host(v), dtype=np.float32) for v in (self._options.min_force, self._options.max_force))
        return np.where(np.abs(value) < least, 0, np.clip(value, -most, most)).astype(np.float32)


class JointTorqueSensor(Sensor):
    def __init__(self, scene, options) -> None:
        super().__init__(scene, options)
        self._channel = _Channel(options.resolution, options.bias, options.noise, options.random_walk)

    def _truth(self) -> np.ndarray:
        dofs = self._options.dofs_idx_local
        return host(self._entity.get_dofs_control_force(dofs)).reshape(self._scene._n, -1)

    def _measure(self, truth: np.ndarray) -> np.ndarray:
        return self._channel.measure(truth, self._random)


class CameraSensor:
    """Pictures of every environment, drawn when they are read."""

    def __init__(self, scene, options) -> None:
        self._scene, self._options, self.idx = scene, options, len(scene.sensors)
        self._camera = Camera(scene, self.idx, options.res, options.pos, options.lookat, options.up, options.fov)
        self._stale = True
        if options.entity_idx >= 0:
            link = scene.entities[options.entity_idx].links[options.link_idx_local]
            offset = options.offset_T
            if offset is None:
                turn = xyz_to_quat(np.array(options.euler_offset, dtype=float), rpy=True, degrees=True)
                offset = trans_quat_to_T(np.array(options.pos_offset, dtype=float), turn) if any(options.pos_offset) or any(options.euler_offset) else self._camera.transform
            self._camera.attach(link, offset)

    def _built(self) -> None:
        pass

    def _stepped(self) -> None:
        self._stale = True

    def read(self, envs_idx=None) -> CameraData:
        """rgb: (n, h, w, 3) uint8."""
        scene = self._scene
        scene._need_built()
        envs = choose(envs_idx, scene._n, "environment")
        rows = np.arange(scene._n, dtype=np.int32) if envs.indices is None else envs.indices
        wanted = (True, False, False, False)
        if self._camera._link is None:
            rgb = self._camera._draw(rows, wanted, False)[0]
        else:
            drawn = []
            for env in rows:
                self._camera._move(int(env))
                drawn.append(self._camera._draw(np.array([env]), wanted, False)[0])
            rgb = np.concatenate(drawn)
        made = tensor(rgb)
        return CameraData(made[0] if scene.n_envs == 0 or isinstance(envs_idx, int) else made)

    read_ground_truth = read


_KINDS = {IMU: IMUSensor, Contact: ContactSensor, ContactForce: ContactForceSensor, JointTorque: JointTorqueSensor}


def make_sensor(scene, options):
    if isinstance(options, RasterizerCameraOptions):
        return CameraSensor(scene, options)
    if type(options) not in _KINDS:
        what = "a sensor" if isinstance(options, _SensorOptions) else type(options).__name__
        raise GenesisException(f"add_sensor takes gs.sensors.{', gs.sensors.'.join(k.__name__ for k in _KINDS)} or a camera, not {what}")
    return _KINDS[type(options)](scene, options)
