package wgslkernels

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// expressions gives each elementwise entry as WGSL over its operands a, b and c and its scalars s0, s1 …, all of type f32. Functions
// come from math.wgsl.
var expressions = map[*program.Entry]string{
	catalogue.Neg:   "-a",
	catalogue.Abs:   "abs(a)",
	catalogue.Sqrt:  "ieee_sqrt(a)",
	catalogue.Recip: "1.0 / a",
	catalogue.Exp:   "ieee_exp(a)",
	catalogue.Log:   "ieee_log(a)",
	catalogue.Log2:  "ieee_log2(a)",
	catalogue.Sin:   "sine(a, 0.0)",
	catalogue.Cos:   "sine(a, 1.0)",
	catalogue.Tanh:  "safe_tanh(a)",
	catalogue.Floor: "floor(a)",
	catalogue.Ceil:  "ceil(a)",
	catalogue.Round: "round(a)",
	catalogue.Trunc: "trunc(a)",
	catalogue.Sign:  "select(sign(a), a, is_nan(a))",

	catalogue.ReLU:      "select(max(a, 0.0), a, is_nan(a))",
	catalogue.LeakyReLU: "a * select(1.0, s0, a < 0.0)",
	catalogue.ELU:       "select(s0 * ieee_expm1(a), a, a > 0.0)",
	catalogue.SELU:      fmt.Sprintf("%.9g * select(%.9g * ieee_expm1(a), a, a > 0.0)", catalogue.SELUScale, catalogue.SELUAlpha),
	catalogue.Sigmoid:   "sigmoid(a)",
	catalogue.GELU:      "gelu(a)",
	catalogue.GELUErf:   "gelu_erf(a)",
	catalogue.SiLU:      "silu(a)",
	catalogue.HardSwish: "select(a * (min(a + 3.0, 6.0) / 6.0), 0.0, a <= -3.0)",
	catalogue.Mish:      "mish(a)",
	catalogue.Softplus:  "softplus(a)",
	catalogue.Clip:      "nan_clip(a, s0, s1)",
	catalogue.Scale:     "a * s0",
	catalogue.PowScalar: "ieee_pow(a, s0)",

	catalogue.Add:     "a + b",
	catalogue.Sub:     "a - b",
	catalogue.Mul:     "a * b",
	catalogue.Div:     "ieee_div(a, b)",
	catalogue.Maximum: "nan_max(a, b)",
	catalogue.Minimum: "nan_min(a, b)",
	catalogue.Pow:     "ieee_pow(a, b)",

	// By bits: WGSL may flush subnormals and assume that there is no NaN.
	catalogue.Less:      "select(0.0, 1.0, order_key(a) < order_key(b) && !is_nan(b))",
	catalogue.LessEqual: "select(0.0, 1.0, order_key(a) <= order_key(b) && !is_nan(b))",
	catalogue.Equal:     "select(0.0, 1.0, order_key(a) == order_key(b) && !is_nan(b))",
	catalogue.Select:    "select(b, c, (bitcast<u32>(a) & 0x7fffffffu) == 0u)",

	catalogue.SwiGLU:     "swiglu(a, b)",
	catalogue.ClipByNorm: "a * select(nan_min(1.0, s0 / ieee_sqrt(b)), 1.0, b == 0.0)",

	// Gradients of activations; a is x, b is dy.
	catalogue.ReLUBackward:    "select(select(b, 0.0, a <= 0.0), a, is_nan(a))",
	catalogue.GELUBackward:    "b * gelu_slope(a)",
	catalogue.GELUErfBackward: "b * gelu_erf_slope(a)",
	catalogue.SiLUBackward:    "b * silu_slope(a)",

	catalogue.FMA:  "fma(a, b, c)",
	catalogue.Lerp: "fma(c, b - a, a)",
}

// library holds functions by name: those of math.wgsl, and for each elementwise entry one named op_ and as the entry.
var library = sync.OnceValue(func() map[string]string {
	text, err := files.ReadFile("kernels/math.wgsl")
	if err != nil {
		panic(err) // embedded at build time
	}
	fns := map[string]string{}
	name, body := "", "" // of the function that the line is in
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "fn "); ok {
			name, _, _ = strings.Cut(rest, "(")
			body = ""
		}
		if body += line; line == "}\n" && name != "" {
			fns[name] = body
			name = ""
		}
	}
	for e, expr := range expressions {
		parameters := ""
		for i := range e.Inputs {
			parameters += fmt.Sprintf(", %c: f32", "abc"[i])
		}
		for i := range e.Scalars {
			parameters += fmt.Sprintf(", s%d: f32", i)
		}
		fns["op_"+e.Name] = fmt.Sprintf("fn op_%s(%s) -> f32 {\n    return %s;\n}\n", e.Name, parameters[2:], expr)
	}
	return fns
})

// between reports what does not belong to an identifier.
func between(r rune) bool {
	return !(r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z')
}

// functionsOf returns the library functions that texts use, directly or through others, so that kernels stay small and compile fast.
func functionsOf(texts ...string) string {
	used := map[string]string{}
	var collect func(text string)
	collect = func(text string) {
		for _, name := range strings.FieldsFunc(text, between) {
			if body, ok := library()[name]; ok && used[name] == "" {
				used[name] = body
				collect(body)
			}
		}
	}
	collect(strings.Join(texts, " "))
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(used)) {
		b.WriteString(used[name])
	}
	return b.String()
}
