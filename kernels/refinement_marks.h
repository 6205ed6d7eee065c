// The criteria of [refine], which mark nodes that need a finer level (hiresx/decomposition/flags.py has the same
// criteria for the initial flow).
constexpr int density_curvature = 0, density_gradient = 1;  // the third criterion is the magnitude of vorticity

// Marks of the nodes of a block, without ghosts: 2 where the criterion exceeds `refine`, else 1 where it exceeds
// `coarsen`. di, dj, dk: strides, 0 in a direction with one node. closed: bits 2 d and 2 d + 1 say that the ghosts
// before and behind the block along direction d have no meaning; differences along d are then left out at that end.
KERNEL(refinement_marks, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, int nodes_i, int nodes_j,
       int nodes_k, int closed, int criterion, real floor, real coarsen, real refine, stride sv,
       const_state_field<gas_variables> q, const_work_field<9> m, const_work_field<1> jacobian, mark *marks) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    const int steps[3] = {di, dj, dk}, at[3] = {i, j, k}, last[3] = {nodes_i - 1, nodes_j - 1, nodes_k - 1};
    real value = real(0), gradient[3][3];  // [a][c]: of velocity component a along x, y, z
    for (int a = 0; a < 3; ++a)
        for (int c = 0; c < 3; ++c) gradient[a][c] = real(0);
    bool within = true;
    for (int d = 0; d < 3; ++d) {
        if (!steps[d]) continue;
        if ((at[d] == 0 && (closed >> (2 * d) & 1)) || (at[d] == last[d] && (closed >> (2 * d + 1) & 1))) {
            within = false;
            continue;
        }
        const long long below = p - steps[d], above = p + steps[d];
        if (criterion == density_curvature || criterion == density_gradient) {
            const real own = q[p], left = absolute(own - q[below]), right = absolute(q[above] - own);
            const real second = absolute(q[above] - own - (own - q[below]));
            value = larger(value, criterion == density_gradient
                                      ? larger(left, right) / own
                                      : real(0.5) * second / (floor * own + smaller(left, right)));
            continue;
        }
        for (int a = 0; a < 3; ++a) {
            const real rate = q[(1 + a) * sv + above] / q[above] - q[(1 + a) * sv + below] / q[below];
            for (int c = 0; c < 3; ++c)
                gradient[a][c] += real(0.5) * rate * load<T>(m + (3 * d + c) * sv + p) * load<T>(jacobian + p);
        }
    }
    if (criterion != density_curvature && criterion != density_gradient && within) {
        const real x = gradient[2][1] - gradient[1][2], y = gradient[0][2] - gradient[2][0];
        const real z = gradient[1][0] - gradient[0][1];
        value = square_root(x * x + y * y + z * z);
    }
    marks[i + (long long)nodes_i * (j + (long long)nodes_j * k)] = mark(value > refine ? 2 : value > coarsen ? 1 : 0);
}

// The largest of the marks in each box of nodes. Box i along i has the nodes ends[i] to ends[i + 1] - 1; the boxes_i +
// 1 ends along i are followed by those along j, then by those along k.
KERNEL(largest_marks, int i, int j, int k, int nodes_i, int nodes_j, int boxes_i, int boxes_j, const int *ends,
       const mark *marks, mark *largest) {
    const int *along_j = ends + boxes_i + 1 + j, *along_k = ends + boxes_i + boxes_j + 2 + k;
    mark found = 0;
    for (int c = along_k[0]; c < along_k[1]; ++c)
        for (int b = along_j[0]; b < along_j[1]; ++b)
            for (int a = ends[i]; a < ends[i + 1]; ++a) {
                const mark own = marks[a + (long long)nodes_i * (b + (long long)nodes_j * c)];
                found = own > found ? own : found;
            }
    largest[i + (long long)boxes_i * (j + (long long)boxes_j * k)] = found;
}
