package ir

import "testing"

func TestFunc(t *testing.T) {
	for name, want := range map[string]string{
		"Exp": "expGo", "GELU": "geluGo", "GELUErf": "geluErfGo", "ReLU": "reLUGo", "SumAbs": "sumAbsGo", "FindNaN": "findNaNGo",
		"FastGELU": "fastGELUGo", "ELU": "eluGo", "Log10": "log10Go",
	} {
		if got := (&Kernel{Name: name}).Func("Go"); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
