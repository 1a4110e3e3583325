"""`python -m goalkeeper.bench`.

Knows nothing itself; see `goalkeeper.bench.runner`.
"""

import sys

from goalkeeper.bench.runner import main

sys.exit(main())
