"""The entries of a ledger."""

import unittest

from ledger.entries import Entry


class EntryTest(unittest.TestCase):
    """What an entry may be."""

    def test_an_unknown_kind_is_refused(self):
        """Only deposits and withdrawals exist."""
        with self.assertRaises(ValueError):
            Entry("gift", 1)

    def test_a_negative_amount_is_refused(self):
        """The sign is in the kind."""
        with self.assertRaises(ValueError):
            Entry("deposit", -1)
