"""What is left after a list of entries."""


def balance(entries):
    """Return the cents that remain when every entry has been applied, oldest first."""
    total = 0
    for entry in entries:
        total += entry.cents
    return total
