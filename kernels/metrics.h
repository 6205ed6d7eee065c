// Metrics and Jacobian, eqs (7) and (8), in the symmetric conservative form
//   grad(xi)/J: xi_x = ((y_eta z - y z_eta)_zeta - (y_zeta z - y z_zeta)_eta)/2, and cyclic,
// with one central operator D for all derivatives. A uniform flow is kept because metrics and fluxes use the same D,
// and because D_xi D_eta = D_eta D_xi. Coordinates include the ghost layers in every direction (periodic, of a
// neighbour or reflected); a direction with one node is extruded by unit steps.

#include "central_difference.h"

// The derivative of a_p b - a b_p along r; sp, sr: strides along p and r
HD double twist(const double *a, const double *b, long long sp, long long sr) {
    return metric_derivative<double>([&](int r) {
        const double *ar = a + r * sr, *br = b + r * sr;
        double ap = metric_derivative<double>([&](int p) { return ar[p * sp]; });
        double bp = metric_derivative<double>([&](int p) { return br[p * sp]; });
        return ap * br[0] - ar[0] * bp;
    });
}

// The 3 area components of the direction whose cyclic successors have the coordinate strides s1 and s2, written to
// padded arrays. Coordinates are double in every precision of the run, since differences of their products cancel. c,
// (cj, ck): coordinate index of node (0, 0, 0) and strides; (o, sj, sk, sv): the same for the output.
KERNEL(metrics, int i, int j, int k, int c, int cj, int ck, int s1, int s2, const double *x, const double *y,
       const double *z, int o, int sj, int sk, stride sv, work_field<3> m) {
    const long long at = c + i + (long long)j * cj + (long long)k * ck;
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    const double *xyz[5] = {x + at, y + at, z + at, x + at, y + at};
    for (int d = 0; d < 3; ++d) {
        const double *a = xyz[d + 1], *b = xyz[d + 2];
        m[d * sv + p] = real(0.5 * (twist(a, b, s1, s2) - twist(a, b, s2, s1)));
    }
}

// Copies J from the nodes on faces to the ghosts behind them and beyond edges and corners. Node (0, 0, 0) is the first
// ghost.
KERNEL(repeat_faces, int i, int j, int k, int o, int sj, int sk, int nodes_i, int nodes_j, int nodes_k, int halo_i,
       int halo_j, int halo_k, work_field<1> jacobian) {
    const auto inside = [](int n, int nodes, int halo) {
        return n < halo ? halo : n < halo + nodes ? n : halo + nodes - 1;
    };
    const int face[3] = {inside(i, nodes_i, halo_i), inside(j, nodes_j, halo_j), inside(k, nodes_k, halo_k)};
    if (face[0] != i || face[1] != j || face[2] != k)
        jacobian[o + i + (long long)j * sj + (long long)k * sk] =
            jacobian[o + face[0] + (long long)face[1] * sj + (long long)face[2] * sk];
}

// The least J of each column of `nodes` nodes along k, into least[j][i]; -1 where one of them is NaN or infinite.
KERNEL(least_jacobian, int i, int j, int k, int o, int sj, int sk, int nodes, const_work_field<1> jacobian, int width,
       real *least) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    real found = jacobian[p];
    for (int l = 0; l < nodes; ++l) {
        const real value = jacobian[p + (long long)l * sk];
        if (!(value >= found)) found = value;
        if (!(value - value == real(0))) found = real(-1);
    }
    least[(long long)j * width + i] = found;
}

// J = 1/volume, eq. (8). A non-positive volume is stored as it is: the caller refuses the grid.
KERNEL(jacobian, int i, int j, int k, int c, int cj, int ck, const double *x, const double *y, const double *z, int o,
       int sj, int sk, work_field<1> result) {
    const long long at = c + i + (long long)j * cj + (long long)k * ck;
    const double *xyz[3] = {x + at, y + at, z + at};
    const long long stride[3] = {1, cj, ck};
    double g[3][3];
    for (int a = 0; a < 3; ++a)
        for (int d = 0; d < 3; ++d) g[a][d] = metric_derivative<double>([&](int s) { return xyz[a][s * stride[d]]; });
    double volume = g[0][0] * (g[1][1] * g[2][2] - g[1][2] * g[2][1])
                    + g[0][1] * (g[1][2] * g[2][0] - g[1][0] * g[2][2])
                    + g[0][2] * (g[1][0] * g[2][1] - g[1][1] * g[2][0]);
    result[o + i + (long long)j * sj + (long long)k * sk] = real(1.0 / volume);
}
