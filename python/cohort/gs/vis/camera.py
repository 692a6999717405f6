"""A camera of a scene: pictures and videos, without a display."""

from __future__ import annotations

import numpy as np

from .._arrays import host
from .._core_import import _core
from .._errors import GenesisException
from ..utils.geom import R_to_quat, pos_lookat_up_to_T, trans_quat_to_T


def _matrix(pos, lookat, up) -> np.ndarray:
    return pos_lookat_up_to_T(*(np.asarray(host(v), dtype=float).reshape(3) for v in (pos, lookat, up)))


class Camera:
    """What `scene.add_camera` returns. fov: degrees, vertical; res: width and height."""

    def __init__(self, scene, idx: int, res, pos, lookat, up, fov, env_idx=None) -> None:
        self._scene, self.idx, self.res, self.fov = scene, idx, (int(res[0]), int(res[1])), float(fov)
        self.up = np.asarray(up, dtype=float)
        self.transform = _matrix(pos, lookat, up)
        self.lookat = np.asarray(lookat, dtype=float)
        self.env_idx = env_idx
        self._handle: int | None = None
        self._frames: list[np.ndarray] | None = None
        self._recording = False
        self._follows = None
        self._link = None

    @property
    def pos(self) -> np.ndarray:
        return self.transform[:3, 3].copy()

    def set_pose(self, transform=None, pos=None, lookat=None, up=None, envs_idx=None) -> None:
        """transform: (4, 4), columns right, up, back; or where it stands and looks."""
        if transform is not None:
            self.transform = np.array(host(transform), dtype=float).reshape(4, 4)
            return
        self.lookat = self.lookat if lookat is None else np.asarray(host(lookat), dtype=float).reshape(3)
        self.up = self.up if up is None else np.asarray(host(up), dtype=float).reshape(3)
        self.transform = _matrix(self.pos if pos is None else pos, self.lookat, self.up)

    def set_params(self, fov=None, **others) -> None:
        if others:
            raise GenesisException(f"a camera has no `{next(iter(others))}` to set: fov")
        if fov is not None and fov != self.fov:
            self.fov, self._handle = float(fov), None

    def follow_entity(self, entity, fixed_axis=(None, None, None), smoothing=None, fix_orientation=False) -> None:
        """Keeps its distance from the entity's base in environment 0 and looks at it (fix_orientation: keeps its orientation).
        smoothing: share of the last place that stays, 0 to 1."""
        self._follows = (entity, fixed_axis, smoothing, fix_orientation, None)

    def unfollow_entity(self) -> None:
        self._follows = None

    def attach(self, rigid_link, offset_T) -> None:
        """Rides on a link: (4, 4) of the camera in the link's frame."""
        self._link = (rigid_link, np.asarray(host(offset_T), dtype=float).reshape(4, 4))

    def detach(self) -> None:
        self._link = None

    def move_to_attach(self, env: int = 0) -> None:
        if self._link is None:
            raise GenesisException("the camera is not attached to a link")
        link, offset = self._link
        core, one = self._scene._core, np.array([link.idx], dtype=np.int32)
        rows = np.array([env], dtype=np.int32)
        pos, quat = core.links("pos", one, rows)[0, 0].astype(float), core.links("quat", one, rows)[0, 0].astype(float)
        self.transform = trans_quat_to_T(pos, quat) @ offset

    def _move(self, env: int) -> None:
        if self._link is not None:
            self.move_to_attach(env)
        if self._follows is not None:
            entity, fixed, smoothing, keep, last = self._follows
            at = host(entity.get_pos()).reshape(-1, 3)[0].astype(float)
            offset = self.pos - self.lookat if last is None else last[0]
            wanted = at + offset
            if smoothing is not None and last is not None:
                wanted = smoothing * last[1] + (1 - smoothing) * wanted
            wanted = np.array([w if f is None else f for w, f in zip(wanted, fixed)])
            if keep:
                self.transform[:3, 3] = wanted
            else:
                self.set_pose(pos=wanted, lookat=at)
            self._follows = (entity, fixed, smoothing, keep, (offset, wanted))

    def _draw(self, envs: np.ndarray, wanted, together: bool):
        core = self._scene._core
        if self._handle is None:
            self._handle = core.add_camera(self.fov, *self.res)
        pos = self.transform[:3, 3]
        core.move_camera(self._handle, tuple(pos), tuple(R_to_quat(self.transform[:3, :3])))
        return core.render(self._handle, envs.astype(np.int32), *self.res, *wanted, together)

    def render(self, rgb=True, depth=False, segmentation=False, colorize_seg=False, normal=False, antialiasing=False, force_render=False):
        """(rgb uint8 (h, w, 3), depth m (h, w), segmentation int32 (h, w), normals (h, w, 3)), None where not wanted. Of several
        environments one picture of those of VisOptions.rendered_envs_idx; VisOptions.env_separate_rigid: one of each, (n, h, w, ..).
        Segmentation is by geom, -1 where nothing is; colorize_seg: colours of it."""
        scene = self._scene
        scene._need_built()
        envs = np.arange(scene._n) if scene.vis_options.rendered_envs_idx is None else np.array(scene.vis_options.rendered_envs_idx)
        if self.env_idx is not None:
            envs = np.array([self.env_idx])
        wanted = (rgb, depth, segmentation or colorize_seg, normal)
        separate = scene.n_envs > 0 and scene.vis_options.env_separate_rigid
        if separate and self._link is not None:
            drawn = []
            for env in envs:
                self._move(int(env))
                drawn.append(self._draw(np.array([env]), wanted, False))
            out = [None if drawn[0][k] is None else np.concatenate([d[k] for d in drawn]) for k in range(4)]
        else:
            self._move(int(envs[0]))
            out = self._draw(envs, wanted, not separate and len(envs) > 1)
            if not separate:
                out = [None if o is None else o[0] for o in out]
        if colorize_seg and out[2] is not None:
            palette = np.random.default_rng(0).integers(40, 256, size=(max(int(out[2].max()), 0) + 2, 3), dtype=np.uint8)
            palette[0] = 0
            out[2] = palette[out[2] + 1]
        elif not segmentation:
            out[2] = None
        if self._recording and rgb:
            self._frames.append(out[0] if out[0].ndim == 3 else out[0][0])
        return tuple(out)

    def start_recording(self) -> None:
        """What render() gives from here on is kept for stop_recording(); of several pictures the first."""
        self._frames, self._recording = [], True

    def pause_recording(self) -> None:
        self._recording = False

    def stop_recording(self, save_to_filename=None, fps=60) -> None:
        """Writes an .mp4 (H.264)."""
        if self._frames is None:
            raise GenesisException("the camera does not record: start_recording() comes first")
        frames, self._frames, self._recording = self._frames, None, False
        if frames:
            _core.write_video(str(save_to_filename or f"camera_{self.idx}.mp4"), np.ascontiguousarray(np.stack(frames)), float(fps))

    def _stepped(self) -> None:
        if self._follows is not None:
            self._move(0)


__all__ = ["Camera"]
