// The split form of the inviscid terms (split.h) in all directions at once, for GPUs. A block of threads owns a tile of
// columns, one for each thread, and marches along k. The nodes of the next plane, with the ghosts of the tile along i
// and j, are fetched while the current plane is computed. They are converted to the variables of split_node once, in
// memory that the block shares, and their pairs along i and j are read from there. Along k a thread also keeps the
// nodes that it has passed there, and their rates so far in registers: each pair along k is computed once.
#include "tile_plane.h"

#if HX_SPLIT && !defined(HX_CPU)
// Numbers of nodes: of a row of a tile with its ghosts along i, of all its rows, of its columns with their ghosts along
// j, and of all nodes with the places of corners.
constexpr int march_row = HX_TILE_I + 2 * split_reach;
constexpr int march_rows = march_row * HX_TILE_J;
constexpr int march_columns = HX_TILE_I * HX_TILE_J + 2 * split_reach * HX_TILE_I;
constexpr int march_nodes = march_row * HX_TILE_J + 2 * split_reach * march_row;
// Numbers kept of a passed node; of a plane, with the areas along i and j; of a block: two planes, and the passed
// nodes.
constexpr int march_passed = split_variables + 3;
constexpr int march_plane = split_variables * march_nodes + 3 * march_rows + 3 * march_columns;
constexpr int split_march_own = 2 * march_plane + split_reach * march_passed * HX_TILE_THREADS;
static_assert(nodes_beside <= split_reach, "a sensor reads nodes that the split form brings");
constexpr int split_march_blocks = sizeof(real) == 4 ? 3 : 2;

typedef TilePlane<split_reach, HX_TILE_I, HX_TILE_J> MarchTile;
// The place of node (x, y) of a tile among its columns
HD int march_column(int x, int y) { return (y + split_reach) * HX_TILE_I + x; }

// The primitives of a node from the variables of split_node: variable v at node[v * apart]
HD Primitive<real> march_state(const real *node, int apart) {
    const real rho = node[0];
    return {rho, node[apart], node[2 * apart], node[3 * apart], real(0.25) * node[4 * apart], reciprocal(rho)};
}

// Subtracts from `change` the fluxes out of node 0 of a line through its pairs with `split_reach` nodes on each side.
// `sensor` reads the same line, as far as possible from registers. node(s, v), area(s, d): of node s.
template <class Node, class Area>
HD void split_gather(const Node &node, const Area &area, real *change, Sensor<real> &sensor) {
    real own[split_variables], through[3], ahead[split_variables], behind[split_variables], beyond[3], pair[gas_variables];
    const auto read = [&](int s, real *n, real *a) {
        for (int v = 0; v < split_variables; ++v) n[v] = node(s, v);
        for (int d = 0; d < 3; ++d) a[d] = area(s, d);
    };
    read(0, own, through);
    for (int k = split_reach; k > 0; --k) {
        const real weight = central_weight<split_reach>(k) * real(1.0 / 8);
        read(k, ahead, beyond);
        split_pair(own, through, ahead, beyond, pair);
        for (int v = 0; v < gas_variables; ++v) change[v] -= weight * pair[v];
        read(-k, behind, beyond);
        split_pair(behind, beyond, own, through, pair);
        for (int v = 0; v < gas_variables; ++v) change[v] += weight * pair[v];
    }
    const auto state = [&](int s) {
        real other[split_variables];
        for (int v = 0; v < split_variables; ++v)
            other[v] = s == 0 ? own[v] : s == 1 ? ahead[v] : s == -1 ? behind[v] : node(s, v);
        return march_state(other, 1);
    };
    sensor.along(state, through);
}

// Marches along columns of n nodes, in chunks of `chunk`: r = or -= F_{i+1/2} - F_{i-1/2} for the directions whose
// strides di, dj, dk are not 0. With the hybrid form, which takes all directions, it also stores the field
// `shock_sensor` (terms/shock_sensor.h) and marks the tiles in which it is above 0 (sensed_tiles.h).
TILE_KERNEL(split_march, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, int n, int chunk, stride sv,
            const_state_field<gas_variables> q, const_work_field<9> m, rate_field<gas_variables> r, int first,
            const_work_field<HX_SENSORS> jacobian, real threshold, int smooth, real floor,
            work_field<HX_SENSORS> sensor, mark_field<HX_SENSORS> tiles, optional<int *> counts) {
    BLOCK_MEMORY(memory, split_march_own);
    PRIVATE(real, rates, split_reach * gas_variables);  // of the nodes that a thread has passed, the nearest first
    PRIVATE(real, through, 3);  // the area along k of a thread's node
    PRIVATE(Sensor<real>, sensors, nodes_beside);  // of the nodes passed, the nearest first, without direction k
    const int late = dk ? nodes_beside : 0;        // planes by which sensors lag, as they read nodes ahead
    // node_at: variable v at place `at` of plane `now`; across, along: the areas along i and j there
    const auto node_at = [&](int now, int v, int at) -> real & { return memory[now * march_plane + v * march_nodes + at]; };
    const auto across = [&](int now, int d, int at) -> real & {
        return memory[now * march_plane + split_variables * march_nodes + d * march_rows + at - split_reach * march_row];
    };
    const auto along = [&](int now, int d, int at) -> real & {
        return memory[now * march_plane + split_variables * march_nodes + 3 * march_rows + d * march_columns + at];
    };
    // The node of a thread in the last plane with this `turn`, the number of the plane modulo split_reach
    const auto passed = [&](int turn, int v, int thread) -> real & {
        return memory[2 * march_plane + (turn * march_passed + v) * HX_TILE_THREADS + thread];
    };
    const int begin = k * chunk, end = n - begin < chunk ? n : begin + chunk, behind = dk ? split_reach : 0;
    const long long corner = o + i + (long long)j * sj;
    const MarchTile tile = {i, j, ni, nj, di != 0, dj != 0};
    if (HX_SENSORS) THREADS {
        if (counts && i == 0 && j == 0 && k == 0 && thread < 3) counts[thread] = 0;
        for (int l = begin + thread * sensed_planes; l < end; l += HX_TILE_THREADS * sensed_planes)
            store(tiles + corner + (long long)l * sk, false);
    }
    for (int l = begin - behind - 1, now = 1, turn = 0; l < end + behind; ++l, now = 1 - now) {
        const bool more = l + 1 < end + behind, ghosts = l + 1 >= begin && l + 1 < end;
        THREADS {
            const int x = thread % HX_TILE_I, y = thread / HX_TILE_I, at = MarchTile::place(x, y);
            const bool there = i + x < ni && j + y < nj;
            const long long p = corner + x + (long long)y * sj + (long long)l * sk;
            real coming[3] = {};
            if (more) {
                tile.bring(thread, ghosts, [&](int x, int y, bool area_i, bool area_j) {
                    const int to = MarchTile::place(x, y);
                    const long long p = corner + x + (long long)y * sj + (l + 1ll) * sk;
                    ROLLED for (int v = 0; v < gas_variables; ++v) TILE_FETCH(node_at(1 - now, v, to), q + v * sv + p);
                    ROLLED for (int d = 0; d < 3; ++d) {
                        if (area_i) TILE_FETCH(across(1 - now, d, to), m + d * sv + p);
                        if (area_j) TILE_FETCH(along(1 - now, d, march_column(x, y)), m + (3 + d) * sv + p);
                    }
                });
                if (dk && there)
                    for (int d = 0; d < 3; ++d) coming[d] = load<real>(m + (6 + d) * sv + p + sk);
            }
            if (there && l >= begin - behind) {
                real change[gas_variables] = {};
                Sensor<real> found;  // finally that of the node `late` planes behind, with state `centre`
                Primitive<real> centre = march_state(&node_at(now, 0, at), march_nodes);
                if (l >= begin && l < end) {
                    if (di)
                        split_gather([&](int s, int v) { return node_at(now, v, at + s); },
                                     [&](int s, int d) { return across(now, d, at + s); }, change, found);
                    if (dj)
                        split_gather([&](int s, int v) { return node_at(now, v, at + s * march_row); },
                                     [&](int s, int d) { return along(now, d, march_column(x, y + s)); }, change, found);
                }
                if (dk) {
                    real own[march_passed], other[march_passed], pair[gas_variables], done[gas_variables];
                    real *const rate = MINE(rates);
                    for (int v = 0; v < split_variables; ++v) own[v] = node_at(now, v, at);
                    for (int d = 0; d < 3; ++d) own[split_variables + d] = MINE(through)[d];
                    const auto before = [&](int s) { return turn < s ? turn - s + split_reach : turn - s; };
                    Sensor<real> *const waiting = MINE(sensors), ready = waiting[nodes_beside - 1];
                    for (int s = nodes_beside - 1; s > 0; --s) waiting[s] = waiting[s - 1];
                    waiting[0] = found, found = ready;
                    if (l >= begin) {
                        for (int s = split_reach; s > 0; --s) {
                            const int then = before(s);
                            for (int v = 0; v < march_passed; ++v) other[v] = passed(then, v, thread);
                            const real weight = central_weight<split_reach>(s) * real(1.0 / 8);
                            split_pair(other, other + split_variables, own, own + split_variables, pair);
                            for (int v = 0; v < gas_variables; ++v) {
                                rate[(s - 1) * gas_variables + v] -= weight * pair[v];
                                change[v] += weight * pair[v];
                            }
                        }
                        const auto state = [&](int s) {  // of node s from the node `late` planes behind
                            const int back = nodes_beside - s;
                            if (back == 0) return march_state(own, 1);
                            if (back <= split_reach) return march_state(&passed(before(back), 0, thread), HX_TILE_THREADS);
                            real state[gas_variables];
                            for (int v = 0; v < gas_variables; ++v)
                                state[v] = load<real>(q + v * sv + (p - (long long)back * sk));
                            return primitive(state);
                        };
                        real area[3];
                        for (int d = 0; d < 3; ++d) area[d] = passed(before(late), split_variables + d, thread);
                        if (l - late >= begin) found.along(state, area), centre = state(0);
                    }
                    for (int v = 0; v < gas_variables; ++v) done[v] = rate[(split_reach - 1) * gas_variables + v];
                    for (int s = split_reach - 1; s >= 0; --s)
                        for (int v = 0; v < gas_variables; ++v)
                            rate[s * gas_variables + v] = s ? rate[(s - 1) * gas_variables + v] : change[v];
                    for (int v = 0; v < march_passed; ++v) passed(turn, v, thread) = own[v];
                    for (int v = 0; v < gas_variables; ++v) change[v] = done[v];
                }
                if (HX_SENSORS && l - late >= begin && l - late < end) {
                    const long long from = p - (long long)late * sk;
                    const real share = shock_share(found, centre, load<real>(jacobian + from), threshold, smooth, floor);
                    store(sensor + from, share);
                    if (share > real(0)) store(tiles + corner + (long long)first_sensed(l - late, begin) * sk, true);
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
                    const int to = MarchTile::place(x, y);
                    const long long p = corner + x + (long long)y * sj + (l + 1ll) * sk;
                    real state[gas_variables], node[split_variables];
                    for (int v = 0; v < gas_variables; ++v) {
                        TILE_ARRIVE(node_at(1 - now, v, to), q + v * sv + p);
                        state[v] = node_at(1 - now, v, to);
                    }
                    for (int d = 0; d < 3; ++d) {
                        if (area_i) TILE_ARRIVE(across(1 - now, d, to), m + d * sv + p);
                        if (area_j) TILE_ARRIVE(along(1 - now, d, march_column(x, y)), m + (3 + d) * sv + p);
                    }
                    split_node(state, node);
                    for (int v = 0; v < split_variables; ++v) node_at(1 - now, v, to) = node[v];
                    (void)p;
                });
            }
            for (int d = 0; d < 3; ++d) MINE(through)[d] = coming[d];
        }
        turn = turn + 1 < split_reach ? turn + 1 : 0;
    }
}
#endif
