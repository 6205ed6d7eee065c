"""The CUDA form of the kernels compiles with older versions of NVRTC than the one that the tests run."""

import re

from paths import ROOT

# A lambda with an argument of any type, as `[&](const auto &use)`: NVRTC 13.0 takes it for a function of the host.
GENERIC = re.compile(r"\[[&=\w, ]*\]\s*\([^)]*\bauto\b")


def test_arguments_of_lambdas_have_types():
    """NVRTC 13.0 does not compile others, 13.5 does."""
    assert GENERIC.search("const auto each = [&](int lane, const auto &use) {")
    found = {
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in sorted((ROOT / "kernels").rglob("*.h"))
        for match in GENERIC.finditer(path.read_text())
    }
    assert not found, "\n".join(sorted(found))


def test_copies_to_memory_on_the_chip_have_no_hints_for_caches():
    """The assembler of CUDA 13.0 (NVRTC 13.0.88) makes LDGSTS with registers that do not exist of some of those that
    have one, where the shared address has a part in a uniform register. An H200 ends with an illegal instruction."""
    found = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "kernels").rglob("*.h"))
        if re.search(r"cp\.async\S*cache_hint|createpolicy", path.read_text())
    ]
    assert not found
