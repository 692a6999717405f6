"""What entities look like: their colour. How they shine is the renderer's."""

from __future__ import annotations

from ._errors import refuse
from ._options import Options

__all__ = ["Aluminium", "BSDF", "Collision", "Copper", "Default", "Gold", "Iron", "Metal", "Plastic", "Reflective", "Rough", "Smooth"]


class Surface(Options):
    """color: red, green, blue and, where given, opacity; or diffuse_texture=gs.textures.ColorTexture(color)."""

    color: tuple | None = None
    opacity: float | None = None
    diffuse_texture: object = None
    _without_effect = frozenset({
        "roughness", "metallic", "emissive", "ior", "opacity_texture", "roughness_texture", "metallic_texture", "normal_texture",
        "emissive_texture", "default_roughness", "vis_mode", "smooth", "double_sided", "cutoff", "normal_diff_clamp", "recon_backend",
        "generate_foam", "foam_options", "specular_texture", "transmission_texture", "subsurface", "thickness", "metal_type",
    })  # fmt: skip

    def rgba(self) -> tuple | None:
        color = self.color if self.color is not None else getattr(self.diffuse_texture, "color", None)
        if color is None:
            return None
        color = tuple(float(c) for c in color)
        alpha = color[3] if len(color) == 4 else 1.0 if self.opacity is None else float(self.opacity)
        return (*color[:3], alpha)


class Default(Surface):
    pass


class BSDF(Surface):
    pass


class Plastic(Surface):
    pass


class Rough(Surface):
    pass


class Smooth(Surface):
    pass


class Reflective(Surface):
    pass


class Collision(Surface):
    pass


class Metal(Surface):
    color: tuple | None = (0.75, 0.75, 0.75)


class Iron(Metal):
    color: tuple | None = (0.56, 0.57, 0.58)


class Aluminium(Metal):
    color: tuple | None = (0.91, 0.92, 0.92)


class Copper(Metal):
    color: tuple | None = (0.95, 0.64, 0.54)


class Gold(Metal):
    color: tuple | None = (1.0, 0.77, 0.34)


def __getattr__(name: str):
    if name[:1].isupper():
        raise refuse(f"surfaces.{name}", f"Surfaces, by their colour: {', '.join(__all__)}.")
    raise AttributeError(name)
