"""`python -m greenbeat`: the command line."""

from greenbeat.cli.entry import process

if __name__ == "__main__":
    process()
