package parse_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/parse"
)

// Instructions come from where the .loc before them says, with the calls that were inlined; those of a function without .loc from
// nowhere.
func TestLines(t *testing.T) {
	m, err := parse.Module("k.ptx", []byte(`.version 8.0
.target sm_80, debug
.address_size 64
.file 2 "inc\\half.h"
.entry k(.param .u64 x)
{
	.reg .b32 %r<9>;
	mov.u32 %r1, 1;
	.loc 1 7 5
	mov.u32 %r2, 2;
	.loc	1 9 3 // k.cu:9:3
	.loc	2 30 1, function_name $L__info_string0, inlined_at 1 9 3
	mov.u32 %r3, 3;
	.loc 2 4 2, function_name $L__info_string0+8, inlined_at 2 30 1
	mov.u32 %r4, 4;
	.loc 1 0 0
	mov.u32 %r5, 5;
	.loc 3 1 1
	mov.u32 %r6, 6;
	.loc nonsense
	ret;
}
.entry plain()
{
	ret;
}
.file	1 "k.cu", 12345, 99
`))
	require.NoError(t, err)
	var got []string
	for _, f := range m.Funcs {
		for i := range f.Body {
			var from []string
			for _, p := range m.Source(f.Body[i].Pos) {
				from = append(from, p.String())
			}
			got = append(got, strings.Join(from, " < "))
		}
	}
	require.Equal(t, []string{"", "k.cu:7:5", `inc\half.h:30:1 < k.cu:9:3`, `inc\half.h:4:2 < inc\half.h:30:1 < k.cu:9:3`, "", "", "", ""}, got)
	require.Nil(t, m.Source(ir.Pos{File: "other.ptx", Line: 10}))
	require.Nil(t, m.Source(ir.Pos{}))
	require.Equal(t, m.Lines, m.Clone().Lines)

	// They are no part of what a module computes.
	again, err := parse.Module("k.ptx", []byte(m.String()))
	require.NoError(t, err)
	require.Nil(t, again.Lines)
	require.True(t, ir.Equal(m, again))
}
