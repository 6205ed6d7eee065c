// The user's sources of the conserved variables, [source]: r += user_source/J of position, time and state of a node.
// The time is that of the clock (clock.h) plus the fraction `share` of the time step.
#include "../clock.h"

#ifdef HX_SOURCE
KERNEL(source, int i, int j, int k, int o, int sj, int sk, stride sv, const_state_field<conserved_variables> q,
       const_work_field<1> jacobian, const_field<3> coordinates, const double *clock, double share,
       rate_field<conserved_variables> r) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk, apart = sv;
    real state[gas_variables], at[10 + scalar_variables], rate[conserved_variables];
    for (int v = 0; v < gas_variables; ++v) state[v] = q[v * sv + p];
    const Primitive<real> s = primitive(state);
    for (int c = 0; c < 3; ++c) at[c] = coordinates[c * apart + p];
    at[3] = real(clock[CLOCK_TIME] + share * clock[CLOCK_DT]);
    at[4] = s.rho, at[5] = s.u, at[6] = s.v, at[7] = s.w, at[8] = s.p, at[9] = gas_gamma * s.p / s.rho;
    for (int n = 0; n < scalar_variables; ++n) at[10 + n] = q[(gas_variables + n) * sv + p] / s.rho;
    user_source(at, rate);
    for (int v = 0; v < conserved_variables; ++v)
        if (user_source_of(v)) r[v * sv + p] += rate[v] / jacobian[p];
}
#endif
