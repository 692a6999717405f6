// Draws a scene with WebGL 2: one call for all instances of a mesh that share a texture.

/** Unit shapes: positions with how far a capsule's end moves them, normals, triangles. */
const kShapes = {
  round(rings, sides, endOf) {
    const position = [], normal = [], index = [];
    for (let r = 0; r <= rings; ++r) {
      // The middle ring of a capsule is there twice, once for each end.
      const { angle, end } = endOf(r, rings);
      for (let s = 0; s <= sides; ++s) {
        const turn = 2 * Math.PI * s / sides;
        const p = [Math.cos(angle) * Math.cos(turn), Math.cos(angle) * Math.sin(turn), Math.sin(angle)];
        position.push(...p, end);
        normal.push(...p);
        if (r === rings || s === sides) continue;
        const a = r * (sides + 1) + s, b = a + sides + 1;
        index.push(a, a + 1, b, a + 1, b + 1, b);
      }
    }
    return { position, normal, index };
  },
  sphere(fine) { return this.round(fine ? 24 : 12, fine ? 40 : 20, (r, n) => ({ angle: Math.PI * (r / n - 0.5), end: 0 })); },
  ellipsoid(fine) { return this.sphere(fine); },
  capsule(fine) {
    const end = fine ? 12 : 6;  // rings of an end
    return this.round(2 * end + 1, fine ? 40 : 20, (r) => r <= end ? { angle: Math.PI / 2 * (r / end - 1), end: -1 }
      : { angle: Math.PI / 2 * ((r - end - 1) / end), end: 1 });
  },
  cylinder(fine) {
    const position = [], normal = [], index = [], sides = fine ? 48 : 24;
    for (let s = 0; s <= sides; ++s) {
      const x = Math.cos(2 * Math.PI * s / sides), y = Math.sin(2 * Math.PI * s / sides);
      for (const z of [-1, 1]) position.push(x, y, z, 0), normal.push(x, y, 0);
      if (s < sides) index.push(2 * s, 2 * s + 2, 2 * s + 1, 2 * s + 2, 2 * s + 3, 2 * s + 1);
    }
    for (const z of [-1, 1]) {
      const first = position.length / 4;
      for (let s = 0; s < sides; ++s) {
        position.push(Math.cos(2 * Math.PI * s / sides), Math.sin(2 * Math.PI * s / sides), z, 0);
        normal.push(0, 0, z);
        if (s > 1) index.push(first, first + (z > 0 ? s - 1 : s), first + (z > 0 ? s : s - 1));
      }
    }
    return { position, normal, index };
  },
  /** From a round of radius 1 at z = 0 to a point at z = 1: an arrow's head. */
  cone() {
    const position = [], normal = [], index = [], sides = 24;
    for (let s = 0; s <= sides; ++s) {
      const x = Math.cos(2 * Math.PI * s / sides), y = Math.sin(2 * Math.PI * s / sides);
      position.push(x, y, 0, 0, 0, 0, 1, 0);
      normal.push(x, y, 1, x, y, 1);
      if (s < sides) index.push(2 * s, 2 * s + 2, 2 * s + 1);
    }
    return { position, normal, index };
  },
  /** quads: cells along a side of a face, at whose corners light is computed; +x, -y and +z have the falling diagonal. */
  box(fine, quads) {
    const position = [], normal = [], index = [], row = quads + 1;
    for (let axis = 0; axis < 3; ++axis) {
      const [a, b] = [[1, 2], [0, 2], [0, 1]][axis];
      for (const side of [-1, 1]) {
        const first = position.length / 4, falling = axis === 1 ? side < 0 : side > 0;
        for (let j = 0; j <= quads; ++j) {
          for (let i = 0; i <= quads; ++i) {
            const p = [0, 0, 0], n = [0, 0, 0];
            p[axis] = n[axis] = side;
            p[a] = 2 * i / quads - 1;
            p[b] = 2 * j / quads - 1;
            position.push(...p, 0);
            normal.push(...n);
            if (i === quads || j === quads) continue;
            const o = first + j * row + i, x = o + 1, y = o + row, both = y + 1;
            index.push(...(falling ? [o, x, y, both, y, x] : [x, o, both, y, both, o]));
          }
        }
      }
    }
    return { position, normal, index };
  },
  plane() {
    return { position: [-1, -1, 0, 0, 1, -1, 0, 0, 1, 1, 0, 0, -1, 1, 0, 0], normal: [0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1],
      index: [0, 1, 2, 0, 2, 3] };
  },
};
const kShapeNumbers = { plane: 0, hfield: 1, sphere: 2, capsule: 3, ellipsoid: 4, cylinder: 5, box: 6, mesh: 7 };
const kInstanceFloats = 32;
const kManyInstances = 400;  // of all geoms: round shapes have a quarter of their triangles from here on
const kOpaque = 0.995;  // alpha from which on nothing is blended (src/render/traced_scene.cpp)

class Drawing {
  constructor(canvas) {
    this.canvas = canvas;
    const gl = canvas.getContext('webgl2', { antialias: true, alpha: false, preserveDrawingBuffer: true });
    if (!gl) throw new Error('this browser draws no WebGL 2: turn hardware acceleration on, or take Chromium or Firefox');
    this.gl = gl;
    this.colours = this.program(kVertexShader, kFragmentShader);
    this.numbers = this.program(kVertexShader, kNumberShader);
    this.sky = this.program(kSkyVertexShader, kSkyFragmentShader);
    this.haze = this.program(kSkyVertexShader, kHazeShader);
    this.mirrors = true;
    this.fine = true;
    this.shadows = false;
    this.nothing = gl.createVertexArray();
    gl.depthFunc(gl.LEQUAL);  // of geoms that coincide the last one is seen, as with the ray caster
    this.groups = [];
    this.marks = [];
    this.picked = null;
  }

  program(vertex, fragment) {
    const gl = this.gl, p = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
      gl.attachShader(p, shader);
    }
    gl.linkProgram(p);
    if (!gl.getProgramParameter(p, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(p));
    const at = {};
    for (let i = 0; i < gl.getProgramParameter(p, gl.ACTIVE_UNIFORMS); ++i) {
      const name = gl.getActiveUniform(p, i).name;
      at[name.replace('[0]', '')] = gl.getUniformLocation(p, name);
    }
    return { p, at };
  }

  load(scene) {
    const gl = this.gl;
    this.scene = scene;
    this.marks = [];
    this.meshes = new Map();
    this.textures = scene.textures.map((t) => t && this.texture(t));
    this.poses = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, this.poses);
    for (const name of ['MIN', 'MAG']) gl.texParameteri(gl.TEXTURE_2D, gl[`TEXTURE_${name}_FILTER`], gl.NEAREST);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA32F, 2 * scene.links.length, scene.envs.length, 0, gl.RGBA, gl.FLOAT, null);
  }

  texture(t) {
    const gl = this.gl, kind = t.cube ? gl.TEXTURE_CUBE_MAP : gl.TEXTURE_2D, handle = gl.createTexture();
    const bytes = this.scene.doc.array(t.rgba), face = 4 * t.width * t.height;
    gl.bindTexture(kind, handle);
    for (let i = 0; i < (t.cube ? 6 : 1); ++i) {
      gl.texImage2D(t.cube ? gl.TEXTURE_CUBE_MAP_POSITIVE_X + i : kind, 0, gl.RGBA, t.width, t.height, 0, gl.RGBA,
        gl.UNSIGNED_BYTE, bytes.subarray(i * face, (i + 1) * face));
    }
    gl.generateMipmap(kind);
    gl.texParameteri(kind, gl.TEXTURE_MIN_FILTER, gl.LINEAR_MIPMAP_LINEAR);
    const wrap = t.cube ? gl.CLAMP_TO_EDGE : gl.REPEAT;
    gl.texParameteri(kind, gl.TEXTURE_WRAP_S, wrap);
    gl.texParameteri(kind, gl.TEXTURE_WRAP_T, wrap);
    return { handle, cube: t.cube };
  }

  /** Buffers of a shape or of a mesh of the scene, made when first drawn. */
  mesh(g) {
    const key = g.mesh === undefined ? `${g.shape} ${this.fine}` : g.mesh;
    if (this.meshes.has(key)) return this.meshes.get(key);
    const gl = this.gl;
    let shape;
    if (g.mesh === undefined) {
      shape = kShapes[g.shape](this.fine, this.scene.quads);
    } else {
      const m = this.scene.meshes[g.mesh], packed = this.scene.doc.array(m.position), n = packed.length / 3;
      const position = new Float32Array(4 * n), small = this.scene.doc.array(m.normal), normal = new Float32Array(3 * n);
      for (let i = 0; i < n; ++i) {
        for (let k = 0; k < 3; ++k) {
          position[4 * i + k] = m.low[k] + (m.high[k] - m.low[k]) * packed[3 * i + k] / 65535;
          normal[3 * i + k] = small[3 * i + k] / 127;
        }
      }
      shape = { position, normal, index: this.scene.doc.array(m.index),
        texcoord: m.texcoord && this.scene.doc.array(m.texcoord) };
    }
    const buffer = (kind, data) => {
      const b = gl.createBuffer();
      gl.bindVertexArray(null);
      gl.bindBuffer(kind, b);
      gl.bufferData(kind, data, gl.STATIC_DRAW);
      return b;
    };
    const made = { position: buffer(gl.ARRAY_BUFFER, Float32Array.from(shape.position)),
      normal: buffer(gl.ARRAY_BUFFER, Float32Array.from(shape.normal)),
      texcoord: shape.texcoord && buffer(gl.ARRAY_BUFFER, shape.texcoord),
      index: buffer(gl.ELEMENT_ARRAY_BUFFER, Uint32Array.from(shape.index)), count: shape.index.length };
    this.meshes.set(key, made);
    return made;
  }

  instance(g, env, geom, place) {
    const s = g.size, far = this.scene.far * 1.05;
    const sizes = { sphere: [s[0], s[0], s[0]], capsule: [s[0], s[0], s[0]], cylinder: [s[0], s[0], s[1]], box: s, ellipsoid: s,
      plane: [s[0] > 0 ? s[0] : far, s[1] > 0 ? s[1] : far, 1] };
    const size = sizes[g.shape] || [1, 1, 1], offset = g.offset || [0, 0], step = g.step || [0, 0];
    return [...g.pos, g.shape === 'capsule' ? s[1] : 0, ...g.quat, ...size, kShapeNumbers[g.shape], ...g.rgba,
      g.emission, g.specular, g.exponent, g.mapping || 0, ...(g.scale || [1, 1, 1]), place[0], ...offset, ...step,
      g.link, env, geom, place[1]];
  }

  /** A buffer of instances of a mesh, none of them yet. */
  instances(mesh) {
    const gl = this.gl, array = gl.createVertexArray(), buffer = gl.createBuffer();
    gl.bindVertexArray(array);
    const attribute = (location, from, components, stride, offset, divisor) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, from);
      gl.enableVertexAttribArray(location);
      gl.vertexAttribPointer(location, components, gl.FLOAT, false, stride, offset);
      gl.vertexAttribDivisor(location, divisor);
    };
    attribute(0, mesh.position, 4, 0, 0, 0);
    attribute(1, mesh.normal, 3, 0, 0, 0);
    if (mesh.texcoord) attribute(2, mesh.texcoord, 2, 0, 0, 0);
    for (let i = 0; i < 8; ++i) attribute(3 + i, buffer, 4, 4 * kInstanceFloats, 16 * i, 1);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, mesh.index);
    gl.bindVertexArray(null);
    return { array, buffer, elements: mesh.count, instances: 0 };
  }

  fill(group, values, use) {
    const gl = this.gl;
    gl.bindBuffer(gl.ARRAY_BUFFER, group.buffer);
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(values), use);
    group.instances = values.length / kInstanceFloats;
  }

  /**
   * Contacts as discs, their forces as arrows, which nothing hides. size: m, what a force of `weight` N is long; places
   * as of arrange().
   */
  mark(contacts, size, weight, places) {
    if (this.marks.length === 0 && contacts.length === 0) return;
    if (this.marks.length === 0)
      this.marks = ['cylinder', 'cone'].map((shape) => this.instances(this.mesh({ shape })));
    const values = [[], []];
    const put = (which, c, pos, quat, wide, long, rgba) => {
      const place = places(c.env);
      values[which].push(...pos, 0, ...quat, wide, wide, long, 7, ...rgba, 1, 0, 0, 0, 1, 1, 1, place[0], 0, 0, 0, 0, 0, c.env, 0,
        place[1]);
    };
    for (const c of contacts) {
      put(0, c, c.pos, quatTo(c.normal), 0.04 * size, 0.004 * size, [0.95, 0.75, 0.1, 1]);
      const force = lengthOf(c.force), long = Math.min(3, force / weight) * size;
      if (long < 0.01 * size) continue;
      const way = scaled(c.force, 1 / force), head = Math.min(0.1 * size, 0.5 * long), quat = quatTo(way);
      put(0, c, add(c.pos, scaled(way, (long - head) / 2)), quat, 0.012 * size, (long - head) / 2, [0.9, 0.25, 0.2, 1]);
      put(1, c, add(c.pos, scaled(way, long - head)), quat, 0.03 * size, head, [0.9, 0.25, 0.2, 1]);
    }
    this.marks.forEach((group, i) => this.fill(group, values[i], this.gl.DYNAMIC_DRAW));
  }

  drawMarks() {
    const gl = this.gl, at = this.colours.at;
    if (this.marks.every((group) => group.instances === 0)) return;
    gl.disable(gl.DEPTH_TEST);
    gl.uniform4fv(at.u_picked, [0, 0, 0, 0]);
    gl.uniform1i(at.u_textured, 0);
    for (const group of this.marks) {
      gl.bindVertexArray(group.array);
      gl.drawElementsInstanced(gl.TRIANGLES, group.elements, gl.UNSIGNED_INT, 0, group.instances);
    }
    gl.bindVertexArray(null);
    gl.enable(gl.DEPTH_TEST);
  }

  /**
   * Level floors with an end that stand on the world and overlap those of other environments would flicker: one that is as
   * wide as all together is drawn instead of them. Nothing where that is not so.
   */
  commonFloor(g, envs, places) {
    if (g.shape !== 'plane' || g.endless || envs.length < 2 || this.scene.moving.includes(g.link) || g.size[0] <= 0 || g.size[1] <= 0) return null;
    const up = turned(quatProduct(this.scene.quat(envs[0], g.link), g.quat), [0, 0, 1]);
    if (up[2] < 0.9999) return null;
    const all = envs.map(places), ends = [0, 1].map((k) => [Math.min(...all.map((p) => p[k])), Math.max(...all.map((p) => p[k]))]);
    const next = Math.min(...all.slice(1).map((p) => Math.max(Math.abs(p[0] - all[0][0]), Math.abs(p[1] - all[0][1]))));
    if (next >= 2 * Math.min(g.size[0], g.size[1])) return null;
    const more = Math.hypot(ends[0][1] - ends[0][0], ends[1][1] - ends[1][0]) / 2;
    return { geom: { ...g, size: [g.size[0] + more, g.size[1] + more, g.size[2]] }, place: ends.map(([low, high]) => (low + high) / 2) };
  }

  /** Which geoms of which environments are drawn, and where these stand: shown(geom), places(env) as x and y. */
  arrange(envs, places, shown) {
    const gl = this.gl, groups = new Map();
    for (const g of this.groups) gl.deleteBuffer(g.buffer), gl.deleteVertexArray(g.array);
    this.place = places;
    this.rows = new Map();  // of each environment its instances
    this.scene.geoms.forEach((g, number) => {
      if (!shown(g)) return;
      const wide = this.commonFloor(g, envs, places);
      for (const env of g.endless || wide ? envs.slice(0, 1) : envs) {
        const own = wide ? { ...wide.geom, rgba: this.scene.geomOf(env, number).rgba } : this.scene.geomOf(env, number);
        const clear = own.rgba[3] < kOpaque;
        // What is blended is sorted, so each of it is by itself.
        const key = `${g.mesh === undefined ? g.shape : g.mesh}|${g.texture}|${g.shadowless ? 1 : 0}|${clear ? `${env} ${number}` : ''}`;
        if (!groups.has(key)) groups.set(key, { geom: own, env, clear, texture: g.texture, values: [], numbers: new Set(), plane: g.shape === 'plane', planes: [], shadowless: g.shadowless,
          mesh: g.mesh !== undefined });
        const group = groups.get(key), place = wide ? wide.place : places(env);
        group.numbers.add(number);
        if (!this.rows.has(env)) this.rows.set(env, []);
        const row = { group, at: group.values.length, number, wide, place };
        this.rows.get(env).push(row);
        if (group.plane) group.planes.push({ env, number, place });
        group.values.push(...this.instance(own, env, number, place));
      }
    });
    this.groups = [...groups.values()];
    this.fine = this.groups.reduce((sum, g) => sum + g.values.length, 0) < kManyInstances * kInstanceFloats;
    for (const group of this.groups) {
      Object.assign(group, this.instances(this.mesh(group.geom)));
      this.fill(group, group.values, gl.STATIC_DRAW);
      delete group.values;
    }
    // Opaque ones first, of these planes last: they have most pixels and are behind the others.
    this.groups.sort((a, b) => (a.clear - b.clear) || (a.plane - b.plane));
    gl.bindVertexArray(null);
  }

  /** An environment looks otherwise: its instances are written again. False where what is blended is other than before. */
  relook(env) {
    const gl = this.gl;
    for (const row of this.rows.get(env) || []) {
      const own = this.scene.geomOf(env, row.number);
      if (own.rgba[3] < kOpaque !== row.group.clear) return false;
      const shown = row.wide ? { ...row.wide.geom, rgba: own.rgba } : own;
      if (row.group.clear) row.group.geom = shown;
      gl.bindBuffer(gl.ARRAY_BUFFER, row.group.buffer);
      gl.bufferSubData(gl.ARRAY_BUFFER, 4 * row.at, new Float32Array(this.instance(shown, env, row.number, row.place)));
    }
    return true;
  }

  uniforms(program, view) {
    const gl = this.gl, at = program.at;
    gl.useProgram(program.p);
    gl.uniform3fv(at.u_eye, view.pos);
    gl.uniformMatrix3fv(at.u_turn, false, [view.right[0], view.up[0], view.back[0], view.right[1], view.up[1], view.back[1],
      view.right[2], view.up[2], view.back[2]]);
    gl.uniformMatrix4fv(at.u_projection, false, view.projection);
    gl.uniform1i(at.u_geoms, this.scene.geoms.length);
    gl.uniform4fv(at.u_picked, this.picked ? [this.picked.link, this.picked.env, 1, 0] : [0, 0, 0, 0]);
    gl.uniform1i(at.u_pose, 2);
  }

  uploadPoses() {
    const gl = this.gl, scene = this.scene;
    gl.activeTexture(gl.TEXTURE2);
    gl.bindTexture(gl.TEXTURE_2D, this.poses);
    gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, 2 * scene.links.length, scene.envs.length, gl.RGBA, gl.FLOAT, scene.pose);
    gl.activeTexture(gl.TEXTURE0);
  }

  lightsOf(view) { return this.scene.placedLights(view.env, scaled(view.back, -1)); }

  /** shadows: of Shadows.draw(); null: none. */
  setLights(program, view, shadows = null) {
    const gl = this.gl, lights = this.lightsOf(view), values = new Float32Array(192), place = [...this.place(view.env), 0];
    lights.forEach((l, i) => {
      values.set([...subtract(add(l.at, place), view.pos), l.directional ? 1 : 0, ...l.way, l.cosCutoff, ...l.attenuation,
        l.exponent, ...l.ambient, shadows ? shadows.layers[i] : 0, ...l.diffuse, 0, ...l.specular, 0], 24 * i);
    });
    gl.uniform4fv(program.at.u_light, values);
    gl.uniform1i(program.at.u_lights, lights.length);
    gl.uniform1i(program.at.u_shadow, 4);
    gl.uniform1i(program.at.u_shadows, shadows && shadows.views.length > 0 ? 1 : 0);
    if (shadows && shadows.views.length > 0) this.shadowMaps.set(view, shadows.views);
    gl.uniform1f(program.at.u_ambient, lights.length ? 0 : 0.3);
  }

  /** behind: planes that are seen from behind, blended; else all that is not. */
  drawGroups(program, groups = this.groups, behind = false) {
    const gl = this.gl;
    if (program.at.u_behind) gl.uniform1f(program.at.u_behind, behind ? 1 : 0);
    for (const group of groups) {
      const texture = group.texture === undefined ? null : this.textures[group.texture];
      if (program.at.u_textured) {
        gl.uniform1i(program.at.u_textured, texture ? (texture.cube ? 2 : 1) : 0);
        gl.activeTexture(texture && texture.cube ? gl.TEXTURE1 : gl.TEXTURE0);
        if (texture) gl.bindTexture(texture.cube ? gl.TEXTURE_CUBE_MAP : gl.TEXTURE_2D, texture.handle);
        gl.uniform1i(program.at.u_texture, 0);
        gl.uniform1i(program.at.u_cube, 1);
        if (group.clear || group.plane) gl.enable(gl.BLEND); else gl.disable(gl.BLEND);
        gl.depthMask(!group.clear && !behind);
      }
      // Only the front is seen, as with the ray caster; of walls thinned to one surface it is the outer side.
      if (group.plane) gl.disable(gl.CULL_FACE); else gl.enable(gl.CULL_FACE);
      gl.bindVertexArray(group.array);
      gl.drawElementsInstanced(gl.TRIANGLES, group.elements, gl.UNSIGNED_INT, 0, group.instances);
    }
    gl.bindVertexArray(null);
    gl.disable(gl.CULL_FACE);
    gl.disable(gl.BLEND);
    gl.depthMask(true);
  }

  /** Whether a view sees one of a group's planes from behind. */
  isBehind(group, view) {
    return group.planes.some(({ env, number, place }) => {
      const g = this.scene.geomOf(env, number), link = this.scene.quat(env, g.link);
      const pos = add(add(this.scene.pos(env, g.link), turned(link, g.pos)), [...place, 0]);
      return dot(turned(quatProduct(link, g.quat), [0, 0, 1]), subtract(view.pos, pos)) < 0;
    });
  }

  /** Far ones first, of those that are blended. */
  sortClear(view) {
    const distance = (g) => lengthOf(subtract(add(this.scene.pos(g.env, g.geom.link), g.geom.pos), view.pos));
    const clear = this.groups.filter((g) => g.clear);
    if (clear.length < 2) return;
    for (const g of clear) g.distance = distance(g);
    clear.sort((a, b) => b.distance - a.distance);
    this.groups = [...this.groups.filter((g) => !g.clear), ...clear];
  }

  /** view: pos, right, up, back, projection, lens, env (whose lights are taken). target: a framebuffer; null: the canvas. */
  draw(view, width, height, target = null) {
    const gl = this.gl;
    this.uploadPoses();
    const mirror = this.drawMirror(view, width, height);
    if (this.shadows && !this.shadowMaps) this.shadowMaps = new Shadows(this);
    const shadows = this.shadows ? this.shadowMaps.draw(view, this.lightsOf(view), [...this.place(view.env), 0]) : null;
    gl.bindFramebuffer(gl.FRAMEBUFFER, target);
    gl.viewport(0, 0, width, height);
    gl.clearColor(0, 0, 0, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
    this.drawSky(view);
    gl.enable(gl.DEPTH_TEST);
    this.sortClear(view);
    this.uniforms(this.colours, view);
    this.setLights(this.colours, view, shadows);
    this.setMirror(mirror, width, height);
    this.drawGroups(this.colours, this.groups.filter((g) => !g.clear));
    this.drawHaze(view);
    this.uniforms(this.colours, view);
    // What is blended is drawn twice, as MuJoCo does: near to far, and far to near.
    const behind = this.groups.filter((g) => g.plane && this.isBehind(g, view)), clear = this.groups.filter((g) => g.clear);
    this.drawGroups(this.colours, [...clear].reverse());
    this.drawGroups(this.colours, behind, true);
    this.drawGroups(this.colours, behind, true);
    this.drawGroups(this.colours, clear);
    this.drawMarks();
  }

  /** Normal of a plane, or of a box's top, and a point on it, in the world. */
  surface(number) {
    const env = 0, g = this.scene.geomOf(env, number), q = quatProduct(this.scene.quat(env, g.link), g.quat);
    const normal = turned(q, [0, 0, 1]), pos = add(this.scene.pos(env, g.link), turned(this.scene.quat(env, g.link), g.pos));
    const place = g.endless ? [0, 0] : this.place(env);
    return { normal, point: add(add(pos, [...place, 0]), scaled(normal, g.shape === 'box' ? g.size[2] : 0)) };
  }

  /** The scene from the view's mirror image, above the mirror only, for setMirror(); null where none is seen. */
  drawMirror(view, width, height) {
    const m = this.scene.mirror, gl = this.gl;
    if (!m || !this.mirrors || !this.groups.some((g) => g.numbers.has(m.geom))) return null;
    const { normal, point } = this.surface(m.geom), over = dot(normal, subtract(view.pos, point));
    if (over <= 0) return null;
    if (!this.image || this.image.width !== width || this.image.height !== height) {
      if (this.image) gl.deleteFramebuffer(this.image.frame), gl.deleteTexture(this.image.texture), gl.deleteRenderbuffer(this.image.depth);
      this.image = { width, height, frame: gl.createFramebuffer(), texture: gl.createTexture(), depth: gl.createRenderbuffer() };
      gl.activeTexture(gl.TEXTURE3);
      gl.bindTexture(gl.TEXTURE_2D, this.image.texture);
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, width, height, 0, gl.RGBA, gl.UNSIGNED_BYTE, null);
      for (const name of ['MIN', 'MAG']) gl.texParameteri(gl.TEXTURE_2D, gl[`TEXTURE_${name}_FILTER`], gl.NEAREST);
      gl.bindTexture(gl.TEXTURE_2D, null);  // a texture that is drawn to is bound nowhere
      gl.activeTexture(gl.TEXTURE0);
      gl.bindRenderbuffer(gl.RENDERBUFFER, this.image.depth);
      gl.renderbufferStorage(gl.RENDERBUFFER, gl.DEPTH_COMPONENT24, width, height);
      gl.bindFramebuffer(gl.FRAMEBUFFER, this.image.frame);
      gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, this.image.texture, 0);
      gl.framebufferRenderbuffer(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.RENDERBUFFER, this.image.depth);
    }
    const mirrored = (v) => subtract(v, scaled(normal, 2 * dot(v, normal)));
    const there = { ...view, pos: subtract(view.pos, scaled(normal, 2 * over)), right: mirrored(view.right), up: mirrored(view.up),
      back: mirrored(view.back) };
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.image.frame);
    gl.viewport(0, 0, width, height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.DEPTH_TEST);
    gl.frontFace(gl.CW);
    this.uniforms(this.colours, there);
    this.setLights(this.colours, there);
    this.setMirror(null, width, height);
    gl.uniform4f(this.colours.at.u_above, ...normal, over + 1e-4);
    this.drawGroups(this.colours, this.groups.filter((g) => !g.clear && !g.numbers.has(m.geom)));
    gl.frontFace(gl.CCW);
    return normal;
  }

  /** What the mirror shows is on its surface, whose normal this is; null: there is no mirror. */
  setMirror(normal, width, height) {
    const gl = this.gl, at = this.colours.at;
    gl.uniform4f(at.u_above, 0, 0, 0, 1e30);
    gl.uniform1i(at.u_image, 3);
    gl.activeTexture(gl.TEXTURE3);
    gl.bindTexture(gl.TEXTURE_2D, normal ? this.image.texture : null);
    gl.activeTexture(gl.TEXTURE0);
    gl.uniform3fv(at.u_mirror_normal, normal || [0, 0, 1]);
    gl.uniform4f(at.u_mirror, normal ? this.scene.mirror.geom + 1 : 0, normal ? this.scene.mirror.reflectance : 0, width, height);
  }

  drawHaze(view) {
    const h = this.scene.haze, gl = this.gl, at = this.haze.at;
    if (!h || view.far === undefined || !this.groups.some((g) => g.numbers.has(h.geom))) return;
    const { normal, point } = this.surface(h.geom), reach = 0.7 * view.far, over = dot(normal, subtract(view.pos, point)) / reach;
    if (over <= 1e-6) return;
    gl.useProgram(this.haze.p);
    gl.enable(gl.BLEND);
    gl.depthMask(false);
    gl.uniform4f(at.u_corners, view.lens.left, view.lens.right, view.lens.bottom, view.lens.top);
    gl.uniformMatrix3fv(at.u_turn, false, [view.right[0], view.up[0], view.back[0], view.right[1], view.up[1], view.back[1],
      view.right[2], view.up[2], view.back[2]]);
    gl.uniform3fv(at.u_normal, normal);
    gl.uniform3fv(at.u_rgb, h.rgb);
    gl.uniform3fv(at.u_back, view.back);
    gl.uniform4f(at.u_haze, h.ratio, h.turn, over, reach);
    gl.uniform2f(at.u_range, view.near, view.far);
    gl.bindVertexArray(this.nothing);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    gl.bindVertexArray(null);
    gl.disable(gl.BLEND);
    gl.depthMask(true);
  }

  drawSky(view) {
    const gl = this.gl, at = this.sky.at, sky = this.scene.sky === undefined ? null : this.textures[this.scene.sky];
    gl.disable(gl.DEPTH_TEST);
    gl.useProgram(this.sky.p);
    gl.uniform4f(at.u_corners, view.lens.left, view.lens.right, view.lens.bottom, view.lens.top);
    gl.uniformMatrix3fv(at.u_turn, false, [view.right[0], view.up[0], view.back[0], view.right[1], view.up[1], view.back[1],
      view.right[2], view.up[2], view.back[2]]);
    gl.activeTexture(gl.TEXTURE1);
    if (sky) gl.bindTexture(gl.TEXTURE_CUBE_MAP, sky.handle);
    gl.uniform1i(at.u_cube, 1);
    gl.uniform1i(at.u_textured, sky ? 2 : 0);
    gl.bindVertexArray(this.nothing);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
  }

  /** A framebuffer that is not shown, one sample a pixel. */
  offscreen(width, height) {
    const gl = this.gl;
    if (!this.target || this.target.width !== width || this.target.height !== height) {
      if (this.target) gl.deleteFramebuffer(this.target.frame), gl.deleteRenderbuffer(this.target.colour), gl.deleteRenderbuffer(this.target.depth);
      const buffer = (format) => {
        const b = gl.createRenderbuffer();
        gl.bindRenderbuffer(gl.RENDERBUFFER, b);
        gl.renderbufferStorage(gl.RENDERBUFFER, format, width, height);
        return b;
      };
      this.target = { width, height, frame: gl.createFramebuffer(), colour: buffer(gl.RGBA8), depth: buffer(gl.DEPTH_COMPONENT24) };
      gl.bindFramebuffer(gl.FRAMEBUFFER, this.target.frame);
      gl.framebufferRenderbuffer(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.RENDERBUFFER, this.target.colour);
      gl.framebufferRenderbuffer(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.RENDERBUFFER, this.target.depth);
    }
    return this.target.frame;
  }

  /** Colours at each pixel, four bytes each, rows from the bottom. */
  picture(view, width, height) {
    const gl = this.gl, bytes = new Uint8Array(4 * width * height), frame = this.offscreen(width, height);
    this.draw(view, width, height, frame);
    gl.bindFramebuffer(gl.FRAMEBUFFER, frame);
    gl.readPixels(0, 0, width, height, gl.RGBA, gl.UNSIGNED_BYTE, bytes);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    return bytes;
  }

  /** Numbers of what is seen at each pixel, rows from the bottom: env * geoms + geom + 1; 0 where nothing is. */
  seen(view, width, height, x = 0, y = 0, columns = width, rows = height) {
    const gl = this.gl;
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.offscreen(width, height));
    gl.viewport(0, 0, width, height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.DEPTH_TEST);
    this.uploadPoses();
    this.uniforms(this.numbers, view);
    this.drawGroups(this.numbers);
    const bytes = new Uint8Array(4 * columns * rows);
    gl.readPixels(x, y, columns, rows, gl.RGBA, gl.UNSIGNED_BYTE, bytes);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    const out = new Uint32Array(columns * rows);
    for (let i = 0; i < out.length; ++i) out[i] = bytes[4 * i] | bytes[4 * i + 1] << 8 | bytes[4 * i + 2] << 16;
    return out;
  }
}
