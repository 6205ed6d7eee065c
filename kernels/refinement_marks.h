// The criteria of [refine], which mark nodes that need a finer level (hiresx/decomposition/flags.py has the same
// criteria for the initial flow).
#include "boxes.h"

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

// A part whose nodes are divided into boxes. first: number of its first box among those of all parts. marks: address of
// the marks of its nodes. nodes, boxes: numbers of them along i and j. ends: place of its ends.
struct marked_part {
    long long first, marks, nodes[2], boxes[2], ends;
};

// The largest of the marks in each box of nodes. Box n along i has the nodes from end number n to the next end; the
// ends along i, one more than boxes, are followed by those along j, then by those along k.
KERNEL(largest_marks, int i, int j, int k, int parts, const long long *part, const int *ends, mark *largest) {
    const marked_part &own = box_of(part, parts, &marked_part::first, (long long)i);
    const int n = int(own.boxes[0]), m = int(own.boxes[1]), box = int(i - own.first), row = box / n;
    const mark *marks = reinterpret_cast<const mark *>(own.marks);
    const int *along_i = ends + own.ends + (box - row * n), *along_j = ends + own.ends + n + 1 + row % m;
    const int *along_k = ends + own.ends + n + m + 2 + row / m;
    mark found = 0;
    for (int c = along_k[0]; c < along_k[1]; ++c)
        for (int b = along_j[0]; b < along_j[1]; ++b)
            for (int a = along_i[0]; a < along_i[1]; ++a) {
                const mark one = marks[a + own.nodes[0] * (b + own.nodes[1] * c)];
                found = one > found ? one : found;
            }
    largest[i] = found;
}
