"""``python -m censcore`` is the command line, ``censcore``."""

from censcore.cli import main

if __name__ == "__main__":
    main()
