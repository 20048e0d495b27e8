package misuse

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/gpu"
	"github.com/wavelane/wavelane/internal/npy"
	"github.com/wavelane/wavelane/lz4"
	"github.com/wavelane/wavelane/ptx/parse"
	"github.com/wavelane/wavelane/quant/gguf"
	"github.com/wavelane/wavelane/quant/safetensors"
	"github.com/wavelane/wavelane/wgsl"
)

// mutated returns a file with a few mistakes in it: bytes changed, removed, repeated or taken from another file, and words that are
// sizes made extreme ones.
func mutated(r *rand.Rand, files [][]byte) []byte {
	b := slices.Clone(files[r.IntN(len(files))])
	for range 1 + r.IntN(4) {
		if len(b) == 0 {
			return b
		}
		at := r.IntN(len(b))
		if r.IntN(2) == 0 { // most of what decides is at the beginning
			at = r.IntN(min(len(b), 256))
		}
		end := min(len(b), at+1+r.IntN(16))
		switch r.IntN(8) {
		case 0:
			b[at] ^= 1 << r.IntN(8)
		case 1:
			b[at] = byte(r.Uint32())
		case 2:
			b = b[:at]
		case 3:
			b = slices.Delete(b, at, end)
		case 4:
			b = slices.Insert(b, at, b[at:end]...)
		case 5:
			other := files[r.IntN(len(files))]
			from := r.IntN(len(other))
			copy(b[at:], other[from:])
		case 6:
			word := binary.LittleEndian.AppendUint64(nil, pick(r, 0, 1, math.MaxUint64, 1<<63, 1<<32, math.MaxUint32, 1<<31, 1<<40, uint64(len(b))))
			copy(b[at:], word[:pick(r, 4, 8)])
		case 7:
			b = slices.Insert(b, at, bytes.Repeat(b[at:min(end, at+4)], 1+r.IntN(100))...)
		}
	}
	return b
}

var (
	word   = regexp.MustCompile(`[%$.\w]+`)
	number = regexp.MustCompile(`\b\d+\b`)
)

// rewritten returns a text with a few mistakes in it: words exchanged for others of the text, removed or repeated, lines likewise, and
// numbers made extreme ones. One in four is [mutated].
func rewritten(r *rand.Rand, texts []string) string {
	text := texts[r.IntN(len(texts))]
	if r.IntN(4) == 0 {
		return string(mutated(r, [][]byte{[]byte(text)}))
	}
	place := func(of *regexp.Regexp) (at, end int) {
		all := of.FindAllStringIndex(text, -1)
		if all == nil {
			return 0, 0
		}
		p := all[r.IntN(len(all))]
		return p[0], p[1]
	}
	for range 1 + r.IntN(2) {
		at, end := place(word)
		switch r.IntN(7) {
		case 0, 1:
			from, to := place(word)
			text = text[:at] + text[from:to] + text[end:]
		case 2:
			text = text[:at] + text[end:]
		case 3:
			text = text[:end] + " " + text[at:]
		case 4, 5:
			at, end = place(number)
			text = text[:at] + pick(r, "0", "1", "3", "65536", "1000000", "2147483647", "4294967295", "4294967296", "18446744073709551616", "-1") + text[end:]
		case 6:
			lines := strings.Split(text, "\n")
			i, k := r.IntN(len(lines)), r.IntN(len(lines))
			lines[i], lines[k] = lines[k], lines[i]
			text = strings.Join(lines, "\n")
		}
	}
	return text
}

// reader reads a file wholly; its errors wrap one of some.
type reader struct {
	name   string
	files  [][]byte
	read   func(b []byte) error
	errors []error
}

func readers(t *testing.T) []reader {
	files := func(patterns ...string) (all [][]byte) {
		for _, p := range patterns {
			names := must[[]string](t)(filepath.Glob(p))
			for _, name := range names {
				all = append(all, must[[]byte](t)(os.ReadFile(name)))
			}
		}
		if all == nil {
			t.Fatalf("no files %v", patterns)
		}
		return all
	}
	arrays := [][]byte{}
	for _, descr := range []string{"<f4", ">c16", "|b1", "<i8"} {
		for _, order := range []string{"True", "False"} {
			head := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': (2, 3), }", descr, order)
			head += strings.Repeat(" ", 117-len(head)) + "\n"
			size := must[int](t)(strconv.Atoi(descr[2:]))
			arrays = append(arrays, append([]byte("\x93NUMPY\x01\x00\x76\x00"+head), make([]byte, 6*size)...))
		}
	}
	return []reader{
		{"gguf", files("../../quant/gguf/testdata/*.gguf"), func(b []byte) error {
			f, err := gguf.New(bytes.NewReader(b), int64(len(b)))
			if err != nil {
				return err
			}
			for _, k := range f.Keys() {
				v, _ := f.Value(k)
				if a, ok := v.(*gguf.Array); ok {
					if _, err := a.Values(); err != nil {
						return err
					}
				}
			}
			for _, x := range f.Tensors() {
				if _, err := x.Bytes(); err != nil {
					return err
				}
			}
			return nil
		}, []error{gguf.ErrMalformed, gguf.ErrMissing, compute.ErrUnsupported, compute.ErrArgument, compute.ErrDType}},
		{"safetensors", files("../../quant/safetensors/testdata/*.safetensors"), func(b []byte) error {
			f, err := safetensors.New(bytes.NewReader(b), int64(len(b)))
			if err != nil {
				return err
			}
			for _, x := range f.Tensors() {
				if _, err := x.Bytes(); err != nil {
					return err
				}
			}
			return nil
		}, []error{safetensors.ErrMalformed, compute.ErrUnsupported}},
		{"npy", arrays, func(b []byte) error {
			_, err := npy.Decode(b)
			return err
		}, []error{npy.ErrFormat}},
	}
}

// Files with mistakes in them are read, or refused in time and with little memory.
func TestFiles(t *testing.T) {
	all := readers(t)
	for _, f := range all {
		if !slices.ContainsFunc(f.files, func(b []byte) bool { return f.read(b) == nil }) { // some are parts, or of another byte order
			t.Errorf("%s: none of %d files can be read", f.name, len(f.files))
		}
	}
	var n tally
	defer n.log(t)
	each(t, 10_000, 5*time.Minute, func(r *rand.Rand) string {
		f := all[r.IntN(len(all))]
		b := mutated(r, f.files)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		o := guarded(func() (error, []any) { return f.read(b), nil })
		runtime.ReadMemStats(&after)
		if o.err != nil {
			o.class = "refused"
			if !slices.ContainsFunc(f.errors, func(target error) bool { return errors.Is(o.err, target) }) {
				o.class = "!an error of another kind: " + o.err.Error()
			}
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20+64*uint64(len(b)) {
			o.class = fmt.Sprintf("!%d bytes allocated", used)
		}
		n.add(f.name, o)
		if strings.HasPrefix(o.class, "!") {
			n.bad++
			return fmt.Sprintf("%s: %s\n%q", f.name, o.class, b)
		}
		return ""
	})
}

// Compressed pages with mistakes in them have the same outcome on every device.
func TestCompressedPages(t *testing.T) {
	all := machines(t)
	ctx := t.Context()
	data := bytes.Repeat([]byte("a page of text, some of which repeats: a page of text, some of it. "), 150)
	pages := must[*lz4.Pages](t)(lz4.Compress(ctx, all[0].ops, data))
	var blocks [][]byte
	for i := range pages.Sizes {
		blocks = append(blocks, pages.Block(i))
	}
	var n tally
	defer n.log(t)
	each(t, 1000, 5*time.Minute, func(r *rand.Rand) string {
		var some [][]byte
		for range 1 + r.IntN(3) {
			some = append(some, mutated(r, blocks))
		}
		length := len(some)*lz4.PageSize - r.IntN(100)
		if r.IntN(10) == 0 {
			length = pick(r, -1, 0, math.MaxInt, 1<<40)
		}
		var got []outcome
		var bytesOf [][]byte
		for _, m := range all {
			o := guarded(func() (error, []any) {
				p, err := lz4.FromBlocks(some, length)
				if err != nil {
					return err, nil
				}
				b, err := lz4.Decompress(ctx, m.ops, p)
				return err, []any{b}
			})
			if errors.Is(o.err, lz4.ErrMalformed) {
				o.class = "malformed"
			}
			n.add(m.name, o)
			var b []byte
			if len(o.results) > 0 {
				b = o.results[0].([]byte)
			}
			got, bytesOf = append(got, o), append(bytesOf, b)
		}
		for i, o := range got {
			if strings.HasPrefix(o.class, "!") || o.class != got[0].class || o.class == "ok" && !bytes.Equal(bytesOf[i], bytesOf[0]) {
				n.bad++
				return fmt.Sprintf("%s and %s: %s and %s (%v)\n%q", all[0].name, all[i].name, got[0].class, o.class, o.err, some)
			}
		}
		return ""
	})
}

// PTX with mistakes in it is loaded, or refused with the place of the mistake.
func TestPTX(t *testing.T) {
	d := must[*cuda.Device](t)(cuda.Open(t.Context(), cuda.WithSoftware(), cuda.WithoutCache()))
	t.Cleanup(func() { d.Close() })
	texts := []string{spinPTX}
	for _, name := range must[[]string](t)(filepath.Glob("../../ptx/parse/testdata/*.ptx")) {
		text := string(must[[]byte](t)(os.ReadFile(name)))
		if m, err := d.Load(text); err == nil { // what other tools write may need another GPU
			texts = append(texts, text)
			m.Close()
		}
	}
	var n tally
	defer n.log(t)
	each(t, 2000, 5*time.Minute, func(r *rand.Rand) string {
		text := rewritten(r, texts)
		o := guarded(func() (error, []any) {
			m, err := d.Load(text)
			if err == nil {
				err = m.Close()
			}
			return err, nil
		})
		if strings.HasPrefix(o.class, "!no sentinel") && (errors.As(o.err, new(*parse.Error)) || errors.As(o.err, new(*cuda.Error))) {
			o.class = "refused"
		}
		n.add("ptx", o)
		if strings.HasPrefix(o.class, "!") {
			n.bad++
			return o.class + "\n" + text
		}
		return ""
	})
	if err := d.ReLU(t.Context(), make([]float32, 3), []float32{-1, 0, 1}); err != nil {
		t.Errorf("the device after it: %v", err)
	}
}

// shader is a kernel in whose text mistakes may be made.
type shader struct {
	text     string
	operands int
	uniform  int
}

var shaders = []shader{{spinWGSL, 0, 0}, {`
struct Params { n: u32, scale: f32, rest: vec2<u32>, }
const width = 64u;
alias Row = array<f32, 16>;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> rows: array<Row>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> p: Params;
var<workgroup> part: array<vec4<f32>, width>;
var<private> seen: array<u32, 4>;
fn sum(v: vec4<f32>) -> f32 { return v.x + v.y + v.z + v.w; }
@compute @workgroup_size(width, 1, 1)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  part[t] = vec4<f32>(x[id.x % p.n], 1.0, 2.0, p.scale);
  seen[t & 3u] += 1u;
  workgroupBarrier();
  var s = 0.0;
  for (var i = 0u; i < width; i += 1u) { s += sum(part[i]) * rows[i % 4u][t % 16u]; }
  if (id.x < p.n) { y[id.x] = select(s, 0.0, s > 1e9); }
  switch (t) { case 1u: { y[0] = 1.0; } default: { } }
}`, 2, 16}}

func (s shader) desc(text string) gpu.KernelDesc {
	return gpu.KernelDesc{WGSL: text, Bindings: append(make([]wgsl.Access, s.operands), wgsl.ReadWrite), Uniform: s.uniform, Workgroup: [3]uint32{64, 1, 1}}
}

// run runs a kernel of the shader once.
func (s shader) run(ctx context.Context, k *gpu.Kernel) error {
	launch := gpu.Launch{Grid: [3]uint32{2, 1, 1}}
	var args []any
	for range s.operands {
		args = append(args, make([]float32, 64))
	}
	if s.uniform > 0 {
		launch.Params = []uint32{64, math.Float32bits(2)}
	}
	return k.Run(ctx, launch, make([]float32, 64), args...)
}

// A kernel's text with mistakes in it is compiled and runs, or is refused, whatever the driver's compiler makes of it.
func TestShaders(t *testing.T) {
	ctx := t.Context()
	d, err := gpu.Open(ctx, gpu.WithSoftware(), gpu.WithAutotune(compute.TuneOff))
	if err != nil {
		t.Fatal("no software WebGPU adapter: 'scripts/setup test' installs one: ", err)
	}
	t.Cleanup(func() { d.Close() })
	var texts []string
	for _, s := range shaders {
		k := must[*gpu.Kernel](t)(gpu.NewKernel(ctx, d, s.desc(s.text)))
		if err := s.run(ctx, k); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, s.text)
	}
	var n tally
	defer n.log(t)
	each(t, 1000, 5*time.Minute, func(r *rand.Rand) string {
		i := r.IntN(len(shaders))
		desc := shaders[i].desc(rewritten(r, append(slices.Repeat(texts[i:i+1], 9), texts...)))
		if r.IntN(30) == 0 {
			desc.Entry = pick(r, "sum", "nothing", "\x00", "width")
		}
		o := guarded(func() (error, []any) {
			k, err := gpu.NewKernel(ctx, d, desc)
			if err == nil {
				err = shaders[i].run(ctx, k)
			}
			return err, nil
		})
		n.add("wgsl", o)
		if strings.HasPrefix(o.class, "!") || o.class == "lost" {
			n.bad++
			return o.class + "\n" + desc.WGSL
		}
		return ""
	})
	if err := d.ReLU(ctx, make([]float32, 3), []float32{-1, 0, 1}); err != nil {
		t.Errorf("the device after it: %v", err)
	}
}
