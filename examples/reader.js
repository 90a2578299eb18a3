'use strict';
// A reader of descriptions, written from docs/format.md: `loclin.portable.describe(model).to_dict()` as JSON.
const NAMED = { inf: Infinity, '-inf': -Infinity, nan: NaN }, TEXTS = ['word', 'into', 'by']; // parts that are text
const dot = (a, b) => { let t = 0; for (let i = 0; i < a.length; i++) t += a[i] * b[i]; return t; };
const sum = (a) => a.reduce((t, v) => t + v, 0);
const argmax = (a) => a.reduce((best, v, i) => (v > a[best] ? i : best), 0);
const shares = (e) => e.map((v) => v / sum(e));
const softmax = (u) => shares(u.map((v) => Math.exp(v - Math.max(...u))));

// Arrays become nested lists, the names of numbers numbers; words and lists are read part by part.
function read(v) {
  if (typeof v === 'string') return NAMED[v];
  if (v === null || typeof v !== 'object' || Array.isArray(v)) return v && v.map ? v.map(read) : v;
  if ('word' in v) return Object.fromEntries(Object.entries(v).map(([k, u]) => [k, TEXTS.includes(k) ? u : read(u)]));
  const rows = (flat, size) => Array.from({ length: flat.length / size }, (_, i) => flat.slice(i * size, (i + 1) * size));
  return v.shape.slice(1).reverse().reduce(rows, v.values.map(read));
}

function solve(A) { // A w = 1 by Gauss-Jordan with partial pivoting
  const M = A.map((row) => [...row, 1]);
  for (let c = 0; c < M.length; c++) {
    const p = M.reduce((best, row, r) => (r > c && Math.abs(row[c]) > Math.abs(M[best][c]) ? r : best), c);
    [M[c], M[p]] = [M[p], M[c]];
    for (let r = 0; r < M.length; r++) {
      if (r !== c) M[r] = M[r].map((v, k, row) => v - (row[c] / M[c][c]) * M[c][k]);
    }
  }
  return M.map((row, r) => row[M.length] / row[r]);
}

// Coders: from z to the codes that all scorers share.
const coders = {
  LinearGates({ coef, intercept, into }, z) {
    const u = coef.map((a, j) => dot(a, z) + intercept[j]);
    if (into === 'softmax') return softmax(u);
    if (into === 'one_hot') return u.map((_, j) => (j === argmax(u) ? 1 : 0));
    const norm = into === 'l1' ? sum(u.map(Math.abs)) : Math.hypot(...u);
    return norm === 0 ? u : u.map((v) => v / norm);
  },
  NearestAnchors({ anchors, n_neighbors, by, parameter }, z) {
    const away = anchors.map((v) => v.map((a, i) => a - z[i])), D = away.map((v) => dot(v, v));
    const near = D.map((_, j) => j).sort((a, b) => D[a] - D[b] || a - b).slice(0, n_neighbors);
    let w;
    if (by === 'exp') w = near.map((j) => Math.exp(-parameter * (D[j] - D[near[0]])));
    else if (by === 'inverse') w = near.map((j) => (D[near[0]] === 0 ? Number(D[j] === 0) : 1 / Math.sqrt(D[j])));
    else {
      const ridge = parameter * (sum(near.map((j) => D[j])) || 1);
      w = solve(near.map((j) => near.map((l) => dot(away[j], away[l]) + (j === l ? ridge : 0))));
    }
    return anchors.map((_, j) => (near.includes(j) ? w[near.indexOf(j)] / sum(w) : 0));
  },
  TreePath({ coef, intercept }, z) {
    const u = coef.map((a, j) => dot(a, z) + intercept[j]), g = (coef.length - 1) / 3;
    const codes = new Array(2 * g + 1).fill(0);
    for (let k = 0; ; k = u[k] > 0 ? 2 * k + 1 : 2 * k + 2) {
      codes[k] = Math.tanh(u[g + k]);
      if (k >= g) return codes;
    }
  },
  Leaves({ roots, feature, threshold, children }, z) {
    const codes = new Array(feature.length + roots.length).fill(0);
    for (let k of roots) {
      while (k >= 0) k = children[k][z[feature[k]] <= threshold[k] ? 0 : 1];
      codes[-1 - k] = 1;
    }
    return codes;
  },
  TangentCodes({ weights, anchors, tangents, scale }, z) {
    const w = coders[weights.word](weights, z), away = anchors.map((v) => v.map((a, i) => z[i] - a));
    return w.flatMap((weight, k) => [scale * weight, ...tangents[k].map((t) => weight * dot(t, away[k]))]);
  },
};

function pooled(q, r) {
  const p = r.map((v) => Math.max(v, 0)), top = argmax(p);
  if (q === Infinity) return p.map((v, j) => Number(j === top && v > 0));
  const N = p[top] * sum(p.map((v) => (v / p[top]) ** q)) ** (1 / q); // scaled by the largest: no overflow
  return p.map((v) => (v > 0 ? (v / N) ** (q - 1) : 0));
}

const rising = ({ feature, low, high }, row) => feature.map((i, k) => // pieces of features
  (Math.min(Math.max(row[i], low[k]), high[k]) - low[k]) / (high[k] - low[k]));

const responses = ({ coef, intercept }, x, y) => intercept[y].map((v, j) => // of the models of scorer y
  (coef ? dot(coef[coef.length === 1 ? 0 : y][j], x) + v : v));

// What each scorer makes of a row: its codes, and the responses of its models.
function scorers(term, row) {
  const { coder, root, centre, scale, columns, pieces } = term, taken = columns ? columns.map((i) => row[i]) : row;
  const seen = pieces ? [...taken, ...rising(pieces, taken)] : taken;
  const x = seen.map((v, i) => (v - (centre ? centre[i] : 0)) / (scale ? scale[i] : 1));
  const z = !root ? x : x.map((v, i) => (Array.isArray(root[0]) ? dot(x, root.map((row) => row[i])) : v * root[i]));
  const own = { ConstantCode: (y) => coder.codes[y], Pooling: (y, r) => pooled(coder.q, r),
    CodesByScorer: (y) => coders[coder.parts[y].word](coder.parts[y], z) }[coder.word];
  const shared = own ? null : coders[coder.word](coder, z);
  return term.bias.map((_, y) => {
    const r = responses(term, x, y);
    return { codes: shared || own(y, r), r };
  });
}

const scores = (term, row) => scorers(term, row).map(({ codes, r }, y) => [term.bias[y] + dot(codes, r)]);

// The linear function that each scorer is at a row, of the row as it is given: [constant, slope, slope ...].
function linear(term, row) {
  const { coef, intercept, bias, centre, scale, columns, pieces } = term;
  const places = columns || row.map((_, i) => i), d = places.length;
  return scorers(term, row).map(({ codes }, y) => {
    const found = new Array(row.length + 1).fill(0), models = coef && coef[coef.length === 1 ? 0 : y];
    found[0] = bias[y] + dot(codes, intercept[y]);
    const slopes = !coef ? [] : models[0].map((_, i) => sum(codes.map((c, j) => c * models[j][i])) / (scale ? scale[i] : 1));
    if (centre && coef) found[0] -= dot(slopes, centre);
    slopes.slice(0, d).forEach((v, i) => { found[places[i] + 1] += v; });
    slopes.slice(d).forEach((v, k) => { // a piece is constant outside, and rises inside
      const i = places[pieces.feature[k]], low = pieces.low[k], width = pieces.high[k] - low;
      if (row[i] >= pieces.high[k]) found[0] += v;
      else if (row[i] >= low) { found[i + 1] += v / width; found[0] -= v * low / width; }
    });
    return found;
  });
}

// What has to be there: of a description, of a term, and of each word.
const KEYS = ['terms', 'classes', 'n_features', 'multilabel', 'temperature', 'smoothing'];
const PARTS = { Term: ['coder', 'coef', 'intercept', 'bias', 'root', 'factor', 'centre', 'scale', 'columns', 'pieces'],
  Pieces: ['feature', 'low', 'high'], ConstantCode: ['codes'], LinearGates: ['coef', 'intercept', 'into'],
  NearestAnchors: ['anchors', 'n_neighbors', 'by', 'parameter'], TreePath: ['coef', 'intercept'],
  Leaves: ['roots', 'feature', 'threshold', 'children'], Pooling: ['q'], TangentCodes: ['weights', 'anchors', 'tangents', 'scale'],
  CodesByScorer: ['parts'] };

function refuseLacking(parts, of, what) {
  const lacks = parts.filter((part) => !Object.hasOwn(of, part));
  if (lacks.length) throw new Error(`${what} lacks ${lacks.join(', ')}`);
}

function checkWords(v) {
  if (v === null || typeof v !== 'object') return;
  if ('word' in v && !Object.hasOwn(PARTS, v.word)) throw new Error(`unknown word ${v.word}`);
  if ('word' in v) refuseLacking(PARTS[v.word], v, v.word);
  Object.values(v).forEach(checkWords);
}

function check(description, rows) {
  if (description.format !== 1) throw new Error('unknown format');
  refuseLacking(KEYS, description, 'the description');
  checkWords(description.terms);
  const d = description.n_features, isRow = (row) => Array.isArray(row) && row.length === d && row.every(Number.isFinite);
  if (!Array.isArray(rows) || !rows.every(isRow)) throw new Error(`give a list of rows, each of ${d} finite numbers`);
}

// All terms together: for each row, one list for each decision.
function combined(description, rows, say) {
  check(description, rows);
  const terms = read(description.terms), two = description.classes.length === 2 && !description.multilabel;
  const of = (term, f) => (two && f.length === 2 ? [f[1].map((v, i) => v - f[0][i])] : f).map((a) => a.map((v) => v * term.factor));
  const add = (a, b) => a.map((parts, y) => parts.map((v, i) => v + b[y][i]));
  return rows.map((row) => terms.map((term) => of(term, say(term, row))).reduce(add));
}

const decisions = (description, rows) => combined(description, rows, scores).map((d) => d.map(([v]) => v));

const localModel = (description, rows) => combined(description, rows, linear).map((d) =>
  d.map(([intercept, ...coef]) => ({ coef, intercept })));

function predict(description, rows) {
  const { classes, multilabel } = description, chosen = (d) => classes[d.length === 1 ? Number(d[0] > 0) : argmax(d)];
  return decisions(description, rows).map((d) => (multilabel ? classes.filter((_, i) => d[i] > 0) : chosen(d)));
}

function probabilities(description, rows) {
  const { smoothing, multilabel, classes } = description, T = read(description.temperature);
  if (T === null) return null;
  return decisions(description, rows).map((d) => {
    if (multilabel) return d.map((v, i) => (1 - smoothing) / (1 + Math.exp(-v / T[i])) + smoothing / 2);
    const p = softmax((classes.length === 2 ? [0, ...d] : d).map((v) => v / T));
    return p.map((v) => v * (1 - smoothing) + smoothing / classes.length);
  });
}

const reader = { decisions, localModel, predict, probabilities };
if (typeof module === 'object') module.exports = reader; // else a browser, where it is a global
