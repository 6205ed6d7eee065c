// The segments of lines in which the shock sensor changes rates, for GPUs: a list for each direction, in any order, on which
// no result depends. Segments do not cross the boxes of nodes that share a row of the list's numbering: those are tiles
// (split_march.h) of `segment_planes` planes.
#if HX_SENSORS && !defined(HX_CPU)
constexpr int segment_planes = 16;
constexpr int longest_segment = 16;
static_assert(HX_TILE_I <= longest_segment && HX_TILE_J <= longest_segment && segment_planes <= longest_segment, "");
static_assert(HX_TILE_I >= split_reach && HX_TILE_J >= split_reach, "a sensor changes rates in the next tile at most");

// `count` before it increases by `more`.
HD int add_to(int *count, int more) {
#if defined(__CUDA_ARCH__)
    return atomicAdd(count, more);
#else
    return __atomic_fetch_add(count, more, __ATOMIC_RELAXED);
#endif
}

// A box of nodes and a direction d of its lines: nodes first..last-1 of n along it.
struct SegmentBox {
    int d, at[3], n[3], first, last, length;

    HD SegmentBox(int box, int d, int n0, int n1, int n2) : d(d), n{n0, n1, n2} {
        const int along_i = (n0 + HX_TILE_I - 1) / HX_TILE_I, along_j = (n1 + HX_TILE_J - 1) / HX_TILE_J;
        at[0] = box % along_i * HX_TILE_I, at[1] = box / along_i % along_j * HX_TILE_J;
        at[2] = box / (along_i * along_j) * segment_planes;
        first = d == 0 ? at[0] : d == 1 ? at[1] : at[2], length = d == 0 ? n0 : d == 1 ? n1 : n2;
        const int whole = d == 0 ? HX_TILE_I : d == 1 ? HX_TILE_J : segment_planes;
        last = length - first < whole ? length : first + whole;
    }
    // What may change rates in it: bit 0 for sensors of nodes, 1 and 2 for those of ghosts behind and ahead.
    HD int near(const mark *tiles, int sj, int sk, int march) const {
        const int beside = d == 0 ? HX_TILE_I : d == 1 ? HX_TILE_J : 0, beyond = d == 2 ? split_reach : 0;
        const mark *const own = tiles + at[0] + (long long)at[1] * sj;
        bool found = false;
        for (int s = -beside; s <= beside; s += beside ? beside : 1)
            if (d == 2 || (first + s >= 0 && first + s < length))
                found |= senses(own + s * (d == 1 ? (long long)sj : 1ll), at[2] - beyond, at[2] + segment_planes + beyond,
                                n[2], sk, march);
        return int(found) | (first == 0) << 1 | (last + split_reach > length) << 2;
    }
};

// A warp looks for segments along the directions of which `directions` has the bits, in blocks of n0 x n1 x n2
// nodes, the first one at `corner`, in `share` boxes that are `spread` apart, since marked ones lie side by side. counts: of the
// segments of each direction; a segment is two numbers, its first node and how many it has, those of direction d from
// segments[2 * start_d] on. march: planes of a chunk of split_march.
ROW_KERNEL(list_segments, int i, int j, int k, int share, int directions, int corner, int sj, int sk, int n0, int n1, int n2,
           int spread, int march, const_work_field<1> sensor, const_mark_field<1> tiles, int *counts, int *segments,
           int start_0, int start_1, int start_2) {
    constexpr int lines = longest_segment * longest_segment, of_lane = lines / 32;
    SHARED int units[32], near[32], found[32], place[32], nodes[lines], lengths[lines];
    const int boxes = (n0 + HX_TILE_I - 1) / HX_TILE_I * ((n1 + HX_TILE_J - 1) / HX_TILE_J) *
                      ((n2 + segment_planes - 1) / segment_planes);
    (void)j, (void)k;
    const int last = (i + 1) * share < 3 * boxes ? (i + 1) * share : 3 * boxes;
    for (int begin = i * share; begin < last; begin += 32) {
        LANES {
            const int unit = int((long long)(begin + lane) * spread % (3 * boxes)), d = unit / boxes;
            units[lane] = unit, near[lane] = 0;
            if (begin + lane < last && (directions >> d & 1))
                near[lane] = SegmentBox(unit % boxes, d, n0, n1, n2).near(tiles + corner, sj, sk, march);
        }
        for (int l = 0; l < 32; ++l) {
            if (near[l] == 0) continue;
            const int d = units[l] / boxes, bits = near[l];
            const SegmentBox box(units[l] % boxes, d, n0, n1, n2);
            const int across = d == 0 ? HX_TILE_J : HX_TILE_I, other = d == 2 ? HX_TILE_J : segment_planes;
            const int sd = d == 0 ? 1 : d == 1 ? sj : sk, sa = d == 0 ? sj : 1, so = d == 2 ? sj : sk;
            const int na = d == 0 ? n1 - box.at[1] : n0 - box.at[0], no = d == 2 ? n1 - box.at[1] : n2 - box.at[2];
            const work_real *const own = sensor + corner + box.at[0] + (long long)box.at[1] * sj + (long long)box.at[2] * sk;
            const int length = box.last - box.first;
            const auto place_of = [&](int line) { return line % across * sa + line / across * so; };
            const auto there = [&](int line) {
                return line / across < other && line % across < na && line / across < no;
            };
            if (!(bits & 1)) {  // ghosts alone
                LANES {
                    int any = 0;
                    for (int side = 2; side <= 4; side += 2) {
                        if (!(bits & side)) continue;
                        const long long ghost = side == 2 ? -1 : length, further = side == 2 ? -1 : 1;
                        UNROLLED for (int n = 0; n < of_lane; ++n) {
                            const int line = there(lane + 32 * n) ? lane + 32 * n : 0;
                            for (int s = 0; s < split_reach; ++s)
                                any |= load<real>(own + place_of(line) + (ghost + s * further) * sd) > real(0);
                        }
                    }
                    found[lane] = any;
                }
                LANES {
                    if (lane == 0) {
                        near[l] = 0;
                        for (int n = 0; n < 32; ++n) near[l] |= found[n];
                    }
                }
                if (near[l] == 0) continue;
            }
            LANES {
                for (int line = lane; line < lines; line += 32) {
                    int least = longest_segment + split_reach, most = -split_reach - 1;
                    if (there(line)) {
                        real found[longest_segment + 2 * split_reach];  // all on their way at once
                        UNROLLED for (int s = -split_reach; s < longest_segment + split_reach; ++s)
                            found[s + split_reach] = load<real>(
                                own + place_of(line) + (long long)(s < length + split_reach ? s : 0) * sd);
                        UNROLLED for (int s = -split_reach; s < longest_segment + split_reach; ++s)
                            if (s < length + split_reach && found[s + split_reach] > real(0))
                                least = s < least ? s : least, most = s;
                    }
                    least = least > split_reach ? least - split_reach : 0;
                    most = most + split_reach + 1 < length ? most + split_reach + 1 : length;
                    nodes[line] = least, lengths[line] = most - least;
                }
            }
            LANES {
                found[lane] = 0;
                for (int n = 0; n < of_lane; ++n) found[lane] += lengths[lane * of_lane + n] > 0;
            }
            LANES {
                if (lane == 0) {
                    int all = 0;
                    for (int n = 0; n < 32; ++n) place[n] = all, all += found[n];
                    const int first = all ? add_to(counts + d, all) : 0;
                    for (int n = 0; n < 32; ++n) place[n] += first + (d == 0 ? start_0 : d == 1 ? start_1 : start_2);
                }
            }
            LANES {
                for (int line = lane * of_lane, to = place[lane]; line < (lane + 1) * of_lane; ++line) {
                    if (lengths[line] <= 0) continue;
                    segments[2 * to] = int(own - sensor) + place_of(line) + nodes[line] * sd;
                    segments[2 * to + 1] = lengths[line], ++to;
                }
            }
        }
        LANES {}  // all have read `near` and `units`
    }
}
#endif
