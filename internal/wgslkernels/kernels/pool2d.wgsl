// Pooling of planes; sizes as in conv2d.wgsl. One invocation per element of the result.
struct Params {
    height: u32, width: u32, out_height: u32, out_width: u32,
    window_height: u32, window_width: u32, stride_y: u32, stride_x: u32,
    pad_y: u32, pad_x: u32, total: u32, x0: u32, y0: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> p: Params;

@compute @workgroup_size({{.Lanes}})
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
        @builtin(local_invocation_id) local: vec3<u32>) {
    let i = linear_id(workgroup, grid) * {{.Lanes}}u + local.x;
    if i >= p.total { return; }
    let plane = p.x0 + i / (p.out_height * p.out_width) * p.height * p.width;
    let top = i / p.out_width % p.out_height * p.stride_y;
    let left = i % p.out_width * p.stride_x;
    // The part of the window that lies inside: never empty, as padding is at most half a window.
    let first_y = max(top, p.pad_y) - p.pad_y;
    let first_x = max(left, p.pad_x) - p.pad_x;
    let last_y = min(top + p.window_height - p.pad_y, p.height);
    let last_x = min(left + p.window_width - p.pad_x, p.width);
{{- if .Max}}
    var best = x[plane + first_y * p.width + first_x];
{{- else}}
    var sum = 0.0;
{{- end}}
    for (var iy = first_y; iy < last_y; iy++) {
    {{- if not .Max}}
        var line = 0.0;
    {{- end}}
        for (var ix = first_x; ix < last_x; ix++) {
            let v = x[plane + iy * p.width + ix];
        {{- if .Max}}
            best = select(best, v, !is_nan(best) && (v > best || is_nan(v)));
        {{- else}}
            line += v;
        {{- end}}
        }
    {{- if not .Max}}
        sum += line;
    {{- end}}
    }
{{- if .Max}}
    y[p.y0 + i] = best;
{{- else}}
    y[p.y0 + i] = sum / f32((last_y - first_y) * (last_x - first_x));
{{- end}}
}
