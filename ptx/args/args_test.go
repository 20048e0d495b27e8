package args_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/args"
	"github.com/wavelane/wavelane/ptx/ir"
)

var params = []ir.Var{
	{Name: "n", Type: ir.U32}, {Name: "x", Type: ir.U64, Ptr: true}, {Name: "f", Type: ir.F32}, {Name: "h", Type: ir.F16},
	{Name: "bits", Type: ir.B64}, {Name: "axes", Type: ir.B8, Align: 4, Dims: []int{12}}, {Name: "d", Type: ir.F64},
}

func TestPack(t *testing.T) {
	l := args.LayoutOf(params)
	var at []int
	for i := range l.Len() {
		at = append(at, l.Param(i).Offset)
	}
	require.Equal(t, []int{0, 8, 16, 20, 24, 32, 48}, at)
	require.Equal(t, 56, l.Size())
	block := make([]byte, 56)
	given := []args.Arg{args.U32(0x04030201), args.Ptr(0x1122334455667788), args.F32(1), args.Bytes([]byte{0xaa, 0xbb}), args.F64(1),
		args.Bytes([]byte("twelve bytes")), args.F64(-2)}
	require.NoError(t, l.Pack(block, given...))
	require.Equal(t, []byte{1, 2, 3, 4, 0, 0, 0, 0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0, 0, 0x80, 0x3f, 0xaa, 0xbb, 0, 0,
		0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 't', 'w', 'e', 'l', 'v', 'e', ' ', 'b', 'y', 't', 'e', 's', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xc0}, block)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if l.Pack(block, args.U32(1), given[1], args.F32(2), given[3], given[4], given[5], args.F64(1)) != nil {
			t.Error("pack failed")
		}
	}))
	require.NoError(t, l.Put(block, 0, args.I32(-1)))
	require.Equal(t, []byte{255, 255, 255, 255}, block[:4])
}

func TestSlot(t *testing.T) {
	i, ok := args.Slot(-1).Slot()
	require.True(t, ok)
	require.Equal(t, -1, i)
	_, ok = args.Ptr(3).Slot()
	require.False(t, ok)
}

func TestClosed(t *testing.T) {
	l := args.LayoutOf(params)
	err := l.Put(make([]byte, l.Size()), 1, args.Closed())
	require.ErrorIs(t, err, compute.ErrClosed)
	require.EqualError(t, err, "argument 1, of a closed buffer, is given for .u64 x: closed")
	require.ErrorContains(t, l.Put(make([]byte, l.Size()), 3, args.U32(1)), "of 2 bytes, which takes args.Bytes: ")
}

func TestPackRefuses(t *testing.T) {
	l := args.LayoutOf(params)
	block := make([]byte, l.Size())
	for _, bad := range []struct {
		i int
		a args.Arg
	}{
		{0, args.F32(1)}, {0, args.U64(1)}, {0, args.Ptr(1)}, {0, args.Arg{}}, {0, args.Bytes(nil)}, {1, args.U64(1)}, {1, args.U32(1)},
		{2, args.U32(1)}, {2, args.F64(1)}, {3, args.F32(1)}, {5, args.U32(1)}, {5, args.Bytes(make([]byte, 11))}, {6, args.I64(1)},
		{1, args.Slot(0)}, {7, args.U32(1)}, {-1, args.U32(1)},
	} {
		require.ErrorIs(t, l.Put(block, bad.i, bad.a), compute.ErrArgument, "%v", bad)
	}
	require.ErrorIs(t, l.Pack(block), compute.ErrArgument)
	require.ErrorIs(t, l.Pack(block[1:], make([]args.Arg, len(params))...), compute.ErrArgument)
	require.ErrorIs(t, l.Put(block[1:], 0, args.U32(1)), compute.ErrArgument)
}
