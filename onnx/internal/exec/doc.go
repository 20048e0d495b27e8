// Package exec executes models: it walks a graph with the shapes of a call's inputs and records what it finds as batches.
//
// What is known from the model and the shapes alone is computed once, on the host. Floats that depend on data are computed by the
// device: their operators are recorded in the current stage, a batch. Operators on other element types run on the host. When one of
// them, or the control flow, needs a value that the current stage computes, the stage is compiled and run, and the walk goes on with
// another. What was done is remembered as a trace, so that the next call with the same shapes replays it. Where the walk depended on data, the
// trace has a guard with a branch for each outcome that has occurred.
package exec
