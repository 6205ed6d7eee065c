"""PCI classes and vendors: which devices are GPUs for computing, which are virtual functions, and the names of the
others."""

NVIDIA, AMD = 0x10DE, 0x1002
# A display controller with a slower link (GB/s) is the console of the board, not a GPU to compute on.
COMPUTE_LINK = 3.0
# Device numbers of display controllers that no present library for computing supports: NVIDIA's before Kepler (driver
# 470), AMD's before Polaris and Fiji (ROCm) and those inside its CPUs. They drive the displays of boards.
_NVIDIA_OLD = ((0x0000, 0x0FC0), (0x1040, 0x1180), (0x1200, 0x1280))
_AMD_OLD = (
    (0x0000, 0x66A0), (0x6700, 0x67C0), (0x6800, 0x6860), (0x6880, 0x6900), (0x9400, 0x10000),
)  # fmt: skip
# Virtual functions by device number, if no name identifies them: Mellanox ConnectX-3 to -8 and BlueField, Intel and
# Broadcom.
_VIRTUAL = {
    0x15B3: {0x1004, 0x1012, 0x1014, 0x1016, 0x1018, 0x101A, 0x101C, 0x101E},
    0x8086: {0x10CA, 0x10ED, 0x1515, 0x1520, 0x154C, 0x1565, 0x15A8, 0x15C5, 0x1889, 0x37CD},
    0x14E4: {0x1606, 0x1609, 0x16D3, 0x16DC, 0x16E1, 0x1806, 0x1807, 0x1808},
}
# Devices that `lstopo` also shows, by class and, if necessary, subclass.
_KINDS = {
    0x0101: "IDE", 0x0104: "RAID", 0x0106: "SATA", 0x0107: "SAS", 0x0108: "NVMe", 0x01: "storage",
    0x0200: "Ethernet", 0x0207: "InfiniBand", 0x0208: "fabric", 0x0280: "network", 0x02: "network",
    0x0300: "VGA", 0x0302: "3D controller", 0x0380: "display", 0x03: "display",
    0x0502: "CXL memory", 0x0680: "bridge", 0x0B40: "co-processor", 0x12: "accelerator",
}  # fmt: skip
BRIDGE = 0x0680  # NVSwitches have this class, and many other devices have it too


def is_gpu(kind: int, vendor: int, device: int, link: float | None = None, computes: bool = False) -> bool:
    """Return whether a PCI device is a GPU for computations. `kind`: its PCI class and subclass, such as 0x0302.
    `vendor`, `device`: its PCI ids. `link`: the speed of its PCIe link in GB/s, 0 or None if unknown. `computes`:
    whether CUDA or another library for computing has found the device."""
    if vendor not in (NVIDIA, AMD) or kind >> 8 not in (0x03, 0x12):
        return False
    if computes or kind in (0x0302, 0x1200):
        return True
    old = _NVIDIA_OLD if vendor == NVIDIA else _AMD_OLD
    if any(low <= device < high for low, high in old):
        return False
    # A virtual machine may hide the link of a device that it passes through, and a recording made without root has
    # none.
    return not link or link >= COMPUTE_LINK


def is_virtual(vendor: int, device: int, name: str = "") -> bool:
    """Return whether a network adapter is a virtual function (SR-IOV) of another one, by its name or by its PCI ids
    `vendor` and `device`."""
    return "Virtual Function" in name or device in _VIRTUAL.get(vendor, ())


def kind_name(kind: int) -> str:
    """Return the name of a kind of PCI devices for reports. `kind`: the PCI class and subclass, such as 0x0108. The
    result is "" for kinds that reports leave out."""
    return _KINDS.get(kind) or _KINDS.get(kind >> 8, "")
