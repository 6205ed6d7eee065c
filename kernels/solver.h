// All kernels of the solver after the compile-time choices, except the boundary conditions: every header of boundary/
// is included after this one. For a CPU the first two parts are compiled in parallel, and each header of the third part
// at its first use. A part is compiled once for all choices on which it does not depend.
#include "scheme.h"
#include "every_scheme.h"
#include "occasional.h"
