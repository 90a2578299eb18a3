// Labels of a table of rows by a graph of `loclin.onnx.to_onnx`, in a browser's runtime:
//   npm install onnxruntime-web
//   node onnx.mjs model.onnx rows.json > labels.json
// rows.json has one list of values for each input of the graph, by its name: for an input "X" of several columns, a
// list of rows. Read files with fetch() in a browser; the rest stays as it is.
import fs from 'node:fs';
import * as ort from 'onnxruntime-web';

const ARRAYS = { float32: Float32Array, float64: Float64Array, int64: BigInt64Array, bool: Uint8Array, string: Array };

function tensor(values, type) {
  const rows = values.map((row) => (Array.isArray(row) ? row : [row])), flat = rows.flat();
  const numbers = type.startsWith('float') ? flat.map((v) => v ?? NaN) : flat; // null is a gap
  const data = ARRAYS[type].from(type === 'int64' ? flat.map(BigInt) : numbers);
  return new ort.Tensor(type, data, [rows.length, rows.length ? rows[0].length : 0]);
}

export async function labels(model, table) {
  ort.env.wasm.numThreads = 1;
  const session = await ort.InferenceSession.create(model);
  const feeds = Object.fromEntries(session.inputMetadata.map(({ name, type }) => [name, tensor(table[name], type)]));
  const { label } = await session.run(feeds);
  return Array.from(label.data, (one) => (typeof one === 'bigint' ? Number(one) : one));
}

const [model, rows] = process.argv.slice(2);
if (rows) {
  console.log(JSON.stringify(await labels(fs.readFileSync(model), JSON.parse(fs.readFileSync(rows)))));
}
