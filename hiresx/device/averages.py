"""What the kernels `average_reynolds` and `average_favre` keep of every node, in their order."""

# The means first, then the second moments.
MEANS = {"reynolds": ("rho", "u", "v", "w", "p", "T"), "favre": ("rho", "u", "v", "w", "T")}
MOMENTS = {
    "reynolds": ("rho_rho", "u_u", "v_v", "w_w", "p_p", "T_T", "u_v", "u_w", "v_w"),
    "favre": ("u_u", "v_v", "w_w", "u_v", "u_w", "v_w", "u_T", "v_T", "w_T"),
}
