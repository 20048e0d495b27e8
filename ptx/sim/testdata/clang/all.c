// All functions as one translation unit.
#include "case.h"

#include "bits.c"
#include "calls.c"
#include "control.c"
#include "convert.c"
#include "floats.c"
#include "integers.c"
#include "loops.c"
#include "memory.c"
#include "shifts.c"
