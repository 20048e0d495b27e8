package sim_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/wavelane/wavelane/ptx/parse"
	"github.com/wavelane/wavelane/ptx/sim"
)

// double doubles n words, if it were not for its check, which lets one thread too many pass.
const double = `.version 7.0
.target sm_80
.address_size 64
.visible .entry double(.param .u64 x, .param .u32 n)
{
	.reg .pred %p; .reg .b32 %r<4>; .reg .b64 %rd<3>;
	ld.param.u64 %rd1, [x];
	ld.param.u32 %r1, [n];
	mov.u32 %r2, %tid.x;
	setp.gt.u32 %p, %r2, %r1;
	@%p ret;
	mad.wide.u32 %rd2, %r2, 4, %rd1;
	ld.global.u32 %r3, [%rd2];
	shl.b32 %r3, %r3, 1;
	st.global.u32 [%rd2], %r3;
	ret;
}`

func Example() {
	if err := run(double, 3); err != nil {
		var fault *sim.Fault
		fmt.Println(errors.As(err, &fault), fault.Kind, "by thread", fault.Thread, "at", fault.Pos)
	}
	// Output: true access out of bounds by thread (3, 0, 0) at double.ptx:13:2
}

func run(text string, n uint32) error {
	module, err := parse.Module("double.ptx", []byte(text))
	if err != nil {
		return err
	}
	gpu := sim.New(sim.Config{Checks: sim.AllChecks})
	loaded, err := gpu.Load(module)
	if err != nil {
		return err
	}
	kernel, err := loaded.Kernel("double")
	if err != nil {
		return err
	}
	x, err := gpu.Alloc(int(4 * n))
	if err != nil {
		return err
	}
	if err := gpu.Write(x, make([]byte, 4*n)); err != nil {
		return err
	}
	params, err := kernel.Pack(x, n)
	if err != nil {
		return err
	}
	if _, err := gpu.Run(context.Background(), kernel,
		sim.Launch{Grid: sim.Dim3{X: 1}, Block: sim.Dim3{X: 32}, Params: params}); err != nil {
		return err
	}
	words := make([]byte, 4*n)
	if err := gpu.Read(words, x); err != nil {
		return err
	}
	fmt.Println(binary.LittleEndian.Uint32(words))
	return nil
}
