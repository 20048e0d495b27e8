package sim_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim"
)

// metadataPlace is where tensor memory has the four bits of the chunk of A that begins with an element: the lane, and the bit of
// neighbouring columns. An index goes through rows and columns as CUTLASS lays out metadata, lanes first and then pieces of as many bits as
// there are for an element.
func metadataPlace(t ir.Type, row, k int) (lane, bit int) {
	switch t.Bits() {
	case 8:
		return row, k
	case 16:
		i := row%8 + row/8%2*2048 + row/16*16 + k%16*128 + k/16*8
		return i % 128, i / 128
	}
	i := row%8 + row/8%2*1024 + row/16*16 + k%8*128 + k/8*8
	return i % 128, i / 128 * 2
}

// sparseInputs are A as it is stored, B, and metadata for the parameter p3 of each block, with the product.
func (f *tensorForm) sparseInputs(rng *rand.Rand) (a, b, metadata []byte, want, size []float64) {
	k := 2 * 64 * 8 / f.ta.Bits()
	blocks := f.m / 128
	a, stored := matrix(rng, f.ta, f.m*k/2)
	b, vb := matrix(rng, f.tb, f.n*k)
	va := make([]float64, f.m*k)
	metadata = make([]byte, blocks*128*32*4)
	chunk := 4
	if f.ta == ir.TF32 {
		chunk = 2
	}
	for row := range f.m {
		for at := 0; at < k; at += chunk {
			first, second := rng.IntN(3), 0
			second = first + 1 + rng.IntN(3-first)
			bits := first | second<<2
			if from := row*k/2 + at/2; chunk == 4 {
				va[row*k+at+first], va[row*k+at+second] = stored[from], stored[from+1]
			} else {
				first %= 2
				bits = []int{0b0100, 0b1110}[first]
				va[row*k+at+first] = stored[from]
			}
			part := at / (k / 2)
			lane, bit := metadataPlace(f.ta, row%128, at%(k/2))
			word := metadata[((row/128*128+lane)*32+bit/32)*4:]
			if f.second == 0 {
				word = word[part*8:]
			} else {
				word = word[part*4:]
			}
			binary.LittleEndian.PutUint32(word, binary.LittleEndian.Uint32(word)|uint32(bits)<<(bit%32))
		}
	}
	want, size = gemm(f.m, f.n, k, va, byRows(vb, k, f.n), nil)
	return a, b, metadata, want, size
}

func TestTensorSparse(t *testing.T) {
	rng := ptxtest.Random(t)
	for _, f := range []tensorForm{
		{kind: "f16", m: 128, n: 32, ta: ir.F16, tb: ir.F16, td: ir.F32, d: 1, second: 1},
		{kind: "f16", m: 128, n: 16, ta: ir.BF16, tb: ir.BF16, td: ir.F32, a: 1, b: 1, d: 1, second: 1, inMemory: true},
		{kind: "tf32", m: 128, n: 48, ta: ir.TF32, tb: ir.TF32, td: ir.F32, a: 2, b: 2, d: 1, second: 1},
		{kind: "f8f6f4", m: 128, n: 16, ta: ir.E4M3, tb: ir.E5M2, td: ir.F32, b: 1, d: 1}, {kind: "i8", m: 128, n: 32, ta: ir.S8, tb: ir.U8, td: ir.S32, a: 1, d: 2},
		{kind: "f16", m: 256, n: 32, ta: ir.F16, tb: ir.F16, td: ir.F32, d: 1, second: 1, pair: true},
	} {
		f.sparse, f.more, f.scales = true, 1<<2, storesScales
		a, b, metadata, want, size := f.sparseInputs(rng)
		for _, cfg := range checkedSeeds(1) {
			if !f.pair {
				r := tensorRig(t, cfg, 4, f.kernel())
				if !f.inMemory {
					r.bytes(rowsOf(a, f.m, 64))
				} else {
					r.bytes(a)
				}
				r.bytes(rowsOf(b, f.n, 128)).out(128 * 4 * f.n).bytes(metadata)
				require.NoError(t, r.launch(threads(128)), "%+v", f)
				near(t, r.read(2), f.td, want, size, f.kind)
				continue
			}
			r := changedRig(t, cfg, 4, f.kernel(), inPairs)
			r.bytes(split(a, 128)).bytes(split(b, f.n/2)).out(2 * 128 * 4 * f.n).bytes(metadata)
			require.NoError(t, r.launch(pairOf()), "%+v", f)
			near(t, f.ofPair(r.read(2)), f.td, want, size, f.kind)
		}
	}
}

func TestTensorSparseFaults(t *testing.T) {
	rng := ptxtest.Random(t)
	run := func(change func(f *tensorForm, metadata []byte)) *sim.Fault {
		f := tensorForm{kind: "f16", m: 128, n: 16, ta: ir.F16, tb: ir.F16, td: ir.F32, d: 1, second: 1, sparse: true, more: 1 << 2, scales: storesScales}
		a, b, metadata, _, _ := f.sparseInputs(rng)
		change(&f, metadata)
		r := tensorRig(t, sim.Config{Checks: sim.AllChecks}, 4, f.kernel())
		r.bytes(rowsOf(a, f.m, 64)).bytes(rowsOf(b, f.n, 128)).out(128 * 4 * f.n).bytes(metadata)
		return faults(t, r.launch(threads(128)), sim.BadOperand)
	}
	require.Contains(t, run(func(_ *tensorForm, metadata []byte) { metadata[3*32*4] = 0b0001_0100 }).Detail, "the metadata of row 3 has indices")
	require.Contains(t, run(func(f *tensorForm, _ []byte) { f.more = 0 }).Detail, "the bit of sparse matrices is 0")
	require.Contains(t, run(func(f *tensorForm, _ []byte) { f.more |= 2 }).Detail, "the selector of metadata 2")
	require.Contains(t, run(func(f *tensorForm, _ []byte) { f.m = 64 }).Detail, "64 rows, want 128")
}

// TestTensorShift: what a product is added to is divided by a power of two.
func TestTensorShift(t *testing.T) {
	f := tensorForm{kind: "f16", m: 128, n: 16, ta: ir.F16, tb: ir.F16, td: ir.F32, d: 1, shift: ", 3"}
	ones := make([]byte, 128*64)
	for i := 0; i < len(ones); i += 2 {
		ones[i+1] = 0x3c
	}
	r := tensorRig(t, sim.Config{}, 3, f.kernel())
	r.bytes(ones).bytes(ones[:16*64]).out(128 * 4 * 16)
	require.NoError(t, r.launch(threads(128)))
	got := r.read(2)
	for i := 0; i < len(got); i += 4 {
		require.Equal(t, float32(16.0/8+16), math.Float32frombits(binary.LittleEndian.Uint32(got[i:])))
	}
}
