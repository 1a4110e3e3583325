from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from goalkeeper.pi.jsonl import HEAD_BYTES, Overlong, RecordSplitter, decode


def test_a_record_ends_only_at_lf_and_loses_a_cr_before_it() -> None:
    data = "a\u2028b\x85\x0bc\r\n\nd\rd\n".encode()
    assert RecordSplitter().feed(data) == ["a\u2028b\x85\x0bc".encode(), b"d\rd"]


@given(st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\n", b"").replace(b"\r", b""))), st.data())
def test_the_pieces_in_which_a_stream_arrives_do_not_matter(records: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(record + b"\n" for record in records)
    splitter = RecordSplitter()
    found: list[bytes | Overlong] = []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += splitter.feed(stream[:size])
        stream = stream[size:]
    assert found == [record for record in records if record]
    assert splitter.pending == 0


def test_a_record_far_above_64_kib_is_read_whole() -> None:
    record = b"x" * 5_000_000
    assert RecordSplitter().feed(record + b"\n") == [record]


def test_a_record_above_the_maximum_is_reported_and_the_stream_goes_on() -> None:
    splitter = RecordSplitter(maximum=10_000)
    found: list[bytes | Overlong] = []
    for _ in range(100):
        found += splitter.feed(b"y" * 1000)
    found += splitter.feed(b"\nnext\n")
    assert found == [Overlong(100_000, b"y" * HEAD_BYTES), b"next"]


def test_a_torn_last_record_is_held_back() -> None:
    splitter = RecordSplitter()
    assert splitter.feed(b"whole\nto") == [b"whole"]
    assert splitter.pending == 2
    assert splitter.feed(b"rn\n") == [b"torn"]


def test_bytes_that_are_not_utf_8_are_replaced() -> None:
    assert decode(b"a\x90b") == "a\ufffdb"
