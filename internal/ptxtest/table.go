package ptxtest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/wavelane/wavelane/ptx/ir"
)

// Table is a committed file with what ptxas makes of kernels: registers, shared memory, stack and spills on each target. A
// machine without ptxas notices, too, that a text has changed since, and has to be seen again.
type Table struct {
	File    string // "testdata/ptxas.tsv"
	Modules []Module
	Targets []string // "sm_90a"; a module is assembled for those that it runs on
	Newest  bool     // also for the newest target that this ptxas knows
}

// Module is a module with a name for messages.
type Module struct {
	Name string
	*ir.Module
}

const tableHead = "kernel\tsha256 of the PTX, beginning\ttarget\tregisters\tshared\tstack\tspill stores\tspill loads"

// row is what a kernel takes on a target: registers per thread, everything else in bytes.
type row struct {
	kernel, sha, target                               string
	registers, shared, stack, spillStores, spillLoads int
}

func (r row) String() string {
	return fmt.Sprintf("%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d", r.kernel, r.sha, r.target, r.registers, r.shared, r.stack, r.spillStores,
		r.spillLoads)
}

// Hash is the beginning of the SHA-256 of a module's text.
func Hash(m *ir.Module) string {
	sum := sha256.Sum256([]byte(m.String()))
	return hex.EncodeToString(sum[:8])
}

// read returns the version of ptxas and the rows.
func (x Table) read(t testing.TB) (version string, rows []string) {
	t.Helper()
	data, err := os.ReadFile(x.File)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(lines) < 3 || lines[1] != tableHead {
		t.Fatalf("%s is no table of ptxas", x.File)
	}
	return lines[0], lines[2:]
}

// Fresh fails the test if a module has changed since ptxas saw it, or the table tells of other kernels than the modules have,
// or of stack or spills.
func (x Table) Fresh(t testing.TB) {
	t.Helper()
	_, rows := x.read(t)
	seen := map[string]string{} // of each kernel the hash
	for _, r := range rows {
		f := strings.Split(r, "\t")
		if len(f) != 8 {
			t.Fatalf("%s: %q is no row", x.File, r)
		}
		seen[f[0]] = f[1]
		if !slices.Equal(f[5:], []string{"0", "0", "0"}) {
			t.Errorf("stack and spills of %s on %s: %v", f[0], f[2], f[5:])
		}
	}
	for _, m := range x.Modules {
		sha := Hash(m.Module)
		for _, name := range entries(m.Module) {
			if seen[name] != sha {
				t.Errorf("%s of %s has changed since ptxas saw it: make ptxas-check", name, m.Name)
			}
			delete(seen, name)
		}
	}
	for name := range seen {
		t.Errorf("%s tells of %s, which is no kernel any more: make ptxas-check", x.File, name)
	}
}

func entries(m *ir.Module) (names []string) {
	for _, f := range m.Funcs {
		if f.Entry {
			names = append(names, f.Name)
		}
	}
	return names
}

// Assemble assembles every module for every target, fails the test for what does not assemble or takes stack, spills or local
// memory, and compares with the table, or writes it, which keeps rows of modules that have not changed. Without ptxas it skips the test, but for writing.
func (x Table) Assemble(t testing.TB, write bool) {
	t.Helper()
	if _, ok := FindPtxas(t); write && !ok {
		t.Fatal("there is no ptxas to write the table with")
	}
	ptxas := Ptxas(t)
	targets, known := slices.Clone(x.Targets), knownTargets(t, ptxas)
	if newest := slices.Max(known); x.Newest && !slices.Contains(targets, fmt.Sprint("sm_", newest)) {
		targets = append(targets, fmt.Sprint("sm_", newest))
	}
	version := "ptxas " + ptxasVersion(t, ptxas)
	var rows []string
	for _, m := range x.Modules {
		if kept := x.kept(version, m, targets); write && len(kept) > 0 { // ptxas takes minutes for all of them
			rows = append(rows, kept...)
			continue
		}
		assembled := 0
		for _, target := range targets {
			if !runsOn(m.Target, target) {
				continue
			}
			found, err := assemble(t, ptxas, m, target)
			switch {
			case errors.Is(err, ErrTarget) && !write:
				t.Logf("this ptxas does not know %s", target)
				continue
			case err != nil:
				t.Errorf("%s: %v", m.Name, err)
			}
			for _, r := range found {
				rows = append(rows, r.String())
			}
			assembled++
		}
		if assembled == 0 {
			t.Errorf("%s was assembled for no target", m.Name)
		}
	}
	if t.Failed() {
		return
	}
	if write {
		text := version + "\n" + tableHead + "\n" + strings.Join(rows, "\n") + "\n"
		if err := os.WriteFile(x.File, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	recorded, want := x.read(t)
	if recorded != version {
		t.Logf("the table is of %s, this is %s: registers are not compared", recorded, version)
		return
	}
	for _, r := range rows {
		if !slices.Contains(want, r) {
			t.Errorf("not in %s: %s", x.File, r)
		}
	}
	if len(rows) != len(want) {
		t.Errorf("%s has %d rows, there are %d", x.File, len(want), len(rows))
	}
}

// kept are the rows of a module that this ptxas has seen as it is, for all targets that it runs on; none if one is missing.
func (x Table) kept(version string, m Module, targets []string) (kept []string) {
	data, err := os.ReadFile(x.File)
	rows := strings.Split(strings.TrimSpace(string(data)), "\n")
	if err != nil || rows[0] != version {
		return nil
	}
	sha := Hash(m.Module)
	for _, target := range targets {
		for _, name := range entries(m.Module) {
			i := slices.IndexFunc(rows, func(r string) bool { return strings.HasPrefix(r, name+"\t"+sha+"\t"+target+"\t") })
			switch {
			case !runsOn(m.Target, target):
			case i < 0:
				return nil
			default:
				kept = append(kept, rows[i])
			}
		}
	}
	return kept
}

// runsOn tells whether code for a target assembles for sm_XX.
func runsOn(code ir.Target, target string) bool {
	if code.Suffix != "" {
		return code.String() == target
	}
	n, err := strconv.Atoi(strings.TrimPrefix(target, "sm_"))
	return err == nil && n >= code.SM
}

func ptxasVersion(t testing.TB, ptxas string) string {
	out, err := exec.CommandContext(t.Context(), ptxas, "--version").Output()
	if err != nil {
		t.Fatalf("%s: %v", ptxas, err)
	}
	return regexp.MustCompile(`V[\d.]+`).FindString(string(out))
}

// knownTargets are the numbers of the targets that this ptxas has.
func knownTargets(t testing.TB, ptxas string) (known []int) {
	out, err := exec.CommandContext(t.Context(), ptxas, "--help").Output()
	if err != nil {
		t.Fatalf("%s: %v", ptxas, err)
	}
	for _, s := range regexp.MustCompile(`'sm_(\d+)'`).FindAllSubmatch(out, -1) {
		known = append(known, number(t, s[1]))
	}
	if len(known) == 0 {
		t.Fatalf("%s --help tells of no targets", ptxas)
	}
	return known
}

var (
	// complaints are messages that ptxas gives as information only, and that mean the code is not what it says.
	complaints    = regexp.MustCompile(`C7504|C7508|C7510|C7514|warning`)
	compiled      = regexp.MustCompile(`Compiling entry function '(.*?)'`)
	usedRegisters = regexp.MustCompile(`Used (\d+) registers`)
	usedShared    = regexp.MustCompile(`(\d+) bytes smem`)
	usedStack     = regexp.MustCompile(`(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads`)
)

// assemble returns a row for each kernel of a module, in the order of the module.
func assemble(t testing.TB, ptxas string, m Module, target string) (rows []row, err error) {
	t.Helper()
	log, err := Assemble(t, ptxas, target, m.String(), "-v", "--warn-on-spills", "--warn-on-local-memory-usage", "-Werror")
	if err != nil {
		return nil, shorter(err)
	}
	if found := complaints.FindString(log); found != "" {
		t.Errorf("%s for %s: %s in %s", m.Name, target, found, log)
	}
	parts := map[string]string{} // of the log, by kernel
	starts := compiled.FindAllStringSubmatchIndex(log, -1)
	for i, at := range starts {
		end := len(log)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		parts[log[at[2]:at[3]]] = log[at[0]:end]
	}
	sha := Hash(m.Module)
	for _, name := range entries(m.Module) {
		part := parts[name]
		figure := func(re *regexp.Regexp, group int) int {
			if found := re.FindStringSubmatch(part); found != nil {
				return number(t, []byte(found[group]))
			}
			return 0
		}
		r := row{kernel: name, sha: sha, target: target, registers: figure(usedRegisters, 1), shared: figure(usedShared, 1),
			stack: figure(usedStack, 1), spillStores: figure(usedStack, 2), spillLoads: figure(usedStack, 3)}
		if r.registers == 0 || r.stack+r.spillStores+r.spillLoads > 0 {
			t.Errorf("%s for %s: %s", name, target, log)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// shorter is an error of Assemble without the lines that are information about other kernels.
func shorter(err error) error {
	if errors.Is(err, ErrTarget) {
		return err
	}
	lines := slices.DeleteFunc(strings.Split(err.Error(), "\n"), func(line string) bool {
		return strings.Contains(line, "ptxas info") || strings.Contains(line, "bytes stack frame")
	})
	return errors.New(strings.Join(lines, "\n"))
}

func number(t testing.TB, digits []byte) int {
	n, err := strconv.Atoi(string(digits))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
