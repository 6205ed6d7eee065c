// This header includes all that computes with the chosen numerical flux, weights and space. A boundary condition or a
// term that also does so includes it.
#include "half_point.h"
#include "inviscid.h"
#include "scalar.h"
#include "inviscid_pencil.h"
#include "split.h"
#include "hybrid.h"
#include "fused.h"
#include "split_points.h"
#include "split_pencil.h"
#include "sensed.h"
