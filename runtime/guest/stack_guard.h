// Read before every file of QuickJS, to have its stack guard: under WASI it compiles to "no limit", and deep recursion
// then ends in a trap without a line. The shadow stack that the guard measures exists here like anywhere else.
#include <wasi/api.h>
#undef __wasi__
