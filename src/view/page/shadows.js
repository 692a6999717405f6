// Shadows: depth as each light that casts them sees the scene (Williams, "Casting curved shadows on curved surfaces", 1978).

const kShadowSize = 1024;   // px along a side
const kMostShadows = 3;     // lights that cast them; more of them light everything

class Shadows {
  constructor(drawing) {
    const gl = drawing.gl;
    this.drawing = drawing;
    this.frame = gl.createFramebuffer();
    this.depth = gl.createTexture();
    gl.activeTexture(gl.TEXTURE4);
    gl.bindTexture(gl.TEXTURE_2D_ARRAY, this.depth);
    gl.texStorage3D(gl.TEXTURE_2D_ARRAY, 1, gl.DEPTH_COMPONENT24, kShadowSize, kShadowSize, kMostShadows);
    for (const name of ['MIN', 'MAG']) gl.texParameteri(gl.TEXTURE_2D_ARRAY, gl[`TEXTURE_${name}_FILTER`], gl.LINEAR);
    gl.texParameteri(gl.TEXTURE_2D_ARRAY, gl.TEXTURE_COMPARE_MODE, gl.COMPARE_REF_TO_TEXTURE);
    gl.texParameteri(gl.TEXTURE_2D_ARRAY, gl.TEXTURE_COMPARE_FUNC, gl.LEQUAL);
    gl.activeTexture(gl.TEXTURE0);
  }

  /** A ball around all that has an end and is drawn. */
  bounds() {
    const { scene, place } = this.drawing, low = [1e9, 1e9, 1e9], high = [-1e9, -1e9, -1e9];
    for (const [env, rows] of this.drawing.rows) {
      const stands = [...place(env), 0];
      for (const { number, group } of rows) {
        if (group.plane) continue;
        const g = scene.geomOf(env, number), at = add(add(scene.pos(env, g.link), turned(scene.quat(env, g.link), g.pos)), stands);
        for (let k = 0; k < 3; ++k) low[k] = Math.min(low[k], at[k] - g.radius), high[k] = Math.max(high[k], at[k] + g.radius);
      }
    }
    if (low[0] > high[0]) return null;
    return { middle: scaled(add(low, high), 0.5), radius: lengthOf(subtract(high, low)) / 2 };
  }

  /** How a light sees the ball. */
  viewOf(light, stands, ball) {
    const r = ball.radius;
    if (light.directional) {
      const l = { left: -r, right: r, bottom: -r, top: r };
      return { pos: subtract(ball.middle, scaled(light.way, 2 * r)), ...axesLooking(scaled(light.way, -1)),
        projection: parallelFrustum(l, r * 0.5, 3.5 * r), texel: 2 * r / kShadowSize };
    }
    const pos = add(light.at, stands), to = subtract(ball.middle, pos), away = lengthOf(to), inside = away < 1.1 * r;
    const wide = inside ? 3 : Math.tan(Math.asin(r / away)), l = { left: -wide, right: wide, bottom: -wide, top: wide };
    const far = away + r, near = inside ? far / 500 : (away - r) * 0.9;
    return { pos, ...axesLooking(scaled(inside ? light.way : unit(to), -1)), projection: frustum(l, near, far),
      texel: 2 * wide * away / kShadowSize };
  }

  /** Draws what the lights of a view see, and tells the program of colours. Gives of each light its layer + 1, or 0. */
  draw(view, lights, stands) {
    const drawing = this.drawing, gl = drawing.gl, ball = this.bounds(), layers = lights.map(() => 0), views = [];
    if (!ball) return { layers, views };
    gl.activeTexture(gl.TEXTURE4);
    gl.bindTexture(gl.TEXTURE_2D_ARRAY, null);  // a texture that is drawn to is bound nowhere
    gl.activeTexture(gl.TEXTURE0);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.frame);
    gl.viewport(0, 0, kShadowSize, kShadowSize);
    gl.enable(gl.DEPTH_TEST);
    gl.enable(gl.POLYGON_OFFSET_FILL);
    gl.polygonOffset(1.5, 4);
    lights.forEach((light, i) => {
      if (!light.shadow || views.length === kMostShadows) return;
      const seen = this.viewOf(light, stands, ball);
      gl.framebufferTextureLayer(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, this.depth, 0, views.length);
      gl.clear(gl.DEPTH_BUFFER_BIT);
      drawing.uniforms(drawing.numbers, seen);
      drawing.drawGroups(drawing.numbers, drawing.groups.filter((g) => !g.plane && !g.shadowless));
      layers[i] = views.push(seen);
    });
    gl.disable(gl.POLYGON_OFFSET_FILL);
    return { layers, views };
  }

  /** For the program of colours, which is in use: where the views of draw() stand from the eye. */
  set(view, views) {
    const gl = this.drawing.gl, at = this.drawing.colours.at;
    gl.activeTexture(gl.TEXTURE4);
    gl.bindTexture(gl.TEXTURE_2D_ARRAY, this.depth);
    gl.activeTexture(gl.TEXTURE0);
    gl.uniformMatrix3fv(at.u_shadow_turn, false, views.flatMap((v) => [v.right[0], v.up[0], v.back[0], v.right[1], v.up[1],
      v.back[1], v.right[2], v.up[2], v.back[2]]));
    gl.uniformMatrix4fv(at.u_shadow_projection, false, views.flatMap((v) => [...v.projection]));
    gl.uniform4fv(at.u_shadow_from, views.flatMap((v) => [...subtract(view.pos, v.pos), v.texel]));
  }
}
