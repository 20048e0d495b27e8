package kernels

import (
	"testing"
	"unsafe"
	"fmt"
	"github.com/stretchr/testify/require"
)

func TestCall(t *testing.T) {
	require.NoError(t, load())
	x := make([]float32, 10)
	y := make([]float32, 10)
	for i := range x { x[i] = float32(i) }
	box.op, box.n = 0, 10
	box.pointers[0] = unsafe.Pointer(&y[0])
	box.pointers[1] = unsafe.Pointer(&x[0])
	box.pointers[2] = unsafe.Pointer(&x[0])
	fmt.Println(module.Length(), y)
	fmt.Println(run.Invoke().Int(), y)
}
func BenchmarkInvoke(b *testing.B) {
	b.ReportAllocs()
	box.n = 0
	for b.Loop() { run.Invoke() }
}
func BenchmarkInvokeInt(b *testing.B) {
	b.ReportAllocs()
	box.n = 0
	for b.Loop() { run.Invoke().Int() }
}
func BenchmarkLength(b *testing.B) {
	b.ReportAllocs()
	box.n = 0
	for b.Loop() { module.Length() }
}
func BenchmarkLengthWork(b *testing.B) {
	b.ReportAllocs()
	x := make([]float32, 16384)
	y := make([]float32, 16384)
	box.op, box.n = 0, uint32(len(x))
	box.pointers[0] = unsafe.Pointer(&y[0])
	box.pointers[1] = unsafe.Pointer(&x[0])
	box.pointers[2] = unsafe.Pointer(&x[0])
	for b.Loop() { box.n = uint32(len(x)); module.Length() }
}
