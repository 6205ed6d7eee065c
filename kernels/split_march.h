// The split form of the inviscid terms (split.h) in all directions at once, for GPUs: a block of threads owns a tile of
// columns, one for each thread, and marches along k. The nodes of a plane, with the ghosts of the tile along i and j, come
// while those before it are computed, and become the variables of split_node once, in memory that the block shares.
// Their pairs with the nodes on both sides along i and j are read there. Along k a thread keeps the nodes that it passed
// there too, and in registers what their rates are so far: each pair is computed once.
#if HX_SPLIT && !defined(HX_CPU)
// Nodes of a tile with its ghosts along i and along j; without corners, the rows of the tile first.
constexpr int march_row = HX_TILE_I + 2 * split_reach;
constexpr int march_rows = march_row * HX_TILE_J;
constexpr int march_columns = HX_TILE_I * HX_TILE_J + 2 * split_reach * HX_TILE_I;
constexpr int march_nodes = march_rows + 2 * split_reach * HX_TILE_I;
// Of a node that was passed; what a block keeps: two planes, with the areas along i and j, and the nodes that it passed.
constexpr int march_passed = split_variables + 3;
constexpr int march_plane = split_variables * march_nodes + 3 * march_rows + 3 * march_columns;
constexpr int split_march_own = 2 * march_plane + split_reach * march_passed * HX_TILE_THREADS;
constexpr int split_march_blocks = sizeof(real) == 4 ? 3 : 2;

// Where node (x, y) of a tile is among its nodes, and among its columns.
HD int march_place(int x, int y) {
    if (y >= 0 && y < HX_TILE_J) return y * march_row + x + split_reach;
    return march_rows + (y < 0 ? y + split_reach : y - HX_TILE_J + split_reach) * HX_TILE_I + x;
}
HD int march_column(int x, int y) { return (y + split_reach) * HX_TILE_I + x; }

// What a tile whose first node is (i, j) of ni by nj takes of a plane.
struct MarchTile {
    int i, j, ni, nj;
    bool along_i, along_j;  // the directions that it has

    // visit(x, y, with its area of direction i, of j) of a node that a thread brings, if there is one
    template <class Visit> HD void node(int x, int y, bool ghosts, const Visit &visit) const {
        const bool column = x >= 0 && x < HX_TILE_I && i + x < ni, row = y >= 0 && y < HX_TILE_J && j + y < nj;
        const bool area_i = ghosts && along_i && row && i + x < ni + split_reach;
        const bool area_j = ghosts && along_j && column && j + y < nj + split_reach;
        if ((column && row) || area_i || area_j) visit(x, y, area_i, area_j);
    }
    // the same of its own node, and of its share of the ghosts
    template <class Visit> HD void bring(int thread, bool ghosts, const Visit &visit) const {
        node(thread % HX_TILE_I, thread / HX_TILE_I, ghosts, visit);
        constexpr int across = 2 * split_reach * HX_TILE_J, all = across + 2 * split_reach * HX_TILE_I;
        if (!ghosts) return;
        for (int e = thread; e < all; e += HX_TILE_THREADS) {
            const bool row = e < across;
            const int g = row ? e % (2 * split_reach) : (e - across) / HX_TILE_I;
            const int beside = g < split_reach ? g - split_reach : g - split_reach + (row ? HX_TILE_I : HX_TILE_J);
            node(row ? beside : (e - across) % HX_TILE_I, row ? e / (2 * split_reach) : beside, ghosts, visit);
        }
    }
};

#if HX_SENSORS
// The access of shock sensors (sensed.h) to a node (x, y) of `plane` and the nodes around it. `next`: the plane after
// it; `before`: the previous node along k, kept by the thread; `through`: the area of the node along k. Of farther nodes
// along k those before are in `passed`, the node itself in the place `turn`; those behind are read from `q`, which is at
// the node.
struct MarchAround {
    using number = real;
    const real *plane, *next, *before;
    const work_real *jacobian;
    int x, y;
    bool along_i, along_j, along_k;
    const real *passed;
    int turn;
    const_state_pointer q;
    stride sv;
    int sk;
    real through[3];

    HD Primitive<real> at(int d, int s) const {
        if (d == 2 && s > 1) {
            real state[gas_variables];
            for (int v = 0; v < gas_variables; ++v) state[v] = load<real>(q + v * sv + (long long)s * sk);
            return primitive(state);
        }
        const bool ahead = d == 2 && s > 0, behind = d == 2 && s < 0;
        const int own = march_place(x, y), place = d == 0 ? own + s : d == 1 ? march_place(x, y + s) : own;
        const int then = turn + s < 0 ? turn + s + split_reach : turn + s;
        const real *const earlier = s < -1 ? passed + then * march_passed * HX_TILE_THREADS : before;
        const real *const node = behind ? earlier : (ahead ? next : plane) + place;
        const int apart = behind ? HX_TILE_THREADS : march_nodes;
        const real rho = node[0];
        return {rho, node[apart], node[2 * apart], node[3 * apart], real(0.25) * node[4 * apart], reciprocal(rho)};
    }
    HD bool has(int d) const { return d == 0 ? along_i : d == 1 ? along_j : along_k; }
    HD real area(int d, int c) const {
        const real *const areas = plane + split_variables * march_nodes;
        if (d == 2) return through[c];
        return d == 0 ? areas[c * march_rows + march_place(x, y)]
                      : areas[3 * march_rows + c * march_columns + march_column(x, y)];
    }
    HD real inverse_volume() const { return load<real>(jacobian); }
};
#endif

// What memory keeps in another type than `real` is loaded where the rest has come.
#ifdef HX_WORK_FP32
#define MARCH_FETCH(to, from) (void)0
#define MARCH_ARRIVE(to, from) to = load<real>(from)
#else
#define MARCH_FETCH(to, from) FETCH(to, address(from))
#define MARCH_ARRIVE(to, from) (void)0
#endif

// change -= what leaves node 0 of a line for the `split_reach` nodes on both sides. node(s, v), area(s, d): of node s.
template <class Node, class Area> HD void split_gather(const Node &node, const Area &area, real *change) {
    real own[split_variables], through[3], other[split_variables], beyond[3], pair[gas_variables];
    const auto read = [&](int s, real *n, real *a) {
        for (int v = 0; v < split_variables; ++v) n[v] = node(s, v);
        for (int d = 0; d < 3; ++d) a[d] = area(s, d);
    };
    read(0, own, through);
    for (int k = split_reach; k > 0; --k) {
        const real weight = split_weight(k) * real(1.0 / 8);
        read(k, other, beyond);
        split_pair(own, through, other, beyond, pair);
        for (int v = 0; v < gas_variables; ++v) change[v] -= weight * pair[v];
        read(-k, other, beyond);
        split_pair(other, beyond, own, through, pair);
        for (int v = 0; v < gas_variables; ++v) change[v] += weight * pair[v];
    }
}

// Columns of n nodes, in chunks of `chunk`: r = or -= F_{i+1/2} - F_{i-1/2} of the directions of which the strides di, dj,
// dk are not 0. Of the hybrid form, all directions and the field `shock_sensor` (terms/shock_sensor.h).
TILE_KERNEL(split_march, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, int n, int chunk, stride sv,
            const_state_field<gas_variables> q, const_work_field<9> m, rate_field<gas_variables> r, int first,
            const_work_field<HX_SENSORS> jacobian, real threshold, int smooth, real floor,
            work_field<HX_SENSORS> sensor) {
    BLOCK_MEMORY(memory, split_march_own);
    PRIVATE(real, rates, split_reach * gas_variables);  // of the nodes behind a thread's own, the nearest first
    PRIVATE(real, through, 3);  // the area of its own node along k
    // of place `at` of plane now; areas of the directions i and j
    const auto node_at = [&](int now, int v, int at) -> real & { return memory[now * march_plane + v * march_nodes + at]; };
    const auto across = [&](int now, int d, int at) -> real & {
        return memory[now * march_plane + split_variables * march_nodes + d * march_rows + at];
    };
    const auto along = [&](int now, int d, int at) -> real & {
        return memory[now * march_plane + split_variables * march_nodes + 3 * march_rows + d * march_columns + at];
    };
    // of the node of a thread in the last of the planes whose numbers are the same modulo split_reach
    const auto passed = [&](int turn, int v, int thread) -> real & {
        return memory[2 * march_plane + (turn * march_passed + v) * HX_TILE_THREADS + thread];
    };
    const int begin = k * chunk, end = n - begin < chunk ? n : begin + chunk, behind = dk ? split_reach : 0;
    const long long corner = o + i + (long long)j * sj;
    const MarchTile tile = {i, j, ni, nj, di != 0, dj != 0};
    for (int l = begin - behind - 1, now = 1, turn = 0; l < end + behind; ++l, now = 1 - now) {
        const bool more = l + 1 < end + behind, ghosts = l + 1 >= begin && l + 1 < end;
        THREADS {
            const int x = thread % HX_TILE_I, y = thread / HX_TILE_I, at = march_place(x, y);
            const bool there = i + x < ni && j + y < nj;
            const long long p = corner + x + (long long)y * sj + (long long)l * sk;
            real coming[3] = {};
            if (more) {
                tile.bring(thread, ghosts, [&](int x, int y, bool area_i, bool area_j) {
                    const int to = march_place(x, y);
                    const long long p = corner + x + (long long)y * sj + (l + 1ll) * sk;
                    ROLLED for (int v = 0; v < gas_variables; ++v) MARCH_FETCH(node_at(1 - now, v, to), q + v * sv + p);
                    ROLLED for (int d = 0; d < 3; ++d) {
                        if (area_i) MARCH_FETCH(across(1 - now, d, to), m + d * sv + p);
                        if (area_j) MARCH_FETCH(along(1 - now, d, march_column(x, y)), m + (3 + d) * sv + p);
                    }
                });
                if (dk && there)
                    for (int d = 0; d < 3; ++d) coming[d] = load<real>(m + (6 + d) * sv + p + sk);
            }
            if (there && l >= begin - behind) {
                real change[gas_variables] = {};
                if (l >= begin && l < end) {
                    if (di)
                        split_gather([&](int s, int v) { return node_at(now, v, at + s); },
                                     [&](int s, int d) { return across(now, d, at + s); }, change);
                    if (dj)
                        split_gather([&](int s, int v) { return node_at(now, v, march_place(x, y + s)); },
                                     [&](int s, int d) { return along(now, d, march_column(x, y + s)); }, change);
                }
                if (dk) {
                    real own[march_passed], other[march_passed], pair[gas_variables], done[gas_variables];
                    real *const rate = MINE(rates);
                    for (int v = 0; v < split_variables; ++v) own[v] = node_at(now, v, at);
                    for (int d = 0; d < 3; ++d) own[split_variables + d] = MINE(through)[d];
                    if (l >= begin)
                        for (int s = split_reach; s > 0; --s) {
                            const int then = turn < s ? turn - s + split_reach : turn - s;
                            for (int v = 0; v < march_passed; ++v) other[v] = passed(then, v, thread);
                            const real weight = split_weight(s) * real(1.0 / 8);
                            split_pair(other, other + split_variables, own, own + split_variables, pair);
                            for (int v = 0; v < gas_variables; ++v) {
                                rate[(s - 1) * gas_variables + v] -= weight * pair[v];
                                change[v] += weight * pair[v];
                            }
                        }
                    for (int v = 0; v < gas_variables; ++v) done[v] = rate[(split_reach - 1) * gas_variables + v];
                    for (int s = split_reach - 1; s >= 0; --s)
                        for (int v = 0; v < gas_variables; ++v)
                            rate[s * gas_variables + v] = s ? rate[(s - 1) * gas_variables + v] : change[v];
                    for (int v = 0; v < march_passed; ++v) passed(turn, v, thread) = own[v];
                    for (int v = 0; v < gas_variables; ++v) change[v] = done[v];
                }
                if (l - behind >= begin)
                    for (int v = 0; v < gas_variables; ++v) {
                        rate_real *to = r + v * sv + p - (long long)behind * sk;
                        store(to, first ? change[v] : load<real>(to) + change[v]);
                    }
            }
            FETCHED;
            if (more) {
                tile.bring(thread, ghosts, [&](int x, int y, bool area_i, bool area_j) {
                    const int to = march_place(x, y);
                    const long long p = corner + x + (long long)y * sj + (l + 1ll) * sk;
                    real state[gas_variables], node[split_variables];
                    for (int v = 0; v < gas_variables; ++v) {
                        MARCH_ARRIVE(node_at(1 - now, v, to), q + v * sv + p);
                        state[v] = node_at(1 - now, v, to);
                    }
                    for (int d = 0; d < 3; ++d) {
                        if (area_i) MARCH_ARRIVE(across(1 - now, d, to), m + d * sv + p);
                        if (area_j) MARCH_ARRIVE(along(1 - now, d, march_column(x, y)), m + (3 + d) * sv + p);
                    }
                    split_node(state, node);
                    for (int v = 0; v < split_variables; ++v) node_at(1 - now, v, to) = node[v];
                    (void)p;
                });
            }
#if HX_SENSORS
            if (there && l >= begin && l < end) {  // its own next node has come
                const real *const plane = memory + now * march_plane, *const next = memory + (1 - now) * march_plane;
                const real *const before = &passed(turn > 0 ? turn - 1 : split_reach - 1, 0, thread);
                MarchAround around = {plane, next, before, jacobian + p, x, y, di != 0, dj != 0, dk != 0,
                                      &passed(0, 0, thread), turn, q + p, sv, sk, {}};
                for (int d = 0; d < 3; ++d) around.through[d] = MINE(through)[d];
                store(sensor + p, shock_share(around, threshold, smooth, floor));
            }
#else
            (void)jacobian, (void)threshold, (void)smooth, (void)floor, (void)sensor;
#endif
            for (int d = 0; d < 3; ++d) MINE(through)[d] = coming[d];
        }
        turn = turn + 1 < split_reach ? turn + 1 : 0;
    }
}
#undef MARCH_FETCH
#undef MARCH_ARRIVE
#endif
