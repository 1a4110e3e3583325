"""The balance of a ledger."""

import unittest

from ledger.balance import balance
from ledger.entries import Entry


class BalanceTest(unittest.TestCase):
    """What must remain."""

    def test_an_empty_ledger_has_no_balance(self):
        """Nothing in, nothing left."""
        self.assertEqual(balance([]), 0)

    def test_deposits_add_up(self):
        """Two deposits are added."""
        self.assertEqual(balance([Entry("deposit", 500), Entry("deposit", 250)]), 750)

    def test_a_withdrawal_lowers_the_balance(self):
        """What was taken out is gone."""
        self.assertEqual(balance([Entry("deposit", 500), Entry("withdrawal", 120)]), 380)
