'use strict';
// Drawn digits as images of the data set, and the reasons for what a model says of them.

// The data set's images: a digit fills the height of 32 x 32 pixels, and at most 20 of their width, by a pen that
// leaves about 310 pixels of ink. Each of 8 x 8 squares counts the ink of its 4 x 4 pixels.
const PIXELS = 32, WIDEST = 20, INK = 310, SQUARES = 8, THINNEST = 1.5, THICKEST = 4.5;

// Distance from a point to the line between two others.
function distance([x, y], [ax, ay], [bx, by]) {
  const dx = bx - ax, dy = by - ay, length = dx * dx + dy * dy;
  const t = length ? Math.min(1, Math.max(0, ((x - ax) * dx + (y - ay) * dy) / length)) : 0;
  return Math.hypot(x - ax - t * dx, y - ay - t * dy);
}

// Strokes, lists of points, moved to the middle of the pixels, with room for half a pen around them.
function placed(strokes, pen) {
  const ends = (k) => strokes.flat().reduce(([a, b], p) => [Math.min(a, p[k]), Math.max(b, p[k])], [Infinity, -Infinity]);
  const low = [0, 1].map((k) => ends(k)[0]), size = [0, 1].map((k) => ends(k)[1] - low[k]);
  const high = (PIXELS - 2 * pen) / Math.max(size[1], size[0] / 3, 1e-9); // a dash stays one
  const scale = [Math.min(high, (WIDEST - 2 * pen) / Math.max(size[0], 1e-9)), high];
  return strokes.map((stroke) => stroke.map((p) => p.map((v, k) => PIXELS / 2 + (v - low[k] - size[k] / 2) * scale[k])));
}

// How far each pixel is from the strokes, row by row.
function distances(strokes) {
  const lines = strokes.flatMap((s) => (s.length > 1 ? s.slice(1).map((p, i) => [s[i], p]) : [[s[0], s[0]]]));
  return Array.from({ length: PIXELS * PIXELS }, (_, i) => {
    const middle = [i % PIXELS + 0.5, Math.floor(i / PIXELS) + 0.5];
    return lines.reduce((least, [a, b]) => Math.min(least, distance(middle, a, b)), Infinity);
  });
}

// Half the width of the pen that leaves so much ink.
function penFor(away) {
  return Math.min(THICKEST, Math.max(THINNEST, [...away].sort((a, b) => a - b)[INK]));
}

// The image of strokes: 64 counts from 0 to 16, row by row.
function imageOf(strokes) {
  const first = penFor(distances(placed(strokes, THICKEST / 2))), away = distances(placed(strokes, first));
  const pen = penFor(away), image = new Array(SQUARES * SQUARES).fill(0), side = PIXELS / SQUARES;
  away.forEach((d, i) => {
    if (d <= pen) image[Math.floor(i / PIXELS / side) * SQUARES + Math.floor((i % PIXELS) / side)] += 1;
  });
  return image;
}

// What speaks for the winner against the second, square by square, compared with a reference image. `base` is what
// the local model says of the reference: base and parts add up to the difference of the two scores.
function reasons(scores, local, image, reference) {
  const [first, second] = scores.map((_, y) => y).sort((a, b) => scores[b] - scores[a]);
  const coef = local[first].coef.map((v, i) => v - local[second].coef[i]);
  const parts = coef.map((v, i) => v * (image[i] - reference[i]));
  const base = coef.reduce((t, v, i) => t + v * reference[i], local[first].intercept - local[second].intercept);
  return { first, second, parts, base, difference: scores[first] - scores[second] };
}

// Strokes as text for the address of the page, and back: "x,y+x,y;x,y+...".
const textOf = (strokes) => strokes.map((s) => s.map((p) => p.map(Math.round).join()).join('+')).join(';');
const strokesOf = (text) => text.split(';').map((s) => s.split('+').map((p) => p.split(',').map(Number))
  .filter(([x, y]) => Math.abs(x) <= 1000 && Math.abs(y) <= 1000)).filter((s) => s.length); // others are no points

const digits = { imageOf, reasons, textOf, strokesOf };
if (typeof module === 'object') module.exports = digits;
