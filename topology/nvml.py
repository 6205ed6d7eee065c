"""GPUs, their levels, peer access, NVLinks and utilisation, from NVIDIA's management library (NVML).

NVML does not create a CUDA context, so it can be used before a GPU is chosen. It numbers GPUs in the order of their PCI
bus ids.
"""

import ctypes
import platform
import uuid
from dataclasses import replace
from typing import Any, TypeAlias

from hiresx.base import optional
from hiresx.errors import HiresxError
from hiresx.topology import connection_levels
from hiresx.topology.machine import GPU, Machine, agreed_links, bus_id

# nvml.h: NVML_TOPOLOGY_* are the common ancestors, NVML_P2P_STATUS_* why there is no peer access.
ANCESTORS = {0: "PSB", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
PEER = {0: "OK", 1: "CNS", 2: "GNS", 3: "TNS", 4: "DR", 5: "NS", 6: "U"}
SWITCH_REMOTE = 2
P2P_READ, P2P_WRITE = 0, 1
FABRIC_COMPLETED = 3  # NVML_GPU_FABRIC_STATE_COMPLETED: the GPU has joined its NVLink domain
CPU_WORDS = 128  # of 64 CPUs each: 8192, the most that Linux is built for


# The module pynvml and its handles of GPUs have no types.
Nvml: TypeAlias = Any
Handle: TypeAlias = Any


def library() -> Nvml:
    """Initialise NVML and return the Python module pynvml. Raises HiresxError, which names the missing package or
    driver, if NVML cannot be used."""
    pynvml = optional.import_required("pynvml", "NVML is used through nvidia-ml-py", "pip install nvidia-ml-py")
    try:
        pynvml.nvmlInit()
    except Exception as error:  # NVMLError, or any error of a broken module
        raise HiresxError(f"NVML does not start: {error}", "install the NVIDIA driver; nvidia-smi must work") from None
    return pynvml


def discover(nvml: Nvml = None) -> Machine:
    """Return a description of the NVIDIA GPUs of this machine, as NVML reports them. `nvml`: an initialised module with
    the functions of pynvml, by default pynvml itself. A value is unknown if the driver or GPU does not support the call
    for it. Raises HiresxError if NVML is missing or does not answer."""
    own = nvml is None
    nvml = library() if own else nvml
    try:
        cards = [nvml.nvmlDeviceGetHandleByIndex(n) for n in range(nvml.nvmlDeviceGetCount())]
        devices = [(card, part) for card in cards for part in _slices(nvml, card) or [None]]
        handles, count = [card for card, _ in devices], len(devices)
        gpus = tuple(_gpu(nvml, n, card, part) for n, (card, part) in enumerate(devices))
        pcie = connection_levels.square(count, lambda a, b: _ancestor(nvml, handles[min(a, b)], handles[max(a, b)]))
        problems: list[str] = []
        links, active = _nvlinks(nvml, handles, gpus, problems)

        def peer_of(a: int, b: int) -> str:
            # MIG User Guide, Application Considerations: no copies between GPUs, by PCIe or NVLink.
            return "NS" if gpus[a].mig_uuid or gpus[b].mig_uuid else _peer(nvml, handles[a], handles[b])

        peer = connection_levels.square(count, peer_of)
        matrix = connection_levels.square(
            count, lambda a, b: f"NV{links[a][b]}" if links[a][b] else pcie[a][b] or "SYS"
        )
        gpus = tuple(replace(gpu, links=n or None) for gpu, n in zip(gpus, active, strict=True))
        driver = _text(_ask(nvml, "nvmlSystemGetDriverVersion"))
    except nvml.NVMLError as error:
        raise HiresxError(f"NVML does not answer: {error}", "nvidia-smi says more") from None
    finally:
        if own:
            nvml.nvmlShutdown()
    return Machine(
        source=f"NVML (driver {driver})" if driver else "NVML",
        gpus=gpus,
        levels=matrix,
        pcie=pcie,
        peer=peer,
        nic_levels=tuple(() for _ in range(count)),
        host=platform.node(),
        problems=tuple(problems),
        live=True,
    )


def _ask(nvml: Nvml, name: str, *arguments: Any, default: Any = None) -> Any:
    """Return the result of a function; `default` if this version, driver or GPU does not support it."""
    function = getattr(nvml, name, None)
    if function is None:
        return default
    try:
        return function(*arguments)
    except nvml.NVMLError:
        return default


def _text(value: str | bytes | None) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value or ""


def _slices(nvml: Nvml, card: Handle) -> list[Handle]:
    """Return the MIG slices of a card; an empty list if MIG is off, or no slice has been made yet."""
    mode = _ask(nvml, "nvmlDeviceGetMigMode", card)
    if mode is None or not mode[0]:
        return []
    most = _ask(nvml, "nvmlDeviceGetMaxMigDeviceCount", card, default=0)
    found = [_ask(nvml, "nvmlDeviceGetMigDeviceHandleByIndex", card, n) for n in range(min(int(most), 16))]
    return [part for part in found if part is not None]


def _domain(nvml: Nvml, handle: Handle) -> str:
    """Return the "cluster UUID/clique" of the NVLink domain that a GPU has joined; "" if it is in none."""
    make = getattr(nvml, "c_nvmlGpuFabricInfoV_t", None)
    if make is None:
        return ""
    info = make()
    if _ask(nvml, "nvmlDeviceGetGpuFabricInfoV", handle, ctypes.byref(info)) is None:
        return ""
    cluster = bytes(info.clusterUuid)
    joined = int(info.state) == FABRIC_COMPLETED and int(info.status) == 0 and len(cluster) == 16 and any(cluster)
    return f"{uuid.UUID(bytes=cluster)}/{int(info.cliqueId)}" if joined else ""


def _ancestor(nvml: Nvml, first: Handle, second: Handle) -> str:
    if first is second:  # two slices of one card
        return "PSB"
    return ANCESTORS.get(_ask(nvml, "nvmlDeviceGetTopologyCommonAncestor", first, second), "")


def _peer(nvml: Nvml, first: Handle, second: Handle) -> str:
    """Return "OK" if both reading and writing are possible, or else the reason why not; "" if NVML has no answer."""
    states = [_ask(nvml, "nvmlDeviceGetP2PStatus", first, second, way) for way in (P2P_READ, P2P_WRITE)]
    if None in states:
        return ""
    return PEER.get(max(states), "U")


def _gpu(nvml: Nvml, index: int, handle: Handle, part: Handle | None = None) -> GPU:
    """Return the description of a GPU. `handle`: the handle of the card. `part`: that of its MIG slice."""
    pci = _ask(nvml, "nvmlDeviceGetPciInfo", handle)
    own = handle if part is None else part
    memory = _ask(nvml, "nvmlDeviceGetMemoryInfo", own)
    rates = _ask(nvml, "nvmlDeviceGetUtilizationRates", own)
    mig = _ask(nvml, "nvmlDeviceGetMigMode", handle)
    words = _ask(nvml, "nvmlDeviceGetCpuAffinity", handle, CPU_WORDS)
    generation = _ask(nvml, "nvmlDeviceGetMaxPcieLinkGeneration", handle)
    width = _ask(nvml, "nvmlDeviceGetMaxPcieLinkWidth", handle)
    cpus = None
    if words is not None:
        cpus = frozenset(64 * n + bit for n, word in enumerate(words) for bit in range(64) if int(word) >> bit & 1)
    return GPU(
        index=index,
        bus_id=bus_id(_text(pci.busId)) if pci is not None else "",
        model=_text(_ask(nvml, "nvmlDeviceGetName", own)),
        uuid=_text(_ask(nvml, "nvmlDeviceGetUUID", handle)),
        memory=int(memory.total) if memory is not None else None,
        memory_used=int(memory.used) if memory is not None else None,
        utilisation=int(rates.gpu) if rates is not None else None,
        mig=bool(mig[0]) if mig is not None else None,
        cpus=cpus or None,
        pcie=connection_levels.pcie_speed(generation, width),
        mig_uuid="" if part is None else _text(_ask(nvml, "nvmlDeviceGetUUID", part)),
        domain="" if part is not None else _domain(nvml, handle),
    )


def _nvlinks(
    nvml: Nvml, handles: list[Handle], gpus: tuple[GPU, ...], problems: list[str]
) -> tuple[list[list[int]], list[int]]:
    """Return (NVLinks between GPUs, active NVLinks of each GPU). Links between two GPUs that end at each other count;
    behind a switch the number is the smaller of those of the two GPUs."""
    count = len(handles)
    place = {gpu.bus_id: gpu.index for gpu in gpus if gpu.bus_id and not gpu.mig_uuid}
    divided = {gpu.bus_id for gpu in gpus if gpu.mig_uuid}
    links = [[0] * count for _ in range(count)]
    switched, active = [0] * count, [0] * count
    for a, handle in enumerate(handles):
        for n in range(0 if gpus[a].mig_uuid else connection_levels.MOST_LINKS):
            if not _ask(nvml, "nvmlDeviceGetNvLinkState", handle, n, default=0):
                continue
            active[a] += 1
            remote = _ask(nvml, "nvmlDeviceGetNvLinkRemotePciInfo_v2", handle, n) or _ask(
                nvml, "nvmlDeviceGetNvLinkRemotePciInfo", handle, n
            )
            end = "" if remote is None else bus_id(_text(remote.busId))
            if end in divided:
                continue  # slices cannot use it
            b = place.get(end)
            if b is not None and b != a:
                links[a][b] += 1
            elif _ask(nvml, "nvmlDeviceGetNvLinkRemoteDeviceType", handle, n) in (SWITCH_REMOTE, None):
                switched[a] += 1
    return agreed_links(links, switched, problems), active
