package wgslkernels

import (
	"fmt"
	"math"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/wgsl"
)

// attentionKernel describes one specialisation of attention.wgsl.
type attentionKernel struct {
	q, kv compute.DType
	vec   bool // rows begin at multiples of four elements
	cap   bool // scores are bent
	lse   bool // logarithms of sums are stored too
	long  bool // the keys are those of several dispatches
	count bool // loops beside barriers go round alike in all threads
	dv    int  // times 32 columns: of the result, four in each thread
}

const attentionRows = 32 // of a workgroup

func (a attentionKernel) kernel() *wgsl.Kernel {
	return cached(fmt.Sprintf("attention/%v/%v/%v/%v/%v/%v/%v/%d", a.q, a.kv, a.vec, a.cap, a.lse, a.long, a.count, a.dv), func() *wgsl.Kernel {
		d := struct {
			QUnit, KVUnit, YUnit, Functions string
			DV, Part, Uniform               int
			Cap, LSE, Long, Counted         bool
			Components                      []string
		}{attentionUnit(a.q, a.vec), attentionUnit(a.kv, a.vec), attentionUnit(a.q, a.vec), "", a.dv, attentionPart(a.dv), 5, a.cap, a.lse, a.long, a.count, components}
		if d.YUnit == "u32" {
			d.YUnit = "atomic<u32>"
		}
		if a.cap {
			d.Functions = functionsOf("safe_tanh")
		}
		if a.lse {
			d.Functions += functionsOf("ieee_log")
		}
		d.Functions += attentionLoad("queries", a.q, a.vec) + attentionLoad("keys", a.kv, a.vec) +
			attentionLoad("values", a.kv, a.vec) + attentionText("attention_store", "y", a.q, a.vec)
		bindings := []wgsl.Access{wgsl.Read, wgsl.Read, wgsl.Read, wgsl.Read, wgsl.ReadWrite}
		for _, more := range []bool{a.lse, a.long} {
			if more {
				bindings = append(bindings, wgsl.ReadWrite)
			}
		}
		d.Uniform = len(bindings)
		return &wgsl.Kernel{Bindings: bindings, Uniform: 96, Workgroup: [3]uint32{64, 1, 1},
			Shared: 512*16 + 256*16 + 256*4 + 32*4, Source: render("attention.wgsl", d)}
	})
}

// attentionPart is how many keys of a tile lie in workgroup memory with dv times 32 columns of their values.
func attentionPart(dv int) int { return min(32, 64/dv) }

// attentionTile is how often the loops of a thread go round for a tile of 32 keys, of heads of d elements: over products, which are sums
// over their elements, and sums over keys of dv times 32 columns.
func attentionTile(d, dv, products, sums int) int {
	part := attentionPart(dv)
	return 40 + products*13*ceilDiv(d, 32) + sums*(32/part)*(1+part*dv/8+part)
}

var components = []string{"x", "y", "z", "w"}

// attentionUnit is the type of a buffer's elements in WGSL.
func attentionUnit(d compute.DType, vec bool) string {
	switch {
	case d == compute.Float32 && vec:
		return "vec4<f32>"
	case d == compute.Float32:
		return "f32"
	case vec:
		return "vec2<u32>"
	}
	return "u32"
}

// attentionLoad returns the function that reads rows of a buffer.
func attentionLoad(buffer string, d compute.DType, vec bool) string {
	return attentionText("attention_load", buffer, d, vec)
}

func attentionText(name, buffer string, d compute.DType, vec bool) string {
	var b strings.Builder
	if err := sources().ExecuteTemplate(&b, name, struct {
		Buffer, Type string
		Vec          bool
		Components   []string
	}{buffer, d.String(), vec, components}); err != nil {
		panic(err) // our own text: every kernel is rendered in a test
	}
	return b.String()
}

func attention(s *step) error {
	d, err := catalogue.AttentionShape(s.Operands[0].Shape, s.Operands[1].Shape, s.Operands[2].Shape, s.Attr.Options.(compute.AttentionOptions))
	if err != nil {
		return err
	}
	if d.NK == 0 { // nobody sees anything
		s.fillWords(result, ceilDiv(s.Result.Bytes(), 4), 0)
		if len(s.Results) > 1 {
			s.fillWords(resultAt(1), s.Results[1].Len(), bits(float32(math.Inf(-1))))
		}
		return nil
	}
	packed := s.Operands[1].DType == compute.Uint32
	if packed || len(s.Results) == 1 && decodes(d) && s.Choose("attention", fmt.Sprint(s.Operands), []string{"split", "tiles"}) == 0 {
		c := splitAttention{AttentionDims: d, q: operand(0), k: 1, v: 2}
		if len(s.Operands) > 3 {
			c.lengths = 3
		}
		return s.attendSplit(c)
	}
	a := attentionKernel{q: s.Operands[0].DType, kv: s.Operands[1].DType, vec: d.D%4 == 0, cap: d.SoftCap > 0, lse: len(s.Results) > 1,
		count: s.caps.CountedLoops, dv: 2}
	for 32*a.dv < d.D {
		a.dv *= 2
	}
	most := loopBudget / attentionTile(d.D, a.dv, 1, 1) * 32 // keys of a dispatch
	a.long = d.NK > most
	blocks := ceilDiv(d.N*d.Group(), attentionRows)
	units, states := d.Batch*d.KVHeads*blocks, Buffer{}
	if a.long {
		each := 64 * 16 * (2 + 4*a.dv)
		units = min(units, int(s.caps.MaxBinding)/each)
		states = s.NewScratch(units * each)
	}
	row, item := d.Heads*d.D, d.NK*d.KVHeads*d.D // elements of a row of queries, and of one batch of keys
	size, kvSize := s.Operands[0].DType.Size(), s.Operands[1].DType.Size()
	lengths := 1
	emit := func(first, end int, parts []part) {
		q, k, l := parts[0], parts[1], parts[2]
		from, to := first/d.N, (end-1)/d.N+1 // batches
		total := (to - from) * d.KVHeads * blocks
		params := words(total, blocks, d.N, d.NK, d.Heads, d.KVHeads, d.D, flag(d.Causal), min(d.Window, d.NK+d.N), len(s.Operands)-3,
			from, l.base/4, first, end, q.base/size, k.base/kvSize, parts[3].base/4)
		bind := []Buffer{q.of(operand(0)), k.of(operand(1)), k.of(operand(2)), l.of(operand(lengths)), q.of(result)}
		if a.lse {
			bind = append(bind, parts[3].of(resultAt(1)))
		}
		if a.long {
			bind = append(bind, states)
		}
		params = append(params, bits(d.Scale), bits(d.SoftCap), infBits)
		for unit := 0; unit < total; unit += units {
			for low := 0; low < d.NK; low += most {
				s.dispatch(a.kernel(), s.linear(min(units, total-unit)), append(params[:len(params):len(params)], words(unit, low, min(low+most, d.NK))...), bind...)
			}
		}
	}
	lengthsOf := func(first, end int) (from, to int) { return 0, 4 }
	if len(s.Operands) > 3 {
		lengths = 3
		lengthsOf = func(first, end int) (from, to int) { return 4 * (first / d.N), 4 * ((end-1)/d.N + 1) }
	}
	return s.ranges(d.Batch*d.N, emit,
		func(first, end int) (from, to int) { return first * row * size, end * row * size },
		func(first, end int) (from, to int) {
			return first / d.N * item * kvSize, ((end-1)/d.N + 1) * item * kvSize
		}, lengthsOf,
		func(first, end int) (from, to int) { // of whole batches
			if !a.lse {
				return 0, 0
			}
			return 4 * d.Heads * (first / d.N * d.N), 4 * d.Heads * (ceilDiv(end, d.N) * d.N)
		})
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
