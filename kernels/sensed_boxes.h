// Where the hybrid form has something to do, for GPUs: a list of boxes of nodes. A box is listed when the shock sensor is
// above 0 at a node, or a ghost, that changes a rate in it. Whoever finds such a node lists the box, in whatever order; no
// result depends on it.
#if HX_SENSORS && !defined(HX_CPU)
constexpr int box_i = HX_TILE_I;
constexpr int box_j = HX_TILE_J;
constexpr int box_k = 4;

HD int boxes_along(int n, int nodes) { return (n + nodes - 1) / nodes; }

// Numbers of a block of n0 x n1 x n2 nodes: that of the listed boxes, that of the thread blocks that have done theirs, the
// listed boxes, and for each box the directions along which it is listed, as bits.
struct SensedBoxes {
    int *numbers;
    int n0, n1, n2;

    HD int along(int d) const {
        return d == 0 ? boxes_along(n0, box_i) : d == 1 ? boxes_along(n1, box_j) : boxes_along(n2, box_k);
    }
    HD int &listed(int box) const { return numbers[2 + box]; }
    HD int &marked(int box) const { return numbers[2 + along(0) * along(1) * along(2) + box]; }
    // What is there, which gets the bits of `value`, or increases by it.
    static HD int set(int &there, int value) {
#if defined(__CUDA_ARCH__)
        return atomicOr(&there, value);
#else
        return __atomic_fetch_or(&there, value, __ATOMIC_RELAXED);
#endif
    }
    static HD int add(int &there, int value) {
#if defined(__CUDA_ARCH__)
        return atomicAdd(&there, value);
#else
        return __atomic_fetch_add(&there, value, __ATOMIC_RELAXED);
#endif
    }
    HD void list(int box, int d) const {
        int &mark = marked(box);
        if (!(*const_cast<volatile int *>(&mark) & 1 << d) && set(mark, 1 << d) == 0) listed(add(numbers[0], 1)) = box;
    }
    // Lists the boxes with nodes on the line along d through node (i, j, k) whose rates depend on the flux that reads it.
    HD void list_along(int d, int i, int j, int k) const {
        const int at[3] = {i, j, k}, n[3] = {n0, n1, n2}, nodes[3] = {box_i, box_j, box_k};
        int place[3];
        for (int e = 0; e < 3; ++e) place[e] = at[e] / nodes[e];
        const int low = at[d] > split_reach ? at[d] - split_reach : 0;
        const int high = at[d] + split_reach < n[d] ? at[d] + split_reach : n[d] - 1;
        for (place[d] = low / nodes[d]; place[d] * nodes[d] <= high; ++place[d])
            list(place[0] + along(0) * (place[1] + along(1) * place[2]), d);
    }
    // The same along the directions that the block has, for a thread that passes nodes with k rising: `done` is what the
    // last call gave, twice the plane of boxes of its node and 1 if that ahead is listed along k, or -2.
    HD int list_column(int i, int j, int k, bool along_i, bool along_j, bool along_k, int done) const {
        const int own = 2 * (k / box_k), now = own + ((k + split_reach) / box_k > k / box_k);
        if (done >= now) return done;
        if (done < own && along_i) list_along(0, i, j, k);
        if (done < own && along_j) list_along(1, i, j, k);
        if (along_k) list_along(2, i, j, k);
        return now;
    }
};

// Ghosts of the directions with more than one node: k is the face, (i, j) a node of it if there is one.
KERNEL(sensed_ghosts, int i, int j, int k, int corner, int sj, int sk, int n0, int n1, int n2, const_work_field<1> sensor,
       int *boxes) {
    const int d = k / 2, n[3] = {n0, n1, n2}, first = d == 0, second = d == 2 ? 1 : 2;
    if (n[d] == 1 || i >= n[first] || j >= n[second]) return;
    int at[3];
    at[first] = i, at[second] = j;
    at[d] = k % 2 ? n[d] : -1;
    const long long p = corner + at[0] + (long long)at[1] * sj + (long long)at[2] * sk;
    const long long outwards = (d == 0 ? 1 : d == 1 ? sj : sk) * (k % 2 ? 1ll : -1ll);
    bool found[split_reach], any = false;  // all are on their way at once
    for (int s = 0; s < split_reach; ++s) any |= found[s] = load<real>(sensor + p + s * outwards) > real(0);
    if (!any) return;
    for (int s = 0; s < split_reach; ++s)
        if (found[s]) {
            at[d] = k % 2 ? n[d] + s : -1 - s;
            SensedBoxes{boxes, n0, n1, n2}.list_along(d, at[0], at[1], at[2]);
        }
}

// Nodes of a box with one more ahead and behind along one direction; the half point behind node s of a line is at s - 1.
constexpr int box_places = box_i * box_j * box_k + 2 * box_i * box_j + 2 * box_i * box_k;
static_assert(box_j * box_k <= box_i * (box_j + box_k), "those along i fit, too");
constexpr int hybrid_boxes_own = 2 * gas_variables * box_places;
constexpr int hybrid_boxes_blocks = 2;

// The places of a box for the direction d.
struct BoxLines {
    int li, lj, lk, hi, hj, places, step, last;  // nodes along i, j, k; places along i and j, all; from one to the next; the last
    long long first, sd;                         // the node at place 0; stride of nodes

    HD BoxLines(const SensedBoxes &found, int box, int d, int corner, int sj, int sk) {
        const int row = box / found.along(0), begin_i = box % found.along(0) * box_i;
        const int begin_j = row % found.along(1) * box_j, begin_k = row / found.along(1) * box_k;
        li = found.n0 - begin_i < box_i ? found.n0 - begin_i : box_i;
        lj = found.n1 - begin_j < box_j ? found.n1 - begin_j : box_j;
        lk = found.n2 - begin_k < box_k ? found.n2 - begin_k : box_k;
        hi = li + 2 * (d == 0), hj = lj + 2 * (d == 1), places = hi * hj * (lk + 2 * (d == 2));
        step = d == 0 ? 1 : d == 1 ? hi : hi * hj, last = (d == 0 ? li : d == 1 ? lj : lk) + 1;
        sd = d == 0 ? 1 : d == 1 ? sj : sk;
        first = corner + begin_i + (long long)begin_j * sj + (long long)begin_k * sk - sd;
    }
    HD long long node(int at, int sj, int sk) const {
        return first + at % hi + (long long)(at / hi % hj) * sj + (long long)(at / (hi * hj)) * sk;
    }
    HD int along(int at) const { return at / step % (last + 1); }
};

// A block of threads takes listed boxes: to their rates comes the difference of the hybrid fluxes (hybrid.h) from the split
// ones. In one direction after the other it lists the half points where the sensor is above 0, interpolates at the nodes
// beside these, computes the fluxes, a thread each, then the rates. Fluxes between two boxes are computed in both, with the
// same outcome. sf: stride of the directions of `fields`, or 0.
TILE_KERNEL(hybrid_boxes, int i, int j, int k, int corner, int sj, int sk, int n0, int n1, int n2, stride sv, stride sf,
            const_state_field<gas_variables> q, const_work_field<9> m, const_work_field<HX_FLUX_FIELDS> fields,
            const_work_field<HX_SENSORS> sensor, rate_field<gas_variables> r, int *boxes) {
    BLOCK_MEMORY(memory, hybrid_boxes_own);
    SHARED unsigned short half_points[box_places], nodes[box_places];
    SHARED mark asked[box_places], rough[HX_LIMITER ? box_places : 1];
    SHARED int counts[2];
    const SensedBoxes found = {boxes, n0, n1, n2};
    const int all = boxes[0], blocks = ni / HX_TILE_I;
    // the state behind a half point and then its flux, and the state ahead of it
    const auto minus = [&](int v, int at) -> real & { return memory[v * box_places + at]; };
    const auto plus = [&](int v, int at) -> real & { return memory[(gas_variables + v) * box_places + at]; };
    (void)nj, (void)j, (void)k, (void)plus, (void)rough, (void)nodes;
    // Read again at every use, so that what depends on it is computed again and not kept in registers.
    SHARED volatile int now[2];
    const auto lines = [&] { return BoxLines(found, now[0], now[1], corner, sj, sk); };
    for (int turn = i / HX_TILE_I; turn < all; turn += blocks) {
        const int directions = found.marked(found.listed(turn));
        ROLLED for (int d = 0; d < 3; ++d) {
            if (!(directions & 1 << d)) continue;
            THREADS {
                if (thread == 0) now[0] = found.listed(turn), now[1] = d, counts[0] = counts[1] = 0;
            }
            THREADS {
                const BoxLines box = lines();
                for (int at = thread; at < box.places; at += HX_TILE_THREADS) {
                    const work_real *const own = sensor + box.node(at, sj, sk);
                    asked[at] = box.along(at) < box.last &&
                                hybrid_share<real>([&](int s) { return load<real>(own + s * box.sd); }) > real(0);
                }
            }
            THREADS {
                const BoxLines box = lines();
                for (int at = thread; at < box.places; at += HX_TILE_THREADS) {
                    if (asked[at])
                        half_points[SensedBoxes::add(counts[0], 1)] = (unsigned short)at;
                    else
                        for (int v = 0; v < gas_variables; ++v) minus(v, at) = real(0);
#ifdef HX_INTERPOLATES_NODES
                    if (asked[at] || (box.along(at) && asked[at - box.step])) nodes[SensedBoxes::add(counts[1], 1)] = (unsigned short)at;
#endif
                }
            }
            if (counts[0] == 0) continue;
#ifdef HX_INTERPOLATES_NODES
            THREADS {
                for (int n = thread; n < counts[1]; n += HX_TILE_THREADS) {
                    const int at = nodes[n];
                    const BoxLines box = lines();
                    const long long p = box.node(at, sj, sk), sd = box.sd;
                    const work_real *const area = m + 3 * now[1] * sv;
                    real through[3], behind[gas_variables], ahead[gas_variables];
                    for (int c = 0; c < 3; ++c) through[c] = load<real>(area + c * sv + p);
                    store_rough(rough + (HX_LIMITER ? at : 0),
                                interpolate([&](int s, int v) { return load<real>(q + v * sv + p + s * sd); }, through, ahead, behind));
                    if (asked[at])
                        for (int v = 0; v < gas_variables; ++v) minus(v, at) = ahead[v];
                    const int before = at - box.step;
                    if (box.along(at) && asked[before])
                        for (int v = 0; v < gas_variables; ++v) plus(v, before) = behind[v];
                }
            }
#endif
            THREADS {
                for (int h = thread; h < counts[0]; h += HX_TILE_THREADS) {
                    const int at = half_points[h], d = now[1];
                    const BoxLines box = lines();
                    const long long p = box.node(at, sj, sk), sd = box.sd;
                    const work_real *const area = m + 3 * d * sv;
                    real split[gas_variables], flux[gas_variables];
#ifdef HX_INTERPOLATES_NODES
                    const auto states = [&](real *left, real *right) -> Rough<real> {
                        for (int v = 0; v < gas_variables; ++v) left[v] = minus(v, at), right[v] = plus(v, at);
                        return either(load_rough<real>(rough + (HX_LIMITER ? at : 0)),
                                      load_rough<real>(rough + (HX_LIMITER ? at + box.step : 0)));
                    };
                    split_flux_at(p, sd, sv, q, area, fields + d * sf, sensor, states, split, flux);
#else
                    split_flux_at(p, sd, sv, q, area, fields + d * sf, sensor, split, flux);
#endif
                    for (int v = 0; v < gas_variables; ++v) minus(v, at) = flux[v] - split[v];
                }
            }
            THREADS {
                const BoxLines box = lines();
                for (int l = thread; l < box.li * box.lj * box.lk; l += HX_TILE_THREADS) {
                    const int x = l % box.li, y = l / box.li % box.lj, z = l / (box.li * box.lj);
                    const int at = x + box.hi * (y + box.hj * z), ahead = at + box.step;
                    if (!asked[at] && !asked[ahead]) continue;
                    rate_real *const rate = r + box.first + box.sd + x + (long long)y * sj + (long long)z * sk;
                    for (int v = 0; v < gas_variables; ++v)
                        store(rate + v * sv, load<real>(rate + v * sv) + (minus(v, at) - minus(v, ahead)));
                }
            }
        }
        THREADS {
            if (thread == 0) found.marked(found.listed(turn)) = 0;
        }
    }
    THREADS {
        if (thread == 0 && SensedBoxes::add(boxes[1], 1) == blocks - 1) boxes[0] = boxes[1] = 0;
    }
}
#endif
