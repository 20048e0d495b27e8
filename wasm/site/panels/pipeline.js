// The picture filter as a batch. A picture is planes of red, green and blue, uploaded and read back as bytes; filters reach beyond a pixel, so that the
// planes have a margin, which repeats the outermost pixels.

import { tensor } from "../wavelane/wavelane.js";

const luma = [0.299, 0.587, 0.114]; // ITU-R BT.601
const row = [1, 4, 6, 4, 1];
const gaussian = row.flatMap((a) => row.map((b) => (a * b) / 256)); // the binomial filter of five
const weights = {
  blur: tensor(new Float32Array([gaussian, gaussian, gaussian].flat()), [3, 1, 5, 5]), // each colour by itself
  grey: tensor(new Float32Array(luma), [1, 3, 1, 1]),
  sobelX: tensor(new Float32Array([-1, 0, 1, -2, 0, 2, -1, 0, 1]), [1, 1, 3, 3]),
  sobelY: tensor(new Float32Array([-1, -2, -1, 0, 0, 0, 1, 2, 1]), [1, 1, 3, 3]),
};

export const margin = ({ blur, edges }) => (blur ? 2 : 0) + (edges ? 1 : 0);

/** What the sliders are to the plan: colours become contrast·x + offset; pixels above the threshold white. */
export const levels = ({ brightness, contrast, threshold }) => ({
  contrast: new Float32Array([contrast]),
  offset: new Float32Array([0.5 - 0.5 * contrast + brightness]), // contrast is about mid-grey
  threshold: new Float32Array([threshold]),
});

/**
 * Compiles the pipeline for pictures of one size. Which steps there are is in the plan; sliders and pictures are its inputs. The result
 * has one plane or three.
 */
export async function compile(device, steps, width, height) {
  const b = device.batch();
  const m = margin(steps);
  const inputs = { picture: b.input([1, 3, height + 2 * m, width + 2 * m], { dtype: "u8" }) };
  for (const name of ["contrast", "offset", ...(steps.binary ? ["threshold"] : [])]) inputs[name] = b.input([1]);

  const picture = b.scale(b.cast(inputs.picture, { to: "f32" }), 1 / 255);
  let x = b.clip(b.add(b.mul(picture, inputs.contrast), inputs.offset), 0, 1);
  if (steps.blur) x = b.conv2d(x, weights.blur, { groups: 3 });
  const planes = steps.edges || steps.binary ? 1 : 3;
  if (planes === 1) x = b.conv2d(x, weights.grey);
  if (steps.edges) {
    const dx = b.conv2d(x, weights.sobelX);
    const dy = b.conv2d(x, weights.sobelY);
    x = b.sqrt(b.add(b.mul(dx, dx), b.mul(dy, dy)));
  }
  if (steps.binary) x = b.scale(b.sub(x, inputs.threshold), 1e6); // far above 1, or below 0
  b.read(b.cast(b.scale(x, 255), { to: "u8" })); // which limits to 0 and 255
  const length = b.length;
  return { plan: await b.compile(), inputs, planes, margin: m, width, height, length };
}

/** Pixels as planes with a margin. */
export function toPlanes({ data, width, height }, m) {
  const w = width + 2 * m;
  const h = height + 2 * m;
  const plane = w * h;
  const out = new Uint8Array(3 * plane);
  const clamp = (v, n) => (v < 0 ? 0 : v >= n ? n - 1 : v);
  for (let y = 0, o = 0; y < h; y++) {
    const line = clamp(y - m, height) * width;
    for (let x = 0; x < w; x++, o++) {
      const p = (line + clamp(x - m, width)) * 4;
      out[o] = data[p];
      out[o + plane] = data[p + 1];
      out[o + 2 * plane] = data[p + 2];
    }
  }
  return out;
}

/** One plane or three as pixels. */
export function toPixels(values, planes, width, height) {
  const image = new ImageData(width, height);
  const n = width * height;
  const [green, blue] = planes === 3 ? [n, 2 * n] : [0, 0];
  for (let i = 0, p = 0; i < n; i++, p += 4) {
    image.data[p] = values[i];
    image.data[p + 1] = values[i + green];
    image.data[p + 2] = values[i + blue];
    image.data[p + 3] = 255;
  }
  return image;
}
