// The entropic pressure Sigma of the regularised inviscid terms (regularised.h), from the elliptic equation
//     Sigma/rho - alpha div(grad Sigma / rho) = alpha (tr((grad u)^2) + (div u)^2)
// in index space: alpha is in cells squared, so that a shock is as many cells wide on any grid. D_ab is the difference
// from node to node along b of the velocity component normal to the grid surfaces of a; in cells of width h it is h
// grad u. With differences over the cells between a node i and its neighbours j, the equation is
//     Sigma_i + alpha sum over j of 2 rho_i/(rho_i + rho_j) (Sigma_i - Sigma_j) = alpha rho_i (tr(D^2) + (tr D)^2)
// It is solved by some sweeps of Jacobi from the result of the last stage. In a uniform flow D and Sigma are 0.
// di, dj, dk: strides along i, j and k, 0 in a direction with one node.
//
// With a compressive stress the source is that of the compression alone, and the flux takes Pi in place of Sigma. S is
// the symmetric part of grad u in cells of mean width h, S- its negative part, lambda < 0 the least eigenvalue, n the
// normals of the grid surfaces, w their distances over h and a the sound speed:
//     source = alpha rho min(1, max(0, -tr S)/|lambda|) (tr(D^2) + (tr D)^2),    D = S- B,    B = sum of w n n^T
//     Pi = min(Sigma, L) M,    M = S-/lambda,    L = rho c (a + 2 alpha c),    c = |lambda| tr D/tr S-
// L exceeds the source of a plane compression of this strength, which is c in cells along it. Where the compression is
// weaker, as behind a shock into which Sigma has spread, L bounds the viscosity Pi/S. Without this bound the viscosity
// could be too large for any time step.
#include "../scheme.h"

#if HX_REGULARISED
// change[d][c]: difference of velocity component c from the node before p to the node behind it along direction d;
// normal[d]: area vectors at p; size[d]: their lengths. In a direction with one node they are 0, 0 and 1.
template <class T, class Q, class M>
HD void entropic_differences(const Q &q, const M &m, long long p, const long long *steps, stride sv, T (*change)[3],
                             T (*normal)[3], T *size) {
    for (int d = 0; d < 3; ++d) {
        size[d] = T(real(1));
        for (int c = 0; c < 3; ++c) change[d][c] = normal[d][c] = T(real(0));
        if (steps[d] == 0) continue;
        // One division serves both quotients.
        const T r = load<T>(q + p + steps[d]), l = load<T>(q + (p - steps[d])), over = reciprocal(l * r);
        const T ahead = over * l, behind = over * r;
        for (int c = 0; c < 3; ++c) {
            const auto momentum = q + (c + 1) * sv + p;
            change[d][c] = load<T>(momentum + steps[d]) * ahead - load<T>(momentum + -steps[d]) * behind;
            normal[d][c] = load<T>(m + (3 * d + c) * (long long)sv + p);
        }
        const T square = normal[d][0] * normal[d][0] + normal[d][1] * normal[d][1] + normal[d][2] * normal[d][2];
        size[d] = square_root(larger(square, T(real(1e-30))));
    }
}

// The initial value of the sweeps, from the value `last` of the last stage
template <class T> HD T entropic_beginning(T last) { return select(absolute(last) < T(real(1e30)), last, T(real(0))); }

// The right-hand side, and in `start` the initial values of the sweeps: those of `before`, or 0 where a failed step has
// left a NaN or a number above 1e30.
VECTOR_KERNEL(entropic_source, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
              const_state_field<gas_variables> q, const_work_field<9> m, real alpha, const_work_field<1> before,
              work_field<1> source, work_field<1> start) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    const long long steps[3] = {di, dj, dk};
    // prefetch by hand: the hardware does not prefetch rows of so many arrays
    for (int v = 0; v < 9; ++v) expect_read<T>(m + v * (long long)sv + p + sj);
    for (int v = 0; v < 4; ++v) expect_read<T>(address(q + v * sv + p + dk + sj));
    expect_write<T>(source + p + sj);
    T change[3][3], normal[3][3], size[3];  // of component c along direction d
    entropic_differences(q, m, p, steps, sv, change, normal, size);
    const T over = real(0.5) * reciprocal(size[0] * size[1] * size[2]);
    const T scale[3] = {over * size[1] * size[2], over * size[2] * size[0], over * size[0] * size[1]};
    T trace = T(real(0)), squares = T(real(0));
    T rate[3][3];  // D_ab
    for (int a = 0; a < 3; ++a)
        for (int b = 0; b < 3; ++b)
            rate[a][b] = scale[a] * (normal[a][0] * change[b][0] + normal[a][1] * change[b][1] + normal[a][2] * change[b][2]);
    for (int a = 0; a < 3; ++a) {
        trace = trace + rate[a][a];
        for (int b = 0; b < 3; ++b) squares = squares + rate[a][b] * rate[b][a];
    }
    store(source + p, alpha * load<T>(q + p) * (squares + trace * trace));
    store(start + p, entropic_beginning(load<T>(before + p)));
}

#if HX_COMPRESSIVE
// As entropic_source; stress: L M; limit: L.
VECTOR_KERNEL(compressive_entropic_source, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
              const_state_field<gas_variables> q, const_work_field<9> m, real alpha, const_work_field<1> before,
              work_field<1> source, work_field<1> start, work_field<tensor_entries> stress, work_field<1> limit) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    const long long steps[3] = {di, dj, dk};
    T change[3][3], normal[3][3], size[3], s[tensor_entries], width[tensor_entries], part[tensor_entries];
    entropic_differences(q, m, p, steps, sv, change, normal, size);
    T total = T(real(0)), count = T(real(0));
    for (int d = 0; d < 3; ++d)
        if (steps[d] != 0) total = total + size[d], count = count + real(1);
    // S in cells of mean width, and B over this width
    const T mean = total * reciprocal(count), scale = real(0.25) * reciprocal(mean);
    for (int n = 0; n < tensor_entries; ++n) s[n] = width[n] = T(real(0));
    for (int d = 0; d < 3; ++d) {
        if (steps[d] == 0) continue;
        const T cube = mean * reciprocal(size[d] * size[d] * size[d]);
        for (int a = 0; a < 3; ++a)
            for (int b = a; b < 3; ++b) {
                const int n = tensor_entry(a, b);
                s[n] = s[n] + scale * (normal[d][a] * change[d][b] + normal[d][b] * change[d][a]);
                width[n] = width[n] + cube * normal[d][a] * normal[d][b];
            }
    }
    const T strength = larger(-compressive_part(s, part), T(real(0)));
    const T inward = larger(-(s[0] + s[1] + s[2]), T(real(0)));  // 0 without compression of volume
    const T gate = smaller(inward * reciprocal(larger(strength, T(real(1e-30)))), T(real(1)));
    T rate[3][3], trace = T(real(0)), squares = T(real(0));  // D
    for (int a = 0; a < 3; ++a)
        for (int b = 0; b < 3; ++b) {
            rate[a][b] = T(real(0));
            for (int c = 0; c < 3; ++c) rate[a][b] = rate[a][b] + part[tensor_entry(a, c)] * width[tensor_entry(c, b)];
        }
    for (int a = 0; a < 3; ++a) {
        trace = trace + rate[a][a];
        for (int b = 0; b < 3; ++b) squares = squares + rate[a][b] * rate[b][a];
    }
    T state[gas_variables];
    for (int v = 0; v < gas_variables; ++v) state[v] = load<T>(q + v * sv + p);
    const Primitive<T> at = primitive(state);
    const T sum = smaller(part[0] + part[1] + part[2], T(real(-1e-30)));
    const T cell = smaller(trace * reciprocal(sum), width[0] + width[1] + width[2]);  // c/|lambda|
    const T sound = square_root(absolute(gas_gamma * at.p * at.volume));
    const T viscosity = at.rho * cell * (sound + real(2) * alpha * cell * strength);
    store(source + p, alpha * at.rho * gate * (squares + trace * trace));
    store(start + p, entropic_beginning(load<T>(before + p)));
    store(limit + p, viscosity * strength);
    for (int n = 0; n < tensor_entries; ++n) store(stress + n * (long long)sv + p, -viscosity * part[n]);
}

// Ghosts of a stress behind a slip wall or a plane of symmetry: the mirror image of the stress inside, about the normal
// at the node on the face.
KERNEL(reflect_entropic_stress, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, const_work_field<3> m,
       work_field<tensor_entries> stress) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    const real n[3] = {m[p], m[sv + p], m[2 * sv + p]};
    const real over = real(2) / (n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
    for (int l = 1; l <= ghost_layers; ++l) {
        const work_real *inside = stress + p + (long long)l * sn;
        real normal[3], twice = real(0);  // S n, and n.S n
        for (int a = 0; a < 3; ++a) {
            normal[a] = real(0);
            for (int b = 0; b < 3; ++b) normal[a] += inside[tensor_entry(a, b) * sv] * n[b];
            twice += normal[a] * n[a];
        }
        for (int a = 0; a < 3; ++a)
            for (int b = a; b < 3; ++b)
                stress[tensor_entry(a, b) * sv + p - (long long)l * sn] =
                    work_real(inside[tensor_entry(a, b) * sv] - over * (n[a] * normal[b] + normal[a] * n[b]) +
                              over * over * twice * n[a] * n[b]);
    }
}
#endif

// One sweep, from `before` into `after`. stress, limit: given in the last sweep of a compressive stress; L is in
// `limit`, and `stress` holds L M, which becomes Pi.
VECTOR_KERNEL(entropic_sweep, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
              const_state_field<1> q, real alpha, const_work_field<1> source, const_work_field<1> before,
              work_field<1> after, optional<work_field<tensor_entries>> stress,
              optional<const_work_field<1>> limit) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    const long long steps[3] = {di, dj, dk};
    const T rho = load<T>(q + p), twice = real(2) * alpha * rho;
    T sum = load<T>(source + p), weight = T(real(1));
    for (int d = 0; d < 3; ++d) {
        if (steps[d] == 0) continue;
        // both quotients by one division
        const T l = rho + load<T>(q + (p - steps[d])), r = rho + load<T>(q + p + steps[d]), over = twice * reciprocal(l * r);
        const T behind = over * r, ahead = over * l;
        sum = sum + behind * load<T>(before + p - steps[d]) + ahead * load<T>(before + p + steps[d]);
        weight = weight + behind + ahead;
    }
    const T found = sum * reciprocal(weight);
    store(after + p, found);
#if HX_COMPRESSIVE
    if (!stress) return;
    const T share = smaller(found * reciprocal(larger(load<T>(limit + p), T(real(1e-30)))), T(real(1)));
    for (int n = 0; n < tensor_entries; ++n) {
        const auto entry = stress + n * (long long)sv + p;
        store(entry, share * load<T>(entry));
    }
#else
    (void)stress, (void)limit;
#endif
}
#endif
