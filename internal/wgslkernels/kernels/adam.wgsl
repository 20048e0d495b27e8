// A step of Adam: decay·w − rate·m/(root·√v + eps). With the number of the step on the device, rate and root are made here:
// 1 − βᵗ is −expm1(t·log β).
fn f(w: f32, m: f32, v: f32, grad: f32) -> vec3<f32> {
{{- if .Step}}
    let t = f32(max(step_number[0], 1));
    let rate = p.rate / -ieee_expm1(t * p.log_beta1);
    let root = inverseSqrt(-ieee_expm1(t * p.root));
{{- else}}
    let rate = p.rate;
    let root = p.root;
{{- end}}
    let first = p.beta1 * m + p.rest1 * grad;
    let second = p.beta2 * v + p.rest2 * (grad * grad);
    return vec3(p.decay * w - rate * first / (root * ieee_sqrt(second) + p.eps), first, second);
}
