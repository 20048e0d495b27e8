package compute

// TuneMode says when a device measures the variants of its kernels.
type TuneMode uint8

// Tune modes.
const (
	// TuneCached uses what was measured before, by this process or an earlier one; it never measures by itself.
	TuneCached TuneMode = iota
	// TuneOff always takes the default variant.
	TuneOff
	// TuneFirstUse measures when an operation meets a problem of a new magnitude, before it runs: once with each variant and
	// some more with the fast ones. Browsers do not have it.
	TuneFirstUse
)

// Choice is a chosen variant of a kernel.
type Choice struct {
	Class   string `json:"class"`   // of operations: "matmul"
	Problem string `json:"problem"` // sizes rounded to powers of two
	Variant string `json:"variant"`
	Why     string `json:"why"`  // "forced", "measured" (also by an earlier process), "default"
	Uses    int    `json:"uses"` // compilations that took it
}
