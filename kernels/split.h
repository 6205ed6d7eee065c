// A split form of the inviscid terms without dissipation, in flux form and for curvilinear grids. With a_k the weights
// of the central difference of the metrics, and P(l, r) a flux between two nodes,
//     F_{i+1/2} = sum over k of 2 a_k times the sum of P over the k pairs of nodes (j, j + k), j <= i < j + k.
// The order is that of the central difference (Pirozzoli, J. Comput. Phys. 229, 2010; Fisher & Carpenter, J. Comput.
// Phys. 252, 2013). P consists of means {} over both nodes. With the mean of the areas m the rates of a uniform flow
// are the differences of the metrics, which vanish.
//     mass      C = {rho} U,  U = {m}.{u}
//     momentum  C {u} + {m} {p}
//     energy    C (u_l.u_r/2 + 1/{1/e}) + {m}.(u_l p_r + u_r p_l)/2,   e = p/((gamma - 1) rho)
// The fluxes of momentum and energy are consistent in the kinetic energy: convection redistributes it, and only p div u
// changes its sum (Jameson, J. Sci. Comput. 34, 2008; Kuya, Totani & Kawai, J. Comput. Phys. 375, 2018). The harmonic
// mean of the internal energy keeps pressure and velocity uniform for any density, and it keeps the entropy up to the
// differences between plain and logarithmic means (De Michele & Coppola, J. Comput. Phys. 492, 2023, the form of lowest
// order).
#if HX_SPLIT
constexpr int split_reach = correction_reach;

// Variables of a node: rho, u, v, w, 4 p.
constexpr int split_variables = gas_variables;

template <class T> HD void split_node(const T *q, T *node) {
    const Primitive<T> s = primitive(q);
    node[0] = s.rho, node[1] = s.u, node[2] = s.v, node[3] = s.w, node[4] = real(4) * s.p;
}

// 16 P of two nodes l and r with the areas m and n
template <class T> HD void split_pair(const T *l, const T *m, const T *r, const T *n, T *f) {
    T area[3];
    for (int d = 0; d < 3; ++d) area[d] = m[d] + n[d];
    const T left = area[0] * l[1] + area[1] * l[2] + area[2] * l[3];
    const T right = area[0] * r[1] + area[1] * r[2] + area[2] * r[3];
    const T mass = (l[0] + r[0]) * (left + right), pressure = l[4] + r[4];
    const T internal = real(1.0 / (HX_GAMMA - 1.0)) * (l[4] * r[4]) * reciprocal(l[0] * r[4] + r[0] * l[4]);
    f[0] = real(2) * mass;
    for (int d = 0; d < 3; ++d) f[1 + d] = mass * (l[1 + d] + r[1 + d]) + pressure * area[d];
    f[4] = mass * (l[1] * r[1] + l[2] * r[2] + l[3] * r[3] + internal) + (l[4] * right + r[4] * left);
}

// Contributions of the pairs of a node with the nodes ahead of it to fluxes at half points. The flux at i+1/2 is the
// sum of parts[0] of node i, parts[1] of node i-1 and so on. node(s, v), area(s, d): of the node s ahead.
template <class T, class Node, class Area>
HD void split_parts(const Node &node, const Area &area, T (*parts)[gas_variables]) {
    T own[split_variables], through[3], next[split_variables], beyond[3], pair[gas_variables];
    for (int v = 0; v < split_variables; ++v) own[v] = node(0, v);
    for (int d = 0; d < 3; ++d) through[d] = area(0, d);
    for (int k = split_reach; k > 0; --k) {
        for (int v = 0; v < split_variables; ++v) next[v] = node(k, v);
        for (int d = 0; d < 3; ++d) beyond[d] = area(k, d);
        split_pair(own, through, next, beyond, pair);
        const real weight = central_weight<split_reach>(k) * real(1.0 / 8);
        for (int v = 0; v < gas_variables; ++v)
            parts[k - 1][v] = k == split_reach ? weight * pair[v] : parts[k][v] + weight * pair[v];
    }
}

// The flux at half point 1/2 of a line. read(s, node, area): reads node s, 1 - split_reach..split_reach, and its area.
// The terms are summed in the same order as by the parts above.
template <class T, class Read> HD void split_flux(const Read &read, T *flux) {
    T left[split_variables], through[3], right[split_variables], beyond[3], pair[gas_variables];
    for (int v = 0; v < gas_variables; ++v) flux[v] = T(real(0));
    for (int l = 0; l < split_reach; ++l) {  // the left node of the pairs is node -l
        T part[gas_variables];
        read(-l, left, through);
        for (int k = split_reach; k > 0; --k) {
            if (k <= l) continue;
            read(k - l, right, beyond);
            split_pair(left, through, right, beyond, pair);
            const real weight = central_weight<split_reach>(k) * real(1.0 / 8);
            for (int v = 0; v < gas_variables; ++v)
                part[v] = k == split_reach ? weight * pair[v] : part[v] + weight * pair[v];
        }
        for (int v = 0; v < gas_variables; ++v) flux[v] = flux[v] + part[v];
    }
}
#endif
