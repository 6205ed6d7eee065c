// What some runs need alone. For a CPU each of these headers, of boundary/ and of terms/ is compiled by itself, at the first
// use of one of its kernels; it includes what it uses.
#include "wall_edges.h"
#include "compact.h"
#include "waves.h"
#include "synthetic_turbulence.h"
#include "statistics.h"
#include "averages.h"
#include "filter.h"
#include "spatial_filter.h"
#include "signals.h"
#include "scalar_boundary.h"
#include "axisymmetric.h"
#include "wall_distance.h"
