package pretrained

import (
	"fmt"
	"math"

	"github.com/wavelane/wavelane/compute"
)

// rope sets how positions turn queries and keys, and what they were stretched by.
func (c *config) rope(set func(string, any), context int) {
	scaling := c.part("rope_scaling")
	base := c.numberOr("rope_theta", 10000)
	if p := c.part("rope_parameters"); p != nil { // as later versions of the library write both
		scaling = p
		base = p.numberOr("rope_theta", base)
		if len(p.values) > 0 && !p.has("rope_type") && !p.has("rope_theta") {
			c.fail(fmt.Errorf("\"rope_parameters\" is %v: %w", p.values, compute.ErrUnsupported))
			return
		}
	}
	dims := int(float64(c.headSize) * c.numberOr("partial_rotary_factor", 1))
	set("rope.freq_base", float32(base))
	set("rope.dimension_count", uint32(dims))
	if dims < 2 || dims > c.headSize {
		c.fail(fmt.Errorf("\"partial_rotary_factor\" leaves %d elements of %d: %w", dims, c.headSize, compute.ErrShape))
		return
	}
	if scaling == nil {
		return
	}
	kind := scaling.text("rope_type")
	if kind == "" {
		kind = scaling.text("type")
	}
	switch kind {
	case "", "default":
	case "linear":
		set("rope.scaling.type", "linear")
		set("rope.scaling.factor", float32(scaling.number("factor")))
	case "yarn":
		c.yarn(set, scaling, context)
	case "llama3":
		c.numbers = map[string][]float32{"rope_freqs.weight": llama3Factors(scaling, base, dims)}
	case "longrope", "su":
		c.longRope(set, scaling, context, dims)
	default:
		c.fail(fmt.Errorf("positions are stretched by %q: %w", kind, compute.ErrUnsupported))
	}
	if scaling.err != nil {
		c.fail(fmt.Errorf("stretching of positions: %w", scaling.err))
	}
}

func (c *config) yarn(set func(string, any), scaling *config, context int) {
	for _, key := range []string{"attention_factor", "mscale", "mscale_all_dim", "truncate"} {
		if scaling.has(key) {
			c.fail(fmt.Errorf("%q of yarn: %w", key, compute.ErrUnsupported))
		}
	}
	set("rope.scaling.type", "yarn")
	set("rope.scaling.factor", float32(scaling.number("factor")))
	set("rope.scaling.original_context_length", uint32(scaling.sizeOr("original_max_position_embeddings", context)))
	if scaling.has("beta_fast") {
		set("rope.scaling.yarn_beta_fast", float32(scaling.number("beta_fast")))
	}
	if scaling.has("beta_slow") {
		set("rope.scaling.yarn_beta_slow", float32(scaling.number("beta_slow")))
	}
}

// llama3Factors are those by which Llama 3.1 divides frequencies: low ones by a factor, high ones by 1, those between by something between.
func llama3Factors(scaling *config, base float64, dims int) []float32 {
	factor, low, high := scaling.number("factor"), scaling.number("low_freq_factor"), scaling.number("high_freq_factor")
	original := float64(scaling.size("original_max_position_embeddings"))
	if scaling.err == nil && !(factor > 0 && low > 0 && high > low) {
		scaling.fail(fmt.Errorf("factors %v, %v and %v: %w", factor, low, high, ErrMalformed))
	}
	x := make([]float32, dims/2)
	for i := range x {
		length := 2 * math.Pi * math.Pow(base, float64(2*i)/float64(dims)) // of a wave
		switch {
		case length < original/high:
			x[i] = 1
		case length > original/low:
			x[i] = float32(factor)
		default:
			smooth := (original/length - low) / (high - low)
			x[i] = float32(1 / ((1-smooth)/factor + smooth))
		}
	}
	return x
}

// longRope is that of Phi-3, with factors for contexts of the original length and for longer ones.
func (c *config) longRope(set func(string, any), scaling *config, context, dims int) {
	original := c.sizeOr("original_max_position_embeddings", scaling.sizeOr("original_max_position_embeddings", context))
	c.numbers = map[string][]float32{}
	for _, length := range []string{"short", "long"} {
		list, _ := scaling.values[length+"_factor"].([]any)
		x := make([]float32, len(list))
		for i, v := range list {
			f, ok := v.(float64)
			if !ok || !(f > 0) {
				c.fail(fmt.Errorf("%q has %v: %w", length+"_factor", v, ErrMalformed))
			}
			x[i] = float32(f)
		}
		if len(x) != dims/2 {
			c.fail(fmt.Errorf("%d of %q, need %d: %w", len(x), length+"_factor", dims/2, compute.ErrShape))
		}
		c.numbers["rope_factors_"+length+".weight"] = x
	}
	factor := 1.0
	if stretched := float64(context) / float64(original); stretched > 1 {
		factor = math.Sqrt(1 + math.Log(stretched)/math.Log(float64(original)))
	}
	set("rope.scaling.original_context_length", uint32(original))
	set("rope.scaling.attn_factor", float32(scaling.numberOr("attention_factor", factor)))
}
