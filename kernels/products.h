// Sweeps of the implicit integrator that store no blocks of neighbours. They are a separate program, whose arithmetic
// and fields all have the precision of the sweeps (implicit.sweep_precision).
#include "gas.h"
#include "half_point.h"
#include "implicit/product_lines.h"
#include "implicit/products.h"
