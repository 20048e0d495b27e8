// Package parse reads PTX text, the builder's own and what nvcc, clang, Triton and people write, into the form of package ir.
//
// What a module says is kept, with these exceptions. Of line information, .loc and .file become the module's Lines, which are not
// printed; .section and the option debug of .target are dropped, and so is .pragma outside of bodies. Registers that no instruction mentions are dropped. Names declared in nested scopes
// move to the function and are renamed where they would clash; variables of the .global and .const space declared inside
// functions move to the module. Prototypes of functions that the module defines are dropped, and printed again where they are
// needed. Constant expressions become their values, and vector registers become their components.
//
// What cannot be represented is an error that says so.
package parse
