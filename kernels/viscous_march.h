// viscous_primitives and viscous_flux in one kernel for GPUs, for blocks in which the ghosts of the primitives follow
// from those of the state. A block of threads owns a tile of columns, one for each thread, and marches along k. The
// state of the next plane, with the ghosts of the tile along i and j, is fetched while fluxes are computed
// `viscous_reach` planes behind. Its primitives are computed once, in memory that the block shares.
#include "tile_plane.h"

#if defined(HX_VISCOUS) && !defined(HX_CPU) && !HX_EDDY_FIELDS
// Numbers of nodes: of a row of a tile with its ghosts, and of all its rows. Wide tiles make long pieces of memory.
constexpr int flux_row = HX_WIDE_I + 2 * viscous_reach;
constexpr int flux_nodes = flux_row * HX_WIDE_J + 2 * viscous_reach * flux_row;
// Planes between that of the fluxes and the one that arrives. The state of the latter has one variable more than the
// primitives, which are stored in its place.
constexpr int flux_planes = viscous_reach + 2;
constexpr int viscous_march_own = flux_planes * gradient_variables * flux_nodes + flux_nodes;
constexpr int viscous_march_blocks = 2;  // three are slower (H200, square tiles: 0.097 ns a point, not 0.070)

typedef TilePlane<viscous_reach, HX_WIDE_I, HX_WIDE_J> FluxTile;

// Marches along columns of n nodes, in chunks of `chunk`, in blocks with three directions. flux: as for viscous_flux
TILE_KERNEL(viscous_march, int i, int j, int k, int o, int sj, int sk, int n, int chunk, stride sv,
            const_state_field<conserved_variables> q, const_work_field<9> m, const_work_field<1> jacobian,
            real inverse_reynolds, work_field<3 * gradient_variables> flux) {
    BLOCK_MEMORY(memory, viscous_march_own);
    PRIVATE(real, passed, viscous_reach * gradient_variables);  // of the nodes that a thread has passed, the nearest first
    const auto node_at = [&](int plane, int v, int at) -> real & {
        const int row = v < gradient_variables ? plane * gradient_variables + v : flux_planes * gradient_variables;
        return memory[row * flux_nodes + at];
    };
    const int begin = k * chunk, end = n - begin < chunk ? n : begin + chunk;
    const long long corner = o + i + (long long)j * sj;
    const FluxTile tile = {i, j, ni, nj, true, true};
    for (int l = begin - viscous_reach, next = 0; l <= end + viscous_reach; ++l) {
        // plane l arrives; fluxes are those of plane `own`, which lies `viscous_reach` planes behind the last one there
        const int own = l - 1 - viscous_reach;
        const auto place_of = [&](int s) { return next + 1 + s < flux_planes ? next + 1 + s : next + 1 + s - flux_planes; };
        const bool more = l < end + viscous_reach;
        THREADS {
            const int x = thread % HX_WIDE_I, y = thread / HX_WIDE_I, at = FluxTile::place(x, y);
            if (more)
                tile.bring(thread, l >= begin && l < end, [&](int x, int y, bool, bool) {
                    const long long p = corner + x + (long long)y * sj + (long long)l * sk;
                    for (int v = 0; v < conserved_variables; ++v)
                        TILE_FETCH(node_at(next, v, FluxTile::place(x, y)), q + v * sv + p);
                });
            if (i + x < ni && j + y < nj && own >= begin - viscous_reach && own < end) {
                const long long p = corner + x + (long long)y * sj + (long long)own * sk;
                real *const behind = MINE(passed);
                real node[gradient_variables];
                for (int v = 0; v < gradient_variables; ++v) node[v] = node_at(place_of(0), v, at);
                if (own >= begin) {
                    real area[3][3], gradient[gradient_variables][3];
                    for (int d = 0; d < 3; ++d)
                        for (int c = 0; c < 3; ++c) area[d][c] = load<real>(m + (3 * d + c) * sv + p);
                    const real scale = load<real>(jacobian + p);
                    for (int v = 0; v < gradient_variables; ++v) {
                        const real xi = nodal_derivative<real>([&](int s) { return node_at(place_of(0), v, at + s); }) * scale;
                        const real eta =
                            nodal_derivative<real>([&](int s) { return node_at(place_of(0), v, at + s * flux_row); }) * scale;
                        const real zeta = nodal_derivative<real>([&](int s) {
                            return s > 0 ? node_at(place_of(s), v, at) : behind[(-s - 1) * gradient_variables + v];
                        }) * scale;
                        for (int c = 0; c < 3; ++c)
                            gradient[v][c] = area[0][c] * xi + area[1][c] * eta + area[2][c] * zeta;
                    }
                    const ViscousStress<real> stress = viscous_stress(node, gradient, real(0), inverse_reynolds);
                    for (int d = 0; d < 3; ++d)
                        store_viscous_flux(area[d], stress, gradient, sv, flux + gradient_variables * d * sv + p);
                }
                for (int s = viscous_reach - 1; s >= 0; --s)
                    for (int v = 0; v < gradient_variables; ++v)
                        behind[s * gradient_variables + v] = s ? behind[(s - 1) * gradient_variables + v] : node[v];
            }
            FETCHED;
            if (more)
                tile.bring(thread, l >= begin && l < end, [&](int x, int y, bool, bool) {
                    const int to = FluxTile::place(x, y);
                    real state[conserved_variables], w[gradient_variables];
                    for (int v = 0; v < conserved_variables; ++v) {
                        TILE_ARRIVE(node_at(next, v, to), q + v * sv + (corner + x + (long long)y * sj + (long long)l * sk));
                        state[v] = node_at(next, v, to);
                    }
                    primitives_of_state(state, w);
                    for (int v = 0; v < gradient_variables; ++v) node_at(next, v, to) = w[v];
                });
        }
        next = (next + 1) % flux_planes;
    }
}
#endif
