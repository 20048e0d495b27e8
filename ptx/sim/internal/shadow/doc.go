// Package shadow is what checked launches know of memory besides its bytes: which bytes have a value ([Values]), and for each word the
// accesses with which later ones may race ([History]), ordered by vector clocks ([Races], [Warp]). It knows nothing of programs.
package shadow
