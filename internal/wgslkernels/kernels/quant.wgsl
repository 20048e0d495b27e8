{{/* Weights in the block formats of package quant, sorted into planes by quant.Pack. A run is 16 values that lie side by side and share a
scale; run r of a row has the values 16·r … 16·r + 15. */}}
{{define "quant_head"}}
alias Quants = {{if .Wide}}vec4<u32>{{else}}u32{{end}};
// The integers of a run, {{if .Wide}}all{{else}}those of word c{{end}}, signed bytes, and value = s * (q - offset of the format) - m.
struct Run { q: Quants, s: f32, m: f32 }

fn values(q: u32, s: f32, offset: f32, m: f32) -> vec4<f32> {
    let v = vec4<i32>(vec4(q) << vec4(24u, 16u, 8u, 0u)) >> vec4(24u);
    return s * (vec4<f32>(v) - offset) - m;
}

{{template "quant_halves"}}{{end}}
{{define "quant_halves"}}
// Two halves, by integers: conversions may flush subnormal ones.
fn halves_of(word: u32) -> vec2<f32> {
    let h = vec2(word & 0xffffu, word >> 16u);
    let u = h & vec2(0x7fffu);
    let normal = (u << vec2(13u)) + select(vec2(0x38000000u), vec2(0x70000000u), u >= vec2(0x7c00u));
    let magnitude = select(normal, bitcast<vec2<u32>>(vec2<f32>(u) * 0x1p-24f), u < vec2(0x400u));
    return bitcast<vec2<f32>>(magnitude | ((h & vec2(0x8000u)) << vec2(16u)));
}
{{end}}
{{define "quant_run"}}
{{- $q := .}}
{{- $c := "[c]"}}{{if .Wide}}{{$c = ""}}{{end}}
{{range $w := .Weights}}
fn {{$w}}_word(i: u32) -> u32 {
    return {{$w}}[i >> 2u][i & 3u];
}

// {{$q.Format}}, of the row that begins at vector row and has so many blocks.
fn {{$w}}_run(row: u32, blocks: u32, r: u32, c: Quants) -> Run {
{{- if $q.Long}}
    let at = row + (r >> 4u) * {{$q.Fours}}u;
    let pair = (r >> 1u) & 7u;
    {{- if $q.Nibbles}}
    let head = {{$w}}[at];
    let q = (({{$w}}[at + {{$q.Quants}}u + ((r >> 1u) & 6u) + (r & 1u)]{{$c}} >> Quants(4u * (pair & 1u))) & Quants(0x0f0f0f0fu))
    {{- if $q.High}} | ((({{$w}}[at + {{$q.High}}u + (r & 1u)]{{$c}} >> Quants(pair)) & Quants(0x01010101u)) << Quants(4u)){{end}};
    let shift = 8u * (pair & 3u);
    var k = (head.yz >> vec2(shift)) & vec2(63u);
    if pair > 3u {
        k = ((vec2(head.w) >> vec2(shift, shift + 4u)) & vec2(15u)) | ((head.yz >> vec2(shift + 2u)) & vec2(0x30u));
    }
    let d = halves_of(head.x) * vec2<f32>(k);
    return Run(q, d.x, d.y);
    {{- else}}
    let end = 4u * (row + blocks * {{$q.Fours}}u);
    let two = 2u * ((r >> 3u) & 1u) + (r & 1u);
    {{- if $q.Six}}
    let q = (({{$w}}[at + ((r >> 1u) & 4u) + (r & 3u)]{{$c}} >> Quants(r & 4u)) & Quants(0x0f0f0f0fu))
        | ((({{$w}}[at + {{$q.High}}u + two]{{$c}} >> Quants(2u * (pair & 3u))) & Quants(0x03030303u)) << Quants(4u));
    {{- else}}
    let q = (({{$w}}[at + {{$q.Quants}}u + two]{{$c}} >> Quants(2u * (pair & 3u))) & Quants(0x03030303u))
    {{- if not $q.Min}} | ((({{$w}}[at + (r & 1u)]{{$c}} >> Quants(pair)) & Quants(0x01010101u)) << Quants(2u)){{end}};
    {{- end}}
    {{- if $q.Min}}
    let k = {{$w}}[at][(r >> 2u) & 3u] >> (8u * (r & 3u));
    let d = halves_of({{$w}}_word(end + (r >> 4u)));
    return Run(q, d.x * f32(k & 15u), d.y * f32((k >> 4u) & 15u));
    {{- else}}
    {{- if $q.Six}}
    let k = extractBits(i32({{$w}}[at + {{$q.Scales}}u][(r >> 2u) & 3u]), 8u * (r & 3u), 8u);
    let d = {{$w}}_word(end + (r >> 5u)) >> (r & 16u);
    {{- else}}
    let six = end + 3u * (r >> 4u);
    let low = ({{$w}}_word(six + ((r >> 2u) & 1u)) >> (8u * (r & 3u) + ((r >> 1u) & 4u))) & 15u;
    let high = ({{$w}}_word(six + 2u) >> (8u * (r & 3u) + ((r >> 1u) & 6u))) & 3u;
    let k = i32(low | (high << 4u)) - 32;
    let d = {{$w}}_word(end + 3u * blocks + (r >> 5u)) >> (r & 16u);
    {{- end}}
    return Run(q, halves_of(d).x * f32(k), 0.0);
    {{- end}}
    {{- end}}
{{- else}}
    let u = r >> 1u;
    {{- if $q.Nibbles}}
    var end = 4u * (row + blocks);
    var q = ({{$w}}[row + u]{{$c}} >> Quants(4u * (r & 1u))) & Quants(0x0f0f0f0fu);
    {{- if $q.High}}
    let high = (Quants({{$w}}_word(end + u)) >> (Quants(16u * (r & 1u)) + 4u * c)) & Quants(15u);
    q |= ((high * 0x00204081u) & Quants(0x01010101u)) << Quants(4u); // a bit to a byte
    end += blocks;
    {{- end}}
    {{- else}}
    let end = 4u * (row + 2u * blocks);
    let q = {{$w}}[row + r]{{$c}};
    {{- end}}
    {{- if $q.Min}}
    let d = halves_of({{$w}}_word(end + u));
    return Run(q, d.x, -d.y);
    {{- else}}
    return Run(q, halves_of({{$w}}_word(end + (u >> 1u)) >> (16u * (u & 1u))).x, 0.0);
    {{- end}}
{{- end}}
}
{{end}}
{{- end}}
