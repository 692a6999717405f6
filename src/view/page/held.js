// A body that the mouse holds: its joint goes where the body comes nearest to the pointer.

/** The ray through a place of the canvas, px: from where, which way (unit). */
function rayThrough(page, x, y) {
  const w = page.canvas.clientWidth, h = page.canvas.clientHeight, v = page.view(w, h), l = v.lens;
  const across = l.left + (l.right - l.left) * x / w, up = l.top - (l.top - l.bottom) * y / h;
  const side = add(scaled(v.right, across), scaled(v.up, up));
  if (v.far === undefined) return { from: add(v.pos, side), way: scaled(v.back, -1) };  // orthographic
  return { from: v.pos, way: unit(subtract(side, v.back)) };
}

const nearestOn = (ray, p) => add(ray.from, scaled(ray.way, dot(subtract(p, ray.from), ray.way)));

/** v turned about a unit axis by an angle (Rodrigues). */
function turnedAbout(axis, angle, v) {
  const c = Math.cos(angle), s = Math.sin(angle);
  return add(add(scaled(v, c), scaled(cross(axis, v), s)), scaled(axis, dot(axis, v) * (1 - c)));
}

class Held {
  /** Of the nearest link up the tree that a joint moves: a hinge or slide, or the place of a body that floats. */
  static of(live, hit, x, y) {
    const s = live.page.scene;
    const moving = (link) => live.movers.filter((j) => j.link === link);
    let link = hit.link, joints = moving(link);
    for (; joints.length === 0 && link > 0; joints = moving(link)) link = s.links[link].parent;
    return joints.length > 0 ? new Held(live, hit, link, joints, x, y) : null;
  }

  constructor(live, hit, link, joints, x, y) {
    const page = live.page, s = page.scene, env = hit.env, g = s.geomOf(env, hit.geom);
    Object.assign(this, { live, env, joints });
    this.stands = [...page.place(env), 0];
    const middle = add(s.pos(env, hit.link), turned(s.quat(env, hit.link), g.pos));
    const ray = this.ray(x, y);
    this.point = nearestOn(ray, middle);
    this.place = s.pos(env, link);
    this.quat = s.quat(env, link);
    this.values = new Map();
    for (const j of joints) if (!j.floats) live.ask('grab', { env, index: j.index });
  }

  /** In the environment's own frame. */
  ray(x, y) {
    const r = rayThrough(this.live.page, x, y);
    return { ...r, from: subtract(r.from, this.stands) };
  }

  /** The program has said where a joint stands. */
  grabbed(m) {
    if (m.env !== this.env) return;
    this.values.set(m.index, m.value);
    if (this.last) this.to(...this.last);
  }

  /** A joint's axis in the world: hinges of the same link that come behind it have turned the link, not the axis. */
  axisOf(j) {
    let axis = j.axis;
    for (const k of this.joints.slice(this.joints.indexOf(j) + 1))
      if (!k.slides) axis = turnedAbout(k.axis, -this.values.get(k.index), axis);
    return turned(this.quat, axis);
  }

  /** The held point where a joint is moved by so much. */
  moved(j, axis, by) {
    if (j.slides) return add(this.point, scaled(axis, by));
    const anchor = add(this.place, turned(this.quat, j.pos));
    return add(anchor, turnedAbout(axis, by, subtract(this.point, anchor)));
  }

  /** By how much a joint moves so that the held point comes nearest to the ray, and how near. */
  nearest(j, ray) {
    const now = this.values.get(j.index), reach = j.slides ? 1 : Math.PI;
    const low = j.limited ? j.low - now : -reach, high = j.limited ? j.high - now : reach;
    const axis = this.axisOf(j), far = (by) => { const p = this.moved(j, axis, by); return lengthOf(subtract(p, nearestOn(ray, p))); };
    const steps = 180;
    let best = 0, least = far(0);
    for (let i = 0; i <= steps; ++i) {
      const by = low + (high - low) * i / steps, d = far(by);
      if (d < least - 1e-9) best = by, least = d;
    }
    let a = Math.max(low, best - (high - low) / steps), b = Math.min(high, best + (high - low) / steps);
    for (let i = 0; i < 40; ++i) {
      const third = (b - a) / 3;
      if (far(a + third) < far(b - third)) b -= third; else a += third;
    }
    return { by: (a + b) / 2, far: far((a + b) / 2) };
  }

  to(x, y) {
    this.last = [x, y];
    const now = performance.now();
    // end() and grabbed() ask for the last one.
    if (this.values.size < this.joints.filter((j) => !j.floats).length || now - (this.asked || 0) < 20) return;
    this.asked = now;
    const ray = this.ray(x, y), floating = this.joints.find((j) => j.floats);
    if (floating) {
      // Along the screen, as far from it as the body is.
      const { back } = this.live.page.view(1, 1), away = dot(subtract(this.point, ray.from), back) / dot(ray.way, back);
      const by = subtract(add(ray.from, scaled(ray.way, away)), this.point);
      this.live.ask('place', { env: this.env, index: floating.index, value: add(this.place, by) });
      return;
    }
    // Of several joints the one that follows the pointer best from the beginning.
    let far = Infinity;
    for (const j of this.joint ? [] : this.joints) {
      const found = this.nearest(j, ray);
      if (found.far < far - 1e-6) this.joint = j, far = found.far;
    }
    this.live.ask('joint', { env: this.env, index: this.joint.index, value: this.values.get(this.joint.index) + this.nearest(this.joint, ray).by });
  }

  end() {
    this.asked = 0;
    if (this.last) this.to(...this.last);
  }
}
