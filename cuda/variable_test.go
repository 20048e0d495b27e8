package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/args"
)

// variablesText has a kernel that adds a constant to each element of a table.
const variablesText = `.version 7.0
.target sm_70
.address_size 64
.global .align 4 .u32 table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
.const .align 4 .u32 step = 10;
.global .align 4 .b8 odd[6];
.visible .entry add(.param .u64 also)
{
	.reg .u32 %i, %v, %s;
	.reg .u64 %p, %q;
	mov.u32 %i, %tid.x;
	mov.u64 %p, table;
	mad.wide.u32 %p, %i, 4, %p;
	ld.global.u32 %v, [%p];
	ld.const.u32 %s, [step];
	add.u32 %v, %v, %s;
	st.global.u32 [%p], %v;
	ld.param.u64 %q, [also];
	mad.wide.u32 %q, %i, 4, %q;
	st.global.u32 [%q], %v;
	ret;
}
`

func TestVariable(t *testing.T) {
	ctx := t.Context()
	c := newCore(t)
	m, err := c.Load(variablesText)
	require.NoError(t, err)
	k, err := m.Kernel("add")
	require.NoError(t, err)
	table, err := Variable[uint32](m, "table")
	require.NoError(t, err)
	step, err := Variable[int32](m, "step")
	require.NoError(t, err)
	require.Equal(t, 8, table.Len())
	got := make([]uint32, 8)
	require.NoError(t, table.Download(ctx, got))
	require.Equal(t, []uint32{1, 2, 3, 4, 5, 6, 7, 8}, got)
	require.NoError(t, step.Upload(ctx, []int32{-1}))

	// As a buffer of any other kind: slices, fills, copies, arguments.
	tail, err := table.Slice(6, 8)
	require.NoError(t, err)
	also, err := Alloc[uint32](c.Device, 8)
	require.NoError(t, err)
	s := c.stream(StreamOptions{})
	r := begun(t, s)
	require.NoError(t, Fill(r, tail, 100))
	require.NoError(t, r.Launch(k, Launch{Block: xyz(8)}, also.Arg()))
	require.NoError(t, Fill(r, step, 3))
	require.NoError(t, r.Launch(k, Launch{Block: xyz(4)}, also.Arg()))
	require.NoError(t, CopyOnDevice(r, also, table))
	require.NoError(t, Fill(r, table, 0))
	finished(t, submitted(t, r))
	require.NoError(t, also.Download(ctx, got))
	require.Equal(t, []uint32{3, 4, 5, 6, 4, 5, 99, 99}, got)

	for name, want := range map[string]error{"odd": compute.ErrShape, "none": compute.ErrArgument} {
		_, err = Variable[uint32](m, name)
		require.ErrorIs(t, err, want)
	}
	_, err = Variable[uint32](nil, "table")
	require.ErrorIs(t, err, compute.ErrArgument)

	// The buffers keep the module loaded, and the module does not keep them.
	require.NoError(t, m.Close())
	_, err = Variable[uint32](m, "table")
	require.ErrorIs(t, err, compute.ErrClosed)
	require.NoError(t, table.Close())
	require.NoError(t, step.Close())
	require.EqualValues(t, 1, m.holders.Load())
	require.NoError(t, tail.Download(ctx, got[:2]))
	require.Equal(t, []uint32{0, 0}, got[:2])
	require.NoError(t, tail.Close())
	require.Zero(t, m.holders.Load())
	require.Equal(t, args.Closed(), tail.Arg())
	require.NoError(t, also.Close())

	// A device that is closed takes them along.
	d, err := Open(ctx, WithSoftware(), WithoutCache())
	require.NoError(t, err)
	m, err = d.Load(variablesText)
	require.NoError(t, err)
	table, err = Variable[uint32](m, "table")
	require.NoError(t, err)
	require.NoError(t, d.Close())
	require.ErrorIs(t, table.Download(ctx, got), compute.ErrClosed)
	require.NoError(t, table.Close())
	_, err = Variable[uint32](m, "table")
	require.ErrorIs(t, err, compute.ErrClosed)
}
