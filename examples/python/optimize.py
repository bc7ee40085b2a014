"""Makes one model faster.

usage: optimize.py MODEL.onnx OUTPUT.onnx [DEVICE]
At the server that AUTOGRAPH_SERVER names; without one, inside the installed `autograph` program.
"""

import sys

import autograph


def main() -> int:
    """Returns the exit code."""
    if len(sys.argv) not in (3, 4):
        print(__doc__, file=sys.stderr)
        return 2
    device = sys.argv[3] if len(sys.argv) == 4 else "cpu"
    try:
        result = autograph.optimize(sys.argv[1], device=device)
    except autograph.AutoGraphError as error:
        print(error, file=sys.stderr)
        return 1
    result.save(sys.argv[2])
    print(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
