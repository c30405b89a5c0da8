"""`python -m stepsim run ...` is `stepsim run ...`, of the program that this package carries or finds."""

import os
import sys

from stepsim import Error, program


def main() -> None:
    try:
        found = program()
    except Error as error:
        sys.exit(f"stepsim: {error}")
    os.execv(found, [found, *sys.argv[1:]])


if __name__ == "__main__":
    main()
