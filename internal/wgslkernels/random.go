package wgslkernels

import (
	"strconv"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/wgsl"
)

func random(s *step) error {
	lanes, normal := s.workgroup(), s.Entry == catalogue.RandomNormal
	k := cached(s.Entry.Name+"/"+strconv.Itoa(lanes), func() *wgsl.Kernel {
		functions := ""
		if normal {
			functions = functionsOf("finite_log near_sine near_cosine")
		}
		return &wgsl.Kernel{Bindings: []wgsl.Access{wgsl.Read, wgsl.ReadWrite}, Uniform: 16, Workgroup: [3]uint32{uint32(lanes), 1, 1},
			Source: render("random.wgsl", struct {
				Normal                         bool
				Functions                      string
				Lanes, Rounds                  int
				Factor0, Factor1, Weyl0, Weyl1 uint32
			}{normal, functions, lanes, catalogue.PhiloxRounds, catalogue.PhiloxFactor0, catalogue.PhiloxFactor1, catalogue.PhiloxWeyl0, catalogue.PhiloxWeyl1})}
	})
	stream := s.Attr.Options.(compute.RandomOptions).Stream
	y, n, chunk := result, s.Result.Len(), s.chunk()
	for first := 0; first < n; first += chunk {
		quads := ceilDiv(min(chunk, n-first), 4)
		y.Offset, y.Size = 4*first, 16*quads
		s.dispatch(k, s.linear(ceilDiv(quads, lanes)), words(quads, first/4, stream), operand(0), y)
	}
	return nil
}
