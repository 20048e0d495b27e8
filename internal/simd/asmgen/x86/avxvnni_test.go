package x86

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
	"github.com/stretchr/testify/require"
)

// TestEncodeDot compares with what Go's assembler makes of an instruction that differs in its opcode alone.
func TestEncodeDot(t *testing.T) {
	const vpmaddubsw, vpdpbusd = 0x04, 0x50
	all := []reg.GPPhysical{reg.RAX, reg.RCX, reg.RDX, reg.RBX, reg.RSP, reg.RBP, reg.RSI, reg.RDI, reg.R8, reg.R9, reg.R10, reg.R11, reg.R12, reg.R13, reg.R14,
		reg.R15}
	var from []operand.Op
	for _, r := range []reg.VecPhysical{reg.Y0, reg.Y7, reg.Y8, reg.Y15} {
		from = append(from, r)
	}
	for _, disp := range []int{0, 32, -128, 127, 128, 4608} {
		for i, base := range all {
			from = append(from, operand.Mem{Base: base, Disp: disp})
			for k, scale := range []uint8{1, 2, 4, 8} {
				if x := all[(i+5*k)%16]; x != reg.RSP {
					from = append(from, operand.Mem{Base: base, Index: x, Scale: scale, Disp: disp})
				}
			}
		}
	}
	text := "TEXT ·dots(SB), 4, $0-0\n"
	var want []byte
	vectors := []reg.VecPhysical{reg.Y0, reg.Y1, reg.Y8, reg.Y15}
	for i, x := range from {
		q, sum := vectors[i%4], vectors[i/4%4]
		text += fmt.Sprintf("\tVPMADDUBSW %s, %s, %s\n", x.Asm(), q.Asm(), sum.Asm())
		code := encodeDot(x, q, sum)
		require.Equal(t, byte(vpdpbusd), code[3])
		code[3] = vpmaddubsw
		want = append(want, code...)
	}
	source := filepath.Join(t.TempDir(), "dots.s")
	object := strings.TrimSuffix(source, "s") + "o"
	require.NoError(t, os.WriteFile(source, []byte(text+"\tRET\n"), 0o600))
	cmd := exec.Command("go", "tool", "asm", "-p", "dots", "-o", object, source)
	cmd.Env = append(os.Environ(), "GOARCH=amd64", "GOOS=linux")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	got, err := os.ReadFile(object)
	require.NoError(t, err)
	require.True(t, bytes.Contains(got, want), "Go's assembler encodes them otherwise")
	require.Panics(t, func() { encodeDot(reg.Y16, reg.Y0, reg.Y0) })
}
