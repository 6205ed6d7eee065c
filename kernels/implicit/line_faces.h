// For line sweeps without stored blocks of the nodes beside the lines (product_lines.h): the nodes on faces with
// conditions, which have stored blocks of all neighbours.
#pragma once
#include "recorded.h"

#if HX_MATRIX_FREE && HX_STORED_DIRECTIONS
// Copies the blocks along the lines of face node i to the positions where other nodes have these blocks.
KERNEL(keep_line_blocks, int i, int j, int k, const int *nodes, int faces, int row, int direction, stride sv, real *of_faces,
       field<block_reals> blocks) {
    const neighbour_place from(of_faces + i, faces), to(blocks + block_entries * sv + coloured(nodes[i], row), sv);
    for (int side = 0; side < 2; ++side)
        neighbour_block(from, 2 * direction + side).store(to, stored_side(direction, side));
}

// As line_right (lines.h), for face nodes whose lines have one colour; which[i]: the number of a node in `nodes`.
KERNEL(face_right, int i, int j, int k, const int *which, const int *nodes, int faces, int o, int sj, int sk, int di, int dj,
       int dk, int direction, int length, stride sv, real *of_faces, const_field<update_reals> right,
       field<update_reals> update) {
    const int number = which[i], within = nodes[number] - o, in_plane = within % sk;
    const int at = direction == 0 ? in_plane % sj : direction == 1 ? in_plane / sj : within / sk;
    const coloured_node node(nodes[number], sj, di, dj, dk);
    const int apart[3] = {di, dj, dk};
    const neighbour_place place(of_faces + number, faces);
    real rest[block_variables];
    for (int v = 0; v < block_variables; ++v) rest[v] = real(kept_update(right)[v * sv + node.at]);
    for (int side = 0; side < 6; ++side) {
        const bool inside = side / 2 == direction && (side % 2 ? at + 1 < length : at > 0);
        if (apart[side / 2] == 0 || inside) continue;
        neighbour_block(place, side).take(numbers_at<block_variables>(update, sv, node.at + node.beside[side]), rest);
    }
    for (int v = 0; v < block_variables; ++v) numbers_at<block_variables>(update, sv, node.at)[v] = swept_real(rest[v]);
}
#endif
