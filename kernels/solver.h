// Everything of the solver behind the compile-time choices, but for the boundary conditions: every header of boundary/
// is taken behind this one.
#include "half_point.h"
#include "metrics.h"
#include "inviscid.h"
#include "inviscid_pencil.h"
#include "calibration.h"
#include "viscous.h"
#include "update.h"
#include "timestep.h"
#include "reduce.h"
#include "statistics.h"
#include "exchange.h"
#include "sponge.h"
