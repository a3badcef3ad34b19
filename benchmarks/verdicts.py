"""How often perfflow is wrong, what it misses, and how long it takes: an experiment on this machine, part by part.

    python -m benchmarks.verdicts same                 # one part; see below
    python -m benchmarks.verdicts same --count 5 --out /tmp/try
    python -m benchmarks.verdicts table                # dev/experiments/verdicts.md from the log

Every trial is a line that is added to DIR/verdicts.jsonl. A part that was cut goes on where it stopped, and one that is
complete does nothing, so that what is counted is always the first run. Another seed is another experiment: its DIR must
be new. Parts:

{parts}
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.layout_experiment import trials as layout_trials
from benchmarks.verdict_experiment import summary, trials
from benchmarks.verdict_experiment.log import ExperimentPart, OtherSeedError, Session, read

OUT = Path(__file__).parents[1] / "dev" / "experiments"
TABLE = "table"


@dataclass(frozen=True, slots=True)
class Planned:
    """One part, and how many trials of each of its kinds are a full run."""

    run: ExperimentPart
    count: int


PARTS: Mapping[str, Planned] = {
    "same": Planned(trials.same, 1000),
    "slower": Planned(trials.slower, 60),
    "peers": Planned(trials.peers, 25),
    "waits": Planned(trials.waits, 20),
    "record": Planned(trials.record, 120),
    "suites": Planned(trials.suites, 200),
    "blocks": Planned(trials.blocks, 1),
    "suites-live": Planned(trials.suites_live, 10),
    "layouts": Planned(layout_trials.unchanged, 40),
    "layouts-slower": Planned(layout_trials.slower, 20),
}


def main() -> None:
    """Run one part, or write the tables."""
    listed = "\n".join(f"    {name} ({part.count}): {_first_line(part)}" for name, part in PARTS.items())
    text = str(__doc__).format(parts=listed)
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=[*PARTS, TABLE], metavar="PART", help="a part's name, or table")
    parser.add_argument("--count", type=int, help="trials of each kind; the number after the part's name by default")
    parser.add_argument(
        "--share", default="1/1", metavar="K/N", help="every N-th trial from the K-th on; run one without it last"
    )
    parser.add_argument("--seed", type=int, default=20261123)
    parser.add_argument("--out", type=Path, default=OUT, metavar="DIR", help="folder of the log (dev/experiments)")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.part == TABLE:
        (options.out / "verdicts.md").write_text(summary.tables(read(options.out / "verdicts.jsonl")))
        return
    planned = PARTS[options.part]
    count = planned.count if options.count is None else options.count
    with tempfile.TemporaryDirectory(prefix="verdicts-") as folder:
        share = [int(number) for number in options.share.split("/")]
        session = Session(options.part, count, options.seed, options.out, Path(folder), (share[0], share[1]))
        try:
            to_do = session.begin()
        except OtherSeedError as error:
            sys.exit(str(error))
        if to_do:
            planned.run(session)
            session.end()


def _first_line(part: Planned) -> str:
    return str(part.run.__doc__).partition("\n")[0]


if __name__ == "__main__":
    main()
