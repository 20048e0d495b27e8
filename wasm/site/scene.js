// The built-in picture: a lake at dusk, so that there is something to see without a camera, a file or a network.

/** Paints the scene as wide as is asked for; units of length are the height. */
export function paint(width, height) {
  const image = new ImageData(width, height);
  const right = width / height;
  const horizon = 0.6;
  const columns = Array.from({ length: width }, (_, px) => skyline(px / height, right));
  for (let py = 0; py < height; py++) {
    for (let px = 0; px < width; px++) {
      let x = px / height;
      const y = py / height;
      let c;
      if (y < horizon) {
        c = land(x, y, right, horizon, columns[px]);
      } else { // the lake mirrors the land, broken by ripples
        const depth = (y - horizon) / (1 - horizon);
        const ripple = noise(x * 7, y * 110) - 0.5;
        x += ripple * 0.03;
        const mirrored = Math.max(horizon - (y - horizon) * 1.4 + ripple * 0.06 * depth, 0);
        c = mix(land(x, mirrored, right, horizon, columns[Math.min(Math.max(Math.round(x * height), 0), width - 1)]), [14, 44, 62], 0.3 + 0.35 * depth);
        c = c.map((v) => v + 60 * depth * Math.max(ripple, 0));
      }
      const grain = (hash(px, py) - 0.5) * 6;
      image.data.set([c[0] + grain, c[1] + grain, c[2] + grain, 255], (py * width + px) * 4);
    }
  }
  return image;
}

/** What stands at a column: heights of the far and the near ridge, downwards, and of the trees. */
function skyline(x) {
  let far = 0;
  for (let i = 0, f = 1.8, s = 1; i < 6; i++, f *= 2.1, s /= 2.05) far += s * (1 - Math.abs(2 * noise(x * f, 7.5 + i) - 1));
  let near = 0;
  for (let i = 0, f = 2.5, s = 1; i < 4; i++, f *= 2, s /= 2) near += s * noise(x * f + 40, 3.5 + i);
  return { far: 0.58 - 0.21 * far, near: 0.56 - 0.06 * near - 0.02 * noise(x * 90, 0.5) };
}

function land(x, y, right, horizon, { far, near }) {
  if (y > near) { // the wood on the shore
    return mix([22, 52, 44], [58, 92, 60], fbm(x * 40, y * 40));
  }
  if (y > far) {
    const below = y - far;
    const rock = fbm(x * 12 + below * 5, y * 16);
    let c = mix([62, 66, 96], [128, 118, 138], rock);
    c = mix(c, [246, 240, 246], smooth(0.12, 0.02, below - 0.1 * (rock - 0.4)) * smooth(0.5, 0.3, far));
    return mix(c, [206, 176, 170], 0.45 * (y / horizon) ** 2);
  }
  const sun = Math.hypot(x - 0.68 * right, y - 0.3);
  let c = mix([52, 94, 160], [252, 190, 140], (y / horizon) ** 1.3);
  c = mix(c, [255, 238, 200], Math.min(1, Math.exp(-sun * 9) + (sun < 0.055 ? 1 : 0)));
  return mix(c, [250, 214, 196], 0.8 * smooth(0.52, 0.75, fbm(x * 2.4, y * 9)) * smooth(horizon, 0.1, y));
}

const mix = (a, b, t) => a.map((v, i) => v + t * (b[i] - v));

function smooth(from, to, v) {
  const t = Math.min(Math.max((v - from) / (to - from), 0), 1);
  return t * t * (3 - 2 * t);
}

/** A number in [0, 1) that looks random. */
function hash(x, y) {
  let h = Math.imul(x, 0x9e3779b1) ^ Math.imul(y, 0x85ebca77);
  h = Math.imul(h ^ (h >>> 15), 0x2c1b3c6d);
  h = Math.imul(h ^ (h >>> 12), 0x297a2d39);
  return ((h ^ (h >>> 15)) >>> 0) / 2 ** 32;
}

/** Value noise. */
function noise(x, y) {
  const i = Math.floor(x);
  const j = Math.floor(y);
  const u = smooth(0, 1, x - i);
  const v = smooth(0, 1, y - j);
  const top = hash(i, j) + u * (hash(i + 1, j) - hash(i, j));
  const bottom = hash(i, j + 1) + u * (hash(i + 1, j + 1) - hash(i, j + 1));
  return top + v * (bottom - top);
}

const fbm = (x, y) => (noise(x, y) + noise(2 * x, 2 * y) / 2 + noise(4 * x, 4 * y) / 4) / 1.75;
