// Sweeps of the implicit integrator that store no blocks of neighbours, a program of its own: it computes in the numbers of
// the sweeps (implicit.sweep_precision), of which all its fields are.
#include "gas.h"
#include "half_point.h"
#include "implicit/product_lines.h"
#include "implicit/products.h"
