// Makes of a drawing what the network was trained on. The data's bitmaps were normalised by NIST's programs (Garris et al., NISTIR
// 5469, 1994): 32 × 32 pixels in black and white, the digit 32 high and as a rule 20 wide, in the middle, its pen made neither too
// thick nor too thin. Then black pixels were counted in blocks of 4 × 4.

const bitmap = 32;
const widest = 20;
const block = 4;
const ink = 312; // black pixels of a digit in the data, on average

/** Strokes, lists of [x, y], as 8 × 8 numbers from 0 to 16; null if there are none. */
export function digitise(strokes) {
  const points = strokes.flat();
  if (!points.length) return null;
  const [xs, ys] = [0, 1].map((axis) => points.map((p) => p[axis]));
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];

  // The thinnest pen that leaves enough ink. What it adds around the strokes belongs to the digit's size.
  let pixels;
  for (let radius = 1.2; radius <= 3.6; radius += 0.2) {
    const high = (bitmap - 2 * radius) / Math.max(bottom - top, 1e-6);
    const wide = (widest - 2 * radius) / Math.max(right - left, 1e-6);
    const sx = Math.min(wide, 1.6 * high); // narrow digits are stretched, but no 1 becomes as wide as a 0
    const sy = Math.min(high, 2 * wide); // and a dash stays a dash
    const map = ([x, y]) => [bitmap / 2 + sx * (x - (left + right) / 2), bitmap / 2 + sy * (y - (top + bottom) / 2)];
    pixels = rasterise(strokes.map((s) => s.map(map)), radius);
    if (pixels.reduce((n, v) => n + v, 0) >= ink) break;
  }
  const out = new Float32Array(64);
  pixels.forEach((v, i) => (out[Math.floor(i / bitmap / block) * 8 + Math.floor((i % bitmap) / block)] += v));
  return out;
}

/** Blackens the pixels whose middle is within the radius of a stroke. */
function rasterise(strokes, radius) {
  const pixels = new Uint8Array(bitmap * bitmap);
  for (const stroke of strokes) {
    for (let i = 0; i < stroke.length; i++) {
      const [x, y] = stroke[i];
      const [u, v] = stroke[Math.min(i + 1, stroke.length - 1)];
      for (let py = Math.max(0, Math.floor(Math.min(y, v) - radius)); py <= Math.min(bitmap - 1, Math.max(y, v) + radius); py++) {
        for (let px = Math.max(0, Math.floor(Math.min(x, u) - radius)); px <= Math.min(bitmap - 1, Math.max(x, u) + radius); px++) {
          if (distance(px + 0.5, py + 0.5, x, y, u, v) <= radius) pixels[py * bitmap + px] = 1;
        }
      }
    }
  }
  return pixels;
}

/** From a point to a line segment. */
function distance(px, py, x, y, u, v) {
  const [dx, dy] = [u - x, v - y];
  const length = dx * dx + dy * dy;
  const t = length ? Math.min(1, Math.max(0, ((px - x) * dx + (py - y) * dy) / length)) : 0;
  return Math.hypot(px - x - t * dx, py - y - t * dy);
}
