package gpu

// TuneMode says when kernel variants are measured.
type TuneMode uint8

type tuner struct{}

func newTuner(d *device, c *config) *tuner { return &tuner{} }

func (t *tuner) choose(class, problem string, candidates []string) int { return 0 }
