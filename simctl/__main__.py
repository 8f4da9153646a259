"""Run the command line as ``python -m simctl``."""

import sys

from slurm_simctl import main

if __name__ == "__main__":
    sys.exit(main())
