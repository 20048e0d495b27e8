// Package onnx runs ONNX models on every device of this module, in pure Go.
//
//	m, err := onnx.Open("model.onnx")
//	s, err := m.Session(ctx, dev)
//	out, err := s.Run(ctx, map[string]onnx.Tensor{"x": onnx.Of(pixels, 1, 3, h, w)})
//	scores, err := onnx.Elements[float32](out["scores"])
//
// A [Session] compiles the model for the shapes of the inputs when it first meets them, and keeps what it has compiled for a number of
// shapes ([WithShapes]). Weights are on the device once. Arithmetic on shapes, and all else that the model and the shapes of its inputs
// determine, is done then and not in each run.
//
// # Where operators run
//
//   - Floats of 32 and 16 bits are computed by the device, in float32: those of 16 bits are rounded where values are cast, read by the host, or
//     leave the model.
//   - Integers, doubles and texts are computed by the host. Integers that are indices on a device have 32 bits there; one that does not
//     fit is [compute.ErrTooLarge].
//   - Control flow is followed while the model is compiled. A condition, a number of repetitions or a shape that depends on data ends what
//     the device does at once; each outcome is compiled when it first occurs.
//
// [Session.String] lists what runs where.
//
// # What is lacking
//
// [Model.Session] fails with a [LackError] that lists every node whose operator is not known.
//
// # Concurrency
//
// A [Model] may be used by many goroutines, and so may a [Session], which runs one call at a time.
//
// # Memory
//
// [Open] maps the file and files of external data; [Model.Close] ends that, after all sessions are closed.
package onnx
