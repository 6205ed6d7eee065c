"""Plot3D files in every form that programs write, of arrays x, y(, z), each (nk, nj, ni)."""

import numpy as np

FORMS = ("text", "records", "stream")


def write(path, blocks, form="records", real="f8", order="<", blanking=None, single=False) -> None:
    """`blocks`: per block x, y, z, or x, y for the layout of two dimensions; `blanking`: per block integers."""
    sizes = [list(reversed(nodes[0].shape))[: len(nodes)] for nodes in blocks]
    parts = [] if single else [np.array([len(blocks)], "i4")]
    parts.append(np.array(sizes, "i4").ravel())
    for n, nodes in enumerate(blocks):
        held = [np.stack(nodes).ravel().astype(real)]
        if blanking is not None:
            held.append(blanking[n].ravel().astype("i4"))
        parts.append(held)
    if form == "text":
        lines = [
            " ".join(str(v) for v in (np.concatenate(p) if isinstance(p, list) else p)) for p in parts[: -len(blocks)]
        ]
        for held in parts[-len(blocks) :]:
            lines += [" ".join(str(v) for v in array) for array in held]
        path.write_text("\n".join(lines) + "\n")
        return
    content = b""
    for part in parts:
        arrays = part if isinstance(part, list) else [part]
        data = b"".join(a.astype(a.dtype.newbyteorder(order)).tobytes() for a in arrays)
        mark = np.array(len(data), order + "i4").tobytes() if form == "records" else b""
        content += mark + data + mark
    path.write_bytes(content)
