//go:build !js

package gpu

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/lowering"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/wgslkernels"
	"github.com/wavelane/wavelane/wgsl"
)

// variants makes relu lower to one of three kernels: "plain" and "quick" differ in how much they compute in vain,
// "broken" does not compile. All copy their input, so that results do not depend on the choice.
func variants(d *Device) {
	kernel := func(name string, vain int) *wgsl.Kernel {
		source := strings.Replace(affineWGSL, "y[i] = x[i] * p.scale + p.add;", `
      var v = x[i]; for (var j = 0u; j < `+strings.Repeat("1", vain)+`u; j++) { v = sin(v) + 2.0; }
      y[i] = x[i] + min(v, 0.0);`, 1)
		if name == "broken" {
			source = "broken"
		}
		return &wgsl.Kernel{Key: "test " + name, Source: source, Entry: "main", Bindings: unary, Uniform: 16, Workgroup: [3]uint32{64, 1, 1}}
	}
	kernels := []*wgsl.Kernel{kernel("plain", 5), kernel("broken", 1), kernel("quick", 1)}
	d.lowerStep = func(s *program.Step, in, out []program.Type, caps *wgsl.Caps, choose lowering.Chooser) (wgslkernels.Lowering, error) {
		k := kernels[choose("relu", "n1000", []string{"plain", "broken", "quick"})]
		return wgslkernels.Lowering{Actions: []wgslkernels.Action{{Launch: &wgslkernels.Dispatch{
			Kernel: k, Bind: []lowering.Buffer{{Role: lowering.Operand}, {Role: lowering.Result}}, Params: []uint32{uint32(out[0].Len())},
			Grid: [3]uint32{uint32(out[0].Len()+63) / 64, 1, 1},
		}}}}, nil
	}
}

func reluProgram(t *testing.T) *program.Program {
	p := &program.Program{}
	y, err := p.Apply(catalogue.Lookup("relu"), program.Attr{}, p.Add(program.F32(1000), program.FromHost))
	require.NoError(t, err)
	p.Read = []program.Slot{y}
	return p
}

func compile(t *testing.T, d *Device) {
	x, err := program.ExecutorOf(d).Compile(t.Context(), reluProgram(t))
	require.NoError(t, err)
	in, out := make([]float32, 1000), make([]float32, 1000)
	in[7] = 3
	require.NoError(t, runOnce(x, in, out))
	require.Equal(t, in, out)
	require.NoError(t, x.Close())
}

// chose is a decision of these tests.
func chose(variant, why string, uses int) compute.Choice {
	return compute.Choice{Class: "relu", Problem: "n1024", Variant: variant, Why: why, Uses: uses}
}

func TestTune(t *testing.T) {
	dir := t.TempDir()
	d := open(t, WithTuneCache(dir))
	variants(d)
	compile(t, d)
	require.Equal(t, []compute.Choice{chose("plain", "default", 1)}, d.Choices(), "nothing is measured unasked")

	list, err := executor{d}.Tune(ctx, reluProgram(t))
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "quick", list[0].Winner)
	require.Positive(t, list[0].Median[0])
	require.Zero(t, list[0].Median[1], "the broken one")
	require.Less(t, list[0].Median[2], list[0].Median[0])
	compile(t, d)
	require.Contains(t, d.Choices(), chose("quick", "measured", 1))
	idle(t, d)

	again := open(t, WithTuneCache(dir))
	variants(again)
	compile(t, again)
	compile(t, again)
	require.Equal(t, []compute.Choice{chose("quick", "measured", 2)}, again.Choices(), "another process benefits")

	off := open(t, WithTuneCache(dir), WithAutotune(compute.TuneOff))
	variants(off)
	compile(t, off)
	require.Equal(t, []compute.Choice{chose("plain", "default", 1)}, off.Choices())

	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Len(t, files, 1, "no temporary file is left")
	for name, text := range map[string]string{"cut": "{", "edited": strings.Replace(read(t, files[0]), "quick", "plain", 1), "empty": ""} {
		require.NoError(t, os.WriteFile(files[0], []byte(text), 0o644))
		bad := open(t, WithTuneCache(dir))
		variants(bad)
		compile(t, bad)
		require.Equal(t, []compute.Choice{chose("plain", "default", 1)}, bad.Choices(), name)
		_, err = executor{bad}.Tune(ctx, reluProgram(t))
		require.NoError(t, err)
		good := open(t, WithTuneCache(dir))
		variants(good)
		compile(t, good)
		require.Equal(t, "quick", good.Choices()[0].Variant, "%s: the file was written anew", name)
	}
}

func read(t *testing.T, path string) string {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func TestTuneClosed(t *testing.T) {
	d := open(t)
	require.NoError(t, d.Close())
	_, err := executor{d}.Tune(ctx, reluProgram(t))
	require.ErrorIs(t, err, compute.ErrClosed)
}

// What computes something else cannot win, however fast.
func TestTuneWrong(t *testing.T) {
	d := open(t, WithTuneCache(t.TempDir()))
	variants(d)
	real := d.lowerStep
	d.lowerStep = func(s *program.Step, in, out []program.Type, caps *wgsl.Caps, choose lowering.Chooser) (wgslkernels.Lowering, error) {
		l, err := real(s, in, out, caps, choose)
		if k := l.Actions[0].Launch.Kernel; strings.HasSuffix(k.Key, "quick") {
			wrong := *k
			wrong.Key, wrong.Source = "test wrong", strings.Replace(k.Source, "min(v, 0.0)", "1.0", 1)
			l.Actions[0].Launch.Kernel = &wrong
		}
		return l, err
	}
	list, err := executor{d}.Tune(ctx, reluProgram(t))
	require.NoError(t, err)
	require.Equal(t, "plain", list[0].Winner)
	require.Zero(t, list[0].Median[2])
	idle(t, d)
}

func TestTuneFirstUse(t *testing.T) {
	d := open(t, WithAutotune(compute.TuneFirstUse))
	variants(d)
	compile(t, d)
	runs := d.Stats().Runs
	compile(t, d)
	require.Equal(t, runs+1, d.Stats().Runs, "measured once")
	require.Equal(t, []compute.Choice{chose("quick", "measured", 2)}, d.Choices())
}

func TestForcedVariant(t *testing.T) {
	d := open(t, WithVariant("relu", "quick"), WithAutotune(compute.TuneFirstUse))
	variants(d)
	compile(t, d)
	require.Equal(t, []compute.Choice{chose("quick", "forced", 1)}, d.Choices())

	broken := open(t, WithVariant("relu", "broken"))
	variants(broken)
	_, err := program.ExecutorOf(broken).Compile(t.Context(), reluProgram(t))
	var s *ShaderError
	require.ErrorAs(t, err, &s)

	unknown := open(t, WithVariant("relu", "unknown"))
	variants(unknown)
	_, err = program.ExecutorOf(unknown).Compile(t.Context(), reluProgram(t))
	require.ErrorIs(t, err, compute.ErrUnsupported)
	require.ErrorContains(t, err, `no variant "unknown", only [plain broken quick]`)
}

func TestTuneCacheUnwritable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	d := open(t, WithTuneCache(filepath.Join(file, "below")))
	variants(d)
	_, err := executor{d}.Tune(ctx, reluProgram(t))
	require.NoError(t, err)
	compile(t, d)
	require.Equal(t, "quick", d.Choices()[0].Variant, "in memory at least")
}
