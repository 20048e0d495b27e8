//go:build linux && !android && (amd64 || arm64)

package libcuda

// For tests of the package above, which this one's own cannot import.
var (
	StubPath = stubPath
	OpenStub = openStub
)

// Prepare makes the test's library say yes to everything a device asks for when it opens: GPUs of which all numbers are 1024, whose functions keep their
// parameters to themselves.
func (s *stub) Prepare() {
	s.trace(0)
	s.fail("", 0)
	s.fail("cuFuncGetParamInfo", 801)
	for i, v := range []uint64{1024, 1024, 8, 1, 1} {
		s.out(int32(i), v)
	}
}
