package randomprograms

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/internal/program"
)

// TestPasses runs programs as they are and as batches rewrite them, on a device on which nothing changes by that.
func TestPasses(t *testing.T) {
	checked(t, 2000, func(t *rapid.T) {
		p := generate(t, rapid.IntRange(0, 3).Draw(t, "special") == 3)
		values := p.arrays()
		computeAll(&p.Program, values, nil)
		moody := exact{refuses: func(s *program.Step) bool {
			return (uint64(len(s.In)*7+len(s.Name()))*0x9e3779b97f4a7c15^p.seed)>>40&3 == 0
		}}
		for name, run := range map[string]func() ([][]float64, error){
			"fused":       func() ([][]float64, error) { return p.run(program.Seal(exact{})) },
			"unfused":     func() ([][]float64, error) { return p.run(program.Seal(exact{}), batch.WithoutFusion()) },
			"some fused":  func() ([][]float64, error) { return p.run(program.Seal(moody)) },
			"catalogue's": func() ([][]float64, error) { return p.run(program.Seal(knowsNone{exact{}})) },
		} {
			var steps []program.Step
			got, err := run()
			if err != nil {
				t.Fatalf("%s: %v\n%v\n%v", name, err, p, steps)
			}
			for k, s := range p.results() {
				for i, want := range values[s].Data {
					if g := got[k][i]; g != want && !(math.IsNaN(g) && math.IsNaN(want)) {
						t.Fatalf("%s: element %d of v%d is %v, want %v\n%v\n%s", name, i, s, g, want, p, listing(p))
					}
				}
			}
		}
	})
}

// knowsNone hides that a device knows expressions.
type knowsNone struct{ program.Executor }

// listing is what a batch makes of the program.
func listing(p *randomProgram) string {
	var steps []program.Step
	_, err := p.run(program.Seal(exact{steps: &steps}))
	text := fmt.Sprintln("becomes, with error", err)
	for i := range steps {
		text += fmt.Sprintln(steps[i].In, "->", steps[i].Out, steps[i].Name(), steps[i].Attr.Scalars, steps[i].Attr.Options)
	}
	return text
}
