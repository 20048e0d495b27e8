package move

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/lowering"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kerneltest"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxtest"
)

// boxLayout is strides for a shape whose axes lie in the order given, the innermost first, with gaps of multiples of unit words
// between them; the strides of some axes are negative. offset is where the first element is, words how many all of it takes.
func boxLayout(r *rand.Rand, shape, order []int, unit int, negative bool) (strides []int, offset, words int) {
	strides = make([]int, len(shape))
	step := 1
	offset = unit * r.IntN(3)
	for i, d := range order {
		strides[d] = step
		if negative && i > 0 && r.IntN(3) == 0 {
			strides[d] = -step
			offset += (shape[d] - 1) * step
		}
		step *= shape[d]
		if r.IntN(2) == 0 {
			step += unit * r.IntN(3)
		}
	}
	return strides, offset, step + 3*unit
}

// movedBy says by what a box was moved, with the tile where there is one.
func movedBy(t *testing.T, actions []kit.Action) string {
	l := actions[0].Launch
	if l == nil {
		return "copies"
	}
	if l.Kernel == transposeKernel {
		layout, err := transposeKernel.Layout()
		require.NoError(t, err)
		at := layout.Param(4)
		return fmt.Sprint("transpose by ", 1<<binary.LittleEndian.Uint32(l.Params[at.Offset:]))
	}
	return l.Kernel.Name
}

// TestMove moves boxes of every rank with all kinds of strides on either side. Every word has to arrive, and nothing beside
// them may change.
func TestMove(t *testing.T) {
	r := ptxtest.Random(t)
	rig := kerneltest.New(t, kerneltest.EveryCheck(r.Uint64()), nil)
	ways := map[string]int{}
	move := func(shape, orderX, orderY []int, unit int, negative bool) {
		from, x0, nx := boxLayout(r, shape, orderX, unit, negative)
		to, y0, ny := boxLayout(r, shape, orderY, unit, false)
		x, y := make([]uint32, nx), make([]uint32, ny)
		for i := range x {
			x[i] = r.Uint32()
		}
		for i := range y {
			y[i] = 0xdeadbeef
		}
		want := slices.Clone(y)
		program.Walk(shape, func(_ int, index []int) { want[y0+program.Dot(index, to)] = x[x0+program.Dot(index, from)] })

		s := &kit.Step{Step: &lowering.Step[*kit.Launch]{}, Caps: &rig.Caps}
		moveBox(s, boxOf(kit.In(0), shape, from, to, x0, y0))
		what := fmt.Sprintf("%v from %v at %d to %v at %d", shape, from, x0, to, y0)
		require.NoError(t, s.Err, what)
		require.NotEmpty(t, s.Actions, what)
		ways[movedBy(t, s.Actions)]++
		at := map[lowering.Role]uint64{lowering.Operand: uploadWords(t, rig, x), lowering.Result: uploadWords(t, rig, y)}
		for _, a := range s.Actions {
			require.NoError(t, rig.Act(a, func(b kit.Buffer) uint64 { return at[b.Role] + uint64(b.Offset) }), what)
		}
		got := make([]byte, 4*ny)
		require.NoError(t, rig.GPU.Read(got, at[lowering.Result]))
		for i, w := range want {
			require.Equal(t, w, binary.LittleEndian.Uint32(got[4*i:]), "%s: word %d", what, i)
		}
		rig.GPU.Free(at[lowering.Operand])
		rig.GPU.Free(at[lowering.Result])
	}

	for range 150 {
		shape := make([]int, r.IntN(program.MaxRank+1))
		unit := []int{1, 4}[r.IntN(2)]
		for d, room := 0, 2000; d < len(shape); d++ {
			shape[d] = 1 + r.IntN(min(room, 6))
			room = max(1, room/shape[d])
		}
		order := r.Perm(len(shape))
		orderX := order
		if r.IntN(3) == 0 {
			orderX = r.Perm(len(shape))
		}
		if len(shape) > 0 && unit == 4 {
			shape[order[0]] *= 4
		}
		move(shape, orderX, order, unit, r.IntN(2) == 0)
	}
	// Matrices, and matrices among up to six other axes.
	for _, m := range [][2]int{{2, 700}, {3, 341}, {7, 200}, {16, 64}, {17, 61}, {33, 65}, {70, 40}, {90, 30}, {128, 15}, {300, 8},
		{400, 4}, {1100, 2}, {4, 257}, {2, 1025}} {
		move([]int{m[0], m[1]}, []int{0, 1}, []int{1, 0}, 1, r.IntN(2) == 0)
		rank := 3 + r.IntN(program.MaxRank-2)
		order := r.Perm(rank)
		orderX := slices.DeleteFunc(r.Perm(rank), func(d int) bool { return d == order[1] })
		orderX = append([]int{order[1]}, orderX...)
		shape := make([]int, rank)
		for d := range shape {
			shape[d] = 1 + r.IntN(2)
		}
		shape[order[1]], shape[order[0]] = m[0], m[1]
		move(shape, orderX, order, 1, r.IntN(2) == 0)
	}
	// Rows that are worth a copy each, and rows that are not.
	for _, s := range [][]int{{3, longCopy / 4}, {3, longCopy/4 - 1}, {fewCopies + 1, 4096}, {1, 5}} {
		move(s, []int{1, 0}, []int{1, 0}, 1, false)
	}
	t.Log(ways)
	for _, w := range []string{"copies", "strided", "strided_4", "transpose by 2", "transpose by 4", "transpose by 8",
		"transpose by 16", "transpose by 32", "transpose by 128", "transpose by 256", "transpose by 512", "transpose by 1024"} {
		require.NotZero(t, ways[w], "no box was moved by %s: %v", w, ways)
	}
}

// uploadWords puts words into new memory.
func uploadWords(t *testing.T, r *kerneltest.Rig, words []uint32) uint64 {
	at, err := r.GPU.Alloc(4 * len(words))
	require.NoError(t, err)
	data, err := binary.Append(nil, binary.LittleEndian, words)
	require.NoError(t, err)
	require.NoError(t, r.GPU.Write(at, data))
	return at
}
