// A scene as the program describes it (src/view/scene_document.cpp), and where its links, cameras and lights are.

class SceneModel {
  constructor(doc) {
    Object.assign(this, doc.text);
    this.doc = doc;
    this.rest = doc.array(doc.text.poses);
    this.looks = this.envs.map(() => null);  // of each environment what it has of its own (src/view/shown_looks.h)
    // Of each environment and link: x y z 0, w x y z. Two texels of the texture that the shaders read.
    this.pose = new Float32Array(8 * this.links.length * this.envs.length);
    for (let i = 0; i < this.rest.length / 7; ++i) {
      const env = Math.floor(i / this.links.length);
      this.setPose(env, i % this.links.length, this.rest.subarray(7 * i, 7 * i + 7));
    }
  }

  /** look: {geoms, lights, cameras}, or null for the model's own. True where that is another one than before. */
  setLook(env, look) {
    if (this.looks[env] === look) return false;
    this.looks[env] = look;
    return true;
  }

  /** A geom as an environment has it. */
  geomOf(env, number) {
    const g = this.geoms[number], look = this.looks[env];
    if (!look) return g;
    const v = look.geoms, at = 14 * number;
    return { ...g, pos: v.slice(at, at + 3), quat: v.slice(at + 3, at + 7), size: v.slice(at + 7, at + 10), rgba: v.slice(at + 10, at + 14) };
  }

  camerasOf(env) { return this.looks[env] ? this.looks[env].cameras : this.cameras; }

  setPose(env, link, p) {
    const at = 8 * (env * this.links.length + link);
    for (let k = 0; k < 3; ++k) this.pose[at + k] = p[k];
    for (let k = 0; k < 4; ++k) this.pose[at + 4 + k] = p[3 + k];
  }

  pos(env, link) {
    const at = 8 * (env * this.links.length + link);
    return [this.pose[at], this.pose[at + 1], this.pose[at + 2]];
  }

  quat(env, link) {
    const at = 8 * (env * this.links.length + link) + 4;
    return [this.pose[at], this.pose[at + 1], this.pose[at + 2], this.pose[at + 3]];
  }

  /** Centre of mass of a link and all that hangs on it. */
  subtreeCom(env, link) {
    let mass = 0, sum = [0, 0, 0];
    for (let i = link; i < this.links.length; ++i) {
      let root = i;
      while (root > link) root = this.links[root].parent;  // a link stands behind its parent
      if (root !== link) continue;
      const l = this.links[i];
      mass += l.mass;
      sum = add(sum, scaled(add(this.pos(env, i), turned(this.quat(env, i), l.com)), l.mass));
    }
    return mass > 1e-15 ? scaled(sum, 1 / mass) : this.pos(env, link);
  }

  target(env, m) {
    if (m.target < 0 || (m.mount !== 'targetbody' && m.mount !== 'targetbodycom')) return null;
    return m.mount === 'targetbody' ? this.pos(env, m.target) : this.subtreeCom(env, m.target);
  }

  /** Place and axes of a camera of the model (MuJoCo's mj_camlight, engine_core_smooth.c). */
  placeCamera(env, c) {
    if (c.mount === 'track' || c.mount === 'trackcom') {
      const at = c.mount === 'track' ? this.pos(env, c.link) : this.subtreeCom(env, c.link);
      const column = (k) => [c.mat0[k], c.mat0[3 + k], c.mat0[6 + k]];
      return { pos: add(at, c.pos0), right: column(0), up: column(1), back: column(2) };
    }
    const q = this.quat(env, c.link);
    const pos = add(this.pos(env, c.link), turned(q, c.pos));
    const target = this.target(env, c);
    if (target) return { pos, ...axesLooking(subtract(pos, target)) };
    const column = (k) => turned(q, [c.rot[k], c.rot[3 + k], c.rot[6 + k]]);
    return { pos, right: column(0), up: column(1), back: column(2) };
  }

  /** Sides of what a camera sees at 1 m; of an orthographic one in m. */
  lens(c, aspect) {
    if (c.orthographic) return { left: -c.fovy / 2 * aspect, right: c.fovy / 2 * aspect, top: c.fovy / 2, bottom: -c.fovy / 2 };
    if (c.sensor && c.sensor[1] > 0) {
      const side = (axis, sign) => (c.sensor[axis] / 2 + sign * c.intrinsic[2 + axis]) / c.intrinsic[axis];
      return { left: -side(0, -1), right: side(0, 1), top: side(1, -1), bottom: -side(1, 1) };
    }
    const top = Math.tan(c.fovy * Math.PI / 360);
    return { left: -top * aspect, right: top * aspect, top, bottom: -top };
  }

  /** Lights as the shader takes them; pos and dir in the world. */
  placedLights(env, forward) {
    const out = [];
    if (this.headlight) out.push({ ...this.headlight, at: [0, 0, 0], way: forward });
    for (const l of this.looks[env] ? this.looks[env].lights : this.lights) {
      let at, way;
      if (l.mount === 'track' || l.mount === 'trackcom') {
        at = add(l.mount === 'track' ? this.pos(env, l.link) : this.subtreeCom(env, l.link), l.pos0);
        way = unit(l.dir0);
      } else {
        const q = this.quat(env, l.link);
        at = add(this.pos(env, l.link), turned(q, l.pos));
        const target = this.target(env, l);
        way = target ? unit(subtract(target, at)) : unit(turned(q, l.dir));
      }
      out.push({ ...l, at, way });
    }
    return out.slice(0, 8);
  }

  /** A ball around what moves in these environments, or around everything where nothing does. */
  bounds(envs, offset) {
    const moving = new Set(this.moving);
    let low = [1e9, 1e9, 1e9], high = [-1e9, -1e9, -1e9];
    const each = (wanted) => {
      for (const env of envs) {
        for (const g of this.geoms) {
          if (g.endless || g.id < 0 || !wanted(g)) continue;
          const at = add(add(this.pos(env, g.link), turned(this.quat(env, g.link), g.pos)), offset(env));
          for (let k = 0; k < 3; ++k) {
            low[k] = Math.min(low[k], at[k] - g.radius);
            high[k] = Math.max(high[k], at[k] + g.radius);
          }
        }
      }
    };
    each((g) => moving.has(g.link));
    if (low[0] > high[0]) each(() => true);
    if (low[0] > high[0]) return { middle: this.centre, radius: this.extent };
    return { middle: scaled(add(low, high), 0.5), radius: Math.max(0.05, lengthOf(subtract(high, low)) / 2) };
  }
}
