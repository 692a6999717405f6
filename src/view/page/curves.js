// Curves of numbers over time, one below the other, with a line at the present time.

class Curves {
  constructor(parent) {
    this.parent = parent;
    this.rows = new Map();
  }

  row(name) {
    if (this.rows.has(name)) return this.rows.get(name);
    const box = document.createElement('div'), head = document.createElement('div'), canvas = document.createElement('canvas');
    const label = document.createElement('span'), value = document.createElement('span');
    head.className = 'name';
    label.textContent = name;
    head.append(label, value);
    box.append(head, canvas);
    this.parent.append(box);
    const row = { canvas, value };
    this.rows.set(name, row);
    return row;
  }

  /** time and values: arrays of the same length; now: where the line stands. */
  draw(name, time, values, now) {
    const { canvas, value } = this.row(name);
    const ratio = window.devicePixelRatio || 1, w = Math.max(1, Math.round(canvas.clientWidth * ratio)), h = Math.round(44 * ratio);
    if (canvas.width !== w || canvas.height !== h) canvas.width = w, canvas.height = h;
    const c = canvas.getContext('2d');
    c.clearRect(0, 0, w, h);
    const n = values.length;
    if (n === 0) return;
    let low = Infinity, high = -Infinity, at = 0;
    for (let i = 0; i < n; ++i) {
      if (!Number.isFinite(values[i])) continue;
      low = Math.min(low, values[i]);
      high = Math.max(high, values[i]);
      if (time[i] <= now + 1e-6) at = i;
    }
    if (low > high) return;
    const pad = 3 * ratio, span = Math.max(high - low, 1e-9), begin = time[0], length = Math.max(time[n - 1] - begin, 1e-9);
    const x = (t) => pad + (w - 2 * pad) * (t - begin) / length, y = (v) => h - pad - (h - 2 * pad) * (v - low) / span;
    if (low < 0 && high > 0) {
      c.strokeStyle = '#3a4150';
      c.beginPath();
      c.moveTo(0, y(0));
      c.lineTo(w, y(0));
      c.stroke();
    }
    c.strokeStyle = '#4ea1ff';
    c.lineWidth = 1.5 * ratio;
    c.beginPath();
    for (let i = 0; i < n; ++i) {
      if (i === 0) c.moveTo(x(time[i]), y(values[i])); else c.lineTo(x(time[i]), y(values[i]));
    }
    c.stroke();
    c.strokeStyle = '#e6e9ef';
    c.lineWidth = ratio;
    c.beginPath();
    c.moveTo(x(now), 0);
    c.lineTo(x(now), h);
    c.stroke();
    value.textContent = Number(values[at]).toPrecision(4);
  }
}
