package arm64

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/arch/arm64/arm64asm"
)

func disassemble(t *testing.T, word uint32) string {
	if dot := instructions["sdot"]; word&^0x1f03ff == dot.word { // unknown to arm64asm; TestDotProduct has it
		return fmt.Sprintf("sdot "+dot.text, word&31, word>>5&31, word>>16&31)
	}
	in, err := arm64asm.Decode(binary.LittleEndian.AppendUint32(nil, word))
	require.NoError(t, err, "%#08x", word)
	return arm64asm.GNUSyntax(in)
}

// TestDotProduct asks clang for what the disassembler does not know.
func TestDotProduct(t *testing.T) {
	var text strings.Builder
	var want []byte
	for _, r := range [][3]int{{0, 0, 0}, {1, 2, 3}, {31, 30, 29}, {17, 8, 20}} {
		word, line := encode("sdot", r[:]...)
		want = binary.LittleEndian.AppendUint32(want, word)
		fmt.Fprintln(&text, line)
	}
	clang, object := cmp.Or(os.Getenv("CLANG"), "clang"), filepath.Join(t.TempDir(), "dot.o")
	cmd := exec.Command(clang, "--target=aarch64-none-elf", "-march=armv8.2-a+dotprod", "-x", "assembler", "-c", "-", "-o", object)
	cmd.Stdin = strings.NewReader(text.String())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "scripts/setup test installs clang: %s", out)
	f, err := elf.Open(object)
	require.NoError(t, err)
	defer f.Close()
	code, err := f.Section(".text").Data()
	require.NoError(t, err)
	require.Equal(t, want, code)
}

// TestEncode lets a disassembler that shares nothing with the table read every instruction.
func TestEncode(t *testing.T) {
	for name, in := range instructions {
		for _, r := range [][3]int{{0, 0, 0}, {1, 2, 3}, {31, 30, 29}, {17, 8, 20}} {
			var operands [][]int
			switch in.shape {
			case dnm:
				operands = append(operands, r[:])
			case dn, dnn:
				operands = append(operands, r[:2])
			case dOnly:
				operands = append(operands, r[:1])
			case left, right:
				for s := 1; s < 32; s++ {
					operands = append(operands, []int{r[0], r[1], s})
				}
			case leftBytes, rightBytes:
				for s := 1; s < 8; s++ {
					operands = append(operands, []int{r[0], r[1], s})
				}
			case immediate:
				for v := range 256 {
					operands = append(operands, []int{r[0], v})
				}
			case element:
				for lane := range 4 {
					operands = append(operands, append(slices.Clone(r[:]), lane))
				}
			}
			for _, o := range operands {
				word, text := encode(name, o...)
				require.Equal(t, text, disassemble(t, word))
			}
		}
	}
	require.Panics(t, func() { encode("fadd", 0, 1, 32) })
	require.Panics(t, func() { encode("fadd", 0, 1) })
	require.Panics(t, func() { encode("fsin", 0, 1) })
}

var words = regexp.MustCompile(`WORD \$(0x[0-9a-f]{8}) // (.*)`)

// checkWords disassembles all words of files and compares with their comments.
func checkWords(t *testing.T, files map[string][]byte) {
	n := 0
	for _, b := range files {
		for _, m := range words.FindAllStringSubmatch(string(b), -1) {
			word, err := strconv.ParseUint(m[1], 0, 32)
			require.NoError(t, err)
			require.Equal(t, m[2], disassemble(t, uint32(word)))
			n++
		}
		require.NotContains(t, strings.ReplaceAll(words.ReplaceAllString(string(b), ""), "// ", ""), "WORD")
	}
	require.NotZero(t, n)
}

func TestFiles(t *testing.T) {
	files, err := Files()
	require.NoError(t, err)
	require.Len(t, files, 9)
	checkWords(t, files)
}
