package ptxkernels

import (
	"context"
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kerneltest"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx"
	"github.com/wavelane/wavelane/ptx/sim"
)

// Every activation, two values a thread, against the catalogue's function, with instructions that err as far as they may.
func TestActivate(t *testing.T) {
	m := ptx.NewModule()
	k := m.Kernel("activate")
	k.RequireThreads(128, 1, 1)
	code := ptx.Param[uint32](k, "code")
	p := ptx.PointerParam[float32](k, "p")
	p = p.At(k.GlobalID(ptx.X).Mul(2))
	v := p.Load2()
	y := scalar.Activate(k, code, v[:])
	p.Store2([2]ptx.Reg[float32]{y[0], y[1]})
	module, err := m.Build()
	require.NoError(t, err)

	rng := ptxtest.Random(t)
	inf := float32(math.Inf(1))
	x := []float32{float32(math.NaN()), inf, -inf, 0, float32(math.Copysign(0, -1)), 1e-40, -1e-40, 1e-20, -1e-20, math.MaxFloat32,
		-math.MaxFloat32, 0.4, -0.4, 20, -20, 88.8, -88.8, 104, -104}
	for len(x) < 4096 {
		x = append(x, float32((2*rng.Float64()-1)*math.Exp2(float64(rng.IntN(10)-5))))
	}
	c := kerneltest.EveryCheck(rng.Uint64())
	c.Perturb = true
	gpu := sim.New(c)
	loaded, err := gpu.Load(module)
	require.NoError(t, err)
	kernel, err := loaded.Kernel("activate")
	require.NoError(t, err)
	at, err := gpu.Alloc(4 * len(x))
	require.NoError(t, err)

	tried := 0
	for act := compute.NoActivation; ; act++ {
		e, err := catalogue.ActivationEntry(act)
		if err != nil {
			break
		}
		tried++
		data, err := binary.Append(nil, binary.LittleEndian, x)
		require.NoError(t, err)
		require.NoError(t, gpu.Write(at, data))
		arg := kit.ActivationCode(program.Attr{Options: compute.MatMulOptions{Act: act}})
		require.Equal(t, arg, kit.ActivationCode(program.Attr{Options: compute.Conv2DOptions{Act: act}}))
		params, err := kernel.Pack(arg, at)
		require.NoError(t, err)
		launch := sim.Launch{Grid: sim.Dim3{X: len(x) / 256}, Block: sim.Dim3{X: 128}, Params: params}
		_, err = gpu.Run(context.Background(), kernel, launch)
		require.NoError(t, err)
		require.NoError(t, gpu.Read(data, at))
		for i, v := range x {
			got, want := float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))), float64(v)
			tol := program.Tolerance{}
			if e != nil {
				want, tol = e.F([]float64{want}, nil), e.Tol
			}
			if got == float64(float32(want)) || got != got && want != want {
				continue
			}
			slack := tol.Abs + tol.Rel*math.Abs(want) + 0x1p-126
			if math.IsInf(got, 0) { // just below the edge of overflow
				got = math.Copysign(math.MaxFloat32, got)
			}
			require.InDelta(t, want, got, slack, "activation %d of %v", act, v)
		}
	}
	require.Equal(t, len(scalar.Activations)+1, tried)
	require.Zero(t, kit.ActivationCode(program.Attr{}))
}
