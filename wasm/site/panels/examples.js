// Kernels to begin with in the playground. Each says what it takes and what it makes.

const head = `@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> result: array<f32>;
@group(0) @binding(2) var<uniform> size: vec4<u32>; // width, height
`;

export const examples = [
  {
    name: "A curve",
    input: "ramp",
    shape: "1024 × 1",
    wgsl: `${head}
// One invocation computes one element; input holds 0, 1/n, 2/n, …
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if (i >= size.x) {
        return;
    }
    let t = 6.2831853 * input[i];
    result[i] = sin(3.0 * t) * exp(-2.0 * input[i]);
}
`,
  },
  {
    name: "Mandelbrot set",
    input: "ramp",
    shape: "256 × 256",
    wgsl: `${head}
// How soon z = z² + c leaves the circle of radius 2.
@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= size.x || id.y >= size.y) {
        return;
    }
    let c = 2.6 * vec2f(id.xy) / vec2f(size.xy) - vec2f(1.95, 1.3);
    var z = vec2f(0.0);
    var n = 0u;
    while (n < 120u && dot(z, z) < 4.0) {
        z = vec2f(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + c;
        n++;
    }
    result[id.y * size.x + id.x] = sqrt(f32(n) / 120.0);
}
`,
  },
  {
    name: "Emboss the picture",
    input: "picture",
    shape: "256 × 256",
    wgsl: `${head}
fn at(x: u32, y: u32) -> f32 {
    return input[min(y, size.y - 1u) * size.x + min(x, size.x - 1u)];
}

// Light from the upper left: the difference of neighbours on a diagonal.
@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= size.x || id.y >= size.y) {
        return;
    }
    let slope = at(id.x + 2u, id.y + 2u) - at(id.x, id.y);
    result[id.y * size.x + id.x] = clamp(0.5 + 2.0 * slope, 0.0, 1.0);
}
`,
  },
  {
    name: "Running mean in workgroup memory",
    input: "noise",
    shape: "1024 × 1",
    wgsl: `${head}
const reach = 16u;
var<workgroup> tile: array<f32, 96>; // 64 elements and their neighbours

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) at: u32) {
    let first = id.x - at; // of this workgroup
    for (var k = at; k < 64u + 2u * reach; k += 64u) {
        let i = clamp(i32(first + k) - i32(reach), 0, i32(size.x) - 1);
        tile[k] = input[i];
    }
    workgroupBarrier();
    var sum = 0.0;
    for (var k = 0u; k <= 2u * reach; k++) {
        sum += tile[min(at + k, 95u)];
    }
    if (id.x < size.x) {
        result[id.x] = sum / f32(2u * reach + 1u);
    }
}
`,
  },
  {
    name: "With a mistake",
    input: "ramp",
    shape: "1024 × 1",
    wgsl: `${head}
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= size.x) {
        return;
    }
    let x = input[id.x];
    result[id.x] = x * scale; // scale is declared nowhere
}
`,
  },
];
