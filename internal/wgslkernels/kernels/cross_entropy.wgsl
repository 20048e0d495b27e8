// Cross-entropy of rows of logits, or its gradient. What is gathered: the largest logit m, at least −FLT_MAX, Σexp(x − m), Σx and
// the target's logit. NaN and +Inf make the second NaN; it is 0 where there is nothing but −Inf.
fn empty() -> vec4<f32> {
    return vec4(-3.4028234e38, 0.0, 0.0, 0.0);
}

fn shifted_exp(d: f32) -> f32 {
    return select(select(exp(d), 0.0, d < -104.0), d, is_nan(d));
}

fn merge(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    let m = max(a.x, b.x);
    return vec4(m, a.y * shifted_exp(a.x - m) + b.y * shifted_exp(b.x - m), a.zw + b.zw);
}

// The class of a row, -1 where it counts for nothing, -2 where there is no such class.
fn target_of(row: u32) -> i32 {
    let at = row + p.shift;
    if p.shift != 0u && at % p.sequence == 0u {
        return -1;
    }
    let t = targets[at - p.targets_base];
    if p.ignore != 0u && t == p.ignored {
        return -1;
    }
    return select(-2, t, t >= 0 && u32(t) < p.cols);
}
{{if ne .Stage "finish"}}
fn take(a: vec4<f32>, row: u32, columns: vec4<u32>, valid: vec4<bool>) -> vec4<f32> {
    let e = vec4(row * p.cols) + columns - p.logits_base;
    let v = vec4(logits[e.x], logits[e.y], logits[e.z], logits[e.w]);
    let x = select(vec4(-inf()), v, valid);
    let m = max(max(a.x, max(x.x, x.y)), max(x.z, x.w));
    let s = a.y * shifted_exp(a.x - m)
        + ((shifted_exp(x.x - m) + shifted_exp(x.y - m)) + (shifted_exp(x.z - m) + shifted_exp(x.w - m)));
    let all = select(vec4<f32>(), v, valid);
    let at = select(vec4<f32>(), v, valid & (vec4<i32>(columns) == vec4(target_of(row))));
    return vec4(m, s, a.z + ((all.x + all.y) + (all.z + all.w)), a.w + ((at.x + at.y) + (at.z + at.w)));
}
{{end}}
{{- if ne .Stage "part"}}
// What the rows become that have no class.
fn without_class(t: i32) -> f32 {
    return select(0.0, nan(), t == -2);
}
{{if .PerRow}}
fn finish(a: vec4<f32>, row: u32) {
    let t = target_of(row);
    let uniform_part = select(0.0, p.smoothing * (a.z / f32(p.cols)), p.smoothing > 0.0);
    let loss = ieee_log(a.y) + (a.x - (1.0 - p.smoothing) * a.w) - uniform_part;
    let v = select(loss, nan(), a.y == 0.0 || is_nan(a.y));
    loss_of[row - p.loss_of_base] = select(v, without_class(t), t < 0);
}
{{else}}
fn finish(a: vec4<f32>, row: u32, i: u32) {
    let t = target_of(row);
    let e = row * p.cols + i;
    let probability = select(shifted_exp(logits[e - p.logits_base] - a.x) / a.y, nan(), a.y == 0.0);
    let wanted = p.smoothing / f32(p.cols) + select(0.0, 1.0 - p.smoothing, i32(i) == t);
    dx[e - p.dx_base] = select(dloss[row - p.dloss_base] * (probability - wanted), without_class(t), t < 0);
}
{{end}}
{{- end}}
