package kernels_test

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/kernels"
)

var update = flag.Bool("update", false, "write the table of what ptxas makes of the kernels")

// tableFile records what ptxas made of each kernel's text. Its test without ptxas fails when a text changed since.
const tableFile = "testdata/ptxas.tsv"

// tableHead is the first line of the table, behind the version of ptxas.
const tableHead = "kernel\tsha256 of the PTX, beginning\ttarget\tregisters\tshared\tstack\tspill stores\tspill loads"

// ptxasRow is what a kernel takes on a target: registers per thread, everything else in bytes.
type ptxasRow struct {
	kernel, sha, target                               string
	registers, shared, stack, spillStores, spillLoads int
}

func (r ptxasRow) String() string {
	return fmt.Sprintf("%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d", r.kernel, r.sha, r.target, r.registers, r.shared, r.stack, r.spillStores,
		r.spillLoads)
}

func hash(m *ir.Module) string {
	sum := sha256.Sum256([]byte(m.String()))
	return hex.EncodeToString(sum[:8])
}

// readTable returns the version of ptxas and the rows.
func readTable(t *testing.T) (version string, rows []string) {
	data, err := os.ReadFile(tableFile)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	require.Greater(t, len(lines), 2)
	require.Equal(t, tableHead, lines[1])
	return lines[0], lines[2:]
}

// TestPtxasTable compares the texts with those that ptxas has seen: a machine without ptxas notices, too, that it has to see them again.
func TestPtxasTable(t *testing.T) {
	_, rows := readTable(t)
	seen := map[string]string{}
	for _, row := range rows {
		f := strings.Split(row, "\t")
		require.Len(t, f, 8)
		seen[f[0]] = f[1]
		require.Equal(t, []string{"0", "0", "0"}, f[5:], "stack and spills of %s on %s", f[0], f[2])
	}
	all := kernels.All()
	require.Len(t, seen, len(all))
	for _, k := range all {
		m, err := k.Module()
		require.NoError(t, err)
		require.Equal(t, seen[k.Name], hash(m), "%s has changed since ptxas saw it: make ptxas-check", k.Name)
	}
}

// complaints are messages that ptxas gives as information only, and that mean the code is not what it says.
var complaints = regexp.MustCompile(`C7504|C7508|C7510|C7514|warning`)

// TestPtxas assembles every kernel for every target that this ptxas knows of those that matter, and compares with the table.
func TestPtxas(t *testing.T) {
	if _, ok := ptxtest.FindPtxas(t); *update {
		require.True(t, ok, "there is no ptxas to write the table with")
	}
	ptxas := ptxtest.Ptxas(t)
	targets := ptxasTargets(t, ptxas)
	var rows []string
	for _, k := range kernels.All() {
		m, err := k.Module()
		require.NoError(t, err)
		assembled := 0
		for _, target := range targets {
			if runsOn(m.Target, target) {
				rows = append(rows, assemble(t, ptxas, k.Name, m, target).String())
				assembled++
			}
		}
		require.NotZero(t, assembled, k.Name)
	}
	version := "ptxas " + ptxasVersion(t, ptxas)
	if *update {
		text := version + "\n" + tableHead + "\n" + strings.Join(rows, "\n") + "\n"
		require.NoError(t, os.WriteFile(tableFile, []byte(text), 0o644))
		return
	}
	recorded, want := readTable(t)
	if recorded != version {
		t.Logf("the table is of %s, this is %s: registers are not compared", recorded, version)
		return
	}
	require.Equal(t, want, rows)
}

// runsOn tells whether code for a target assembles for sm_XX.
func runsOn(code ir.Target, target string) bool {
	if code.Suffix != "" {
		return code.String() == target
	}
	n, err := strconv.Atoi(strings.TrimPrefix(target, "sm_"))
	return err == nil && n >= code.SM
}

func ptxasVersion(t *testing.T, ptxas string) string {
	out, err := exec.Command(ptxas, "--version").Output()
	require.NoError(t, err)
	return regexp.MustCompile(`V[\d.]+`).FindString(string(out))
}

// ptxasTargets are Ampere, Ada, Hopper, what is special to it, and the newest that this ptxas has.
func ptxasTargets(t *testing.T, ptxas string) []string {
	out, err := exec.Command(ptxas, "--help").Output()
	require.NoError(t, err)
	known := regexp.MustCompile(`'sm_(\d+)'`).FindAllSubmatch(out, -1)
	newest := 0
	for _, s := range known {
		n, err := strconv.Atoi(string(s[1]))
		require.NoError(t, err)
		newest = max(newest, n)
	}
	targets := []string{"sm_80", "sm_89", "sm_90", "sm_90a"}
	if newest > 90 {
		targets = append(targets, fmt.Sprintf("sm_%d", newest))
	}
	return targets
}

var (
	usedRegisters = regexp.MustCompile(`Used (\d+) registers`)
	usedShared    = regexp.MustCompile(`(\d+) bytes smem`)
	usedStack     = regexp.MustCompile(`(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads`)
)

func assemble(t *testing.T, ptxas, name string, m *ir.Module, target string) ptxasRow {
	log, err := ptxtest.Assemble(t, ptxas, target, m.String(), "-v", "--warn-on-spills", "--warn-on-local-memory-usage", "-Werror")
	require.NoError(t, err, name)
	require.NotRegexp(t, complaints, log, "%s for %s", name, target)
	number := func(re *regexp.Regexp, group int) int {
		m := re.FindStringSubmatch(log)
		if m == nil {
			return 0
		}
		n, err := strconv.Atoi(m[group])
		require.NoError(t, err)
		return n
	}
	r := ptxasRow{kernel: name, sha: hash(m), target: target, registers: number(usedRegisters, 1), shared: number(usedShared, 1),
		stack: number(usedStack, 1), spillStores: number(usedStack, 2), spillLoads: number(usedStack, 3)}
	require.NotZero(t, r.registers, "%s for %s: %s", name, target, log)
	require.Zero(t, r.stack+r.spillStores+r.spillLoads, "%s for %s: %s", name, target, log)
	return r
}
