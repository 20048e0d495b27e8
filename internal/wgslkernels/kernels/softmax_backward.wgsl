// dx = y·(dy − Σy·dy) of each row.
fn empty() -> f32 {
    return 0.0;
}

fn merge(a: f32, b: f32) -> f32 {
    return a + b;
}
{{if ne .Stage "finish"}}
fn take(a: f32, row: u32, columns: vec4<u32>, valid: vec4<bool>) -> f32 {
    let e = vec4(row * p.cols) + columns;
    let u = e - p.y_base;
    let v = e - p.dy_base;
    let products = vec4(y[u.x], y[u.y], y[u.z], y[u.w]) * vec4(dy[v.x], dy[v.y], dy[v.z], dy[v.w]);
    let t = select(vec4<f32>(), products, valid);
    return a + ((t.x + t.y) + (t.z + t.w));
}
{{end}}
{{- if ne .Stage "part"}}
fn finish(a: f32, row: u32, i: u32) {
    let e = row * p.cols + i;
    dx[e - p.dx_base] = y[e - p.y_base] * (dy[e - p.dy_base] - a);
}
{{end}}
