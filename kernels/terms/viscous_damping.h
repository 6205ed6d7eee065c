// Damping of flow that alternates from node to node, which central differences of central differences in the viscous
// terms do not see. With the strength 1 it is damped as by the compact second difference, which the blocks of the
// implicit integrator have. Along each line, with the m-th difference delta^m of a row of m + 1 nodes,
//   r -= strength 4^(1 - m) (delta^m)^T K delta^m w,  w: velocity, temperature and the scalars,
// K: the coefficient of the thin-layer viscous flux in the middle of the row. Away from faces this is the 2 m-th
// difference. It acts on alternating flow as -4 strength K, and on smooth flow it is an error of order 2 m - 2: 4 with
// three ghost layers, 6 with more. It is conservative, and at constant density it never increases the kinetic energy.
// Rows that would continue behind a physical face are left out, except behind planes of symmetry with mirrored ghosts.
// The eddy viscosity counts for turbulence models with transported variables, without the part that depends on
// gradients.
#include "../difference_rows.h"
#include "../viscous.h"

#ifdef HX_VISCOUS
// Number of the last variables that a turbulence model asks to damp in all runs (transported_damping)
#if HX_TRANSPORTED
constexpr int damped_always = transported_is_damped ? HX_TRANSPORTED : 0;
#else
constexpr int damped_always = 0;
#endif

// k: K of a node with primitives w, of density rho and area vector a: for momentum, temperature and the scalars
template <class T>
HD void damping_coefficients(const T *w, T rho, const T *a, T jacobian, real inverse_reynolds, T *k) {
    ViscousStress<T> s;
    s.mu = viscosity(w[3]) * inverse_reynolds;
#if HX_EDDY_FIELDS
    s.laminar = s.mu, s.eddy = T(real(0));
#if HX_TRANSPORTED
    TransportedNode<T> node;
    for (int n = 0; n < HX_TRANSPORTED; ++n) node.s[n] = w[first_transported + n];
    node.rho = rho, node.mu = viscosity(w[3]), node.inverse_reynolds = inverse_reynolds;
    node.take(TransportedConstants<>());
    s.eddy = node.eddies() * inverse_reynolds;
    s.spread(node);
#endif
    s.mu = s.laminar + s.eddy;
#endif
    (void)rho;
    const T square = (a[0] * a[0] + a[1] * a[1] + a[2] * a[2]) * jacobian;
    k[0] = s.mu * square, k[1] = s.conductivity() * square;
    for (int n = 0; n < scalar_variables; ++n) k[2 + n] = s.diffusivity(n) * square;
}

// Adds 4^(1 - m) (delta^m)^T K delta^m w along the direction of stride sd to `sum`: of momentum x, y, z, energy and the
// scalars. area: area vectors of this direction; ends: as in of_row.
template <int m, class T>
HD void add_damping(const_state_pointer q, const work_real *area, const work_real *jacobian, T ends, long long p,
                    long long sd, stride sv, real inverse_reynolds, T *sum) {
    constexpr int middles = 5, first_middle = m - 2, coefficients = 2 + scalar_variables;
    constexpr real scale = real(4) / real(1 << (2 * m));
    T w[2 * m + 1][gradient_variables], k[middles][coefficients];
    for (int n = 0; n <= 2 * m; ++n) node_primitives(q, p + (n - m) * sd, sv, w[n]);
    for (int n = 0; n < middles; ++n) {
        const long long at = p + (n - 2) * sd;
        T a[3];
        for (int c = 0; c < 3; ++c) a[c] = load<T>(area + c * sv + at);
        damping_coefficients(w[first_middle + n], load<T>(q + at), a, load<T>(jacobian + at), inverse_reynolds, k[n]);
    }
    for (int before = 0; before <= m; ++before) {
        // The middle of the row is a node or lies between two nodes.
        const int lower = m - before + m / 2, upper = m - before + (m + 1) / 2;
        const T taken = of_row<m>(ends, before, T(real(1)));
        T difference[gradient_variables];
        for (int v = 0; v < gradient_variables; ++v) {
            difference[v] = T(real(0));
            for (int n = 0; n <= m; ++n) difference[v] = difference[v] + difference_weight(m, n) * w[m - before + n][v];
        }
        const T *below = k[lower - first_middle], *above = k[upper - first_middle];
        auto add = [&](int to, int coefficient, T change) {
            const T flux = real(0.5) * (below[coefficient] + above[coefficient]) * change;
            // Values behind a face are not used, even if they are NaN.
            sum[to] = sum[to] + select(taken > T(real(0)), (scale * difference_weight(m, before)) * flux, T(real(0)));
        };
        T work = T(real(0));
        for (int c = 0; c < 3; ++c) {
            add(c, 0, difference[c]);
            work = work + real(0.5) * (w[lower][c] + w[upper][c]) * difference[c];
        }
        add(3, 0, work);
        add(3, 1, difference[3]);
        for (int n = 0; n < scalar_variables; ++n) add(gas_gradients + n, 2 + n, difference[gas_gradients + n]);
    }
}

// sum: the sum of add_damping over all directions at node p. reach: `ends` of of_row of each node along i, j and k.
template <class T>
HD void sum_of_damping(const_state_pointer q, const work_real *m, const work_real *jacobian, const work_real *reach, long long p,
                       int di, int dj, int dk, stride sv, real inverse_reynolds, T *sum) {
    const long long along[3] = {di, dj, dk};
    constexpr int half = ghost_layers < 4 ? 3 : 4;
    for (int v = 0; v < gradient_variables; ++v) sum[v] = T(real(0));
    for (int d = 0; d < 3; ++d)
        if (along[d] != 0)
            add_damping<half>(q, m + 3 * d * sv, jacobian, load<T>(reach + d * sv + p), p, along[d], sv,
                              inverse_reynolds, sum);
}

VECTOR_KERNEL(viscous_damping, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
              const_state_field<conserved_variables> q, const_work_field<9> m, const_work_field<1> jacobian,
              const_work_field<3> reach, real inverse_reynolds, real strength,
              rate_field<conserved_variables> r) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    T sum[gradient_variables];
    sum_of_damping(q, m, jacobian, reach, p, di, dj, dk, sv, inverse_reynolds, sum);
    for (int v = 0; v < gradient_variables - damped_always; ++v) {
        rate_real *to = r + (v + 1) * sv + p;
        store(to, load<T>(to) - strength * sum[v]);
    }
}

#if HX_TRANSPORTED
// The same for the transported variables of a turbulence model only, which are the variables of r.
VECTOR_KERNEL(transported_damping, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
              const_state_field<conserved_variables> q, const_work_field<9> m, const_work_field<1> jacobian,
              const_work_field<3> reach, real inverse_reynolds, real strength, rate_field<HX_TRANSPORTED> r) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    T sum[gradient_variables];
    sum_of_damping(q, m, jacobian, reach, p, di, dj, dk, sv, inverse_reynolds, sum);
    for (int n = 0; n < HX_TRANSPORTED; ++n) {
        rate_real *to = r + n * sv + p;
        store(to, load<T>(to) - strength * sum[first_transported + n]);
    }
}
#endif
#endif
