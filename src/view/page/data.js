// Recorded episodes: pictures of their cameras, curves of their numbers, one time for all.

class DataPage {
  constructor(doc) {
    this.doc = doc;
    this.step = 0;
    const t = doc.text, root = element('main', document.body, { className: 'data' });
    element('h1', root, { textContent: t.title });
    const head = element('div', root, { className: 'controls' });
    choice(head, 'episode', t.episodes.map((e, i) => [String(i), e.title]), (i) => this.open(Number(i)));
    this.playButton = element('button', head, { textContent: 'play' });
    this.playButton.addEventListener('click', () => this.play(!this.timer));
    this.scrub = element('input', head, { type: 'range', min: 0, step: 1, value: 0 });
    this.scrub.setAttribute('aria-label', 'step');
    this.scrub.addEventListener('input', () => { this.play(false); this.show(Number(this.scrub.value)); });
    this.clock = element('span', head, { className: 'time' });
    this.instruction = element('p', root);
    this.pictures = element('div', root, { className: 'pictures' });
    this.plots = element('div', root, { className: 'plots' });
    this.curves = new Curves(this.plots, 90);
    element('pre', root, { textContent: t.summary });
    window.addEventListener('resize', () => this.show(this.step));
    if (t.episodes.length > 0) this.open(0);
  }

  open(number) {
    this.play(false);
    const e = this.episode = this.doc.text.episodes[number];
    this.instruction.textContent = e.instruction;
    for (const camera of this.cameras || []) for (const url of camera.urls) URL.revokeObjectURL(url);
    this.pictures.replaceChildren();
    this.cameras = e.cameras.map((c) => {
      const figure = element('figure', this.pictures), image = element('img', figure, { alt: c.name });
      element('figcaption', figure, { textContent: c.name });
      const urls = c.pictures.map((p) => URL.createObjectURL(new Blob([this.doc.array(p)])));
      return { ...c, image, urls };
    });
    this.curves.clear();
    this.time = Array.from({ length: e.steps }, (_, i) => i);
    this.lines = e.curves.map((c) => {
      const values = this.doc.array(c.values);
      return { name: c.name, elements: c.elements,
        lines: Array.from({ length: c.width }, (_, k) => values.filter((_v, i) => i % c.width === k)) };
    });
    this.scrub.max = Math.max(0, e.steps - 1);
    this.show(0);
  }

  show(step) {
    this.step = step;
    this.scrub.value = step;
    this.clock.textContent = `step ${step} of ${this.episode.steps}`;
    for (const c of this.cameras) {
      let at = 0;
      while (at + 1 < c.steps.length && c.steps[at + 1] <= step) ++at;
      if (c.urls.length > 0 && c.image.src !== c.urls[at]) c.image.src = c.urls[at];
    }
    for (const l of this.lines) this.curves.draw(l.name, this.time, l.lines, step, l.elements);
  }

  play(on) {
    clearInterval(this.timer);
    this.timer = null;
    this.playButton.textContent = on ? 'pause' : 'play';
    if (!on) return;
    this.timer = setInterval(() => {
      if (this.step + 1 >= this.episode.steps) this.play(false); else this.show(this.step + 1);
    }, 100);
  }
}
