package wgslkernels

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/wgsl"
)

// backwardKernel describes one specialisation of attention_backward.wgsl.
type backwardKernel struct {
	keys  bool // gradients of keys and values, else of queries
	vec   bool // rows begin at multiples of four elements
	cap   bool // scores are bent
	count bool // loops beside barriers go round alike in all threads
	dv    int  // times 32 columns: of the result, four in each thread
}

// backwardProduct is a matrix of sums over the elements of heads, backwardSum one over the elements of a tile.
type (
	backwardProduct struct{ Sum, Mine, Theirs string }
	backwardSum     struct{ To, Weight, Of string }
)

func (b backwardKernel) kernel() *wgsl.Kernel {
	return cached(fmt.Sprintf("attention_backward/%v/%v/%v/%v/%d", b.keys, b.vec, b.cap, b.count, b.dv), func() *wgsl.Kernel {
		d := struct {
			Keys, Vec, Cap, Counted bool
			Unit, Functions         string
			DV, Part                int
			Components              []string
			Results                 []string
			Products                []backwardProduct
			Sums                    []backwardSum
		}{Keys: b.keys, Vec: b.vec, Cap: b.cap, Counted: b.count, Unit: attentionUnit(compute.Float32, b.vec), DV: b.dv, Part: attentionPart(b.dv), Components: components}
		if b.keys {
			d.Results = []string{"dk", "dv"}
			d.Products = []backwardProduct{{"s", "keys", "queries"}, {"d", "values", "slopes"}}
			d.Sums = []backwardSum{{"dv", "x", "slopes"}, {"dk", "y", "queries"}}
		} else {
			d.Results = []string{"dq"}
			d.Products = []backwardProduct{{"s", "queries", "keys"}, {"d", "slopes", "values"}}
			d.Sums = []backwardSum{{"dq", "y", "keys"}}
		}
		if b.cap {
			d.Functions = functionsOf("safe_tanh")
		}
		bindings := []wgsl.Access{wgsl.Read, wgsl.Read, wgsl.Read, wgsl.Read, wgsl.Read, wgsl.Read}
		for range d.Results {
			bindings = append(bindings, wgsl.ReadWrite)
		}
		for _, buffer := range []string{"queries", "keys", "values", "slopes"} {
			d.Functions += attentionLoad(buffer, compute.Float32, b.vec)
		}
		return &wgsl.Kernel{Bindings: bindings, Uniform: 80, Workgroup: [3]uint32{64, 1, 1},
			Shared: 512*16 + 256*16 + 32*4 + 2*32*8, Source: render("attention_backward.wgsl", d)}
	})
}

// attentionStats makes for each query what its gradients need.
func attentionStats(vec bool) *wgsl.Kernel {
	return cached(fmt.Sprintf("attention_stats/%v", vec), func() *wgsl.Kernel {
		d := struct{ Unit, Functions string }{attentionUnit(compute.Float32, vec),
			attentionLoad("y", compute.Float32, vec) + attentionLoad("dy", compute.Float32, vec)}
		return &wgsl.Kernel{Bindings: []wgsl.Access{wgsl.Read, wgsl.Read, wgsl.Read, wgsl.ReadWrite}, Uniform: 32, Workgroup: [3]uint32{64, 1, 1}, Shared: 64 * 4,
			Source: render("attention_stats.wgsl", d)}
	})
}

func attentionBackward(s *step) error {
	d, err := catalogue.AttentionShape(s.Operands[0].Shape, s.Operands[1].Shape, s.Operands[2].Shape, s.Attr.Options.(compute.AttentionOptions))
	if err != nil {
		return err
	}
	if d.NK == 0 || d.N == 0 || d.Heads == 0 { // nobody sees anything
		for i, t := range s.Results {
			if t.Len() > 0 {
				s.fillWords(resultAt(i), t.Len(), 0)
			}
		}
		return nil
	}
	vec, queries := d.D%4 == 0, d.N*d.Heads // of a sequence
	stats := s.NewScratch(8 * d.Batch * queries)
	lengths, perLength := operand(1), func(first, end int) (from, to int) { return 0, 4 }
	if len(s.Operands) > 6 {
		lengths, perLength = operand(6), perTask(4)
	}
	emit := func(first, end int, parts []part) {
		row, key, fact, length, lse := parts[0], parts[1], parts[2], parts[3], parts[4]
		total := (end - first) * queries
		s.dispatch(attentionStats(vec), s.linear(ceilDiv(total, 8)), words(total, d.N, d.Heads, d.D, row.base/4, lse.base/4, fact.base/8, first*queries),
			row.of(operand(3)), row.of(operand(5)), lse.of(operand(4)), fact.of(stats))
		for _, keys := range []bool{false, true} {
			k, items, most := backwardKernel{keys: keys, vec: vec, cap: d.SoftCap > 0, count: s.caps.CountedLoops, dv: 2}, d.N*d.Group(), 8
			if keys {
				items, most = d.NK, 4 // there are two sums
			}
			for 32*k.dv < d.D && k.dv < most {
				k.dv *= 2
			}
			blocks, columns := ceilDiv(items, 32), ceilDiv(d.D, 32*k.dv)
			total := (end - first) * d.KVHeads * blocks * columns
			params := words(total, blocks, columns, d.N, d.NK, d.Heads, d.KVHeads, d.D, flag(d.Causal), min(d.Window, d.NK+d.N), len(s.Operands)-6,
				first, length.base/4, row.base/4, key.base/4, fact.base/8)
			bind := []Buffer{row.of(operand(0)), key.of(operand(1)), key.of(operand(2)), row.of(operand(5)), fact.of(stats), length.of(lengths)}
			if keys {
				bind = append(bind, key.of(resultAt(1)), key.of(resultAt(2)))
			} else {
				bind = append(bind, row.of(result))
			}
			params = append(params, bits(d.Scale), bits(d.SoftCap))
			over, sums := d.NK, 1 // what is summed over
			if keys {
				over, sums = d.N*d.Group(), 2
			}
			some := loopBudget / attentionTile(d.D, k.dv, 2, sums) * 32
			for low := 0; low < over; low += some {
				s.dispatch(k.kernel(), s.linear(total), append(params[:len(params):len(params)], words(low, min(low+some, over))...), bind...)
			}
		}
	}
	return s.ranges(d.Batch, emit, perTask(4*queries*d.D), perTask(4*d.NK*d.KVHeads*d.D), perTask(8*queries), perLength, perTask(4*queries))
}
