// Halo exchange: copies of boxes of nodes within a process, and messages by lists. An entry of a list is the place of a
// node in a padded array or the number of a point in a buffer.
#include "boxes.h"

// In a buffer `step` is the stride between the variables of a point, and `apart` the stride between neighbouring
// points.

template <class Number>
HD void pack_point(int i, const int *to, const int *giving, const Number *source, long long source_sv, Number *buffer,
                   long long apart, long long step, int variables, real sign) {
    Number *point = buffer + to[i] * apart;
    for (int v = 0; v < variables; ++v) point[v * step] = sign * source[v * source_sv + giving[i]];
}

template <class Number>
HD void unpack_point(int i, const int *to, const int *giving, const Number *buffer, long long apart, long long step,
                     int variables, Number *target, long long target_sv) {
    const Number *point = buffer + giving[i] * apart;
    for (int v = 0; v < variables; ++v) target[v * target_sv + to[i]] = point[v * step];
}

// Rotates the vector whose components are three variables at p. (rxx, rxy, rxz) is the first row of the rotation
// matrix.
template <class Number>
HD void rotate(Number *p, long long sv, real rxx, real rxy, real rxz, real ryx, real ryy, real ryz, real rzx, real rzy,
               real rzz) {
    const real x = p[0], y = p[sv], z = p[2 * sv];
    p[0] = rxx * x + rxy * y + rxz * z;
    p[sv] = ryx * x + ryy * y + ryz * z;
    p[2 * sv] = rzx * x + rzy * y + rzz * z;
}

// Number of variables of a node that are loaded before the first of them is stored, so that a GPU waits for memory
// once.
constexpr int copied_together = 5;

// A box of nodes that is copied from one array to another (hiresx/exchange/copied_boxes.py). first: number of its first
// node among those of all boxes, in copy_halo_rows of its first row. target, source: addresses of the first node. *_sv,
// *_steps: strides between variables, and between nodes along three directions. along: number of nodes along the first
// two of these, of which the first runs fastest.
struct copied_box {
    long long first, target, source, target_sv, source_sv, sign, along[2], target_steps[3], source_steps[3];
};

template <class Number>
HD void copy_node(int i, int boxes, const long long *box, int variables) {
    const copied_box &b = box_of(box, boxes, &copied_box::first, (long long)i);
    const int at = int(i - b.first), row = at / int(b.along[0]), n2 = row / int(b.along[1]);
    const int n0 = at - row * int(b.along[0]), n1 = row - n2 * int(b.along[1]);
    const long long *s = b.source_steps, *t = b.target_steps;
    const Number *from = reinterpret_cast<const Number *>(b.source) + n0 * s[0] + n1 * s[1] + n2 * s[2];
    Number *into = reinterpret_cast<Number *>(b.target) + n0 * t[0] + n1 * t[1] + n2 * t[2];
    const real sign = real(b.sign);
    for (int first = 0; first < variables; first += copied_together) {
        Number held[copied_together];
        for (int v = 0; v < copied_together; ++v)
            if (first + v < variables) held[v] = from[(first + v) * b.source_sv];
        for (int v = 0; v < copied_together; ++v)
            if (first + v < variables) into[(first + v) * b.target_sv] = sign * held[v];
    }
}

// Copies all boxes: into[variable][node] = sign * from[variable][node].
KERNEL(copy_halo, int i, int j, int k, int boxes, int variables, const long long *box) {
    copy_node<stored_real>(i, boxes, box, variables);
}

// Sets ghost k + 1 behind a face at its node (i, j), of each variable, to the value on the face, or (mirrored) to the
// value at inner node k + 1. (o, s1, s2, sn): as for boundary conditions.
KERNEL(repeat_at_face, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, int variables, int mirrored,
       work_field<1> field) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    const long long ahead = (k + 1ll) * sn;
    for (int v = 0; v < variables; ++v) field[v * sv + p - ahead] = field[v * sv + p + (mirrored ? ahead : 0)];
}

// Packs into a buffer, which holds one point after the other, each with all its `variables`.
KERNEL(pack_halo, int i, int j, int k, const int *to, const int *giving, const stored_real *source, long long source_sv,
       stored_real *buffer, int variables, real sign) {
    pack_point(i, to, giving, source, source_sv, buffer, variables, 1, variables, sign);
}

// Unpacks from such a buffer.
KERNEL(unpack_halo, int i, int j, int k, const int *to, const int *giving, const stored_real *buffer, int variables,
       stored_real *target, long long target_sv) {
    unpack_point(i, to, giving, buffer, variables, 1, variables, target, target_sv);
}

// Rotates vectors received over a rotated connection, from the donor's frame into that of this block.
KERNEL(rotate_vectors, int i, int j, int k, const int *at, stored_real *target, long long target_sv, real rxx, real rxy,
       real rxz, real ryx, real ryy, real ryz, real rzx, real rzy, real rzz) {
    rotate(target + at[i], target_sv, rxx, rxy, rxz, ryx, ryy, ryz, rzx, rzy, rzz);
}
