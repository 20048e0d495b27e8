package sim_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/sim"
)

const (
	copySteps  = 24
	copySource = 1024
)

// copyProgram is a random kernel of one warp, in which some of the lanes copy, commit, wait and look, and what it has to write:
// step i of lane l has 16 bytes of shared memory and of the output of its own.
type copyProgram struct {
	code    strings.Builder
	want    []byte
	pending [32][]int   // steps that the lane has not waited for, committed or not
	groups  [32][][]int // of those that it has committed
	size    [copySteps]int
	bytes   [copySteps][32][]byte
	early   string // reads what a lane has not waited for; "" if there is no such lane
}

// guard makes %p0 true in the lanes.
func (p *copyProgram) guard(lanes uint32) {
	fmt.Fprintf(&p.code,
		"mov.u32 %%r2, %d;\nshr.u32 %%r2, %%r2, %%t;\nand.b32 %%r2, %%r2, 1;\nsetp.ne.u32 %%p0, %%r2, 0;\n", lanes)
}

func someLanes(rng *rand.Rand) uint32 {
	return []uint32{1<<32 - 1, 1<<32 - 1, rng.Uint32(), rng.Uint32() & rng.Uint32(), 1 << rng.IntN(32)}[rng.IntN(5)]
}

// copy is step i.
func (p *copyProgram) copy(rng *rand.Rand, src []byte, i int) {
	n, from, lanes := 4<<rng.IntN(3), 16*rng.IntN(32), someLanes(rng)
	p.size[i] = n
	p.guard(lanes)
	size := func(int) int { return n }
	switch rng.IntN(4) {
	case 0: // all or nothing
		fmt.Fprintf(&p.code, "and.b32 %%r6, %%t, 1;\nmul.lo.u32 %%r6, %%r6, %d;\n", n)
		size = func(l int) int { return l & 1 * n }
	case 1: // any part
		fmt.Fprintf(&p.code, "and.b32 %%r6, %%t, %d;\n", n-1)
		size = func(l int) int { return l & (n - 1) }
	default:
		fmt.Fprintf(&p.code, "mov.u32 %%r6, %d;\n", n)
	}
	fmt.Fprintf(&p.code, "@%%p0 cp.async.ca.shared.global [%%r1+%d], [%%rd1+%d], %d, %%r6;\n", 512*i, from, n)
	for l := range 32 {
		if lanes>>l&1 != 0 {
			p.pending[l] = append(p.pending[l], i)
			p.bytes[i][l] = make([]byte, n)
			copy(p.bytes[i][l][:size(l)], src[16*l+from:])
		}
	}
}

// wait waits in some lanes for all but n groups, or for all copies.
func (p *copyProgram) wait(rng *rand.Rand) {
	lanes, n, all := someLanes(rng), rng.IntN(3), rng.IntN(4) == 0
	p.guard(lanes)
	if all {
		p.code.WriteString("@%p0 cp.async.wait_all;\n")
	} else {
		fmt.Fprintf(&p.code, "@%%p0 cp.async.wait_group %d;\n", n)
	}
	p.land(lanes, n, all)
}

// land looks at what lanes have waited for.
func (p *copyProgram) land(lanes uint32, n int, all bool) {
	var landed [copySteps]uint32
	for l := range 32 {
		if lanes>>l&1 == 0 {
			continue
		}
		for all && len(p.pending[l]) > 0 || !all && len(p.groups[l]) > n {
			group := p.pending[l]
			if !all {
				group, p.groups[l] = p.groups[l][0], p.groups[l][1:]
			} else {
				p.groups[l] = nil
			}
			for _, i := range group {
				landed[i] |= 1 << l
				copy(p.want[512*i+16*l:], p.bytes[i][l])
			}
			p.pending[l] = p.pending[l][len(group):]
		}
	}
	for i, lanes := range landed {
		if lanes != 0 {
			p.look(i, lanes)
		}
	}
}

// look copies a step's bytes of lanes to the output.
func (p *copyProgram) look(i int, lanes uint32) {
	p.guard(lanes)
	for at := 512 * i; at < 512*i+p.size[i]; at += 4 {
		fmt.Fprintf(&p.code, "@%%p0 ld.shared.u32 %%r3, [%%r1+%d];\n@%%p0 st.global.u32 [%%rd2+%d], %%r3;\n", at, at)
	}
}

func newCopyProgram(rng *rand.Rand, src []byte) *copyProgram {
	p := &copyProgram{want: bytes.Repeat([]byte{0xee}, 512*copySteps)}
	p.code.WriteString(prelude(512*copySteps, 2) + "mov.u32 %r0, sm;\nmad.lo.u32 %r1, %t, 16, %r0;\n" +
		"mad.wide.u32 %rd1, %t, 16, %a0;\nmad.wide.u32 %rd2, %t, 16, %a1;\n")
	p.code.WriteString("mov.u32 %r3, 0xffffffff;\n")
	for i := range copySteps {
		fmt.Fprintf(&p.code, "st.shared.v4.u32 [%%r1+%d], {%%r3, %%r3, %%r3, %%r3};\n", 512*i)
	}
	early := rng.IntN(copySteps)
	for i := range copySteps {
		p.copy(rng, src, i)
		for rng.IntN(3) == 0 {
			lanes := someLanes(rng)
			p.guard(lanes)
			p.code.WriteString("@%p0 cp.async.commit_group;\n")
			for l := range 32 {
				if lanes>>l&1 != 0 {
					done := 0
					for _, g := range p.groups[l] {
						done += len(g)
					}
					p.groups[l] = append(p.groups[l], p.pending[l][done:])
				}
			}
		}
		if l := rng.IntN(32); i >= early && p.early == "" && len(p.pending[l]) > 0 {
			before := p.code.String()
			p.look(p.pending[l][rng.IntN(len(p.pending[l]))], 1<<l)
			p.early = p.code.String() + "cp.async.wait_all;\nret;\n}\n"
			p.code.Reset()
			p.code.WriteString(before)
		}
		for rng.IntN(3) == 0 {
			p.wait(rng)
		}
	}
	p.code.WriteString("cp.async.wait_all;\n")
	p.land(1<<32-1, 0, true)
	p.code.WriteString("ret;\n}\n")
	return p
}

// Lanes of a warp copy and wait together, in parts and one by one; each gets its own bytes, and none sees them too early.
func TestCpAsyncPrograms(t *testing.T) {
	rng := ptxtest.Random(t)
	rounds := 15
	if testing.Short() {
		rounds = 8
	}
	src := make([]byte, copySource)
	for i := range src {
		src[i] = byte(rng.Uint32())
	}
	for range rounds {
		p := newCopyProgram(rng, src)
		run := func(cfg sim.Config, code string) ([]byte, error) {
			r := newRig(t, cfg, code).bytes(src).bytes(bytes.Repeat([]byte{0xee}, len(p.want)))
			err := r.launch(threads(32))
			if err != nil {
				return nil, err
			}
			return r.read(1), nil
		}
		for _, cfg := range append(checkedSeeds(2), sim.Config{Seed: rng.Uint64()}) {
			got, err := run(cfg, p.code.String())
			require.NoError(t, err, "%+v: %s", cfg, &p.code)
			require.Equal(t, p.want, got, "%+v: %s", cfg, &p.code)
			if cfg.Checks != 0 && p.early != "" {
				_, err := run(cfg, p.early)
				faults(t, err, sim.AsyncHazard)
			}
		}
	}
}

// A copy into what another operation still reads.
func TestCpAsyncIntoSource(t *testing.T) {
	const out = "st.shared.v4.u32 [%r1], {%t, %t, %t, %t};\nfence.proxy.async;\n" +
		"cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r1], 16;\ncp.async.bulk.commit_group;\n"
	const in = "cp.async.cg.shared.global [%r1], [%rd1], 16;\ncp.async.wait_all;\n"
	const read = "cp.async.bulk.wait_group.read 0;\n"
	addresses := copyIn[:strings.Index(copyIn, "cp.async")]
	for _, cfg := range checkedSeeds(2) {
		if cfg.Checks != 0 {
			_, _, err := asyncRun(t, cfg, addresses+out+in+read+"ret;\n}\n", 32)
			require.Contains(t, faults(t, err, sim.AsyncHazard).Instr, "cp.async.cg")
			_, _, err = asyncRun(t, cfg, addresses+out+read+in+"ret;\n}\n", 32)
			require.NoError(t, err)
		}
	}
}
