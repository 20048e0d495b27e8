package gpu

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/wgsl"
)

// sharedWGSL looks at workgroup memory before it has written to it, writes to all of it, and stores what it had seen. PARAMETERS give
// w, the number of the workgroup, and LANE gives the thread.
const sharedWGSL = `
alias Row = array<vec4<u32>, 9>;
alias Number = i32;
const rowCount = (14 >> 1);
struct Cell { n: atomic<u32>, @align(32) m: mat2x3<f32>, a: array<array<Number, 3>, 2>, on: bool }
struct In { @builtin(workgroup_id) w: vec3<u32>, @builtin(local_invocation_index) at: u32 }
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
var<workgroup> words: array<u32, 700>;
var<workgroup> rows: array<Row, rowCount>;
var<workgroup> cells: array<Cell, 11>;
var<workgroup> cell: Cell;
var<workgroup> counters: array<atomic<i32>, 13>;
var<workgroup> scalar: f32;
var<workgroup> elsewhere: array<vec2f, 40>;
var<workgroup> unused: array<u32, 1>; // whose name is one that the insertion would take: lane, index1
fn more(i: u32) -> u32 { return bitcast<u32>(elsewhere[i].x) | bitcast<u32>(elsewhere[i].y); }
@compute @workgroup_size(SIZE) fn main(PARAMETERS) { let lane = LANE;
  var seen = bitcast<u32>(scalar) | look_one(0u);
  for (var i = lane; i < 700u; i += 32u) { seen |= words[i]; }
  for (var i = lane; i < 7u; i += 32u) { for (var j = 0u; j < 9u; j++) { let v = rows[i][j]; seen |= v.x | v.y | v.z | v.w; } }
  if lane < 11u { seen |= look_many(lane); }
  if lane < 13u { seen |= u32(atomicLoad(&counters[lane])); }
  for (var i = lane; i < 40u; i += 32u) { seen |= more(i); }
  workgroupBarrier();
  let v = x[0];
  if lane == 0u { scalar = bitcast<f32>(v); spoil_one(0u, v); }
  for (var i = lane; i < 700u; i += 32u) { words[i] = v; }
  for (var i = lane; i < 7u; i += 32u) { for (var j = 0u; j < 9u; j++) { rows[i][j] = vec4<u32>(v); } }
  if lane < 11u { spoil_many(lane, v); }
  if lane < 13u { atomicStore(&counters[lane], i32(v)); }
  for (var i = lane; i < 40u; i += 32u) { elsewhere[i] = vec2f(1, 2); }
  y[w.x * 32u + lane] = seen;
}`

// cellWGSL is the part about a cell.
const cellWGSL = `
fn look_NAME(k: u32) -> u32 {
  var seen = atomicLoad(&CELL.n) | u32(CELL.on);
  for (var i = 0; i < 2; i++) {
    for (var j = 0; j < 3; j++) { seen |= bitcast<u32>(CELL.m[i][j]) | bitcast<u32>(CELL.a[i][j]); }
  }
  return seen;
}
fn spoil_NAME(k: u32, v: u32) {
  atomicStore(&CELL.n, v);
  CELL.m = mat2x3<f32>(1, 2, 3, 4, 5, 6);
  for (var i = 0; i < 2; i++) { for (var j = 0; j < 3; j++) { CELL.a[i][j] = i32(v); } }
  CELL.on = true;
}
`

// Workgroup memory is zero when a kernel begins, in every type and however the kernel takes its parameters.
func TestSharedIsZero(t *testing.T) {
	d := open(t)
	for name, c := range map[string]struct{ size, parameters, lane string }{
		"nothing":   {"32", "@builtin(workgroup_id) w: vec3<u32>, @builtin(local_invocation_id) l: vec3<u32>,", "l.x"},
		"flat":      {"8, 4", "@builtin(workgroup_id) w: vec3<u32>, @builtin(local_invocation_index) l: u32", "l"},
		"structure": {"4, 2, 4", "in: In", "in.at; let w = in.w"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.NewReplacer("SIZE", c.size, "PARAMETERS", c.parameters, "LANE", c.lane).Replace(sharedWGSL)
			text += strings.NewReplacer("NAME", "one", "CELL", "cell").Replace(cellWGSL)
			text += strings.NewReplacer("NAME", "many", "CELL", "cells[k]").Replace(cellWGSL)
			k, err := NewKernel(ctx, d, KernelDesc{Label: name, WGSL: text, Bindings: unary, Workgroup: [3]uint32{32, 1, 1}})
			require.NoError(t, err)
			const groups = 500
			y := make([]uint32, 32*groups)
			for range 2 {
				require.NoError(t, k.Run(ctx, Launch{Grid: [3]uint32{groups, 1, 1}}, y, []uint32{0x5eed}))
				for i, v := range y {
					require.Zero(t, v, "workgroup %d, thread %d", i/32, i%32)
				}
			}
		})
	}
}

// A kernel without parameters gets one; its lines and columns are those that were written.
func TestSharedPositions(t *testing.T) {
	d := open(t)
	const text = "@group(0) @binding(0) var<storage, read_write> y: array<u32>; var<workgroup> w: array<u32, 4>;\n" +
		"@compute @workgroup_size(4) fn main() { y[0] = w[0]; %s }\n"
	desc := KernelDesc{WGSL: fmt.Sprintf(text, ""), Bindings: []wgsl.Access{wgsl.ReadWrite}, Workgroup: [3]uint32{4, 1, 1}}
	k, err := NewKernel(ctx, d, desc)
	require.NoError(t, err)
	y := []uint32{7}
	require.NoError(t, k.Run(ctx, Launch{Grid: [3]uint32{1, 1, 1}}, y))
	require.Zero(t, y[0])
	desc.WGSL = fmt.Sprintf(text, "missing();")
	_, err = NewKernel(ctx, d, desc)
	var e *ShaderError
	require.ErrorAs(t, err, &e)
	require.Equal(t, [2]int{2, 54}, [2]int{e.Line, e.Column}, e.Details)
}

// Only what an entry point may use is set to zero, and a text without such variables stays as it is.
func TestZeroed(t *testing.T) {
	zeroed := func(text string) string {
		out, err := parseShader(text).zeroed(text, "main")
		require.NoError(t, err)
		return out
	}
	for _, text := range []string{
		"@compute @workgroup_size(1) fn main() {}",
		"var<workgroup> w: u32; fn other() { w = 1; } @compute @workgroup_size(1) fn main() {}",
		"var<workgroup> w: u32; @compute @workgroup_size(1) fn another() { w = 1; }",
		"var<workgroup> w: u32; fn main(", "var<workgroup> w: u32; fn main", "fn main(", "",
	} {
		require.Equal(t, text, zeroed(text))
	}
	out := zeroed("var<workgroup> w: array<u32, 8>; var<workgroup> lane: u32; const index1 = 2; fn f() { g(); } fn g() { w[0] = 1; }\n" +
		"@compute @workgroup_size(4) fn main(@builtin(num_workgroups) n: vec3u) { f(); lane = 1; }")
	require.Contains(t, out, "fn main(@builtin(local_invocation_index) lane_: u32, @builtin(num_workgroups) n: vec3u) {set_to_zero(lane_); f();")
	require.Contains(t, out, "for (var index1_ = lane_; index1_ < 8u; index1_ += 4u) {\nw[index1_ / 1u] = u32();\n}")
	require.Contains(t, out, "lane = u32();")

	many := "struct S { " + strings.Repeat("a: u32, ", maxZeroing) + "}"
	_, err := parseShader(many+"var<workgroup> w: S; @compute @workgroup_size(1) fn main() { w.a = 1; }").zeroed(many, "main")
	require.ErrorIs(t, err, compute.ErrTooLarge)
}
