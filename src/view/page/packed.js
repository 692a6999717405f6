// Bytes that the program wrote: base64 and zlib around documents of a JSON text and arrays (src/view/binary_document.h).

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

class PackedDocument {
  constructor(bytes) {
    if (new TextDecoder().decode(bytes.subarray(0, 8)) !== 'COHORTV1') throw new Error('not a document of Cohort');
    const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(8, true);
    this.text = JSON.parse(new TextDecoder().decode(bytes.subarray(12, 12 + length)));
    const begin = 12 + length + (4 - (12 + length) % 4) % 4;
    this.arrays = bytes.slice(begin).buffer;
  }

  /** The typed array that a reference of the text names. */
  array(reference) {
    const kinds = { float32: Float32Array, int16: Int16Array, uint16: Uint16Array, int8: Int8Array, uint8: Uint8Array,
      uint32: Uint32Array };
    return new kinds[reference.type](this.arrays, reference.at, reference.count);
  }
}

/** Six uint16 at `at`: a position between low and high, and a rotation (src/view/pose_track.h). To pos xyz, quat wxyz. */
function unpackPose(values, at, low, high, out, to) {
  for (let k = 0; k < 3; ++k) out[to + k] = low[k] + (high[k] - low[k]) * values[at + k] / 65535;
  const largest = 2 * (values[at + 3] & 1) + (values[at + 4] & 1);
  let square = 0;
  for (let k = 0, i = 0; k < 4; ++k) {
    if (k === largest) continue;
    const x = (values[at + 3 + i++] >> 1) / 32767 * Math.SQRT2 - Math.SQRT1_2;
    out[to + 3 + k] = x;
    square += x * x;
  }
  out[to + 3 + largest] = Math.sqrt(Math.max(0, 1 - square));
}

/** Poses of all frames, seven numbers a link. */
class PoseTrack {
  constructor(doc) {
    const t = doc.text, values = doc.array(t.values);
    this.time = doc.array(t.time);
    this.frames = t.frames;
    this.links = t.links;
    this.envs = t.envs;
    this.row = 7 * t.links.length * t.envs.length;
    this.poses = new Float32Array(this.row * t.frames);
    for (let i = 0; i < this.poses.length / 7; ++i) unpackPose(values, 6 * i, t.low, t.high, this.poses, 7 * i);
    this.curves = t.curves.map((c) => ({ name: c.name, values: doc.array(c.values) }));
    this.marks = t.marks;
    // Of each environment, from when on it looks how.
    this.looks = t.envs.map((_, env) => t.looks.filter((l) => l.env === env).map((l) => ({ ...l, geoms: doc.array(l.geoms) })));
  }

  get duration() { return this.frames > 0 ? this.time[this.frames - 1] - this.time[0] : 0; }

  /** The last frame at or before a time from the beginning. */
  frameAt(time) {
    const wanted = time + this.time[0];
    let low = 0, high = this.frames - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.time[middle] <= wanted + 1e-6) low = middle; else high = middle - 1;
    }
    return low;
  }

  /** Environments that look otherwise now than they did. */
  applyLooks(time, scene) {
    return this.looks.map((looks, env) => {
      let now = null;
      for (const l of looks) if (l.time <= time + this.time[0] + 1e-6) now = l;
      return scene.setLook(env, now) ? env : -1;
    }).filter((env) => env >= 0);
  }

  /** Gives the scene the poses at a time, between frames on the way from one to the next. */
  apply(time, scene) {
    const a = this.frameAt(time), b = Math.min(a + 1, this.frames - 1);
    const span = this.time[b] - this.time[a];
    const part = span > 0 ? Math.min(1, Math.max(0, (time + this.time[0] - this.time[a]) / span)) : 0;
    const p = this.poses, pose = new Float32Array(7);
    const count = this.links.length;
    for (let i = 0; i < count * this.envs.length; ++i) {
      const from = a * this.row + 7 * i, to = b * this.row + 7 * i;
      let along = 0, square = 0;
      for (let k = 3; k < 7; ++k) along += p[from + k] * p[to + k];
      const sign = along < 0 ? -1 : 1;
      for (let k = 0; k < 7; ++k) {
        pose[k] = p[from + k] * (1 - part) + (k < 3 ? 1 : sign) * p[to + k] * part;
        if (k >= 3) square += pose[k] * pose[k];
      }
      const scale = 1 / Math.sqrt(square);
      for (let k = 3; k < 7; ++k) pose[k] *= scale;
      scene.setPose(Math.floor(i / count), this.links[i % count], pose);
    }
    return a;
  }
}
