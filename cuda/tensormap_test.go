package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
	"github.com/wavelane/wavelane/ptx"
	"github.com/wavelane/wavelane/ptx/args"
	"github.com/wavelane/wavelane/ptx/tensormap"
)

const tileRows, tileCols = 8, 16

// tileKernel copies the tile at (row, col) of a matrix in single precision to out, by TMA.
func tileKernel(k *ptx.Kernel) {
	k.RequireThreads(tileRows*tileCols, 1, 1)
	u := ptx.Imm[uint32]
	matrix := ptx.TensorMapParam[float32](k, "matrix")
	row := ptx.Param[int32](k, "row")
	col := ptx.Param[int32](k, "col")
	out := ptx.PointerParam[float32](k, "out")
	tile := ptx.NewTile[float32](k, "tile", ptx.TileLayout{Rows: tileRows, Cols: tileCols}, 1)
	full := ptx.NewMbarrier(k, "full", 1)
	tid := k.Tid(ptx.X)
	k.If(tid.Eq(u(0)), func() {
		full.Init(1)
		k.FenceMbarrierInit()
		full.ArriveExpectTx(4 * tileRows * tileCols)
		matrix.Load(tile.Ptr(), []ptx.Reg[int32]{col, row}, full)
	})
	k.Barrier()
	full.WaitParity(0)
	out.At(tid).Store(tile.Ptr().At(tid).Load())
}

// matrixMap is a matrix in single precision as tiles.
func matrixMap(rows, cols int) tensormap.Map {
	return tensormap.Map{Type: tensormap.F32, Rank: 2, Dims: [5]uint64{uint64(cols), uint64(rows)}, Strides: [4]uint64{uint64(4 * cols)},
		Box: [5]uint32{tileCols, tileRows}}
}

// A kernel of the user's copies tiles of a matrix, of one inside a buffer, and beyond its edges.
func TestTensorMapLaunch(t *testing.T) {
	d, _ := openSoft(t, softgpu.Config{})
	rng := randomSource(t)
	loaded, err := d.LoadModule(built(t, "tile", tileKernel))
	require.NoError(t, err)
	k, err := loaded.Kernel("tile")
	require.NoError(t, err)
	s, err := d.NewStream(StreamOptions{})
	require.NoError(t, err)
	for range 8 {
		rows, cols, before := 1+rng.IntN(40), 4*(1+rng.IntN(20)), 4*rng.IntN(9)
		x := make([]float32, before+rows*cols)
		for i := range x {
			x[i] = rng.Float32() + 1
		}
		whole := uploaded(t, d, x)
		part, err := whole.Slice(before, len(x))
		require.NoError(t, err)
		m, err := part.TensorMap(matrixMap(rows, cols))
		require.NoError(t, err)
		row, col := rng.IntN(rows), rng.IntN(cols)
		out := uploaded(t, d, make([]float32, tileRows*tileCols))
		r, err := s.Begin()
		require.NoError(t, err)
		require.NoError(t, r.Launch(k, Launch{}, m, args.I32(int32(row)), args.I32(int32(col)), out.Arg()))
		work, err := r.Submit()
		require.NoError(t, err)
		_, err = work.Wait(t.Context())
		require.NoError(t, err)
		got := make([]float32, tileRows*tileCols)
		require.NoError(t, out.Download(t.Context(), got))
		for i := range got {
			y, z, want := row+i/tileCols, col+i%tileCols, float32(0)
			if y < rows && z < cols {
				want = x[before+y*cols+z]
			}
			require.Equal(t, want, got[i], "%d × %d from %d on, tile at %d, %d: element %d", rows, cols, before, row, col, i)
		}
		for _, b := range []*Buffer[float32]{whole, part, out} {
			require.NoError(t, b.Close())
		}
	}
}

func TestTensorMapErrors(t *testing.T) {
	fail := &injector{}
	d, _ := openSoft(t, softgpu.Config{Inject: fail.next})
	b := uploaded(t, d, make([]float32, 64*64))
	good := func() tensormap.Map { return matrixMap(64, 64) }
	_, err := b.TensorMap(good())
	require.NoError(t, err)
	for _, c := range []struct {
		name  string
		wrong func(m *tensormap.Map)
		want  error
	}{
		{"an address", func(m *tensormap.Map) { m.Address = 256 }, compute.ErrArgument},
		{"type", func(m *tensormap.Map) { m.Type = 99 }, compute.ErrArgument},
		{"no dimensions", func(m *tensormap.Map) { m.Rank = 0 }, compute.ErrArgument},
		{"many dimensions", func(m *tensormap.Map) { m.Rank = 6 }, compute.ErrArgument},
		{"negative dimensions", func(m *tensormap.Map) { m.Rank = -1 }, compute.ErrArgument},
		{"empty dimension", func(m *tensormap.Map) { m.Dims[1] = 0 }, compute.ErrArgument},
		{"long dimension", func(m *tensormap.Map) { m.Dims[1] = 1<<32 + 1 }, compute.ErrArgument},
		{"no stride", func(m *tensormap.Map) { m.Strides[0] = 0 }, compute.ErrArgument},
		{"stride between chunks", func(m *tensormap.Map) { m.Strides[0] = 264 }, compute.ErrArgument},
		{"long stride", func(m *tensormap.Map) { m.Strides[0] = 1 << 40 }, compute.ErrArgument},
		{"empty box", func(m *tensormap.Map) { m.Box[0] = 0 }, compute.ErrArgument},
		{"large box", func(m *tensormap.Map) { m.Box[1] = 257 }, compute.ErrArgument},
		{"box of no whole chunks", func(m *tensormap.Map) { m.Box[0] = 3 }, compute.ErrArgument},
		{"box over the swizzle", func(m *tensormap.Map) { m.Box[0], m.Swizzle = 32, tensormap.Swizzle64 }, compute.ErrArgument},
		{"element stride", func(m *tensormap.Map) { m.ElementStrides[1] = 9 }, compute.ErrArgument},
		{"interleave", func(m *tensormap.Map) { m.Interleave = 3 }, compute.ErrArgument},
		{"interleave of two dimensions", func(m *tensormap.Map) { m.Interleave = tensormap.Interleave16 }, compute.ErrArgument},
		{"swizzle", func(m *tensormap.Map) { m.Swizzle = 99 }, compute.ErrArgument},
		{"promotion", func(m *tensormap.Map) { m.Promotion = 9 }, compute.ErrArgument},
		{"fill", func(m *tensormap.Map) { m.Fill = 9 }, compute.ErrArgument},
		{"NaN in integers", func(m *tensormap.Map) { m.Type, m.Fill = tensormap.S32, tensormap.FillNaN }, compute.ErrArgument},
		{"a row too many", func(m *tensormap.Map) { m.Dims[1] = 65 }, compute.ErrShape},
		{"a column too many", func(m *tensormap.Map) { m.Dims[0] = 65 }, compute.ErrShape},
		{"wider elements", func(m *tensormap.Map) { m.Type = tensormap.F64 }, compute.ErrShape},
		{"more than addresses", func(m *tensormap.Map) {
			m.Rank, m.Dims = 5, [5]uint64{1 << 32, 1 << 32, 1 << 32, 1 << 32, 1 << 32}
			m.Strides, m.Box = [4]uint64{1<<40 - 16, 1<<40 - 16, 1<<40 - 16, 1<<40 - 16}, [5]uint32{4, 1, 1, 1, 1}
		}, compute.ErrShape},
	} {
		m := good()
		c.wrong(&m)
		_, err := b.TensorMap(m)
		require.ErrorIs(t, err, c.want, c.name)
		require.ErrorContains(t, err, "tensor map", c.name)
	}

	odd, err := b.Slice(1, 64*64)
	require.NoError(t, err)
	_, err = odd.TensorMap(matrixMap(63, 64))
	require.ErrorIs(t, err, compute.ErrArgument, "an address that is no multiple of 16")
	require.NoError(t, odd.Close())
	empty, err := Alloc[float32](d, 0)
	require.NoError(t, err)
	_, err = empty.TensorMap(good())
	require.ErrorIs(t, err, compute.ErrShape)
	require.NoError(t, empty.Close())
	_, err = (*Buffer[float32])(nil).TensorMap(good())
	require.ErrorIs(t, err, compute.ErrArgument)
	fail.set("TensorMapEncode", driver.NotSupported) // of a driver before 12.0
	_, err = b.TensorMap(good())
	require.ErrorIs(t, err, compute.ErrUnsupported)
	require.NoError(t, b.Close())
	_, err = b.TensorMap(good())
	require.ErrorIs(t, err, compute.ErrClosed)

	ampere, _ := openSoft(t, softgpu.Config{SM: 80})
	old := uploaded(t, ampere, make([]float32, 64*64))
	_, err = old.TensorMap(good())
	require.ErrorIs(t, err, compute.ErrUnsupported)
	require.ErrorContains(t, err, "8.0")
	require.NoError(t, old.Close())
}

// A map is no argument for a pointer, nor an address one for a map.
func TestTensorMapMisplaced(t *testing.T) {
	d, _ := openSoft(t, softgpu.Config{})
	loaded, err := d.LoadModule(built(t, "tile", tileKernel))
	require.NoError(t, err)
	k, err := loaded.Kernel("tile")
	require.NoError(t, err)
	b := uploaded(t, d, make([]float32, 64*64))
	m, err := b.TensorMap(matrixMap(64, 64))
	require.NoError(t, err)
	s, err := d.NewStream(StreamOptions{})
	require.NoError(t, err)
	for _, wrong := range [][2]Arg{{b.Arg(), b.Arg()}, {m, m}} {
		r, err := s.Begin()
		require.NoError(t, err)
		require.ErrorIs(t, r.Launch(k, Launch{}, wrong[0], args.I32(0), args.I32(0), wrong[1]), compute.ErrArgument)
		_, err = r.Submit()
		require.ErrorIs(t, err, compute.ErrArgument)
	}
	require.NoError(t, b.Close())
}
