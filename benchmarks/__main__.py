"""`python -m benchmarks [NAME…]`: runs the named benches, or all."""

import sys
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import report
from benchmarks.harness import Result
from benchmarks.registry import BENCHES

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmark.md"


def main(names: list[str]) -> int:
    """Print a line a bench and update the page. 2 for a name that is none."""
    known = [name for name, _ in BENCHES]
    if unknown := sorted(set(names) - set(known)):
        print(f"no bench is called {unknown[0]}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    results: list[Result] = []
    for name, run in BENCHES:
        if names and name not in names:
            continue
        for result in run():
            print(result.line, flush=True)
            results.append(result)
    report.update(PAGE, results, datetime.now(UTC))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
