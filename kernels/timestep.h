#include "step_rule.h"

#ifdef HX_VISCOUS
// max(4/3, gamma/Pr, 1/Sc) mu/(Re_c rho)
template <class T> HD T viscous_rate(const Primitive<T> &s, real inverse_reynolds) {
    return real(HX_LARGEST_DIFFUSIVITY) * viscosity(gas_gamma * s.p / s.rho) * inverse_reynolds / s.rho;
}
#endif

// Fraction of the largest eigenvalue of diffusion, relative to its value on orthogonal lines, that limits the step. With
// viscous_cfl = 0.5 the step is then stable on lines of any angle, by viscous terms of order 8 too (0.5/0.6 < 0.84).
constexpr double oblique_share = 0.6;

// Spectral radii for the time step. inviscid: J sum_d (|U_d| + a |m_d|). viscous: J^2 M times max(4/3, gamma/Pr, 1/Sc)
// mu/(Re_c rho), and the same for the eddy viscosity with its own numbers. M is sum_d |m_d|^2, or if that is larger,
// `oblique_share` of sum_de |m_d . m_e|, to which mixed derivatives can add on oblique lines. With a transported
// turbulence model it is at least the radius by the diffusivities of the model's variables, and their decay rate is
// added. active: bit mask of the directions with more than one node; the others do not count.
template <class T>
HD void spectral_radii(const_state_pointer q, const work_real *m, const work_real *jacobian, const work_real *eddies,
                       long long p, stride sv, int active, real inverse_reynolds, T *inviscid, T *viscous) {
    T state[gas_variables];
    for (int v = 0; v < gas_variables; ++v) state[v] = load<T>(q + v * sv + p);
    Primitive<T> s = primitive(state);
    const T a = square_root(gas_gamma * s.p / s.rho), volume = load<T>(jacobian + p);
    T sum = T(real(0)), squares = T(real(0)), products = T(real(0)), area[3][3];
    for (int d = 0; d < 3; ++d) {
        for (int c = 0; c < 3; ++c) area[d][c] = T(real(0));
        if (!(active >> d & 1)) continue;
        const T x = load<T>(m + 3 * d * sv + p), y = load<T>(m + (3 * d + 1) * sv + p),
                z = load<T>(m + (3 * d + 2) * sv + p);
        const T area2 = x * x + y * y + z * z;
        sum = sum + absolute(x * s.u + y * s.v + z * s.w) + a * square_root(area2);
        squares = squares + area2;
        area[d][0] = x, area[d][1] = y, area[d][2] = z;
        for (int e = 0; e < d; ++e)
            products = products + absolute(x * area[e][0] + y * area[e][1] + z * area[e][2]);
    }
    *inviscid = sum * volume;
#ifdef HX_VISCOUS
    squares = larger(squares, real(oblique_share) * (squares + real(2) * products));
    *viscous = squares * volume * volume * viscous_rate(s, inverse_reynolds);
#if HX_EDDY_FIELDS
    const T eddy = real(HX_LARGEST_EDDY_DIFFUSIVITY) * load<T>(eddies + p) * inverse_reynolds / s.rho;
    *viscous = *viscous + squares * volume * volume * eddy;
#if HX_TRANSPORTED
    T rho_s[HX_TRANSPORTED];
    for (int n = 0; n < HX_TRANSPORTED; ++n)
        rho_s[n] = load<T>(q + (conserved_variables - HX_TRANSPORTED + n) * sv + p);
    const T spreading = transported_spreading(rho_s, s.rho, viscosity(gas_gamma * s.p / s.rho));
    *viscous = larger(*viscous, squares * volume * volume * inverse_reynolds * spreading / s.rho)
               + transported_decay(rho_s, s.rho, inverse_reynolds);
#endif
#endif
#else
    (void)squares, (void)products, (void)inverse_reynolds;
    *viscous = T(real(0));
#endif
    (void)eddies;
}

// The largest radii of each column along k of `nodes` nodes, for pieces of `height` nodes. The radius r of piece k is
// stored at partial[r][k][j][i]; `columns`: the number of entries for each r.
VECTOR_KERNEL(column_radii, int i, int j, int k, int o, int sj, int sk, int columns, int rows, int nodes, int height,
              stride sv, const_state_field<conserved_variables> q, const_work_field<9> m, const_work_field<1> jacobian,
              const_work_field<HX_EDDY_FIELDS> eddies, int active, real inverse_reynolds, int width, real *partial) {
    T most[2] = {T(real(0)), T(real(0))};
    const int begin = k * height, end = nodes - begin < height ? nodes : begin + height;
    for (int l = begin; l < end; ++l) {
        const long long p = o + i + (long long)j * sj + (long long)l * sk;
        T radius[2];
        spectral_radii<T>(q, m, jacobian, eddies, p, sv, active, inverse_reynolds, radius, radius + 1);
        // A NaN wins, and stays, since it must not be hidden.
        for (int r = 0; r < 2; ++r)
            most[r] = select(either(radius[r] > most[r], radius[r] != radius[r]), radius[r], most[r]);
    }
    for (int r = 0; r < 2; ++r) store(partial + (long long)r * columns + ((long long)k * rows + j) * width + i, most[r]);
}

// The local time step of every point, at most `longest`
KERNEL(local_step, int i, int j, int k, int o, int sj, int sk, stride sv, const_state_field<conserved_variables> q,
       const_work_field<9> m, const_work_field<1> jacobian, const_work_field<HX_EDDY_FIELDS> eddies, int active,
       real inverse_reynolds, real cfl, real viscous_cfl, real longest, field<1> dt) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    real inviscid, viscous;
    spectral_radii(q, m, jacobian, eddies, p, sv, active, inverse_reynolds, &inviscid, &viscous);
    dt[p] = smaller(longest, largest_step(cfl, viscous_cfl, inviscid, viscous));
}
