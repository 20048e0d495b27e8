package kernels

import "unsafe"

// LinkOp is what a link does: [LinkAdd] adds. The zero value is no link.
type LinkOp uint8

// Link is one operation of a chain: code that computes a kernel from values in registers, or moves values between those and
// memory, and then jumps to the code of the next link. All links of a chain work on ChainWidth elements, then on the next ones;
// what one computes is the first operand of the next. Results are the bits of the kernels.
type Link struct {
	code uintptr
	at   unsafe.Pointer
	p    [2]float32
}

// NewLink returns a link for the active tier, which must have links, with a kernel's parameters.
func NewLink(op LinkOp, p [2]float32) Link { return Link{code: linkCode(op), p: p} }

// At sets where the link loads or stores.
func (l *Link) At(x *float32) { l.at = unsafe.Pointer(x) }
