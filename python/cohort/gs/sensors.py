"""Sensors by their options, as `gs.sensors.IMU(...)`."""

from .options.sensors import (
    IMU,
    BatchRendererCameraOptions,
    Contact,
    ContactForce,
    JointTorque,
    RasterizerCameraOptions,
    __getattr__,  # noqa: F401
)

__all__ = ["IMU", "BatchRendererCameraOptions", "Contact", "ContactForce", "JointTorque", "RasterizerCameraOptions"]
