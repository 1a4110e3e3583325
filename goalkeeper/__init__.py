"""goalkeeper: goal and loop control for pi coding agents."""

__version__ = "0.1.0"
