"""Snapshots that are held in memory, or in a file where they are too many."""

import numpy as np
import pytest

from hiresx import HiresxError
from hiresx.post import modes, snapshots


@pytest.mark.parametrize("held", [0, 1 << 20])
@pytest.mark.parametrize("at_once", [1, 7, 100])
def test_all_times_of_some_places_come_back(monkeypatch, held, at_once):
    monkeypatch.setattr(snapshots, "HELD", held)
    values = np.random.default_rng(1).standard_normal((23, 31))
    kept = snapshots.Snapshots(23, 31)
    kept.fill(row.astype(">f4").astype(float) if n == 5 else row for n, row in enumerate(values))
    for _ in range(2):
        found = list(kept.columns(at_once))
        assert [part.start for part, _ in found] == list(range(0, 31, at_once))
        assert np.concatenate([part for _, part in found], axis=1) == pytest.approx(values, abs=1e-6)


@pytest.mark.parametrize("held", [0, 1 << 20])
def test_single_precision_stays_what_it_is(monkeypatch, held):
    monkeypatch.setattr(snapshots, "HELD", held)
    values = np.random.default_rng(2).standard_normal((9, 13)).astype("f4")
    kept = snapshots.Snapshots(9, 13, "f4")
    kept.fill(values)
    parts = [part for _, part in kept.columns(4)]
    assert parts[0].dtype == np.float64 and kept._held.dtype == np.float32
    assert isinstance(kept._held, np.memmap) == (not held)
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), values)


def test_a_full_disk_is_said(monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(snapshots, "HELD", 0)
    monkeypatch.setattr(snapshots.os, "posix_fallocate", full)
    with pytest.raises(HiresxError, match="No space left") as caught:
        snapshots.Snapshots(3, 5)
    assert "TMPDIR" in caught.value.hint


def test_a_shape_is_the_transform_at_its_line():
    """The transform at one frequency, written out, is that of all of them."""
    values = np.random.default_rng(3).standard_normal((64, 5))
    found = modes.spod(lambda: [(values, np.ones(5))], 64, 0.1, 16)
    assert list(found.starts) == [0, 8, 16, 24, 32, 40, 48]
    transforms = modes._transforms(values, 16, found.starts, found.window)
    for line in (1, 4, 8):
        wanted = np.einsum("bn,bm->mn", transforms[:, line], found.expansion[line, :, :2])
        assert found.shape(values, line, 2) == pytest.approx(wanted, abs=1e-12)
