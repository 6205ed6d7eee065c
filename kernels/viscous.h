// Viscous terms, all derivatives by the central difference `nodal_derivative` (eqs 5 and 6 with the signs of tau and q
// corrected: energy flux u_i tau_ij - q_j, tau and q scaled by mu/Re_c):
//   viscous_primitives -> (ghosts) -> viscous_flux -> (ghosts) -> viscous_difference
// Only the normal flux of a direction is needed in its ghosts, so no edge or corner is ever exchanged.
#include "central_difference.h"

// (u, v, w, T) and the scalars of a node with the state q
template <class T> HD void primitives_of_state(const T *q, T *w) {
    Primitive<T> s = primitive(q);
    w[0] = s.u, w[1] = s.v, w[2] = s.w, w[3] = gas_gamma * s.p / s.rho;
    for (int n = 0; n < scalar_variables; ++n) w[gas_gradients + n] = q[gas_variables + n] / s.rho;
}

// The same for node p
template <class T> HD void node_primitives(const_state_pointer q, long long p, stride sv, T *w) {
    T state[conserved_variables];
    for (int v = 0; v < conserved_variables; ++v) state[v] = load<T>(q + v * sv + p);
    primitives_of_state(state, w);
}

// The same for every padded node
VECTOR_KERNEL(viscous_primitives, int i, int j, int k, int o, int sj, int sk, stride sv,
              const_state_field<conserved_variables> q, work_field<gradient_variables> w) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    T own[gradient_variables];
    node_primitives(q, p, sv, own);
    for (int v = 0; v < gradient_variables; ++v) store(w + v * sv + p, own[v]);
}

// The most inner nodes from which ghosts are extrapolated
constexpr int extrapolated_from = 5;

// The ghosts -1, -2, ... on a polynomial of degree 1 to 4 through the inner nodes at(0), at(1), ... (Newton's form)
template <class At> HD void extrapolated(const At &at, int degree, real *ghosts) {
    const real a = at(0), b = at(1), c = at(2), d = at(3);
    const real first = b - a, second = degree > 1 ? a - real(2) * b + c : real(0),
               third = degree > 2 ? d - real(3) * c + real(3) * b - a : real(0),
               fourth = degree > 3 ? at(4) - real(4) * d + real(6) * c - real(4) * b + a : real(0);
    for (int l = 1; l <= viscous_reach; ++l)
        ghosts[l - 1] = a - real(l) * first + real(l * (l + 1) / 2) * second - real(l * (l + 1) * (l + 2) / 6) * third
                        + real(l * (l + 1) * (l + 2) * (l + 3) / 24) * fourth;
}

// Ghosts of a physical face by polynomial extrapolation of degree 1 to 4 from its inner nodes, which turns the central
// operator into a one-sided one there. It serves the primitives (w) and the normal viscous flux.
KERNEL(viscous_extrapolate, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, int variables, int degree,
       work_field<1> w) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    for (int v = 0; v < variables; ++v) {
        work_real *f = w + v * sv + p;
        real ghosts[viscous_reach];
        extrapolated([&](int l) { return real(f[l * sn]); }, degree, ghosts);
        for (int l = 0; l < viscous_reach; ++l) f[-(l + 1) * sn] = ghosts[l];
    }
}

#ifdef HX_VISCOUS
#include "schmidt.h"

constexpr real viscous_heat = real(1.0 / (HX_PRANDTL * (HX_GAMMA - 1.0)));

// The field `eddies` holds the eddy viscosity over mu_ref. coefficient: that of the model at the node, if it has one.
// The width of the filter is the cube root of the cell's volume 1/J, in two dimensions the square root of its area.
// Without a model the eddy viscosity is 0, and nothing is stored.
#if HX_EDDY_FIELDS
#if HX_TRANSPORTED
// Derivative of the pressure in index space along stride sd. Behind walls the pressure is even, in accordance with its
// normal derivative.
template <class T> HD T pressure_rate(const_state_pointer q, long long p, long long sd, stride sv) {
    return nodal_derivative<T>([&](int s) {
        T state[gas_variables];
        for (int v = 0; v < gas_variables; ++v) state[v] = load<T>(q + v * sv + (p + s * sd));
        return primitive(state).p;
    });
}

// The number of the first variable that the model transports, among the variables of gradients and among the scalars
constexpr int first_transported = gradient_variables - HX_TRANSPORTED;
constexpr int transported_scalar = scalar_variables - HX_TRANSPORTED;

// The input of the model at a node with primitives `own`
template <class T>
HD TransportedNode<T> transported_node(const T *own, T (*gradient)[3], T rho, T distance, real inverse_reynolds) {
    TransportedNode<T> node;
    const T a = gradient[2][1] - gradient[1][2], b = gradient[0][2] - gradient[2][0], c = gradient[1][0] - gradient[0][1];
    for (int n = 0; n < HX_TRANSPORTED; ++n) node.s[n] = own[first_transported + n];
    node.rho = rho, node.mu = viscosity(own[3]), node.distance = distance;
    node.rotation = square_root(a * a + b * b + c * c), node.strain = square_root(real(2) * strain_square(gradient));
    node.inverse_reynolds = inverse_reynolds;
    return node;
}
// Stores mu_t over mu_ref, and the sources of the variables of the model, with stride sv: all that changes rho s
// besides convection and diffusion. slope: gradients of these variables, limited as the model asks; density_rate: grad
// rho.
template <class T>
HD void keep_transported(const TransportedNode<T> &node, T (*slope)[3], const T *density_rate, stride sv,
                         work_real *eddies, work_real *source) {
    T found[HX_TRANSPORTED];
    node.sources(slope, density_rate, found);
    store(eddies, node.eddies());
    for (int n = 0; n < HX_TRANSPORTED; ++n) store(source + n * sv, found[n]);
}
#endif
constexpr real eddy_heat = real(1.0 / (HX_EDDY_PRANDTL * (HX_GAMMA - 1.0)));
constexpr real over_eddy_schmidt = real(1.0 / HX_EDDY_SCHMIDT);

#if !HX_TRANSPORTED
template <class T>
HD T keep_eddies(T (*gradient)[3], T rho, T jacobian, int directions, real inverse_reynolds,
                 const work_real *coefficient, work_real *eddies) {
    const T width_square = power(jacobian, real(-2) / real(directions));
    T ratio = eddy_viscosity(gradient, rho, width_square) * (real(1) / inverse_reynolds);
#if HX_EDDY_COEFFICIENTS
    ratio = ratio * load<T>(coefficient);
#else
    (void)coefficient;
#endif
    store(eddies, ratio);
    return ratio;
}
#endif
#endif
HD int directions_of(int di, int dj, int dk) { return (di != 0) + (dj != 0) + (dk != 0); }

// At a node with primitives `own` and their Cartesian gradients: the stresses, the energy flux u_i tau_ij - q_j (ex,
// ey, ez) and the viscosity mu.
template <class T> struct ViscousStress {
    T xx, yy, zz, xy, xz, yz, ex, ey, ez, mu;
#if HX_EDDY_FIELDS
    T laminar, eddy;  // their sum is mu
#if HX_TRANSPORTED
    T transported[HX_TRANSPORTED];  // diffusivities of the variables of the model
    HD T diffusivity(int n) const {
        return n < transported_scalar ? laminar * over_schmidt(n) + eddy * over_eddy_schmidt
                                      : transported[n - transported_scalar];
    }
    HD void spread(const TransportedNode<T> &node) {
        for (int n = 0; n < HX_TRANSPORTED; ++n) transported[n] = node.diffusing(n) * node.inverse_reynolds;
    }
#else
    HD T diffusivity(int n) const { return laminar * over_schmidt(n) + eddy * over_eddy_schmidt; }
#endif
    HD T conductivity() const { return laminar * viscous_heat + eddy * eddy_heat; }
#else
    HD T diffusivity(int n) const { return mu * over_schmidt(n); }
    HD T conductivity() const { return mu * viscous_heat; }
#endif
};

// eddies: the eddy viscosity over mu_ref, which has no effect without a model
template <class T>
HD ViscousStress<T> viscous_stress(const T *own, T (*gradient)[3], T eddies, real inverse_reynolds) {
    ViscousStress<T> s;
    s.mu = viscosity(own[3]) * inverse_reynolds;
#if HX_EDDY_FIELDS
    s.laminar = s.mu, s.eddy = eddies * inverse_reynolds;
    s.mu = s.laminar + s.eddy;
#else
    (void)eddies;
#endif
    T bulk = real(2.0 / 3) * (gradient[0][0] + gradient[1][1] + gradient[2][2]);
    s.xx = s.mu * (real(2) * gradient[0][0] - bulk), s.yy = s.mu * (real(2) * gradient[1][1] - bulk),
    s.zz = s.mu * (real(2) * gradient[2][2] - bulk);
    s.xy = s.mu * (gradient[0][1] + gradient[1][0]), s.xz = s.mu * (gradient[0][2] + gradient[2][0]),
    s.yz = s.mu * (gradient[1][2] + gradient[2][1]);
    T heat = s.conductivity();
    s.ex = own[0] * s.xx + own[1] * s.xy + own[2] * s.xz + heat * gradient[3][0];
    s.ey = own[0] * s.xy + own[1] * s.yy + own[2] * s.yz + heat * gradient[3][1];
    s.ez = own[0] * s.xz + own[1] * s.yz + own[2] * s.zz + heat * gradient[3][2];
    return s;
}

// The viscous fluxes through the area vector a, written to gradient_variables places with stride sv.
template <class T>
HD void store_viscous_flux(const T *a, const ViscousStress<T> &s, T (*gradient)[3], stride sv, work_real *target) {
    store(target, a[0] * s.xx + a[1] * s.xy + a[2] * s.xz);
    store(target + sv, a[0] * s.xy + a[1] * s.yy + a[2] * s.yz);
    store(target + 2 * sv, a[0] * s.xz + a[1] * s.yz + a[2] * s.zz);
    store(target + 3 * sv, a[0] * s.ex + a[1] * s.ey + a[2] * s.ez);
    for (int v = gas_gradients; v < gradient_variables; ++v)
        store(target + v * sv, s.diffusivity(v - gas_gradients)
                                        * (a[0] * gradient[v][0] + a[1] * gradient[v][1] + a[2] * gradient[v][2]));
}

// Curvilinear viscous fluxes of interior nodes: flux[gradient_variables d + c], direction d, c = momentum x, y, z,
// energy and the scalars. di, dj, dk: strides of the derivatives, 0 for a direction with one node (its derivative is
// then 0).
VECTOR_KERNEL(viscous_flux, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
              const_work_field<gradient_variables> w, const_work_field<9> m, const_work_field<1> jacobian,
              real inverse_reynolds, const_state_field<HX_EDDY_FIELDS * conserved_variables> q,
              const_work_field<HX_EDDY_COEFFICIENTS> coefficient, const_work_field<HX_WALL_DISTANCE> wall_distance,
              const_work_field<HX_SPACINGS> grid_spacings, optional<work_field<HX_DETACHED>> length_ratio,
              optional<work_field<HX_DETACHED>> resolved_share, work_field<HX_TRANSPORTED> transported_source,
              work_field<HX_EDDY_FIELDS> eddies,
              work_field<3 * gradient_variables> flux) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    // Prefetches the next row on a CPU, whose hardware does not prefetch so many arrays.
    for (int v = 0; v < 9; ++v) expect_read<T>(m + v * sv + p + sj);
    for (int v = 0; v < 3 * gradient_variables; ++v) expect_write<T>(flux + v * sv + p + sj);
    T area[3][3], gradient[gradient_variables][3], own[gradient_variables];
    for (int d = 0; d < 3; ++d)
        for (int c = 0; c < 3; ++c) area[d][c] = load<T>(m + (3 * d + c) * sv + p);
    T scale = load<T>(jacobian + p);
    for (int v = 0; v < gradient_variables; ++v) {
        const work_real *field = w + v * sv + p;
        expect_read<T>(field + 4 * (long long)dk);
        own[v] = load<T>(field);
        T xi = nodal_derivative<T>([&](int s) { return load<T>(field + s * di); }) * scale;
        T eta = nodal_derivative<T>([&](int s) { return load<T>(field + (long long)s * dj); }) * scale;
        T zeta = nodal_derivative<T>([&](int s) { return load<T>(field + (long long)s * dk); }) * scale;
        for (int c = 0; c < 3; ++c) gradient[v][c] = area[0][c] * xi + area[1][c] * eta + area[2][c] * zeta;
    }
#if HX_TRANSPORTED
    const T rho = load<T>(q + p), over_p = gas_gamma / (rho * own[3]);
    const T xi = pressure_rate<T>(q, p, (long long)di, sv) * scale, eta = pressure_rate<T>(q, p, (long long)dj, sv) * scale,
            zeta = pressure_rate<T>(q, p, (long long)dk, sv) * scale;
    T density_rate[3];  // of rho = gamma p/T, by the gradient of T that conditions at walls determine
    for (int c = 0; c < 3; ++c) {
        const T of_pressure = area[0][c] * xi + area[1][c] * eta + area[2][c] * zeta;
        density_rate[c] = rho * (of_pressure * over_p - gradient[3][c] / own[3]);
    }
    TransportedNode<T> node = transported_node(own, gradient, rho, load<T>(wall_distance + p), inverse_reynolds);
#if HX_SPACINGS
    take_length(node, gradient, grid_spacings + p, sv, length_ratio ? length_ratio + p : nullptr,
                         resolved_share ? resolved_share + p : nullptr);
#endif
    T slope[HX_TRANSPORTED][3];
    for (int n = 0; n < HX_TRANSPORTED; ++n) {
        for (int c = 0; c < 3; ++c) slope[n][c] = gradient[first_transported + n][c];
        if constexpr (transported_is_limited) {
            const work_real *field = w + (first_transported + n) * sv + p;
            T change[3];
            for (int d = 0; d < 3; ++d) {
                const long long apart = d == 0 ? di : d == 1 ? dj : dk;
                const T found = nodal_derivative<T>([&](int s) { return load<T>(field + s * apart); });
                node.see_change(n, found);
                change[d] = limited_change(n, found, node.s[n]) * scale;
            }
            for (int c = 0; c < 3; ++c)
                slope[n][c] = area[0][c] * change[0] + area[1][c] * change[1] + area[2][c] * change[2];
        }
    }
    node.know(slope);
    keep_transported(node, slope, density_rate, sv, eddies + p, transported_source + p);
    const T eddy = node.eddies();
    (void)coefficient;
#elif HX_EDDY_FIELDS
    const T eddy = keep_eddies(gradient, load<T>(q + p), scale, directions_of(di, dj, dk), inverse_reynolds,
                               coefficient + p, eddies + p);
#else
    const T eddy = T(real(0));
    (void)q, (void)coefficient, (void)eddies;
#endif
    ViscousStress<T> stress = viscous_stress(own, gradient, eddy, inverse_reynolds);
#if HX_TRANSPORTED
    stress.spread(node);
#else
    (void)wall_distance, (void)transported_source;
#endif
    (void)grid_spacings, (void)length_ratio, (void)resolved_share;
    for (int d = 0; d < 3; ++d)
        store_viscous_flux(area[d], stress, gradient, sv, flux + gradient_variables * d * sv + p);
}

// `sum` plus the derivatives of the viscous flux over the directions with a stride. f: the component of the flux along
// i.
template <class T> HD T with_viscous_rates(T sum, const work_real *f, int di, int dj, int dk, stride sv) {
    const work_real *g = f + gradient_variables * sv, *h = g + gradient_variables * sv;
    if (di != 0) sum = sum + nodal_derivative<T>([&](int s) { return load<T>(f + s * di); });
    if (dj != 0) sum = sum + nodal_derivative<T>([&](int s) { return load<T>(g + (long long)s * dj); });
    if (dk != 0) sum = sum + nodal_derivative<T>([&](int s) { return load<T>(h + (long long)s * dk); });
    return sum;
}

// r += the sum over the directions with a stride of the derivatives of the viscous flux, in all variables but the
// density
VECTOR_KERNEL(viscous_difference, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
              const_work_field<3 * gradient_variables> flux, rate_field<conserved_variables> r) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    for (int c = 0; c < gradient_variables; ++c) {
        rate_real *to = r + (c + 1) * sv + p;
        store(to, with_viscous_rates(load<T>(to), flux + c * sv + p, di, dj, dk, sv));
    }
}

// Ghosts of the normal viscous flux behind a plane of symmetry: normal momentum is even, the rest odd.
KERNEL(viscous_reflect, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, const_work_field<3> m,
       work_field<gas_gradients> flux) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    real n[3] = {m[p], m[sv + p], m[2 * sv + p]};
    const real area2 = n[0] * n[0] + n[1] * n[1] + n[2] * n[2];
    for (int l = 1; l <= ghost_layers; ++l) {
        const long long from = p + (long long)l * sn, to = p - (long long)l * sn;
        const real normal =
            real(2) * (n[0] * flux[from] + n[1] * flux[sv + from] + n[2] * flux[2 * sv + from]) / area2;
        for (int c = 0; c < 3; ++c) flux[c * sv + to] = normal * n[c] - flux[c * sv + from];
        flux[3 * sv + to] = -flux[3 * sv + from];
    }
}
#endif
