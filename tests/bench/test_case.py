from __future__ import annotations

from goalkeeper.bench.case import Row, spread


def test_a_row_is_fine_up_to_its_limit_and_not_beyond() -> None:
    assert Row("x", 150, "ms", 100, "peer", 1.5).ok
    assert not Row("x", 151, "ms", 100, "peer", 1.5).ok


def test_a_row_without_a_reference_or_a_limit_only_informs() -> None:
    assert Row("x", 150, "ms").ok
    assert Row("x", 150, "ms", 100, "peer").ok
    assert Row("x", 150, "ms").ratio is None


def test_the_spread_of_a_single_value_is_that_value() -> None:
    assert spread([3.0], "ms") == "n = 1, 3.0 to 3.0 ms, p90 3.0"
