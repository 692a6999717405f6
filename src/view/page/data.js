// Recorded episodes: pictures of their cameras, curves of their numbers, one time for all.

class DataPage {
  constructor(title) {
    this.step = 0;
    const root = this.root = element('main', document.body, { className: 'data' });
    element('h1', root, { textContent: title });
    this.head = element('div', root, { className: 'controls' });
    this.playButton = element('button', this.head, { textContent: 'play', title: 'space' });
    this.playButton.addEventListener('click', () => this.play(!this.timer));
    this.speed = choice(this.head, 'steps a second', [1, 5, 10, 20, 50, 100].map((v) => [String(v), String(v)]), () => {
      if (this.timer) this.play(true);
    });
    this.speed.value = '10';
    this.scrub = element('input', this.head, { type: 'range', min: 0, step: 1, value: 0 });
    this.scrub.setAttribute('aria-label', 'step');
    this.scrub.addEventListener('input', () => { this.play(false); this.show(Number(this.scrub.value)); });
    this.clock = element('span', this.head, { className: 'time' });
    this.instruction = element('p', root);
    this.pictures = element('div', root, { className: 'pictures' });
    this.plots = element('div', root, { className: 'plots' });
    this.curves = new Curves(this.plots, 90);
    window.addEventListener('resize', () => { if (this.episode) this.show(this.step); });
    window.addEventListener('keydown', (e) => {
      if (e.target.closest('button, input, select')) return;
      if (e.key === ' ') e.preventDefault(), this.playButton.click();
      const by = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
      if (by && this.episode) this.play(false), this.show(Math.max(0, Math.min(this.episode.steps - 1, this.step + by)));
    });
  }

  /** An episode as episode_json() of src/view/data_page.cpp has it, whose arrays are in `doc`. */
  open(e, doc) {
    this.play(false);
    this.episode = e;
    this.instruction.textContent = e.instruction;
    for (const camera of this.cameras || []) for (const url of camera.urls) if (url) URL.revokeObjectURL(url);
    this.pictures.replaceChildren();
    this.cameras = e.cameras.map((c) => {
      const figure = element('figure', this.pictures), image = element('img', figure, { alt: c.name });
      const caption = element('figcaption', figure, { textContent: c.name });
      return { ...c, image, caption, urls: c.pictures.map((p) => this.picture(p, doc)) };
    });
    this.curves.clear();
    this.time = Array.from({ length: e.steps }, (_, i) => i);
    this.lines = e.curves.map((c) => {
      const values = doc.array(c.values);
      return { name: c.name, elements: c.elements,
        lines: Array.from({ length: c.width }, (_, k) => values.filter((_v, i) => i % c.width === k)) };
    });
    this.scrub.max = Math.max(0, e.steps - 1);
    this.show(0);
  }

  /** "": there is none, or it is damaged. */
  picture(reference, doc) {
    return reference.count > 0 ? URL.createObjectURL(new Blob([doc.array(reference)])) : '';
  }

  show(step) {
    this.step = step;
    this.scrub.value = step;
    this.clock.textContent = `step ${step} of ${this.episode.steps}`;
    for (const c of this.cameras) {
      let at = 0;
      while (at + 1 < c.steps.length && c.steps[at + 1] <= step) ++at;
      const url = c.urls[at];
      if (url === undefined) continue;  // on its way
      if (url === '') c.image.removeAttribute('src'); else if (c.image.src !== url) c.image.src = url;
      c.caption.textContent = url === '' ? `${c.name}: no picture that can be read` : c.name;
    }
    for (const l of this.lines) this.curves.draw(l.name, this.time, l.lines, step, l.elements);
  }

  play(on) {
    clearInterval(this.timer);
    this.timer = null;
    this.playButton.textContent = on ? 'pause' : 'play';
    if (!on || !this.episode) return;
    if (this.step + 1 >= this.episode.steps) this.show(0);
    this.timer = setInterval(() => {
      if (this.step + 1 >= this.episode.steps) this.play(false); else this.show(this.step + 1);
    }, 1000 / Number(this.speed.value));
  }
}

/** The page of a file: its episodes are in it. */
function openDataFile(doc) {
  const t = doc.text, page = new DataPage(t.title);
  const which = choice(page.head, 'episode', t.episodes.map((e, i) => [String(i), e.title]), (i) => page.open(t.episodes[Number(i)], doc));
  page.head.prepend(which.parentElement);
  element('pre', page.root, { textContent: t.summary });
  if (t.episodes.length > 0) page.open(t.episodes[0], doc);
  return page;
}
