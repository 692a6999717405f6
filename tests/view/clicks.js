// What a person does on a page that a program serves, and what comes of it: lines "claim true" or "claim false". Within
// the page: clicked('model') gives them all.
const lines = [], say = (line) => lines.push(line), later = (ms) => new Promise((done) => setTimeout(done, ms));

/** Waits for what a program answers: a claim that does not become true is said to be false. */
async function until(claim, holds) {
  for (let i = 0; i < 600; ++i) {
    if (holds()) return say(`${claim} true`);
    await later(50);
  }
  say(`${claim} false`);
}

const set = (input, value, event = 'input') => {
  input.value = value;
  input.dispatchEvent(new Event(event));
};
const tickOf = (page, text) => [...page.side.querySelectorAll('label')].find((l) => l.textContent.trim().startsWith(text))
  .querySelector('input, select');
const buttonOf = (parent, text) => [...parent.querySelectorAll('button')].find((b) => b.textContent === text);

const served = {
  async model(page) {
    const l = page.live;
    await until('it plays', () => l.playing && page.time > 0.05);
    page.playButton.click();
    await until('paused', () => l.playing === false);
    buttonOf(page.bar, 'step').click();
    const before = page.time;
    await until('a step', () => page.time > before);
    set(page.bar.querySelector('input[type=number]'), 7, 'change');
    buttonOf(page.bar, 'reset').click();
    await until('reset', () => page.time === 0);
    set(l.speed, '0.5', 'change');
    await later(500);
    await until('speed', () => l.speed.value === '0.5');
    const joint = l.joints[l.joints.length - 1], wanted = (joint.low + joint.high) / 3;
    set(joint.input, wanted);
    await until('a joint is where its slider is', () => Math.abs(Number(joint.value.textContent) - wanted) < 1e-3);
    set(l.actor, '3', 'change');
    await until('by hand', () => !l.controls[0].input.disabled);
    const control = l.controls[0], pushed = (control.low + 3 * control.high) / 4;
    set(control.input, pushed);
    await until('a control is where its slider is', () => Math.abs(Number(control.value.textContent) - pushed) < 1e-3);
    set(l.actor, '1', 'change');
    await until('nobody by hand', () => l.controls[0].input.disabled);
    page.contactTick.click();
    await later(200);
    page.playButton.click();
    await until('contacts', () => page.contacts.length > 0 && page.drawing.marks[0].instances >= page.contacts.length);
    await until('contacts are counted', () => page.touching.textContent === `${page.contacts.length} contacts` && !page.touching.hidden);
    page.contactTick.click();
    await until('no contacts', () => page.contacts.length === 0 && page.drawing.marks[0].instances === 0);
    const all = page.drawing.groups.reduce((sum, g) => sum + g.instances, 0);
    set(tickOf(page, 'environment'), '1', 'change');
    await until('one environment', () => page.env === '1' && page.drawing.groups.reduce((sum, g) => sum + g.instances, 0) < all);
    const distance = page.free.distance;
    page.free.zoom(3);
    buttonOf(page.side, 'whole scene').click();
    await until('whole scene', () => page.free.distance < 2.9 * distance);
    const tick = tickOf(page, 'follow'), target = page.free.target.join();
    tick.click();
    await until('followed', () => page.follow && page.free.target.join() !== target);
    const groups = page.drawing.groups.length;
    for (const box of page.side.querySelectorAll('input[type=checkbox]'))
      if (box.checked && box.parentElement.textContent.includes('group')) box.click();
    await until('groups are hidden', () => groups > 0 && page.drawing.groups.length === 0);
    page.canvas.dispatchEvent(new KeyboardEvent('keydown', { key: ' ', bubbles: true, cancelable: true }));
    await until('the space bar pauses', () => l.playing === false);
    l.ask('nothing of the kind');
    await until('what cannot be done is said', () => l.status.textContent.includes('cannot be done'));
    if (page.scene.cameras.length > 0) {
      set(page.cameraChoice, '0', 'change');
      await until('a camera', () => page.camera === '0');
    }
  },
  async task(page) {
    const l = page.live;
    await until('it plays', () => l.playing && page.time > 0.05);
    const c = l.commands[0], wanted = c.high * 0.5;
    set(c.input, wanted);
    await until('a command is where its slider is', () => Math.abs(Number(c.value.textContent) - wanted) < 1e-3 && !l.release.disabled);
    l.release.click();
    await until('the task draws commands again', () => l.release.disabled);
    set(l.actor, '1', 'change');
    await until('another acts', () => l.actor.value === '1');
    await until('curves', () => page.curvesPanel.querySelectorAll('canvas').length === l.names.length);
    await until('episodes are counted', () => l.status.textContent.includes('episode'));
  },
  async data(page) {
    const l = page.live, rows = () => l.table.querySelectorAll('button');
    const all = l.about.steps.length;
    await until('all are listed', () => rows().length === all && page.episode);
    await until('pictures come', () => page.cameras.length > 0 && page.cameras.every((c) => c.image.naturalWidth > 0));
    await until('all are read', () => l.rows.length === all);
    page.playButton.click();
    await until('it plays', () => page.step > 1);
    page.playButton.click();
    const step = page.step;
    await later(300);
    say(`paused ${page.step === step}`);
    set(page.scrub, 2);
    say(`at step 2 ${page.step === 2 && page.clock.textContent.startsWith('step 2')}`);
    set(page.speed, '50', 'change');
    say(`speed ${page.speed.value === '50'}`);
    rows()[1].click();
    await until('the next episode', () => page.episode.which === 1 && page.episode.steps === l.about.steps[1]);
    set(l.search, 'no such words');
    say(`no such words ${rows().length === 0}`);
    set(l.search, l.rows[0][0]);
    say(`words ${rows().length > 0}`);
    set(l.search, '');
    const shortest = Math.min(...l.about.steps);
    set(l.rule, `min_steps(${shortest + 1})`, 'change');
    await until('a rule', () => rows().length > 0 && rows().length < all);
    set(l.rule, 'none_such(3)', 'change');
    await until('a wrong rule is said', () => l.said.textContent.includes('none_such'));
    set(l.rule, '', 'change');
    await until('no rule', () => rows().length === all);
    const faulty = l.rows.filter((row) => row[1].length > 0).length;
    l.faulty.click();
    say(`only those with problems ${rows().length === faulty && faulty > 0}`);
    l.faulty.click();
    const go = [...l.faults.querySelectorAll('button')].pop();
    go.click();
    await until('a problem leads to its episode', () => page.episode.which === l.rows.length - 1);
    say(`statistics ${l.statistics.querySelectorAll('td').length > 10}`);
    page.root.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }));
    say(`a key goes a step on ${page.step === 1}`);
  },
};

async function clicked(what) {
  while (!window.cohort || !window.cohort.ready) await later(20);
  await served[what](window.cohort);
  return lines.join('\n');
}
