package program

var classNames = [...]string{Unary: "unary", Binary: "binary", Ternary: "ternary", Reduce: "reduce", Rows: "rows", Matrix: "matrix",
	Window: "window", Move: "move", Layer: "layer", Custom: "custom",
	Fusion: "fusion"}

func (c Class) String() string { return classNames[c] }
