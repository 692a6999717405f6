// Curves of numbers over time, one plot below the other, with a line at the present time.

const kColours = ['#4ea1ff', '#ff9f43', '#5fd38d', '#ff6b81', '#b18cff', '#f6d743', '#4dd0d9', '#c9c9c9'];

class Curves {
  constructor(parent, height = 44) {
    this.parent = parent;
    this.height = height;
    this.rows = new Map();
  }

  clear() {
    this.rows.clear();
    this.parent.replaceChildren();
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

  /** lines: one array of values, or several, as long as time; now: where the line stands; names: of several. */
  draw(name, time, lines, now, names = []) {
    if (lines.length > 0 && !Array.isArray(lines[0]) && !ArrayBuffer.isView(lines[0])) lines = [lines];
    const { canvas, value } = this.row(name);
    const ratio = window.devicePixelRatio || 1, w = Math.max(1, Math.round(canvas.clientWidth * ratio)), h = Math.round(this.height * ratio);
    if (canvas.width !== w || canvas.height !== h) canvas.width = w, canvas.height = h;
    const c = canvas.getContext('2d');
    c.clearRect(0, 0, w, h);
    const n = time.length;
    if (n === 0) return;
    let low = Infinity, high = -Infinity, at = 0;
    for (let i = 0; i < n && time[i] <= now + 1e-6; ++i) at = i;
    for (const values of lines) {
      for (let i = 0; i < n; ++i) {
        if (!Number.isFinite(values[i])) continue;
        low = Math.min(low, values[i]);
        high = Math.max(high, values[i]);
      }
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
    c.lineWidth = 1.5 * ratio;
    lines.forEach((values, k) => {
      c.strokeStyle = kColours[k % kColours.length];
      c.beginPath();
      for (let i = 0; i < n; ++i) {
        if (i === 0) c.moveTo(x(time[i]), y(values[i])); else c.lineTo(x(time[i]), y(values[i]));
      }
      c.stroke();
    });
    c.strokeStyle = '#e6e9ef';
    c.lineWidth = ratio;
    c.beginPath();
    c.moveTo(x(now), 0);
    c.lineTo(x(now), h);
    c.stroke();
    value.replaceChildren();
    lines.slice(0, 8).forEach((values, k) => {
      const one = element('span', value, { textContent: ` ${names[k] || ''} ${Number(values[at]).toPrecision(3)}` });
      if (lines.length > 1) one.style.color = kColours[k];
    });
  }
}
