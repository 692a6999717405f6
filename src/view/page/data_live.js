// A data set that a program serves: its episodes to choose from, what they are about and what is wrong with them, as the
// program finds it out; an episode's pictures come from where it plays on.

const kRowsShown = 500, kPicturesAtOnce = 8;

class LiveData {
  constructor(address) {
    this.order = Promise.resolve();
    this.rows = [];  // [instruction, problems] of the episodes that have been read
    this.chosen = null;
    this.socket = new WebSocket(address);
    this.socket.binaryType = 'arraybuffer';
    this.socket.onclose = () => this.say('The program has ended, or the way to it; load the page again when it is back.');
    this.socket.onmessage = (e) => this.take(e.data);
  }

  take(data) {
    this.order = this.order.then(() => (typeof data === 'string' ? this.told(JSON.parse(data)) : this.shown(data)))
      .catch((error) => this.say(error.message));
  }

  ask(what, more = {}) { this.socket.send(JSON.stringify({ do: what, ...more })); }
  say(text) { if (this.said) this.said.textContent = text; else element('p', document.body, { textContent: text }); }

  told(m) {
    if (m.kind === 'data') this.build(m);
    if (m.kind === 'found') this.found(m);
    if (m.kind === 'filtered') this.chosen = new Set(m.episodes), this.say(''), this.list();
    if (m.kind === 'error') this.say(m.text);
  }

  build(m) {
    document.title = m.title;
    this.about = m;
    this.page = new DataPage(m.title);
    this.page.live = this;
    const page = this.page, panel = element('aside', document.body, { className: 'episodes' });
    document.body.classList.add('listed');
    const head = element('form', panel);
    this.search = element('input', head, { type: 'text', placeholder: 'words of the instruction' });
    this.search.addEventListener('input', () => this.list());
    this.rule = element('input', head, { type: 'text', placeholder: 'rules: min_steps(16) finite(action)' });
    this.rule.title = 'min_steps(N), max_steps(N), finite(FIELD), max_abs(FIELD, X), moves(FIELD), ...: as cohort data inspect --filter';
    const label = element('label', head);
    this.faulty = element('input', label, { type: 'checkbox' });
    label.append(' only those with problems');
    this.faulty.addEventListener('change', () => this.list());
    head.addEventListener('submit', (e) => {
      e.preventDefault();
      this.filter();
    });
    this.rule.addEventListener('change', () => this.filter());
    this.count = element('p', panel, { className: 'quiet' });
    this.said = element('p', panel, { className: 'fault' });
    this.table = element('div', panel, { className: 'rows' });
    const more = (title, open) => {
      const d = element('details', page.root, { open });
      element('summary', d, { textContent: title });
      return d;
    };
    this.faults = more('problems', true);
    this.statistics = more('statistics', true);
    element('pre', more('the set', false), { textContent: m.summary });
    this.list();
    if (m.steps.length > 0) this.open(0);
    window.cohort = page;
    page.ready = true;
  }

  filter() {
    const rules = this.rule.value.match(/[a-z_]+(\([^)]*\))?/g) || [];
    if (rules.length === 0) this.chosen = null, this.say(''), this.list(); else this.ask('filter', { rules });
  }

  found(m) {
    m.rows.forEach((row, i) => { this.rows[m.since + i] = row; });
    this.list();
    const all = this.about.steps.length, read = this.rows.length;
    const problems = [...this.about.problems.map((text) => [null, text])];
    this.rows.forEach(([, list], i) => list.forEach((text) => problems.push([i, text])));
    const box = element('div', null, { className: 'quiet' });
    element('p', box, { textContent: `${problems.length} found in ${read} of ${all} episodes` });
    for (const [i, text] of problems.slice(0, kRowsShown)) {
      const line = element('p', box, { className: 'fault' });
      if (i !== null) {
        const go = element('button', line, { textContent: `episode ${this.about.numbers[i]}` });
        go.addEventListener('click', () => this.open(i));
      }
      line.append(' ' + text);
    }
    this.faults.replaceChildren(this.faults.firstChild, box);
    const table = element('table', null), head = element('tr', table);
    for (const name of ['field', 'element', 'min', 'max', 'mean', 'std']) element('th', head, { textContent: name });
    for (const f of m.statistics) {
      f.mean.forEach((mean, k) => {
        const row = element('tr', table);
        element('td', row, { textContent: k === 0 ? f.name : '' });
        element('td', row, { textContent: f.elements[k] || (f.mean.length > 1 ? String(k) : '') });
        for (const x of [f.min[k], f.max[k], mean, f.std[k]]) element('td', row, { className: 'number', textContent: Number(x).toPrecision(4) });
      });
    }
    const note = element('p', null, { className: 'quiet', textContent: `over ${read} of ${all} episodes` });
    this.statistics.replaceChildren(this.statistics.firstChild, note, table);
  }

  list() {
    const words = this.search.value.toLowerCase(), a = this.about, shown = [];
    let all = 0;
    for (let i = 0; i < a.steps.length; ++i) {
      const [instruction, problems] = this.rows[i] || ['', []];
      if (this.chosen && !this.chosen.has(i)) continue;
      if (this.faulty.checked && problems.length === 0) continue;
      if (words !== '' && !instruction.toLowerCase().includes(words)) continue;
      if (++all <= kRowsShown) shown.push(i);
    }
    this.count.textContent = `${all} of ${a.steps.length} episodes${all > shown.length ? `, the first ${shown.length}` : ''}`;
    this.table.replaceChildren(...shown.map((i) => {
      const [instruction, problems] = this.rows[i] || ['', []];
      const b = element('button', null, { className: i === this.which ? 'row now' : 'row' });
      element('span', b, { textContent: `${a.numbers[i]}` });
      element('span', b, { className: 'quiet', textContent: `${a.steps[i]} steps` });
      element('span', b, { textContent: instruction, title: instruction });
      if (problems.length > 0) element('span', b, { className: 'fault', textContent: `${problems.length}`, title: problems.join('\n') });
      b.addEventListener('click', () => this.open(i));
      return b;
    }));
  }

  open(which) {
    this.which = which;
    this.list();
    this.ask('episode', { which });
  }

  async shown(buffer) {
    const kind = new DataView(buffer).getUint32(0, true), page = this.page;
    if (kind === 3) {
      const stream = new Blob([buffer.slice(4)]).stream().pipeThrough(new DecompressionStream('deflate'));
      const doc = new PackedDocument(new Uint8Array(await new Response(stream).arrayBuffer()));
      if (doc.text.which !== this.which) return;
      page.open(doc.text, doc);
      page.clock.title = doc.text.title;
      this.next();
      return;
    }
    const doc = new PackedDocument(new Uint8Array(buffer, 4)), first = doc.text.first;
    if (doc.text.which !== this.which) return;
    doc.text.cameras.forEach((c, k) => c.pictures.forEach((p, i) => { page.cameras[k].urls[first + i] = page.picture(p, doc); }));
    page.show(page.step);
    this.next();
  }

  /** Asks for the pictures that are missing, from the present step on, then from the beginning. */
  next() {
    const page = this.page, camera = page.cameras[0];
    if (!camera) return;
    let now = 0;
    while (now + 1 < camera.steps.length && camera.steps[now + 1] <= page.step) ++now;
    for (const begin of [now, 0]) {
      for (let i = begin; i < camera.steps.length; ++i) {
        if (camera.urls[i] !== undefined) continue;
        this.ask('pictures', { which: this.which, first: i, count: kPicturesAtOnce });
        return;
      }
    }
  }
}
