// The entries of the Jacobian of the right-hand side for the variables s that a turbulence model transports (the
// headers of ../turbulence), the last variables of a node: the flux through a face, and the derivatives of the source
// terms.
#pragma once

#if HX_TRANSPORTED
constexpr int transported_at = block_variables - HX_TRANSPORTED, source_entries = HX_TRANSPORTED * HX_TRANSPORTED;

template <class T, class A> HD TransportedNode<T> transported_of(const T *q, T mu, const TransportedConstants<A> &known) {
    TransportedNode<T> node;
    for (int n = 0; n < HX_TRANSPORTED; ++n) node.s[n] = q[transported_at + n] / q[0];
    node.rho = q[0], node.mu = mu, node.distance = node.rotation = node.strain = T(real(0));
    node.inverse_reynolds = real(0);
    node.take(known);
    return node;
}

// Sets the fluxes of rho s between two nodes of viscosities mul and mur: the mass flux f[0] carries the s of its upwind
// node, and the diffusion is thin-layer, as in face_flux. Returns the eddy viscosity of the face. Diffusion and eddy
// viscosity are multiplied by `scale`.
template <class T, class A>
HD T transported_face(const T *ql, const T *qr, T mul, T mur, const A *m, T scale, const TransportedConstants<A> &known, T *f) {
    const TransportedNode<T> l = transported_of(ql, mul, known), r = transported_of(qr, mur, known);
    const A area2 = m[0] * m[0] + m[1] * m[1] + m[2] * m[2];
    for (int n = 0; n < HX_TRANSPORTED; ++n) {
        const T spread = real(0.5) * (l.diffusing(n) + r.diffusing(n)) * area2 * scale;
        f[transported_at + n] = f[0] * select(f[0] > T(real(0)), l.s[n], r.s[n]) - spread * (r.s[n] - l.s[n]);
    }
    return real(0.5) * (l.eddies() + r.eddies()) * scale;
}

// Number of derivatives: by the variables of the model at a node, and by their differences along the three directions
constexpr int source_variables = 4 * HX_TRANSPORTED;
typedef dual<source_variables> source_dual;

// Derivatives of the sources of rho s at a node, row by row. The neighbours along direction d are at p +- apart[d].
// own: by rho s of the node; only negative entries are kept on the diagonal, so that the diagonal of the matrix only
// grows. along[2 d], along[2 d + 1]: by rho s of the two neighbours. Gradients are second-order differences. In the row
// of the same variable they act as a convection, which is taken upwind: the central derivative of |grad s|^2 exceeds
// that of the diffusion at the front of a turbulent layer, where s falls to 0 within a cell, and sweeps diverged there.
// The derivatives do not include changes of the velocity, of the density, of the conversion of the diffusion to the
// model's form, of the length of a detached-eddy model, and of the quantities that the model takes as constants, which
// are returned.
HD TransportedConstants<> transported_derivatives(const real *q, const real *m, const real *jacobian, long long p,
                                                  long long sv, const int *apart, const work_real *distance,
                                                  const work_real *spacings, real inverse_reynolds, real *own,
                                                  real along[6][source_entries]) {
    constexpr int count = HX_TRANSPORTED;
    real gradient[3][3] = {{real(0)}}, slope[count][3] = {{real(0)}}, area[3][3];
    TransportedNode<real> plain;
    source_dual own_s[count], slopes[count][3], none[3], found[count];
    const real volume = jacobian[p];
    for (int c = 0; c < 3; ++c) {
        none[c] = source_dual(real(0));
        for (int n = 0; n < count; ++n) slopes[n][c] = none[c];
    }
    for (int n = 0; n < count; ++n) {
        own_s[n] = source_dual(q[(transported_at + n) * sv + p] / q[p]);
        own_s[n].slope[n] = real(1);
    }
    for (int d = 0; d < 3; ++d) {
        if (apart[d] == 0) continue;
        const long long before = p - apart[d], behind = p + apart[d];
        for (int c = 0; c < 3; ++c) area[d][c] = m[(3 * d + c) * sv + p] * volume;
        for (int v = 0; v < 3; ++v) {
            const real change = q[(v + 1) * sv + behind] / q[behind] - q[(v + 1) * sv + before] / q[before];
            for (int c = 0; c < 3; ++c) gradient[v][c] += real(0.5) * area[d][c] * change;
        }
        for (int n = 0; n < count; ++n) {
            const long long s = (long long)(transported_at + n) * sv;
            source_dual change(real(0.5) * (q[s + behind] / q[behind] - q[s + before] / q[before]));
            change.slope[(d + 1) * count + n] = real(0.5);
            plain.see_change(n, change.value);
            const source_dual limited = limited_change(n, change, own_s[n]);
            for (int c = 0; c < 3; ++c) {
                slope[n][c] += area[d][c] * limited.value;
                slopes[n][c] += area[d][c] * limited;
            }
        }
    }
    real state[block_variables];
    for (int v = 0; v < block_variables; ++v) state[v] = q[v * sv + p];
    const Primitive<real> here = primitive(state);
    const real rho = state[0], a = gradient[2][1] - gradient[1][2], b = gradient[0][2] - gradient[2][0],
               c = gradient[1][0] - gradient[0][1];
    for (int n = 0; n < count; ++n) plain.s[n] = own_s[n].value;
    plain.rho = rho, plain.mu = viscosity(gas_gamma * here.p / rho);
    plain.distance = load<real>(distance + p), plain.inverse_reynolds = inverse_reynolds;
    plain.rotation = square_root(a * a + b * b + c * c), plain.strain = square_root(real(2) * strain_square(gradient));
#if HX_SPACINGS
    take_length(plain, gradient, spacings + p, sv, nullptr, nullptr);
#else
    (void)spacings;
#endif
    plain.know(slope);
    const TransportedConstants<> known = plain.constants();
    TransportedNode<source_dual> node;
    for (int n = 0; n < count; ++n) node.s[n] = own_s[n];
    node.rho = source_dual(rho), node.mu = source_dual(plain.mu), node.distance = source_dual(plain.distance);
    node.rotation = source_dual(plain.rotation), node.strain = source_dual(plain.strain);
    node.inverse_reynolds = inverse_reynolds;
    node.take(known);
    node.sources(slopes, none, found);
    for (int r = 0; r < count; ++r)
        for (int v = 0; v < count; ++v) {
            const real change = found[r].slope[v] / rho;
            own[r * count + v] = r == v ? smaller(change, real(0)) : change;
            for (int d = 0; d < 3; ++d) {
                const real by_difference = apart[d] ? real(found[r].slope[(d + 1) * count + v]) : real(0);
                const real size = r == v ? absolute(by_difference) : real(0);
                own[r * count + v] -= real(2) * size / rho;
                along[2 * d][r * count + v] = apart[d] ? (size - by_difference) / q[p - apart[d]] : real(0);
                along[2 * d + 1][r * count + v] = apart[d] ? (size + by_difference) / q[p + apart[d]] : real(0);
            }
        }
    return known;
}

// block = block - share (derivatives of the sources)
template <class T> HD void take_transported(const T *derivatives, T share, T *block) {
    for (int r = 0; r < HX_TRANSPORTED; ++r)
        for (int v = 0; v < HX_TRANSPORTED; ++v)
            block[(transported_at + r) * block_variables + transported_at + v] -= share * derivatives[r * HX_TRANSPORTED + v];
}
#else
template <class T = real> struct TransportedConstants {};
#endif
