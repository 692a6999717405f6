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
  sphere() { return this.round(24, 40, (r, n) => ({ angle: Math.PI * (r / n - 0.5), end: 0 })); },
  ellipsoid() { return this.sphere(); },
  capsule() {
    return this.round(25, 40, (r, n) => r <= 12 ? { angle: Math.PI / 2 * (r / 12 - 1), end: -1 }
      : { angle: Math.PI / 2 * ((r - 13) / (n - 13)), end: 1 });
  },
  cylinder() {
    const position = [], normal = [], index = [], sides = 48;
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
  box() {
    const position = [], normal = [], index = [];
    for (let axis = 0; axis < 3; ++axis) {
      for (const side of [-1, 1]) {
        const first = position.length / 4;
        for (const [a, b] of [[-1, -1], [1, -1], [1, 1], [-1, 1]]) {
          const p = [0, 0, 0], n = [0, 0, 0];
          p[axis] = n[axis] = side;
          p[(axis + 1) % 3] = a * side;
          p[(axis + 2) % 3] = b;
          position.push(...p, 0);
          normal.push(...n);
        }
        index.push(first, first + 1, first + 2, first, first + 2, first + 3);
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

class Drawing {
  constructor(canvas) {
    this.canvas = canvas;
    const gl = canvas.getContext('webgl2', { antialias: true, alpha: false, preserveDrawingBuffer: true });
    if (!gl) throw new Error('this browser draws no WebGL 2: turn hardware acceleration on, or take Chromium or Firefox');
    this.gl = gl;
    this.colours = this.program(kVertexShader, kFragmentShader);
    this.numbers = this.program(kVertexShader, kNumberShader);
    this.sky = this.program(kSkyVertexShader, kSkyFragmentShader);
    this.nothing = gl.createVertexArray();
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
    const key = g.mesh === undefined ? g.shape : g.mesh;
    if (this.meshes.has(key)) return this.meshes.get(key);
    const gl = this.gl;
    let shape;
    if (g.mesh === undefined) {
      shape = kShapes[g.shape]();
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

  /** Which geoms of which environments are drawn, and where these stand: shown(geom), places(env) as x and y. */
  arrange(envs, places, shown) {
    const gl = this.gl, groups = new Map();
    for (const g of this.groups) gl.deleteBuffer(g.buffer), gl.deleteVertexArray(g.array);
    this.place = places;
    this.scene.geoms.forEach((g, number) => {
      if (!shown(g)) return;
      const clear = g.rgba[3] < 0.995;
      for (const env of g.endless ? envs.slice(0, 1) : envs) {
        // What is blended is sorted, so each of it is by itself.
        const key = `${g.mesh === undefined ? g.shape : g.mesh}|${g.texture}|${clear ? `${env} ${number}` : ''}`;
        if (!groups.has(key)) groups.set(key, { geom: g, env, clear, texture: g.texture, values: [], plane: g.shape === 'plane',
          mesh: g.mesh !== undefined });
        groups.get(key).values.push(...this.instance(g, env, number, places(env)));
      }
    });
    this.groups = [...groups.values()];
    for (const group of this.groups) {
      Object.assign(group, this.instances(this.mesh(group.geom)));
      this.fill(group, group.values, gl.STATIC_DRAW);
      delete group.values;
    }
    // Opaque ones first, of these planes last: they have most pixels and are behind the others.
    this.groups.sort((a, b) => (a.clear - b.clear) || (a.plane - b.plane));
    gl.bindVertexArray(null);
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

  setLights(program, view, env) {
    const gl = this.gl, lights = this.scene.placedLights(env, scaled(view.back, -1)), values = new Float32Array(192);
    const place = [...this.place(env), 0];
    lights.forEach((l, i) => {
      values.set([...subtract(add(l.at, place), view.pos), l.directional ? 1 : 0, ...l.way, l.cosCutoff, ...l.attenuation,
        l.exponent, ...l.ambient, 0, ...l.diffuse, 0, ...l.specular, 0], 24 * i);
    });
    gl.uniform4fv(program.at.u_light, values);
    gl.uniform1i(program.at.u_lights, lights.length);
    gl.uniform1f(program.at.u_ambient, lights.length ? 0 : 0.3);
  }

  drawGroups(program) {
    const gl = this.gl;
    for (const group of this.groups) {
      const texture = group.texture === undefined ? null : this.textures[group.texture];
      if (program.at.u_textured) {
        gl.uniform1i(program.at.u_textured, texture ? (texture.cube ? 2 : 1) : 0);
        gl.activeTexture(texture && texture.cube ? gl.TEXTURE1 : gl.TEXTURE0);
        if (texture) gl.bindTexture(texture.cube ? gl.TEXTURE_CUBE_MAP : gl.TEXTURE_2D, texture.handle);
        gl.uniform1i(program.at.u_texture, 0);
        gl.uniform1i(program.at.u_cube, 1);
        if (group.clear || group.plane) gl.enable(gl.BLEND); else gl.disable(gl.BLEND);
        gl.depthMask(!group.clear);
      }
      // Of meshes only the front is seen, as with the ray caster; of walls thinned to one surface it is the outer side.
      if (group.mesh) gl.enable(gl.CULL_FACE); else gl.disable(gl.CULL_FACE);
      gl.bindVertexArray(group.array);
      gl.drawElementsInstanced(gl.TRIANGLES, group.elements, gl.UNSIGNED_INT, 0, group.instances);
    }
    gl.bindVertexArray(null);
    gl.disable(gl.CULL_FACE);
    gl.disable(gl.BLEND);
    gl.depthMask(true);
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

  /** view: pos, right, up, back, projection, lens, env (whose lights are taken). */
  draw(view, width, height) {
    const gl = this.gl;
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    gl.viewport(0, 0, width, height);
    gl.clearColor(0, 0, 0, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
    this.uploadPoses();
    this.drawSky(view);
    gl.enable(gl.DEPTH_TEST);
    this.sortClear(view);
    this.uniforms(this.colours, view);
    this.setLights(this.colours, view, view.env);
    this.drawGroups(this.colours);
    this.drawMarks();
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

  /** Numbers of what is seen at each pixel, rows from the bottom: env * geoms + geom + 1; 0 where nothing is. */
  seen(view, width, height, x = 0, y = 0, columns = width, rows = height) {
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
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.target.frame);
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
