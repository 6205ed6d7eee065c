// The entries of the Jacobian of the right-hand side for the variable s of a Spalart-Allmaras model (../transported.h),
// the last variable of a node: the flux through a face, and the derivatives of the source terms.
#pragma once

#if HX_TRANSPORTED
constexpr int transported_at = block_variables - 1;

template <class T> HD TransportedNode<T> transported_of(const T *q, T mu) {
    TransportedNode<T> node;
    node.s = q[transported_at] / q[0], node.rho = q[0], node.mu = mu;
    node.distance = node.rotation = T(real(0)), node.inverse_reynolds = real(0);
    return node;
}

// Adds the flux of rho s between two nodes of viscosities mul and mur: the mass flux f[0] takes s of the node that it
// leaves, and s diffuses thin layer, as in face_flux. Returns the eddy viscosity of the face; all times `scale`.
template <class T>
HD T transported_face(const T *ql, const T *qr, T mul, T mur, const real *m, T scale, T *f) {
    const TransportedNode<T> l = transported_of(ql, mul), r = transported_of(qr, mur);
    const real area2 = m[0] * m[0] + m[1] * m[1] + m[2] * m[2];
    const T spread = real(0.5) * (l.diffusing() + r.diffusing()) * (sa_over_sigma * area2) * scale;
    f[transported_at] = f[0] * select(f[0] > T(real(0)), l.s, r.s) - spread * (r.s - l.s);
    return real(0.5) * (l.eddies() + r.eddies()) * scale;
}

// Of the rate of rho s of a node, whose states along direction d are at p +- apart[d]: the derivative of production and
// destruction by rho s of the node, where it is negative, so that the diagonal only grows, and to along[2 d], along[2 d
// + 1] those of the gradient's square by rho s of the neighbours. Squares are those of thin layers. The vorticity is taken
// by second-order differences, and what it changes is left out; so is what changes the length of a detached-eddy model.
HD real transported_derivative(const real *q, const real *m, const real *jacobian, long long p, long long sv,
                               const int *apart, const work_real *distance, const work_real *spacings,
                               real inverse_reynolds, real *along) {
    real gradient[3][3] = {{real(0)}};
    const real rho = q[p], volume = jacobian[p];
    for (int d = 0; d < 3; ++d) {
        along[2 * d] = along[2 * d + 1] = real(0);
        if (apart[d] == 0) continue;
        const long long before = p - apart[d], behind = p + apart[d];
        real area[3], area2 = real(0);
        for (int c = 0; c < 3; ++c) area[c] = m[(3 * d + c) * sv + p] * volume, area2 += area[c] * area[c];
        for (int v = 0; v < 3; ++v) {
            const real change = q[(v + 1) * sv + behind] / q[behind] - q[(v + 1) * sv + before] / q[before];
            for (int c = 0; c < 3; ++c) gradient[v][c] += real(0.5) * area[c] * change;
        }
        const long long s = (long long)transported_at * sv;
        const real jump = q[s + behind] / q[behind] - q[s + before] / q[before];
        const real share = real(0.5) * sa_over_sigma * sa_cb2 * inverse_reynolds * rho * area2 * jump;
        along[2 * d] = -share / q[before], along[2 * d + 1] = share / q[behind];
    }
    const real a = gradient[2][1] - gradient[1][2], b = gradient[0][2] - gradient[2][0],
               c = gradient[1][0] - gradient[0][1];
    real state[block_variables];
    for (int v = 0; v < block_variables; ++v) state[v] = q[v * sv + p];
    const Primitive<real> found = primitive(state);
    TransportedNode<dual<1>> node;
    node.s = dual<1>(state[transported_at] / rho), node.s.slope[0] = real(1) / rho;
    TransportedNode<real> plain = transported_of<real>(state, viscosity(gas_gamma * found.p / rho));
    plain.distance = load<real>(distance + p), plain.inverse_reynolds = inverse_reynolds;
#if HX_SPACINGS
    take_length(plain, gradient, spacings + p, sv, nullptr, nullptr);
#else
    (void)spacings;
#endif
    node.rho = dual<1>(rho), node.mu = dual<1>(plain.mu), node.distance = dual<1>(plain.distance);
    node.rotation = dual<1>(square_root(a * a + b * b + c * c)), node.inverse_reynolds = inverse_reynolds;
    return smaller(rho * node.source().slope[0], real(0));
}
#endif
