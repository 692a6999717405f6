// The page: the scene, who looks at it from where, and what one can set.

function element(kind, parent, set = {}) {
  const e = document.createElement(kind);
  Object.assign(e, set);
  if (parent) parent.append(e);
  return e;
}

function choice(parent, label, options, changed) {
  const l = element('label', parent, { textContent: label + ' ' });
  const s = element('select', l);
  options.forEach(([value, text]) => element('option', s, { value, textContent: text }));
  s.addEventListener('change', () => changed(s.value));
  return s;
}

/** A camera that goes around a point. */
class FreeView {
  constructor() {
    this.target = [0, 0, 0];
    this.distance = 3;
    this.turn = Math.atan2(0.8, 1);
    this.rise = 0.5;
  }

  look(bounds, fovy) {
    this.target = bounds.middle;
    this.distance = 1.1 * bounds.radius / Math.sin(fovy * Math.PI / 360);
  }

  place() {
    const back = [Math.cos(this.rise) * Math.cos(this.turn), Math.cos(this.rise) * Math.sin(this.turn), Math.sin(this.rise)];
    return { pos: add(this.target, scaled(back, this.distance)), ...axesLooking(back) };
  }

  orbit(x, y) {
    this.turn -= x;
    this.rise = Math.max(-1.56, Math.min(1.56, this.rise + y));
  }

  pan(x, y) {
    const p = this.place();
    this.target = add(this.target, add(scaled(p.right, -x * this.distance), scaled(p.up, y * this.distance)));
  }

  zoom(factor) { this.distance = Math.max(1e-3, this.distance * factor); }
}

class Page {
  constructor() {
    this.canvas = element('canvas', document.body, { className: 'view', tabIndex: 0 });
    this.canvas.setAttribute('aria-label', 'the scene; drag to turn, shift and drag to move, wheel to come nearer');
    this.side = element('div', document.body, { className: 'panel side', hidden: true });
    this.pickedPanel = element('div', document.body, { className: 'panel picked', hidden: true });
    this.curvesPanel = element('div', document.body, { className: 'panel curves', hidden: true });
    this.bar = element('div', document.body, { className: 'panel bar', hidden: true });
    this.free = new FreeView();
    this.camera = 'free';
    this.env = 'all';
    this.follow = false;
    this.time = 0;
    this.speed = 1;
    this.playing = false;
    this.changed = true;
    this.contacts = [];
    this.curves = new Curves(this.curvesPanel);
    this.drawing = new Drawing(this.canvas);
    this.listen();
  }

  say(text) {
    if (!this.message) this.message = element('div', document.body, { className: 'panel message' });
    this.message.textContent = text;
    this.message.hidden = text === '';
  }

  open(scene, track) {
    this.scene = scene;
    this.track = track;
    this.drawing.load(scene);
    this.groups = new Set(scene.geoms.some((g) => g.id >= 0 && g.group <= 2) ? [0, 1, 2] : [0, 1, 2, 3, 4, 5]);
    this.sites = false;
    if (track) track.apply(0, scene), track.applyLooks(0, scene);
    this.buildSide();
    this.arrange();
    this.home();
    if (track) this.buildTimeBar();
    this.changed = true;
    if (!this.running) requestAnimationFrame((t) => this.frame(t));
    this.running = true;
  }

  envsShown() { return this.env === 'all' ? this.scene.envs.map((_, i) => i) : [Number(this.env)]; }
  place(env) { return this.env === 'all' ? this.scene.offsets[env] : [0, 0]; }
  geomShown(g) { return g.id < 0 ? this.sites && g.group <= 2 : this.groups.has(g.group); }

  arrange() {
    this.drawing.arrange(this.envsShown(), (env) => this.place(env), (g) => this.geomShown(g));
    this.changed = true;
  }

  home() {
    this.free.look(this.scene.bounds(this.envsShown(), (env) => [...this.place(env), 0]), this.scene.fovy);
    this.changed = true;
  }

  buildSide() {
    const s = this.scene;
    this.side.replaceChildren();
    this.side.hidden = false;
    const view = element('div', this.side);
    element('h2', view, { textContent: s.name || 'scene' });
    const cameras = [['free', 'free'], ...s.cameras.map((c, i) => [String(i), c.name || `camera ${i}`])];
    this.cameraChoice = choice(view, 'camera', cameras, (v) => { this.camera = v; this.changed = true; });
    if (s.envs.length > 1) {
      choice(view, 'environment', [['all', 'all'], ...s.envs.map((e, i) => [String(i), String(e)])], (v) => {
        this.env = v;
        if (this.live) this.live.ask('env', { value: v === 'all' ? -1 : Number(v) });
        this.arrange();
        this.home();
      });
    }
    const tick = (text, on, changed) => {
      const l = element('label', view);
      const box = element('input', l, { type: 'checkbox', checked: on });
      l.append(' ' + text);
      box.addEventListener('change', () => { changed(box.checked); this.changed = true; });
      return box;
    };
    tick('follow', this.follow, (on) => { this.follow = on; this.followed = this.followPoint(); });
    const groups = [...new Set(s.geoms.filter((g) => g.id >= 0).map((g) => g.group))].sort();
    for (const group of groups) {
      const names = { 0: '', 1: '', 2: ' (visual)', 3: ' (collision)' };
      tick(`group ${group}${names[group] || ''}`, this.groups.has(group), (on) => {
        if (on) this.groups.add(group); else this.groups.delete(group);
        this.arrange();
      });
    }
    if (s.mirror) tick('reflections', this.drawing.mirrors, (on) => { this.drawing.mirrors = on; });
    if (s.lights.some((l) => l.shadow)) tick('shadows', this.drawing.shadows, (on) => { this.drawing.shadows = on; });
    if (this.live) {
      this.contactTick = tick('contacts and forces', false, (on) => this.live.ask('contacts', { value: on }));
      this.touching = element('div', view, { className: 'quiet', hidden: true });
    }
    if (s.geoms.some((g) => g.id < 0)) tick('sites', this.sites, (on) => { this.sites = on; this.arrange(); });
    const home = element('button', view, { textContent: 'whole scene' });
    home.addEventListener('click', () => this.home());
  }

  buildTimeBar() {
    this.bar.replaceChildren();
    this.bar.hidden = false;
    if (this.episodes.length > 1) {
      choice(this.bar, 'episode', this.episodes.map((e, i) => [String(i), e.title]), (i) => {
        this.track = this.episodes[Number(i)].track;
        this.buildTimeBar();
        this.home();
      }).value = String(this.episodes.findIndex((e) => e.track === this.track));
    }
    this.curves.clear();
    this.playButton = element('button', this.bar, { textContent: 'play', title: 'space' });
    this.playButton.addEventListener('click', () => this.play(!this.playing));
    this.scrub = element('input', this.bar, { type: 'range', min: 0, max: Math.max(this.track.duration, 1e-3), step: 'any', value: 0 });
    this.scrub.setAttribute('aria-label', 'time');
    this.scrub.addEventListener('input', () => { this.play(false); this.show(Number(this.scrub.value)); });
    this.clock = element('span', this.bar, { className: 'time' });
    const speeds = [0.1, 0.25, 0.5, 1, 2, 4].map((v) => [String(v), `${v}x`]);
    choice(this.bar, 'speed', speeds, (v) => { this.speed = Number(v); }).value = '1';
    this.curvesPanel.hidden = this.track.curves.length === 0;
    if (this.track.marks.length > 0) {
      choice(this.bar, 'go to', [['0', 'begin'], ...this.track.marks.map((m) => [String(m.time - this.track.time[0]), m.text])],
        (v) => this.show(Number(v)));
    }
    this.show(0);
  }

  play(on) {
    this.playing = on;
    if (on && this.time >= this.track.duration) this.time = 0;
    this.playButton.textContent = on ? 'pause' : 'play';
    this.last = undefined;
  }

  /** The state at a time from the beginning, s. */
  show(time) {
    this.time = Math.max(0, Math.min(time, this.track.duration));
    this.track.apply(this.time, this.scene);
    this.relook(this.track.applyLooks(this.time, this.scene));
    this.scrub.value = this.time;
    this.clock.textContent = `${this.time.toFixed(2)} of ${this.track.duration.toFixed(2)} s`;
    const env = this.env === 'all' ? 0 : Number(this.env), n = this.track.envs.length;
    for (const c of this.track.curves) {
      if (!c.of || c.env !== env) c.of = c.values.filter((_, i) => i % n === env), c.env = env;
      this.curves.draw(c.name, this.track.time, c.of, this.time + this.track.time[0]);
    }
    this.moved();
  }

  /** After environments have come to look otherwise. */
  relook(envs) {
    if (envs.some((env) => !this.drawing.relook(env))) this.arrange();
    this.changed = this.changed || envs.length > 0;
  }

  /** After poses have changed. */
  moved() {
    if (this.follow) {
      const at = this.followPoint();
      if (this.followed) this.free.target = add(this.free.target, subtract(at, this.followed));
      this.followed = at;
    }
    this.showPicked();
    this.changed = true;
  }

  /** Contacts as they are now: of each env, links, pos, normal, force. An arrow as long as the robot is wide is its weight. */
  touch(contacts) {
    this.contacts = contacts;
    if (!this.markSize) {
      this.markSize = this.scene.bounds([0], () => [0, 0, 0]).radius;
      this.weight = 9.81 * Math.max(1e-6, this.scene.moving.reduce((sum, link) => sum + this.scene.links[link].mass, 0));
    }
    this.drawing.mark(contacts, this.markSize, this.weight, (env) => this.place(env));
    this.touching.hidden = !this.contactTick.checked;
    this.touching.textContent = `${contacts.length} contacts`;
  }

  moves(link) {
    this.movable = this.movable || new Set(this.scene.moving);
    return this.movable.has(link);
  }

  /** Newtons on a link, of all contacts that are known. */
  forceOn(env, link) {
    let sum = [0, 0, 0];
    for (const c of this.contacts) {
      if (c.env !== env) continue;
      if (c.links[1] === link) sum = add(sum, c.force);
      if (c.links[0] === link) sum = subtract(sum, c.force);
    }
    return sum;
  }

  followPoint() {
    const p = this.drawing.picked || { env: this.envsShown()[0], link: this.scene.moving[0] || 0 };
    return this.scene.pos(p.env, p.link);
  }

  view(width, height) {
    const s = this.scene, aspect = width / height, env = this.envsShown()[0];
    let placed, lens, near = s.near, far = s.far, orthographic = false;
    if (this.camera === 'free') {
      placed = this.free.place();
      lens = s.lens({ fovy: s.fovy > 0 && s.fovy < 180 ? s.fovy : 45 }, aspect);
      near = Math.min(near, this.free.distance / 20);
      far = Math.max(far, 4 * this.free.distance);
    } else {
      const c = s.camerasOf(env)[Number(this.camera)];
      placed = s.placeCamera(env, c);
      placed.pos = add(placed.pos, [...this.place(env), 0]);
      lens = s.lens(c, aspect);
      orthographic = c.orthographic;
    }
    return { ...placed, lens, env, near, far: orthographic ? undefined : far, projection: orthographic ? parallelFrustum(lens, near, far) : frustum(lens, near, far) };
  }

  viewFrom(camera, aspect) {
    const lens = this.scene.lens(camera, aspect), { near, far } = this.scene;
    return { pos: camera.pos, ...axesLooking(subtract(camera.pos, camera.lookat)), lens, env: this.envsShown()[0], near, far,
      projection: frustum(lens, near, far) };
  }

  /** Numbers of the geoms that a camera sees, rows from the top; -1 where none is. camera: {pos, lookat, fovy}. */
  seenFrom(camera, width, height) {
    const seen = this.drawing.seen(this.viewFrom(camera, width / height), width, height), out = new Int32Array(seen.length);
    for (let i = 0; i < out.length; ++i) {
      const number = seen[(height - 1 - Math.floor(i / width)) * width + i % width];
      out[i] = number === 0 ? -1 : this.scene.geoms[(number - 1) % this.scene.geoms.length].id;
    }
    return out;
  }

  /** Of each geom that a camera sees: [id, pixels, mean red, green, blue]. camera: {pos, lookat, fovy}. */
  coloursFrom(camera, width, height) {
    const view = this.viewFrom(camera, width / height), bytes = this.drawing.picture(view, width, height), sums = new Map();
    this.drawing.seen(view, width, height).forEach((number, i) => {
      if (number === 0) return;
      const id = this.scene.geoms[(number - 1) % this.scene.geoms.length].id;
      if (!sums.has(id)) sums.set(id, [id, 0, 0, 0, 0]);
      const sum = sums.get(id);
      ++sum[1];
      for (let k = 0; k < 3; ++k) sum[2 + k] += bytes[4 * i + k];
    });
    return [...sums.values()].map(([id, pixels, ...rgb]) => [id, pixels, ...rgb.map((x) => x / pixels)]);
  }

  frame(now) {
    if (this.playing && this.track) {
      if (this.last !== undefined) {
        const time = this.time + this.speed * Math.min(0.25, (now - this.last) / 1000);
        this.show(time);
        if (time >= this.track.duration) this.play(false);
      }
      this.last = now;
    }
    const ratio = window.devicePixelRatio || 1;
    const w = Math.max(1, Math.round(this.canvas.clientWidth * ratio)), h = Math.max(1, Math.round(this.canvas.clientHeight * ratio));
    if (this.canvas.width !== w || this.canvas.height !== h) this.canvas.width = w, this.canvas.height = h, this.changed = true;
    if (this.changed) {
      this.changed = false;
      const begin = performance.now();
      this.drawing.draw(this.view(w, h), w, h);
      this.scriptTime = performance.now() - begin;
    }
    requestAnimationFrame((t) => this.frame(t));
  }

  /** What is seen at a place of the canvas, px: {env, geom, link}, or null. */
  hit(x, y) {
    const w = this.canvas.width, h = this.canvas.height, ratio = w / this.canvas.clientWidth;
    const px = Math.min(w - 1, Math.round(x * ratio)), py = Math.min(h - 1, Math.max(0, h - 1 - Math.round(y * ratio)));
    const number = this.drawing.seen(this.view(w, h), w, h, px, py, 1, 1)[0];
    if (number === 0) return null;
    const geom = (number - 1) % this.scene.geoms.length, env = Math.floor((number - 1) / this.scene.geoms.length);
    return { env, geom, link: this.scene.geoms[geom].link };
  }

  pick(x, y) {
    this.drawing.picked = this.hit(x, y);
    this.followed = this.follow ? this.followPoint() : undefined;
    this.showPicked();
    this.changed = true;
  }

  showPicked() {
    const p = this.drawing.picked, panel = this.pickedPanel;
    panel.hidden = !p;
    if (!p) return;
    const s = this.scene, link = s.links[p.link], g = s.geoms[p.geom], three = (v) => v.map((x) => (Math.abs(x) < 5e-4 ? 0 : x).toFixed(3)).join(' ');
    const rows = [['geom', g.name || `${g.shape} ${g.id}`], ['position (m)', three(s.pos(p.env, p.link))],
      ['rotation w x y z', three(s.quat(p.env, p.link))], ['mass (kg)', link.mass.toPrecision(4)]];
    if (this.contacts.length > 0) rows.push(['contact force (N)', this.forceOn(p.env, p.link).map((x) => x.toFixed(1)).join(' ')]);
    if (s.envs.length > 1) rows.unshift(['environment', String(s.envs[p.env])]);
    panel.replaceChildren();
    element('h2', panel, { textContent: link.name || `link ${p.link}` });
    const list = element('dl', panel);
    for (const [name, value] of rows) element('dt', list, { textContent: name }), element('dd', list, { textContent: value });
  }

  listen() {
    let drag = null;
    this.canvas.addEventListener('pointerdown', (e) => {
      drag = { x: e.clientX, y: e.clientY, far: 0, pan: e.button !== 0 || e.shiftKey };
      if (!drag.pan && this.live) drag.held = this.live.grab(e.clientX, e.clientY);
      if (e.isTrusted) this.canvas.setPointerCapture(e.pointerId);  // one that a script has made has no pointer
    });
    this.canvas.addEventListener('pointermove', (e) => {
      if (!drag) return;
      const dx = e.clientX - drag.x, dy = e.clientY - drag.y;
      drag.x = e.clientX;
      drag.y = e.clientY;
      drag.far += Math.abs(dx) + Math.abs(dy);
      if (drag.far < 4) return;
      if (drag.held) return drag.held.to(e.clientX, e.clientY);
      if (this.camera !== 'free') this.leaveCamera();
      if (drag.pan) this.free.pan(dx / this.canvas.clientHeight, dy / this.canvas.clientHeight);
      else this.free.orbit(dx * 0.008, dy * 0.008);
      this.changed = true;
    });
    this.canvas.addEventListener('pointerup', (e) => {
      if (drag && drag.far < 4) this.pick(e.clientX, e.clientY);
      else if (drag && drag.held) drag.held.end();
      drag = null;
    });
    this.canvas.addEventListener('pointercancel', () => { drag = null; });
    this.canvas.addEventListener('contextmenu', (e) => e.preventDefault());
    this.canvas.addEventListener('wheel', (e) => {
      e.preventDefault();
      if (this.camera !== 'free') this.leaveCamera();
      this.free.zoom(Math.exp(Math.sign(e.deltaY) * Math.min(0.2, Math.abs(e.deltaY) * 0.002)));
      this.changed = true;
    }, { passive: false });
    window.addEventListener('resize', () => { this.changed = true; });
    window.addEventListener('keydown', (e) => {
      if (e.key !== ' ' || !this.playButton || e.target.closest('button, input, select')) return;
      e.preventDefault();
      this.playButton.click();
    });
  }

  /** The free camera goes on from where a camera of the model stands. */
  leaveCamera() {
    const env = this.envsShown()[0], c = this.scene.placeCamera(env, this.scene.camerasOf(env)[Number(this.camera)]);
    const pos = add(c.pos, [...this.place(env), 0]);
    this.free.distance = Math.max(0.1, dot(subtract(pos, this.scene.bounds(this.envsShown(), (e) => [...this.place(e), 0]).middle), c.back));
    this.free.target = subtract(pos, scaled(c.back, this.free.distance));
    this.free.turn = Math.atan2(c.back[1], c.back[0]);
    this.free.rise = Math.asin(Math.max(-1, Math.min(1, c.back[2])));
    this.camera = this.cameraChoice.value = 'free';
  }
}

/** A page that a program serves: the scene goes on there, and what is clicked here is asked for. */
class Live {
  constructor(page, address) {
    this.page = page;
    this.names = [];
    this.time = [];
    this.values = [];
    this.socket = new WebSocket(address);
    this.socket.binaryType = 'arraybuffer';
    this.socket.onmessage = (e) => this.take(e.data).catch((error) => page.say(error.message));
    this.socket.onclose = () => page.say('The program has ended, or the way to it; load the page again when it is back.');
    this.order = Promise.resolve();
  }

  ask(what, more = {}) { this.socket.send(JSON.stringify({ do: what, ...more })); }

  /** Messages are dealt with in their order, though unpacking takes a while. */
  take(data) {
    this.order = this.order.catch(() => {}).then(() => (typeof data === 'string' ? this.told(JSON.parse(data)) : this.shown(data)));
    return this.order;
  }

  async shown(buffer) {
    const kind = new DataView(buffer).getUint32(0, true), page = this.page;
    if (kind === 1) {
      const stream = new Blob([buffer.slice(4)]).stream().pipeThrough(new DecompressionStream('deflate'));
      page.open(new SceneModel(new PackedDocument(new Uint8Array(await new Response(stream).arrayBuffer()))), null);
      page.say('');
      page.ready = true;
      return;
    }
    if (!page.scene) return;
    if (kind === 5) {
      const stream = new Blob([buffer.slice(4)]).stream().pipeThrough(new DecompressionStream('deflate'));
      const doc = new PackedDocument(new Uint8Array(await new Response(stream).arrayBuffer()));
      for (const l of doc.text.looks) page.scene.setLook(l.env, { ...l, geoms: doc.array(l.geoms) });
      page.relook(doc.text.looks.map((l) => l.env));
      return;
    }
    const view = new DataView(buffer), s = page.scene, pose = new Float32Array(7);
    const three = (at) => [0, 1, 2].map((k) => view.getFloat32(at + 4 * k, true));
    const time = view.getFloat32(4, true), low = three(8), high = three(20), curves = view.getUint32(32, true);
    const touching = view.getUint32(36, true), floats = 12, row = new Float32Array(buffer, 40, floats * touching);
    const numbers = new Float32Array(buffer, 40 + 4 * row.length, curves), values = new Uint16Array(buffer, 40 + 4 * (row.length + curves));
    for (let i = 0; i < s.envs.length * s.moving.length; ++i) {
      unpackPose(values, 6 * i, low, high, pose, 0);
      s.setPose(Math.floor(i / s.moving.length), s.moving[i % s.moving.length], pose);
    }
    this.keep(time, numbers);
    const contacts = [];
    for (let i = 0; i < row.length; i += floats) {
      const c = { env: row[i], links: [row[i + 1], row[i + 2]], pos: [...row.slice(i + 3, i + 6)], normal: [...row.slice(i + 6, i + 9)],
        force: [...row.slice(i + 9, i + 12)] };
      // The arrow is that of what acts on the body that moves.
      if (!page.moves(c.links[1])) c.links.reverse(), c.normal = scaled(c.normal, -1), c.force = scaled(c.force, -1);
      contacts.push(c);
    }
    page.touch(contacts);
    this.ask('seen');
    this.frames = (this.frames || 0) + 1;
    page.time = time;
    if (this.clock) this.clock.textContent = `${time.toFixed(2)} s`;
    page.moved();
  }

  /** Curves of the last thousand frames; they begin anew where time does. */
  keep(time, numbers) {
    if (this.time.length > 0 && time < this.time[this.time.length - 1]) this.time = [], this.values = [];
    this.time.push(time);
    this.values.push(Array.from(numbers));
    if (this.time.length > 1000) this.time.shift(), this.values.shift();
    const now = performance.now();
    if (this.names.length === 0 || now - (this.drawn || 0) < 100) return;
    this.drawn = now;
    this.names.forEach((name, i) => this.page.curves.draw(name, this.time, this.values.map((v) => v[i]), time));
  }

  told(m) {
    if (m.kind === 'about') this.build(m);
    if (m.kind === 'state') this.state(m);
    if (m.kind === 'actors') this.act(m.actors);
    if (m.kind === 'grabbed' && this.held) this.held.grabbed(m);
    if (m.kind === 'error' && this.status) this.status.textContent = m.text;
  }

  /** The picked body, if it is under the pointer while the scene stands and hangs on a joint that moves it; or nothing. */
  grab(x, y) {
    const page = this.page, picked = page.drawing.picked, hit = picked && !this.playing && this.clock ? page.hit(x, y) : null;
    if (!hit || hit.env !== picked.env || hit.link !== picked.link) return null;
    this.held = Held.of(this, hit, x, y);
    return this.held;
  }

  build(m) {
    const page = this.page, bar = page.bar;
    this.names = m.curves;
    this.movers = [...m.joints, ...m.floating.map((f) => ({ ...f, floats: true }))];
    page.curvesPanel.hidden = m.curves.length === 0;
    bar.hidden = false;
    bar.replaceChildren();
    const button = (text, ask, title = '') => {
      const b = element('button', bar, { textContent: text, title });
      b.addEventListener('click', ask);
      return b;
    };
    page.playButton = button('play', () => this.ask(this.playing ? 'pause' : 'play'), 'space');
    button('step', () => this.ask('step'));
    button('reset', () => this.ask('reset', { seed: Math.max(0, Math.floor(Number(seed.value)) || 0) }));
    const seedLabel = element('label', bar, { textContent: 'seed ' });
    const seed = element('input', seedLabel, { type: 'number', min: 0, value: 0 });
    this.speed = choice(bar, 'speed', [0.1, 0.25, 0.5, 1, 2, 4, 8].map((v) => [String(v), `${v}x`]), (v) => this.ask('speed', { value: Number(v) }));
    this.actor = choice(bar, 'acts', [], (v) => this.ask('actor', { value: Number(v) }));
    this.act(m.actors);
    this.clock = element('span', bar, { className: 'time' });
    this.status = element('span', bar);
    this.sliders(m);
  }

  /** Who may act: a run that trains has checkpoints that come and go. */
  act(actors) {
    this.actor.replaceChildren(...actors.map((a, i) => element('option', null, { value: String(i), textContent: a })));
    this.actor.parentElement.hidden = actors.length < 2;
  }

  sliders(m) {
    const make = (title, list, what) => {
      if (list.length === 0) return [];
      const box = element('div', this.page.side);
      element('h2', box, { textContent: title });
      return list.map((item) => {
        const label = element('label', box, { className: 'row' });
        element('span', label, { textContent: item.name || `${what} ${item.index}`, title: item.name });
        const input = element('input', label, { type: 'range', min: item.low, max: item.high, step: 'any' });
        const value = element('span', label);
        input.addEventListener('input', () => {
          if (what === 'joint' && this.playing) this.ask('pause');
          this.ask(what, { index: item.index, value: Number(input.value) });
        });
        return { ...item, input, value };
      });
    };
    this.commands = make('commands', m.commands, 'command');
    if (this.commands.length > 0) {
      const box = this.commands[0].input.closest('div');
      this.release = element('button', box, { textContent: 'as the task draws them', title: 'give no commands by hand any more' });
      this.release.addEventListener('click', () => this.ask('release'));
    }
    this.joints = make('joints', m.joints, 'joint');
    this.controls = make('controls', m.controls, 'control');
  }

  state(m) {
    if (!this.clock) return;  // what there is to set is said first
    this.playing = m.playing;
    this.page.playButton.textContent = m.playing ? 'pause' : 'play';
    this.status.textContent = m.status;
    this.speed.value = String(m.speed);
    this.actor.value = String(m.actor);
    const show = (list, values, at) => {
      for (const item of list) {
        const x = values[at(item)];
        if (document.activeElement !== item.input) item.input.value = x;
        item.value.textContent = x.toFixed(3);
      }
    };
    show(this.joints, m.qpos, (j) => j.qpos);
    show(this.controls, m.ctrl, (c) => c.index);
    show(this.commands, m.commands, (c) => c.index);
    if (this.release) this.release.disabled = !m.commanded;
    if (this.page.contactTick) this.page.contactTick.checked = m.contacts;
    for (const c of this.controls) c.input.disabled = !m.byHand;
  }
}

/** The page's beginning. window.cohort: the page, for who wants to ask it (tests do). */
async function begin() {
  const recorded = document.querySelector('script.data');
  if (recorded) {
    window.cohort = openDataFile(new PackedDocument(await unpacked(recorded.textContent)));
    window.cohort.ready = true;
    return;
  }
  const served = document.getElementById('socket');
  if (served && served.dataset.shows === 'data') {
    new LiveData(served.dataset.address);
    return;
  }
  const page = new Page();
  window.cohort = page;
  if (served) {
    page.say('waiting for the scene');
    page.live = new Live(page, served.dataset.address);
    return;
  }
  const data = document.querySelector('script.scene');
  page.say('reading the scene');
  const scene = new SceneModel(new PackedDocument(await unpacked(data.textContent)));
  page.episodes = [];
  for (const poses of document.querySelectorAll('script.poses'))
    page.episodes.push({ title: poses.dataset.title, track: new PoseTrack(new PackedDocument(await unpacked(poses.textContent))) });
  page.open(scene, page.episodes.length > 0 ? page.episodes[0].track : null);
  page.say('');
  page.ready = true;
}

begin().catch((error) => {
  const box = element('div', document.body, { className: 'panel message' });
  box.textContent = `The scene cannot be shown: ${error.message}`;
});
