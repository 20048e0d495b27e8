package ptxkernels

import (
	"math"
	"slices"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/conformance"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/norm"
	"github.com/wavelane/wavelane/quant"
)

// coverageCases are calls of an entry that take its kernels along ways that those of the suite do not, or are too large to take often:
// lanes with several iterations each, loops that end just where they may, tiles that are full, axes of every number.
func coverageCases(e *program.Entry) (cases []conformance.Case) {
	a := program.Attr{Options: e.Options}
	for _, s := range e.Scalars {
		a.Scalars = append(a.Scalars, s.Test[0])
	}
	add := func(a program.Attr, in ...program.Type) {
		if _, err := e.Check(in, a); err == nil {
			cases = append(cases, conformance.NewCase(e, a, in...))
		}
	}
	same := func(shapes ...[]int) {
		for _, s := range shapes {
			add(a, slices.Repeat([]program.Type{program.F32(s...)}, len(e.Inputs))...)
		}
	}
	halves := []compute.DType{compute.Float32, compute.Float16, compute.BFloat16}
	plain, causal := compute.AttentionOptions{}, compute.AttentionOptions{Causal: true}
	switch {
	case e.Class.Elementwise() && len(e.Inputs) > 1:
		same([]int{33_000})
		// More than all threads of a small GPU take in one iteration, by elements and by fours.
		beyond := [][]int{{5, 3281}, {4, 4100}}
		for rank := range program.MaxRank + 1 {
			beyond = append(beyond, append(slices.Repeat([]int{2}, max(rank-1, 0)), 3), append(slices.Repeat([]int{2}, max(rank-1, 0)), 8))
		}
		for _, shape := range beyond {
			in := slices.Repeat([]program.Type{program.F32(shape...)}, len(e.Inputs))
			repeated := slices.Clone(shape)
			for d := len(shape) - 2; d >= 0; d -= 2 {
				repeated[d] = 1
			}
			in[1] = program.F32(repeated...)
			add(a, in...)
			if len(shape) == 2 {
				in[1] = program.F32(shape[0], 1)
				add(a, in...)
			}
		}
	case e == catalogue.Cast: // the last iteration of a small GPU ends just where the tensors do
		types := append(halves, compute.Uint8)
		for _, from := range types {
			for _, to := range types {
				if from != to {
					add(program.Attr{Options: compute.CastOptions{To: to}}, program.Type{DType: from, Shape: []int{16_500}})
				}
			}
		}
	case e == catalogue.BiasActivation: // the same, by elements and by fours
		for _, n := range []int{101, 404} {
			add(a, program.F32(41, n), program.F32(n))
		}
	case e == catalogue.SwiGLUBackward:
		same([]int{16_500})
	case norm.Kernels[e].Kernel != nil:
		// Rows that end in each of the eight groups of a lane's elements.
		for _, s := range [][]int{{17, 1021}, {17, 1016}, {17, 516}, {17, 270}, {17, 398}, {17, 525}, {17, 653}, {17, 781}, {17, 909}, {17, 143}, {17, 140}, {5, 8201}, {5, 8208}, {1, 8210}, {1, 8212}, {17, 77}, {17, 45}, {17, 300}, {17, 400}} {
			in := []program.Type{program.F32(s...)}
			for range e.Inputs[1:] {
				in = append(in, program.F32(s[1]))
			}
			if _, err := e.Check(in, a); err != nil { // there is a second matrix: before the vectors, or after them
				vectors := in[1 : len(in)-1]
				in = append([]program.Type{in[0], in[0]}, vectors...)
				if e == catalogue.RMSNormBackward || e == catalogue.LayerNormBackward {
					in = append(append([]program.Type{in[0]}, vectors...), in[0])
				}
			}
			add(a, in...)
		}
	case e.Class == program.Reduce:
		for _, s := range [][]int{{40, 300}, {70, 93}, {2, 5001}, {300, 60}, {33, 223}, {9, 1196}} {
			a.Options = compute.LastAxis
			same(s)
		}
	case e == catalogue.MaxPool2D, e == catalogue.AvgPool2D:
		for _, size := range [][2]int{{9, 9}, {3, 30}, {30, 3}, {8, 16}} {
			add(program.Attr{Options: compute.PoolOptions{Size: size, Stride: [2]int{2, 3}}}, program.F32(3, 2, 31, 33))
			add(program.Attr{Options: compute.PoolOptions{Size: size, Pad: [2]int{1, 1}}}, program.F32(2, 33, 31))
		}
	case e == catalogue.MatVec, e == catalogue.VecMat, e == catalogue.RMSNormMatVec, e == catalogue.QKV, e == catalogue.GateUpSwiGLU:
		for _, d := range halves {
			for _, s := range [][3]int{{1, 9, 1296}, {3, 9, 1296}, {8, 5, 2304}, {1, 5, 2304}, {1, 70, 472}, {5, 20, 952}, {1, 36, 327}, {6, 36, 327},
				{2, 7, 1160}, {2, 9, 2056}, {4, 6, 2056}, {7, 5, 1290}, {8, 9, 1288}, {8, 9, 2304}, {5, 9, 328}, {2, 600, 40}, {2, 600, 48}, {4, 9, 1304},
				{1, 20, 1024}, {2, 70, 512}, {4, 70, 512}, {8, 70, 512}, {1, 261, 264}, {4, 140, 327}, {8, 140, 327}, {1, 301, 24}, {2, 301, 24}, {4, 301, 24}, {8, 301, 24},
				{1, 9, 127}, {8, 9, 127}, {1, 9, 384}, {1, 9, 768}} { // lanes that have a whole number of iterations of an unrolled loop
				m, n, k := s[0], s[1], s[2]
				x, w := program.F32(m, k), program.Type{DType: d, Shape: []int{n, k}}
				switch e {
				case catalogue.MatVec:
					add(a, w, x)
				case catalogue.VecMat:
					add(a, x, program.Type{DType: d, Shape: []int{k, n}})
				case catalogue.RMSNormMatVec:
					add(a, x, program.F32(k), w)
				case catalogue.GateUpSwiGLU:
					add(a, x, w, w)
				case catalogue.QKV:
					add(a, x, w, w, w)
					add(a, x, w, w, w, program.F32(n), program.F32(n), program.F32(n))
				}
			}
		}
	case e == catalogue.Transpose:
		a.Options = compute.TransposeOptions{Perm: []int{1, 0, 3, 2}}
		same([]int{3, 2, 33, 34})
	case e == catalogue.Attention:
		for _, d := range append(halves, compute.Uint32) { // caches
			odd := 36
			if d == compute.Uint32 {
				odd = 32
			}
			for _, n := range []int{1, 4, 9} { // queries: as many as kernels have room for, or some that leave most of a second block idle
				// Rings of keys that have come around, in the first tile and in one of the next.
				cases = append(cases, conformance.NewAttentionCase(compute.AttentionOptions{Causal: true, Window: 180}, compute.Float32, d, n, 200, odd,
					250, 330, 20))
				// So few keys that what is read after them is no longer the cache.
				for _, of := range []int{odd, 96, 256, 33} {
					if d != compute.Uint32 || of != 33 {
						cases = append(cases, conformance.NewAttentionCase(plain, compute.Float32, d, n, 2, of, 2))
					}
				}
				if q := d; d != compute.Float32 {
					if d == compute.Uint32 {
						q = compute.Float16
					}
					cases = append(cases, conformance.NewAttentionCase(plain, q, d, n, 67, odd, 67))
				}
			}
		}
		for _, d := range halves {
			for _, s := range [][3]int{{1, 71, 70}, {4, 15, 40}, {8, 117, 70}, {2, 128, 90}, {70, 61, 67}, {40, 101, 70}, {20, 201, 33}} {
				n, of, keys := s[0], s[1], s[2] // rows that do not begin at multiples of 16 bytes
				q, kv := program.F32(1, n, 1, of), program.Type{DType: d, Shape: []int{1, keys, 1, of}}
				add(program.Attr{Options: compute.AttentionOptions{Causal: n < 20}}, q, kv, kv)
				q.DType = d
				add(program.Attr{Options: compute.AttentionOptions{}}, q, kv, kv)
			}
			// Tiles of keys that all of a block's queries see, before and after those that some see.
			for _, o := range []compute.AttentionOptions{{Window: 70}, plain, causal} {
				q, kv := program.Type{DType: d, Shape: []int{1, 66, 2, 72}}, program.Type{DType: d, Shape: []int{1, 140, 1, 72}}
				add(program.Attr{Options: o}, q, kv, kv)
			}
			for i, of := range []int{64, 128, 256} {
				attend := func(o compute.AttentionOptions, n, keys, of int, lengths ...int32) {
					if len(lengths) > 0 {
						cases = append(cases, conformance.NewAttentionCase(o, d, d, n, keys, of, lengths...))
						return
					}
					q, kv := program.Type{DType: d, Shape: []int{1, n, 1, of}}, program.Type{DType: d, Shape: []int{1, keys, 1, of}}
					add(program.Attr{Options: o}, q, kv, kv)
				}
				// What is seen ends, and begins, in the middle of tiles of keys. In a narrow window any key that should not be seen weighs much,
				// and so does for some queries any that should where scores are large. So few keys that what is read after them is not there.
				large := compute.AttentionOptions{Causal: true, Scale: float32(3 / math.Sqrt(float64(of)))}
				if d == compute.Float32 {
					attend(large, 40, 72>>(i/2), of)
					attend(compute.AttentionOptions{Window: 2}, 40, 72>>(i/2), of)
					attend(causal, 17, 64, of, 127) // a ring
					attend(plain, 65>>(i/2), 2, of-1, 2)
					attend(plain, 65>>(i/2), 2, of-4, 2)
					continue
				}
				attend(large, 64, 300>>(i/2), of)
				attend(compute.AttentionOptions{Window: 2}, []int{192, 128, 64}[i], 200, of)
				tile := []int32{64, 48, 64}[i]
				attend(plain, 41, 150, of-8, 2*150-1) // rings that come around after the first key of the first and of another tile
				attend(plain, 41, 150, of-8, 2*150-1-tile)
				attend(plain, 129>>(i/2), 2, of-8, 2)
				if of < 256 {
					attend(causal, 230, 20, of-8)               // blocks of queries that see nothing
					attend(plain, 64, []int{640, 384}[i], of-8) // keys that end where a tile does, which is more than all stages
				}
			}
		}
	case e == catalogue.AttentionLSE:
		for _, d := range halves {
			for i, of := range []int{64, 128, 256} {
				q, kv := program.Type{DType: d, Shape: []int{1, 64 >> (i / 2), 1, of}}, program.Type{DType: d, Shape: []int{1, 20, 1, of}}
				add(program.Attr{Options: causal}, q, kv, kv)
			}
		}
	case e == catalogue.AttentionBackward:
		for _, of := range []int{61, 60, 125, 124, 253, 252} {
			o := compute.AttentionOptions{Window: 20}
			if of%2 == 1 {
				o.SoftCap = 3
			}
			n := 64
			if of > 128 {
				n = 52
			}
			cases = append(cases, conformance.NewAttentionBackwardCase(o, n, 64, of), conformance.NewAttentionBackwardCase(plain, 1, 2, of),
				conformance.NewAttentionBackwardCase(causal, 17, 64, of, 127))
		}
	case e == catalogue.PagedAttention:
		for _, d := range append(halves, compute.Uint32) {
			for _, n := range []int{1, 4, 8} {
				cases = append(cases, conformance.NewPagedAttentionCase(d, n, 32, 40), conformance.NewPagedAttentionCase(d, n, 32, 3))
			}
		}
	case strings.HasPrefix(e.Name, "quant_"):
		// Matrices of several numbers of rows, that end in each of the eight rows of a tile's parts; tiles that a row or a column of the
		// result leaves in part; rows for which every warp of a block has values.
		for _, f := range []compute.BlockFormat{compute.Q4_0, compute.Q4_1, compute.Q5_0, compute.Q5_1, compute.Q8_0, compute.Q2_K, compute.Q3_K,
			compute.Q4_K, compute.Q5_K, compute.Q6_K} {
			for _, q8 := range []bool{false, true} {
				for _, s := range [][3]int{{1, 4096, 3}, {8, 2048, 13}, {3, 1280, 15}, {1, 512, 9}, {17, 256, 37}, {9, 512, 29}, {40, 256, 11}, {33, 256, 70},
					{60, 256, 20}, {60, 256, 9}, {63, 256, 35}, {61, 256, 28}, {5, 768, 4}, {2, 256, 14}, {4, 2048, 6}, {27, 256, 10}, {45, 256, 9}, {53, 256, 12}} {
					m, k, n := s[0], s[1], s[2]
					o := compute.QuantOptions{Format: f, Q8: q8}
					switch e {
					case catalogue.QuantMatMulColMajor:
						if !q8 {
							cases = append(cases, conformance.NewQuantCase(e, o, m%9, 7*n, quant.Type(f).BlockLen()*(1+n%4)))
						}
					case catalogue.QuantQKV:
						cases = append(cases, conformance.NewQuantCase(e, compute.QuantQKVOptions{Q: f, K: f, V: f, Q8: q8}, m, k, n, n/2+1, 2))
					case catalogue.QuantGateUpSwiGLU:
						cases = append(cases, conformance.NewQuantCase(e, o, m, k, n, n))
					default:
						cases = append(cases, conformance.NewQuantCase(e, o, m, k, n))
					}
				}
				if e == catalogue.QuantMatMulRowMajor && f == compute.Q4_0 { // a row that ends in the middle of a stage, after whole parts
					cases = append(cases, conformance.NewQuantCase(e, compute.QuantOptions{Format: f, Q8: q8}, 9, 1056, 7))
				}
			}
		}
	case e == catalogue.MatMul:
		for _, o := range []compute.MatMulOptions{{}, {TransA: true}, {TransB: true}, {TransA: true, TransB: true}} {
			operands := func(s [3]int) (x, y []int) {
				x, y = []int{s[0], s[1]}, []int{s[1], s[2]}
				if o.TransA {
					slices.Reverse(x)
				}
				if o.TransB {
					slices.Reverse(y)
				}
				return x, y
			}
			long := func(a program.Attr, d compute.DType, k int) { // more than all stages of a kernel
				x, y := operands([3]int{24, k, 64})
				add(a, program.Type{DType: d, Shape: x}, program.Type{DType: d, Shape: y})
			}
			long(program.Attr{Options: o}, compute.Float16, 704)
			long(program.Attr{Options: o}, compute.BFloat16, 704)
			tf32 := o
			tf32.Precision = compute.TF32
			long(program.Attr{Options: tf32}, compute.Float32, 352)
			for _, s := range [][3]int{{134, 20, 268}, {131, 9, 261}, {136, 72, 264}, {70, 43, 66}, {67, 23, 65}, {70, 14, 69}, {69, 21, 67}, {65, 18, 70},
				{64, 33, 68}, {20, 36, 20}, {20, 36, 3}, {20, 36, 6}} { // large tiles; all that sides may leave of eight
				x, y := operands(s)
				for _, d := range halves {
					o := o
					add(program.Attr{Options: o}, program.Type{DType: d, Shape: x}, program.Type{DType: d, Shape: y})
					o.Result = d
					add(program.Attr{Options: o}, program.Type{DType: d, Shape: x}, program.Type{DType: d, Shape: y}, program.F32(s[2]))
				}
				for _, p := range []compute.Precision{compute.TF32, compute.FP32Tensor} {
					o := o
					o.Precision = p
					add(program.Attr{Options: o}, program.F32(x...), program.F32(y...), program.F32(s[2]))
				}
			}
			// Depths that end in each of the parts that a thread copies, and sides that end one element into a vector.
			for _, s := range [][3]int{{65, 3, 73}, {65, 7, 73}, {65, 11, 73}, {65, 19, 73}, {65, 27, 73}, {65, 35, 73}, {65, 44, 73}, {72, 40, 72},
				{129, 3, 137}, {129, 7, 137}, {129, 11, 137}, {129, 19, 137}, {129, 27, 137}, {129, 35, 137}, {129, 44, 137}, {136, 40, 136}, {72, 34, 72}, {136, 34, 136}} {
				x, y := operands(s)
				of := func(d compute.DType, p compute.Precision, value float64) {
					o := o
					o.Precision = p
					cases = append(cases, conformance.NewCaseWith(float32(value), e, program.Attr{Options: o}, program.Type{DType: d, Shape: x},
						program.Type{DType: d, Shape: y}))
				}
				of(compute.Float16, compute.FullPrecision, math.Inf(1))
				of(compute.BFloat16, compute.FullPrecision, math.Inf(1))
				of(compute.Float32, compute.TF32, math.Inf(1))
				of(compute.Float32, compute.FP32Tensor, math.NaN()) // which infinities become
			}
		}
	}
	return cases
}
