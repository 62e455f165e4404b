"""The program, as `python -m hbmsim` and as the command that pip makes."""
import os
import sys

from ._call import program


def main() -> None:
    os.execvp(program, ["hbmsim", *sys.argv[1:]])


if __name__ == "__main__":
    main()
