'use strict';
// The page: from the pointer to strokes, and from strokes to what is shown. `reader` and `digits` are loaded before.
{
  const EXAMPLE = '72,14+40,14+35,45+50,40+64,46+70,60+66,75+54,83+40,82+30,74';
  const { description, reference, accuracy } = JSON.parse(document.getElementById('data').textContent);
  const at = (id) => document.getElementById(id), pad = at('pad'), pen = pad.getContext('2d');
  const signed = (v) => (v < 0 ? '\u2212' : '+') + Math.abs(v).toFixed(2);
  let strokes = []; // lists of points, from 0 to 100 across and down

  const squares = (fill, text = () => '') => Array.from({ length: 64 }, (_, i) => {
    const x = 10 * (i % 8) + 0.3, y = 10 * Math.floor(i / 8) + 0.3;
    return `<rect x="${x}" y="${y}" fill="${fill(i)}"/><text x="${x + 4.7}" y="${y + 4.7}">${text(i)}</text>`;
  }).join('');

  function draw() {
    pen.clearRect(0, 0, pad.width, pad.height);
    Object.assign(pen, { lineWidth: 42, lineCap: 'round', lineJoin: 'round', strokeStyle: '#1d2733' });
    for (const stroke of strokes) {
      pen.beginPath();
      stroke.concat([stroke[0]].slice(stroke.length - 1)).forEach(([x, y]) => pen.lineTo(x * pad.width / 100, y * pad.height / 100));
      pen.stroke();
    }
  }

  function tell() {
    const empty = !strokes.length, image = empty ? new Array(64).fill(0) : digits.imageOf(strokes);
    at('seen').innerHTML = squares((i) => `rgb(${['red', 'green', 'blue'].map(() => 255 - 14 * image[i])})`);
    for (const id of ['label', 'chances', 'why', 'sum', 'legend']) at(id).textContent = '';
    at('question').textContent = 'Why?';
    at('label').textContent = empty ? '?' : '';
    if (empty) return;
    const [scores] = reader.decisions(description, [image]), [chances] = reader.probabilities(description, [image]);
    const [local] = reader.localModel(description, [image]);
    tellWhy(digits.reasons(scores, local, image, reference), image, chances);
  }

  function tellWhy({ first, second, parts, base, difference }, image, chances) {
    const [one, other] = [first, second].map((y) => description.classes[y]);
    at('label').textContent = one;
    at('chances').innerHTML = chances.map((p, y) => {
      const kind = y === first ? 'first' : y === second ? 'second' : '';
      return `<span>${description.classes[y]}</span><i class="${kind}" style="width:${100 * p}%"></i><span>${(100 * p).toFixed(1)} %</span>`;
    }).join('');
    const largest = Math.max(...parts.map(Math.abs));
    const shade = (i) => `color-mix(in srgb, var(--${parts[i] > 0 ? 'for' : 'against'}) ${90 * Math.abs(parts[i]) / largest}%, white)`;
    at('question').textContent = `Why ${one}, and not ${other}?`;
    at('why').innerHTML = squares(shade, (i) => (Math.abs(parts[i]) < 0.005 ? '' : signed(parts[i])));
    at('why').querySelectorAll('text').forEach((text, i) => {
      text.classList.toggle('light', Math.abs(parts[i]) > 0.7 * largest);
    });
    at('why').querySelectorAll('rect').forEach((square, i) => square.classList.toggle('inked', image[i] > 7));
    const total = parts.reduce((a, b) => a + b);
    at('sum').innerHTML = `Score of ${one} less that of ${other}: <b>${signed(difference)}</b> = `
      + `${signed(total)} by the squares, ${signed(base)} by the average digit`;
    at('legend').innerHTML = `<span class="for">Blue</span> squares speak for ${one}, <span class="against">red</span> `
      + `ones for ${other}: this digit has more or less ink there than the average one. Framed squares have ink. The numbers `
      + 'add up, but for their rounding.';
  }

  function show(text) {
    strokes = text ? digits.strokesOf(text) : [];
    draw();
    tell();
  }

  const point = (event) => {
    const box = pad.getBoundingClientRect();
    return [100 * (event.clientX - box.left) / box.width, 100 * (event.clientY - box.top) / box.height];
  };
  pad.onpointerdown = (event) => {
    pad.setPointerCapture(event.pointerId);
    strokes.push([point(event)]);
    draw();
  };
  pad.onpointermove = (event) => {
    if (!pad.hasPointerCapture(event.pointerId)) return;
    strokes[strokes.length - 1].push(point(event));
    draw();
  };
  pad.onpointerup = () => { // the address holds the drawing: it can be sent, and loaded again
    history.replaceState(null, '', `#${digits.textOf(strokes)}`);
    tell();
  };
  at('clear').onclick = () => { history.replaceState(null, '', '#'); show(''); };
  at('example').onclick = () => show(EXAMPLE);
  window.onhashchange = () => show(location.hash.slice(1));
  at('accuracy').textContent = `${(100 * accuracy).toFixed(1)} %`;
  show(location.hash.slice(1));
}
