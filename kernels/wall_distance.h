// The distance of every node to the nearest facet of the walls. Facets are triangles, of which two or three corners may
// coincide (segments of plane grids, points of columns). Boxes of facets lie in the order of a walk through their tree.
// skip[box]: the next box where nothing in this box can be nearer. Computed in double, since it is done once.

struct Vector3 {
    double x, y, z;
};
HD Vector3 between(const double *from, const double *to) { return {to[0] - from[0], to[1] - from[1], to[2] - from[2]}; }
HD double dot(Vector3 a, Vector3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
HD Vector3 cross(Vector3 a, Vector3 b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

// Squared distance of a point to an edge; to_point: the vector from the beginning of the edge to the point
HD double square_to_edge(Vector3 to_point, Vector3 edge) {
    const double length = dot(edge, edge);
    double share = length > 0.0 ? dot(to_point, edge) / length : 0.0;
    share = share < 0.0 ? 0.0 : share > 1.0 ? 1.0 : share;
    const Vector3 left = {to_point.x - share * edge.x, to_point.y - share * edge.y, to_point.z - share * edge.z};
    return dot(left, left);
}

// Squared distance of a point to the triangle with corners c[0..2], c[3..5], c[6..8]
HD double square_to_facet(const double *point, const double *c) {
    const Vector3 ab = between(c, c + 3), ac = between(c, c + 6), bc = between(c + 3, c + 6);
    const Vector3 ap = between(c, point), bp = between(c + 3, point), normal = cross(ab, ac);
    const double area = dot(normal, normal);
    if (area > 0.0) {  // barycentric coordinates of the foot of the perpendicular, times the area
        const double of_b = dot(cross(ap, ac), normal), of_c = dot(cross(ab, ap), normal);
        if (of_b >= 0.0 && of_c >= 0.0 && of_b + of_c <= area) return dot(ap, normal) * dot(ap, normal) / area;
    }
    const double on_ab = square_to_edge(ap, ab), on_ac = square_to_edge(ap, ac), on_bc = square_to_edge(bp, bc);
    const double less = on_ab < on_ac ? on_ab : on_ac;
    return less < on_bc ? less : on_bc;
}

// Squared distance of a point to the box from b[0..2] to b[3..5]
HD double square_to_box(const double *point, const double *b) {
    double sum = 0.0;
    for (int c = 0; c < 3; ++c) {
        const double below = b[c] - point[c], above = point[c] - b[3 + c];
        const double apart = below > 0.0 ? below : above > 0.0 ? above : 0.0;
        sum += apart * apart;
    }
    return sum;
}

// distance: the lesser of its former value and the distance of the node moved by `motion` (rotation by rows,
// translation). nodes[3][k][j][i]: coordinates; bounds[box][6]; leaves[box][2]: the first facet of a box that contains
// no boxes, and the one behind its last facet (equal numbers: the box contains boxes); corners[facet][9].
KERNEL(wall_distance, int i, int j, int k, int o, int sj, int sk, int width, int height, int points, const double *nodes,
       const double *motion, int boxes, const double *bounds, const int *skip, const int *leaves, const double *corners,
       work_field<1> distance) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    const long long at = i + (long long)width * (j + (long long)height * k);
    double point[3];
    for (int c = 0; c < 3; ++c)
        point[c] = motion[3 * c] * nodes[at] + motion[3 * c + 1] * nodes[at + points]
                   + motion[3 * c + 2] * nodes[at + 2ll * points] + motion[9 + c];
    double best = double(real(distance[p]));
    best *= best;
    for (int box = 0; box < boxes;) {
        if (square_to_box(point, bounds + 6ll * box) >= best) {
            box = skip[box];
            continue;
        }
        for (int f = leaves[2 * box]; f < leaves[2 * box + 1]; ++f) {
            const double square = square_to_facet(point, corners + 9ll * f);
            if (square < best) best = square;
        }
        ++box;
    }
    const double found = sqrt(best);
    if (found < double(real(distance[p]))) distance[p] = work_real(found);
}
