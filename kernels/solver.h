// Everything of the solver behind the compile-time choices, but for the boundary conditions: every header of boundary/
// is taken behind this one. For a CPU the first two parts are compiled side by side, and what is in the third when it is
// used, each once for all choices that it does not depend on.
#include "scheme.h"
#include "every_scheme.h"
#include "occasional.h"
