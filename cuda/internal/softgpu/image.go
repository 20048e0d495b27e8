package softgpu

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/parse"
)

// A container is what Compile hands out in place of a binary:
//
//	magic     8 bytes
//	format    u32, containerFormat
//	sm        u32
//	registers u32, JIT.MaxRegisters
//	length    u32, of the text
//	checksum  32 bytes: SHA-256 of all other bytes
//	text      PTX
//
// Numbers are little-endian.
const (
	containerMagic  = "\x7fSOFTGPU"
	containerFormat = 1
	checksumAt      = 24
	containerHeader = checksumAt + sha256.Size
)

func checksum(c []byte) [sha256.Size]byte {
	return sha256.Sum256(slices.Concat(c[:checksumAt], c[containerHeader:]))
}

// pack makes a container.
func pack(text []byte, sm, registers int) []byte {
	c := make([]byte, 0, containerHeader+len(text))
	c = append(c, containerMagic...)
	for _, v := range []int{containerFormat, sm, registers, len(text)} {
		c = binary.LittleEndian.AppendUint32(c, uint32(v))
	}
	c = append(c[:containerHeader], text...)
	sum := checksum(c)
	copy(c[checksumAt:], sum[:])
	return c
}

// unpack is the text of a container for an architecture.
func unpack(c []byte, sm int) (text []byte, registers int, r driver.Result) {
	if len(c) < containerHeader {
		return nil, 0, driver.InvalidImage
	}
	field := func(i int) int { return int(binary.LittleEndian.Uint32(c[len(containerMagic)+4*i:])) }
	sum := checksum(c)
	switch {
	case field(0) != containerFormat || field(3) != len(c)-containerHeader || !bytes.Equal(sum[:], c[checksumAt:containerHeader]):
		return nil, 0, driver.InvalidImage
	case field(1) != sm:
		return nil, 0, driver.NoBinaryForGPU
	}
	return c[containerHeader:], field(2), driver.Success
}

// parseAndValidate is what the driver's compiler looks at whatever the architecture. The error is for the log.
func parseAndValidate(text []byte) (*checkedModule, error) {
	m, err := parse.Module("ptx", text)
	var wrong *parse.Error
	switch {
	case errors.As(err, &wrong):
		return nil, fmt.Errorf("line %d, column %d: %s: %w", wrong.Pos.Line, wrong.Pos.Col, wrong.Msg, errors.Unwrap(wrong))
	case err != nil:
		return nil, err
	}
	if err := ir.Validate(m); err != nil {
		return nil, err
	}
	version, target, err := ir.Requires(m)
	if err != nil {
		return nil, err
	}
	return &checkedModule{module: m, version: version, target: target, text: len(text)}, nil
}

// translate checks PTX as the driver's compiler does for an architecture, without compiling it. The error is for the log.
func (g *GPU) translate(text []byte) (*ir.Module, driver.Result, error) {
	c, err := check(text)
	if err != nil {
		return nil, unsupported(err, driver.InvalidPTX), err
	}
	m, newest := c.module, newestPTX(g.cfg.Version)
	switch {
	case newest.Less(m.Version):
		return nil, driver.UnsupportedPTXVersion, fmt.Errorf(".version %s is not supported, the newest one that is is %s", m.Version,
			newest)
	case !(ir.Target{SM: g.cfg.SM, Suffix: "a"}).Covers(m.Target):
		return nil, driver.InvalidPTX, fmt.Errorf(".target %s does not run on sm_%d", m.Target, g.cfg.SM)
	case m.Version.Less(c.version):
		return nil, driver.InvalidPTX, fmt.Errorf("the module needs .version %s, it has %s", c.version, m.Version)
	case !m.Target.Covers(c.target):
		return nil, driver.InvalidPTX, fmt.Errorf("the module needs .target %s, it has %s", c.target, m.Target)
	}
	return m, driver.Success, nil
}

// unsupported is NotSupported for what the software GPU cannot do, else the result given.
func unsupported(err error, r driver.Result) driver.Result {
	if errors.Is(err, compute.ErrUnsupported) {
		return driver.NotSupported
	}
	return r
}

// newestPTX is the version of PTX that a driver takes. Source: PTX ISA, "Release Notes".
func newestPTX(version int) ir.Version {
	major, minor := version/1000, version%1000/10
	switch {
	case major < 12:
		return ir.Version{Major: major - 4, Minor: minor} // 11.8: 7.8
	case major > 12:
		return ir.Version{Major: major - 4, Minor: minor} // 13.0: 9.0
	case minor > 5:
		minor-- // 12.6 brought nothing new
	}
	return ir.Version{Major: 8, Minor: minor}
}

// isText tells PTX from a binary that is none of ours. What follows a NUL does not count.
func isText(image []byte) bool {
	for _, b := range image {
		if b < ' ' && !strings.ContainsRune("\t\n\v\f\r", rune(b)) || b == 0x7f {
			return false
		}
	}
	return true
}
