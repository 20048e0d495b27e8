package wasm

import "bytes"

// The binary format is that of the WebAssembly specification, release 2.0, chapter 5.

// Value types.
const (
	i32  = 0x7f
	f32  = 0x7d
	v128 = 0x7b
)

// Indices of what the module imports, and of the types of its functions.
const (
	globalBox = 0 // address of the mailbox

	typeRun     = 0 // () → i32
	typeLoad    = 1 // (i32, i32) → v128
	typeStore   = 2 // (i32, i32, v128)
	typePacked  = 3 // see packedTile
	typeStrided = 4 // see stridedTile
	typeBlocks  = 5 // (planes 0, 1 and 2, n, call, block of x)
	typeWeigh   = 6 // see weighFunction
	typeExpand  = 7 // see expandFunction
	typeDots    = 8 // see dotsFunction and floatsFunction
)

// signature is the type of a function.
type signature struct{ params, results []byte }

// function is a function of the module.
type function struct {
	typ    int
	locals []byte // types
	code   []byte // without the final end
}

// module is a module that imports a memory and the address of the mailbox. The first one exports run and the table of its
// functions, which another imports to add its own.
type module struct {
	types     []signature
	functions []function
	table     []int // function by operation
	run       int
	from      int // where the table of a module that adds to it begins; 0 for the first
	more      int // entries of the table that another module adds
}

// encode writes the module in the binary format.
func (m *module) encode() []byte {
	w := bytes.NewBufferString("\x00asm\x01\x00\x00\x00")
	section := func(id byte, items int, content func(w *bytes.Buffer)) {
		var b bytes.Buffer
		writeUint(&b, uint64(items))
		content(&b)
		w.WriteByte(id)
		writeBytes(w, b.Bytes())
	}
	section(1, len(m.types), func(w *bytes.Buffer) {
		for _, t := range m.types {
			w.WriteByte(0x60)
			writeBytes(w, t.params)
			writeBytes(w, t.results)
		}
	})
	first := m.from == 0
	imports := 3
	if first {
		imports = 2
	}
	section(2, imports, func(w *bytes.Buffer) {
		writeBytes(w, []byte("go"))
		writeBytes(w, []byte("mem"))
		w.Write([]byte{0x02, 0x00, 0}) // a memory without an upper limit, at least 0 pages
		writeBytes(w, []byte("go"))
		writeBytes(w, []byte("box"))
		w.Write([]byte{0x03, i32, 0}) // a constant
		if !first {
			writeBytes(w, []byte("go"))
			writeBytes(w, []byte("table"))
			w.Write([]byte{0x01, 0x70, 0x00, 0}) // functions, no upper limit, at least none
		}
	})
	section(3, len(m.functions), func(w *bytes.Buffer) {
		for _, f := range m.functions {
			writeUint(w, uint64(f.typ))
		}
	})
	if first {
		section(4, 1, func(w *bytes.Buffer) {
			w.Write([]byte{0x70, 0x00}) // functions, no upper limit
			writeUint(w, uint64(len(m.table)+m.more))
		})
		section(7, 2, func(w *bytes.Buffer) {
			writeBytes(w, []byte("run"))
			w.WriteByte(0x00)
			writeUint(w, uint64(m.run))
			writeBytes(w, []byte("table"))
			w.Write([]byte{0x01, 0})
		})
	}
	section(9, 1, func(w *bytes.Buffer) {
		w.Write([]byte{0x00, opI32Const})
		writeInt(w, int64(m.from))
		w.WriteByte(opEnd)
		writeUint(w, uint64(len(m.table)))
		for _, f := range m.table {
			writeUint(w, uint64(f))
		}
	})
	section(10, len(m.functions), func(w *bytes.Buffer) {
		for _, f := range m.functions {
			var b bytes.Buffer
			runs := 0
			var r bytes.Buffer
			for i := 0; i < len(f.locals); runs++ {
				n := i
				for i < len(f.locals) && f.locals[i] == f.locals[n] {
					i++
				}
				writeUint(&r, uint64(i-n))
				r.WriteByte(f.locals[n])
			}
			writeUint(&b, uint64(runs))
			b.Write(r.Bytes())
			b.Write(f.code)
			b.WriteByte(opEnd)
			writeBytes(w, b.Bytes())
		}
	})
	return w.Bytes()
}

// writeUint writes LEB128.
func writeUint(w *bytes.Buffer, v uint64) {
	for v >= 0x80 {
		w.WriteByte(byte(v) | 0x80)
		v >>= 7
	}
	w.WriteByte(byte(v))
}

func writeInt(w *bytes.Buffer, v int64) {
	for v < -64 || v > 63 {
		w.WriteByte(byte(v)&0x7f | 0x80)
		v >>= 7
	}
	w.WriteByte(byte(v) & 0x7f)
}

func writeBytes(w *bytes.Buffer, b []byte) {
	writeUint(w, uint64(len(b)))
	w.Write(b)
}
