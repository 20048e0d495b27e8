// Package threadgroup divides rows among groups of threads: how a step's rows become tasks is decided on the host ([Split], [Lanes]),
// and a kernel finds its task, reduces partial results and reads operands through a prologue by [Of], [Reduce] and [PrologueOf].
package threadgroup
