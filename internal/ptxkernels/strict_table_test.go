package ptxkernels

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/conformance"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/analyze"
	"github.com/wavelane/wavelane/ptx/roofline"
)

// verdictFile is what the strict analyser says about each family. Its answer depends on the family's text and the analyser alone,
// and takes a minute: a family that neither has changed for is analysed again only when the seed falls on it.
const (
	verdictFile = "testdata/strict.tsv"
	verdictHead = "family\tsha256 of the PTX, beginning\tsha256 of the analyser, beginning\tfindings"
)

type strictVerdict struct {
	findings []string          // "Class of kernel", in order
	place    map[string]string // of a kernel by the roofline: two columns of the table of uses
}

// everything asks for all that is otherwise left to the seed: make proofs.
var everything = os.Getenv("WAVELANE_PROOFS") == "all"

var strictVerdicts sync.Map // *Family → func() (*strictVerdict, error)

// verdictOf is the committed one where that is still true, else that of the analyser.
func verdictOf(t *testing.T, f *kit.Family) *strictVerdict {
	t.Helper()
	v, _ := strictVerdicts.LoadOrStore(f, sync.OnceValues(func() (*strictVerdict, error) {
		chosen := kit.Families()[conformance.Seed()%uint64(len(kit.Families()))]
		if v := committed(f); v != nil && !everything && !*update && f != chosen {
			return v, nil
		}
		return analysed(f)
	}))
	answer, err := v.(func() (*strictVerdict, error))()
	require.NoError(t, err)
	return answer
}

// analysed asks the analyser, as of an H200.
func analysed(f *kit.Family) (*strictVerdict, error) {
	m, err := f.Module()
	if err != nil {
		return nil, err
	}
	model, err := roofline.Named("H200")
	if err != nil {
		return nil, err
	}
	r, err := analyze.Module(m, analyze.Options{Strict: true, GPU: &model})
	if err != nil {
		return nil, err
	}
	v := &strictVerdict{place: map[string]string{}}
	for i := range r.Findings {
		v.findings = append(v.findings, fmt.Sprint(r.Findings[i].Class, " of ", r.Findings[i].Kernel))
	}
	slices.Sort(v.findings)
	v.findings = slices.Compact(v.findings)
	for _, k := range r.Kernels {
		if !k.Walked {
			return nil, fmt.Errorf("%s: too much to analyse", k.Name)
		}
		bound := ""
		if k.Placement != nil {
			bound = string(k.Placement.Bound)
		}
		v.place[k.Name] = fmt.Sprintf("%.2g\t%s", k.Intensity, bound)
	}
	return v, nil
}

// committed is the verdict of the table, nil where it is of another text or another analyser.
func committed(f *kit.Family) *strictVerdict {
	m, err := f.Module()
	text, fail := os.ReadFile(verdictFile)
	if err != nil || fail != nil {
		return nil
	}
	prefix := f.Name + "\t" + ptxtest.Hash(m) + "\t" + analyserHash() + "\t"
	for line := range strings.Lines(string(text)) {
		findings, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), prefix)
		if !ok {
			continue
		}
		v := &strictVerdict{place: map[string]string{}}
		if findings != "" {
			v.findings = strings.Split(findings, "; ")
		}
		for _, row := range tableRows(usesTable, 5) {
			v.place[row[0]] = row[3] + "\t" + row[4]
		}
		return v
	}
	return nil
}

// analyserHash is of everything that the analyser's answer depends on beside the text.
var analyserHash = sync.OnceValue(func() string {
	sum := sha256.New()
	for _, folder := range []string{"analyze", "flow", "eval", "ir", "roofline", "internal/cost"} {
		err := filepath.WalkDir(filepath.Join("..", "..", "ptx", folder), func(file string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
				return err
			}
			text, err := os.ReadFile(file)
			fmt.Fprintf(sum, "%s %d\n", filepath.Base(file), len(text))
			sum.Write(text)
			return err
		})
		if err != nil {
			panic(err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
})

// The table of verdicts is of the families as they are, and of this analyser.
func TestVerdicts(t *testing.T) {
	lines := []string{verdictHead}
	for _, f := range kit.Families() {
		m, err := f.Module()
		require.NoError(t, err)
		lines = append(lines, strings.Join([]string{f.Name, ptxtest.Hash(m), analyserHash(), strings.Join(verdictOf(t, f).findings, "; ")}, "\t"))
	}
	now := strings.Join(lines, "\n") + "\n"
	if *update {
		require.NoError(t, os.WriteFile(verdictFile, []byte(now), 0o644))
		return
	}
	text, err := os.ReadFile(verdictFile)
	require.NoError(t, err)
	require.Equal(t, string(text), now, "%s is stale: go generate ./internal/ptxkernels", verdictFile)
}
