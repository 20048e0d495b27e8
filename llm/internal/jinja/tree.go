package jinja

// Statements.
type (
	statement  any
	outputText struct{ text string }
	output     struct{ x expression }
	setValue   struct {
		targets []target
		x       expression
	}
	setBlock struct {
		to      target
		filters []call
		body    []statement
	}
	filterBlock struct {
		filters []call
		body    []statement
	}
	with struct {
		names  []string
		values []expression
		body   []statement
	}
	conditional struct {
		cond         expression
		then, orElse []statement
	}
	loop struct {
		line    int
		names   []string
		over    expression
		filter  expression // nil for all
		body    []statement
		nothing []statement // where there was nothing
	}
	macro struct {
		name     string
		params   []string
		defaults []expression // of the last parameters
		body     []statement
	}
	callBlock struct {
		line   int
		call   expression
		params macro
	}
	leave struct{ on bool } // break, or continue
)

// target is a name, or an attribute of a namespace.
type target struct{ name, attr string }

// Expressions.
type (
	expression any
	literal    struct{ v value }
	variable   struct {
		line int
		name string
	}
	attribute struct {
		line int
		x    expression
		name string
	}
	index struct {
		line int
		x, i expression
	}
	slice struct {
		line           int
		x              expression
		from, to, step expression
	}
	call struct {
		line  int
		f     expression // nil for filters and tests, whose operand is the first argument
		name  string     // of filters and tests
		args  []expression
		names []string // of the last arguments
	}
	filter struct {
		x expression
		call
	}
	test struct {
		x expression
		call
		not bool
	}
	binary struct {
		line int
		op   string
		a, b expression
	}
	compare struct {
		line int
		x    expression
		ops  []string
		with []expression
	}
	unary struct {
		line int
		op   string
		x    expression
	}
	choice   struct{ cond, then, orElse expression } // orElse may be nil
	sequence struct {
		items []expression
		tuple bool
	}
	mapping struct {
		line         int
		keys, values []expression
	}
)
