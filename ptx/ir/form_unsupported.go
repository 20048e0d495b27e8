package ir

import "strings"

// unsupported are the roots that PTX has and that are deliberately without forms, by the reason.
var unsupported = func() map[Op]string {
	m := map[Op]string{}
	for reason, roots := range map[string]string{
		"tensor cores of sm_100 and later are not supported": `tcgen05.alloc tcgen05.dealloc
			tcgen05.relinquish_alloc_permit tcgen05.ld
			tcgen05.st tcgen05.wait tcgen05.cp tcgen05.shift tcgen05.mma tcgen05.commit tcgen05.fence tcgen05`,
	} {
		for op := range strings.FieldsSeq(roots) {
			m[Op(op)] = reason
		}
	}
	return m
}()

// Unsupported is why the root, which PTX has, has no form here; "" if it has or if PTX has no such root.
func Unsupported(op Op) string { return unsupported[op] }
