// Axisymmetric flow about the x axis, where y is the radius and w the swirl: the source S that is added to the
// equations of plane flow, Q_t + F_x + G_y = S (docs/numerics.md). S has no derivatives, so shocks are those of the
// plane equations, and it vanishes where v = w = 0, so that a uniform flow along the axis is kept.
//     S = -(rho v, rho u v, rho (v^2 - w^2), 2 rho v w, (e + p) v)/y
//         + (0, tau_xy, tau_yy - tau_zz, 2 tau_yz, u tau_xy + v tau_yy + w tau_yz - q_y)/y
// For a scalar S is -rho s v/y + mu/(Re_c Sc) s_y/y.
// inverse: 1/y at every node. At nodes on the axis it is minus the value of the next node, which marks them; S is its
// limit there.
#include "half_point.h"
#include "timestep.h"

// The rate at which S removes the content of a node, relative to the content. With it in the sum of spectral radii an
// Euler step keeps density and pressure positive, as q + dt S does where dt (gamma |v|/2 + |w|)/y is at most 1/2.
template <class T> HD T axisymmetric_rate(const Primitive<T> &s, T inverse) {
    return (real(0.5) * gas_gamma * absolute(s.v) + absolute(s.w)) * absolute(inverse);
}

// S and the pressure difference make an oscillator of the pressure and v of a node. Its frequency is at most c/sqrt(y
// h), h the distance of nodes along y. Where y is far below h, this is far above the radii of the fluxes.
HD real axisymmetric_frequency(const Primitive<real> &s, real inverse, const work_real *m,
                               const work_real *jacobian, long long p, stride sv) {
    const real closeness = (absolute(m[sv + p]) + absolute(m[4 * sv + p])) * jacobian[p];
    return inverse > real(0) ? square_root(gas_gamma * s.p / s.rho * inverse * closeness) : real(0);
}

KERNEL(axisymmetric_source, int i, int j, int k, int o, int sj, int sk, stride sv, const_state_field<conserved_variables> q,
       const_work_field<1> jacobian, const_field<1> inverse, rate_field<conserved_variables> r) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    real state[gas_variables];
    for (int v = 0; v < gas_variables; ++v) state[v] = q[v * sv + p];
    const Primitive<real> s = primitive(state);
    const real share = (inverse[p] > real(0) ? inverse[p] : real(0)) / jacobian[p], along = share * s.v;
    r[p] -= along * state[0];
    r[sv + p] -= along * state[1];
    r[2 * sv + p] -= along * state[2] - share * state[3] * s.w;
    r[3 * sv + p] -= real(2) * along * state[3];
    r[4 * sv + p] -= along * (state[4] + s.p);
    for (int v = gas_variables; v < conserved_variables; ++v) r[v * sv + p] -= along * q[v * sv + p];
}

// On the axis v/y is dv/dy, by the central difference. Across a jump it is v/y of the first node beside the axis.
KERNEL(axisymmetric_limit, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, real direction,
       const_work_field<3> m, const_work_field<1> jacobian, const_field<1> inverse, const_state_field<conserved_variables> q,
       rate_field<conserved_variables> r) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    real v[difference_reach + 1], pressure[difference_reach + 1], state[gas_variables];
    for (int l = difference_reach; l >= 0; --l) {
        for (int c = 0; c < gas_variables; ++c) state[c] = q[c * sv + p + (long long)l * sn];
        const Primitive<real> s = primitive(state);
        v[l] = s.v, pressure[l] = s.p;
    }
    const real sensor = larger(jump_sensor(pressure[1], pressure[0], pressure[1]),
                               larger(jump_sensor(pressure[0], pressure[1], pressure[2]),
                                      jump_sensor(pressure[1], pressure[2], pressure[3])));
    const real rough = -inverse[p] * v[1] / jacobian[p];
    for (int l = 1; l <= difference_reach; ++l) {  // the odd part of v: all of v if the line is normal to the axis
        const long long behind = p - (long long)l * sn;
        v[l] = real(0.5) * (v[l] - q[2 * sv + behind] / q[behind]);
    }
    const real smooth = direction * m[sv + p] * derivative_of_odd<real>([&](int l) { return v[l]; });
    const real share = correction_scale(sensor);
    const real rate = rough + share * (smooth - rough);
    r[p] -= rate * state[0];
    r[sv + p] -= rate * state[1];
    r[4 * sv + p] -= rate * (state[4] + pressure[0]);
    for (int v = gas_variables; v < conserved_variables; ++v) r[v * sv + p] -= rate * q[v * sv + p];
}

// Adds the contribution of S to the spectral radii, after column_radii. A plane grid has columns of one node.
KERNEL(axisymmetric_radii, int i, int j, int k, int o, int sj, int sk, int columns, stride sv,
       const_state_field<gas_variables> q, const_work_field<9> m, const_work_field<1> jacobian, const_field<1> inverse,
       real inverse_reynolds, int width, real *partial) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk, at = (long long)j * width + i;
    real state[gas_variables];
    for (int v = 0; v < gas_variables; ++v) state[v] = q[v * sv + p];
    const Primitive<real> s = primitive(state);
    partial[at] += axisymmetric_rate(s, inverse[p]);
    const real frequency = axisymmetric_frequency(s, inverse[p], m, jacobian, p, sv);
    if (frequency > partial[at]) partial[at] = frequency;  // a NaN stays
#ifdef HX_VISCOUS
    partial[columns + at] += inverse[p] * inverse[p] * viscous_rate(s, inverse_reynolds);
#else
    (void)columns, (void)inverse_reynolds;
#endif
}

// The same contribution for local time steps, after local_step.
KERNEL(axisymmetric_step, int i, int j, int k, int o, int sj, int sk, stride sv, const_state_field<gas_variables> q,
       const_work_field<9> m, const_work_field<1> jacobian, const_field<1> inverse, real inverse_reynolds, real cfl,
       real viscous_cfl, field<1> dt) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    real state[gas_variables];
    for (int v = 0; v < gas_variables; ++v) state[v] = q[v * sv + p];
    const Primitive<real> s = primitive(state);
    real added = axisymmetric_rate(s, inverse[p]) / cfl;
#ifdef HX_VISCOUS
    added += inverse[p] * inverse[p] * viscous_rate(s, inverse_reynolds) / viscous_cfl;
#else
    (void)inverse_reynolds, (void)viscous_cfl;
#endif
    const real step = dt[p] / (real(1) + dt[p] * added);
    const real frequency = axisymmetric_frequency(s, inverse[p], m, jacobian, p, sv);
    const real bound = real(2) * cfl;  // with less, the oscillator grows beside neighbours of far longer steps
    dt[p] = step * frequency > bound ? bound / frequency : step;
}

// On the axis v and w are zero and give no limit, so the step is at most that of the next node.
KERNEL(axisymmetric_step_limit, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, field<1> dt) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    dt[p] = smaller(dt[p], dt[p + sn]);
    (void)sv;
}

#ifdef HX_VISCOUS
// The curvilinear fluxes of viscous.h are those of plane flow. This kernel adds the part v/y of the dilatation to the
// normal stresses, and the part -w/y of the swirl to its shear stress; on the axis these are dv/dy and dw/dy. (di, dj):
// strides of the two directions.
KERNEL(axisymmetric_stress, int i, int j, int k, int o, int sj, int sk, int di, int dj, stride sv,
       const_work_field<gradient_variables> w, const_work_field<9> m, const_work_field<1> jacobian, const_field<1> inverse,
       real inverse_reynolds, work_field<2 * gradient_variables> flux) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    const real velocity[3] = {w[p], w[sv + p], w[2 * sv + p]};
    const real mu = viscosity(w[3 * sv + p]) * inverse_reynolds;
    real ratio[2];  // v/y, w/y
    for (int c = 0; c < 2; ++c) {
        const work_real *field = w + (c + 1) * sv + p;
        ratio[c] = velocity[c + 1] * inverse[p];
        if (inverse[p] > real(0)) continue;
        ratio[c] = jacobian[p]
                   * (m[sv + p] * nodal_derivative<real>([&](int s) { return field[s * di]; })
                      + m[4 * sv + p] * nodal_derivative<real>([&](int s) { return field[(long long)s * dj]; }));
    }
    const real normal = real(2.0 / 3) * mu * ratio[0], shear = mu * ratio[1];
    for (int d = 0; d < 2; ++d) {
        const real x = m[3 * d * sv + p], y = m[(3 * d + 1) * sv + p];
        work_real *f = flux + gradient_variables * d * sv + p;
        f[0] -= x * normal;
        f[sv] -= y * normal;
        f[2 * sv] -= y * shear;
        f[3 * sv] -= (x * velocity[0] + y * velocity[1]) * normal + y * velocity[2] * shear;
    }
}

// The viscous part of S over J, from the viscous fluxes; tau_zz is -(tau_xx + tau_yy).
HD void axisymmetric_friction_at(const work_real *flux, const work_real *m, long long p, stride sv, real inverse,
                                 real *s) {
    const real ax = m[p], ay = m[sv + p], bx = m[3 * sv + p], by = m[4 * sv + p];
    constexpr int n = gradient_variables;
    for (int c = 0; c < n; ++c) s[c] = inverse * (ax * flux[(n + c) * sv + p] - bx * flux[c * sv + p]);
    s[1] = real(2) * s[1] + inverse * (by * flux[p] - ay * flux[n * sv + p]);
    s[2] = real(2) * s[2];
}

KERNEL(axisymmetric_friction, int i, int j, int k, int o, int sj, int sk, stride sv,
       const_work_field<2 * gradient_variables> flux, const_work_field<9> m, const_field<1> inverse,
       rate_field<conserved_variables> r) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    real s[gradient_variables];
    axisymmetric_friction_at(flux, m, p, sv, inverse[p] > real(0) ? inverse[p] : real(0), s);
    for (int c = 0; c < gradient_variables; ++c) r[(c + 1) * sv + p] += s[c];
}

// The viscous part of S on the axis. For momentum x, energy and the scalars it is even in y and follows from the next
// two nodes, or, where the grid line is leaning, from the parabola through the next three. The other components are odd
// and vanish.
KERNEL(axisymmetric_friction_limit, int i, int j, int k, int o, int s1, int s2, int sn, stride sv,
       const_work_field<2 * gradient_variables> flux, const_work_field<9> m, const_work_field<1> jacobian,
       const_field<1> inverse, int leaning, rate_field<conserved_variables> r) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    real s[3][gradient_variables], y[3];
    for (int l = 0; l < 3; ++l) {
        const long long at = p + (long long)(l + 1) * sn;
        axisymmetric_friction_at(flux, m, at, sv, inverse[at], s[l]);
        y[l] = real(1) / inverse[at];
        for (int c = 0; c < gradient_variables; ++c) s[l][c] *= jacobian[at];
    }
    const real first = y[1] * y[1] / (y[1] * y[1] - y[0] * y[0]);
    for (int c = 0; c < gradient_variables; c = c == 0 ? 3 : c + 1) {
        const real even = s[1][c] + first * (s[0][c] - s[1][c]), any = real(3) * (s[0][c] - s[1][c]) + s[2][c];
        r[(c + 1) * sv + p] += (leaning ? any : even) / jacobian[p];
    }
}
#endif
