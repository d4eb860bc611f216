"""`python -m pyjobset` is `jobset`."""

from pyjobset.cli.main import run

if __name__ == "__main__":
    run()
