"""`python -m clpapers.cli`, for `clpapers` where that is not on the path."""

import sys

from clpapers.cli import main

sys.exit(main())
