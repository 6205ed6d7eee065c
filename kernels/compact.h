// The viscous terms of the compact plan (hiresx/rhs/compact.py), which stores the flux of one direction at a time:
//   viscous_ghost_state, and for each direction  viscous_flux_along -> (ghosts) -> viscous_difference_along
// Gradients are computed from the conserved state, whose ghosts behind physical faces are those of the viscous terms
// meanwhile. The point functions are those of viscous.h.
#include "viscous.h"

#ifdef HX_VISCOUS
// Sets the conserved state of ghosts from u, v, w, T. Their density does not change, since ghosts of scalars were
// computed from it, and some conditions do not compute those again.
template <class State>
HD void store_ghost_state(const State &q, long long p, int sn, stride sv,
                          const real ghosts[gas_gradients][viscous_reach]) {
    for (int l = 0; l < viscous_reach; ++l) {
        const auto to = q + (p - (long long)(l + 1) * sn);
        const real u = ghosts[0][l], v = ghosts[1][l], w = ghosts[2][l];
        const real rho = to[0], energy = ghosts[3][l] / (gas_gamma * gas_gamma_1) + real(0.5) * (u * u + v * v + w * w);
        to[sv] = rho * u, to[2 * sv] = rho * v, to[3 * sv] = rho * w, to[4 * sv] = rho * energy;
    }
}

// Sets the ghosts of a physical face such that their primitives are those of viscous_extrapolate.
KERNEL(viscous_ghost_state, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, int degree,
       state_field<gas_variables> q) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    real inner[extrapolated_from][gradient_variables], ghosts[gas_gradients][viscous_reach];
    for (int l = 0; l < extrapolated_from; ++l) node_primitives(q, p + (long long)l * sn, sv, inner[l]);
    for (int v = 0; v < gas_gradients; ++v)
        extrapolated([&](int l) { return inner[l][v]; }, degree, ghosts[v]);
    store_ghost_state(q, p, sn, sv, ghosts);
}

#if HX_SCALARS
// The same for one scalar. q: the density
KERNEL(scalar_ghost_state, int i, int j, int k, int o, int s1, int s2, int sn, int degree, const_state_field<1> q,
       state_field<1> scalar) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    real inner[extrapolated_from], ghosts[viscous_reach];
    for (int l = 0; l < extrapolated_from; ++l) inner[l] = scalar[p + (long long)l * sn] / q[p + (long long)l * sn];
    extrapolated([&](int l) { return inner[l]; }, degree, ghosts);
    for (int l = 0; l < viscous_reach; ++l) {
        const long long to = p - (long long)(l + 1) * sn;
        scalar[to] = q[to] * ghosts[l];
    }
}
#endif

// Derivatives of the primitives at node p in index space, along stride sd, with the weights of `nodal_derivative`
template <class T> HD void primitive_rates(const_state_pointer q, long long p, long long sd, stride sv, T *rate) {
    T ahead[gradient_variables], behind[gradient_variables];
    for (int s = 1; s <= viscous_reach; ++s) {
        node_primitives(q, p + s * sd, sv, ahead);
        node_primitives(q, p - s * sd, sv, behind);
        for (int v = 0; v < gradient_variables; ++v) {
            const T part = central_weight<viscous_reach>(s) * (ahead[v] - behind[v]);
            rate[v] = s == 1 ? part : rate[v] + part;
        }
    }
}

// The curvilinear viscous flux of interior nodes along one direction, whose area components are `through`.
VECTOR_KERNEL(viscous_flux_along, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
              const_state_field<conserved_variables> q, const_work_field<9> m, const_work_field<3> through,
              const_work_field<1> jacobian,
              real inverse_reynolds, const_work_field<HX_EDDY_COEFFICIENTS> coefficient,
              work_field<HX_EDDY_FIELDS> eddies, work_field<gradient_variables> flux) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    T gradient[gradient_variables][3], own[gradient_variables], rate[3][gradient_variables], area[3];
    primitive_rates(q, p, (long long)di, sv, rate[0]);
    primitive_rates(q, p, (long long)dj, sv, rate[1]);
    primitive_rates(q, p, (long long)dk, sv, rate[2]);
    const T scale = load<T>(jacobian + p);
    for (int v = 0; v < gradient_variables; ++v)
        for (int d = 0; d < 3; ++d) rate[d][v] = rate[d][v] * scale;
    for (int c = 0; c < 3; ++c) {
        const T xi = load<T>(m + c * sv + p), eta = load<T>(m + (3 + c) * sv + p), zeta = load<T>(m + (6 + c) * sv + p);
        for (int v = 0; v < gradient_variables; ++v)
            gradient[v][c] = xi * rate[0][v] + eta * rate[1][v] + zeta * rate[2][v];
    }
    for (int c = 0; c < 3; ++c) area[c] = load<T>(through + c * sv + p);
    node_primitives(q, p, sv, own);
#if HX_EDDY_FIELDS && !HX_TRANSPORTED  // sources of transported variables are not in this plan
    const T eddy = keep_eddies(gradient, load<T>(q + p), scale, directions_of(di, dj, dk), inverse_reynolds,
                               coefficient + p, eddies + p);
#else
    const T eddy = T(real(0));
    (void)coefficient, (void)eddies;
#endif
    const ViscousStress<T> stress = viscous_stress(own, gradient, eddy, inverse_reynolds);
    store_viscous_flux(area, stress, gradient, sv, flux + p);
}

// r += the derivative of the viscous flux along stride sd, in all but the density
VECTOR_KERNEL(viscous_difference_along, int i, int j, int k, int o, int sj, int sk, int sd, stride sv,
              const_work_field<gradient_variables> flux, rate_field<conserved_variables> r) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    for (int c = 0; c < gradient_variables; ++c) {
        const work_real *f = flux + c * sv + p;
        rate_real *to = r + (c + 1) * sv + p;
        store(to, load<T>(to) + nodal_derivative<T>([&](int s) { return load<T>(f + (long long)s * sd); }));
    }
}
#endif
