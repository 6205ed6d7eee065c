// The kernels of the implicit integrator (hiresx/solver/implicit_operators.py), a separate program. Vectors have the
// size of the state, and their ghosts are not changed.
#include "gas.h"
#include "half_point.h"
#include "implicit/block_columns.h"
#include "implicit/blocks.h"
#include "implicit/line_faces.h"
#include "implicit/lines.h"
#include "implicit/nodes.h"
#include "implicit/outflow.h"
#include "implicit/recorded.h"

// q = q + dt R of the state q, where R is r over the volume
KERNEL(explicit_change, int i, int j, int k, int o, int sj, int sk, stride sv, state_field<block_variables> q,
       const_rate_field<block_variables> r, const_work_field<1> jacobian, const_field<1> dt) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    for (int v = 0; v < block_variables; ++v) q[v * sv + p] += dt[p] * jacobian[p] * r[v * sv + p];
}

// The same for unsteady flow, with the term `constant` - over_time q added to R
KERNEL(implicit_change, int i, int j, int k, int o, int sj, int sk, stride sv, real over_time,
       const_field<block_variables> constant, state_field<block_variables> q, const_rate_field<block_variables> r,
       const_work_field<1> jacobian, const_field<1> dt) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    for (int v = 0; v < block_variables; ++v)
        q[v * sv + p] += dt[p] * (jacobian[p] * r[v * sv + p] + constant[v * sv + p] - over_time * q[v * sv + p]);
}

// x = f/dt
KERNEL(over_step, int i, int j, int k, int o, int sj, int sk, stride sv, const_field<1> dt,
       const_field<block_variables> f, field<block_variables> x) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    for (int v = 0; v < block_variables; ++v) x[v * sv + p] = f[v * sv + p] / dt[p];
}

// The largest magnitude among the variables x of a node
KERNEL(largest_of_node, int i, int j, int k, int o, int sj, int sk, stride sv, const_field<block_variables> x,
       field<1> largest) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    real found = real(0);
    for (int v = 0; v < block_variables; ++v) found = larger(found, absolute(x[v * sv + p]));
    largest[p] = found;
}

// The change of variable `which` in shift_faces: the fraction `length` of a scale of the variable
HD real shift_of(const real *q, long long p, long long sv, int which, real length) {
    return length * (which == 0 || which > 4 ? q[p] : which == 4 ? q[4 * sv + p] : square_root(q[p] * q[4 * sv + p]));
}
KERNEL(shift_faces, int i, int j, int k, int o, int sj, int sk, stride sv, const int *sides, int which, real length,
       const_field<block_variables> x, field<block_variables> y) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    for (int v = 0; v < block_variables; ++v) y[v * sv + p] = x[v * sv + p];
    if (sides[p]) y[which * sv + p] += shift_of(x, p, sv, which, length);
}
// Column `which` of the derivative of the conditions, from kept and y, the results of the conditions for x and for the
// shifted state. At a node without conditions it is that of the unit matrix.
KERNEL(face_derivative, int i, int j, int k, int o, int sj, int sk, stride sv, const int *sides, int which, real length,
       const_field<block_variables> x, const_field<block_variables> kept, const_field<block_variables> y, field<block_reals> blocks) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk, c = coloured(p, sj);
    const real over = real(1) / shift_of(x, p, sv, which, length);
    for (int v = 0; v < block_variables; ++v)
        blocks[(v * block_variables + which) * sv + c] =
            sides[p] ? (y[v * sv + p] - kept[v * sv + p]) * over : real(v == which);
}

// Whether the variables that a turbulence model needs above 0 stay above the fraction `least` of their values
HD bool stays_positive(const real *state, const real *changed, real least) {
    bool found = true;
#if HX_TRANSPORTED
    for (int n = 0; n < HX_TRANSPORTED; ++n) {
        const real before = state[transported_at + n];
        if (transported_stays_positive[n]) found = found && (changed[transported_at + n] > least * before || before == real(0));
    }
#else
    (void)state, (void)changed, (void)least;
#endif
    return found;
}

// share[column]: the largest of 1, 1/2, 1/4, ... with which the change d keeps density and pressure above the fraction
// `least` of their values and below 1/least of them, and other positive variables above `least` of theirs; 0 below
// 2^-10.
KERNEL(admissible_share, int i, int j, int k, int o, int sj, int sk, int height, stride sv, real least,
       const_field<block_variables> x, const_field<block_variables> d, int width, real *share) {
    real all = real(1);
    for (int l = 0; l < height; ++l) {
        const long long p = o + i + (long long)j * sj + (long long)l * sk;
        real state[block_variables], changed[block_variables];
        for (int v = 0; v < block_variables; ++v) state[v] = x[v * sv + p];
        const real pressure = primitive(state).p;
        while (all > real(0)) {
            for (int v = 0; v < block_variables; ++v) changed[v] = state[v] + all * d[v * sv + p];
            const real p1 = primitive(changed).p;
            if (changed[0] > least * state[0] && least * changed[0] < state[0] && p1 > least * pressure
                && least * p1 < pressure && stays_positive(state, changed, least))
                break;
            all = all > real(1e-3) ? real(0.5) * all : real(0);
        }
    }
    share[(long long)j * width + i] = all;
}
