"""What an earlier run of the same application had learned: a driver that restarts without a run
folder of its own choosing starts in a new one, and goes on from there.
"""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

from foretide.errors import JournalError
from foretide.journal import Run, read_lines
from foretide.learned import learned_path

log = logging.getLogger(__name__)


def earlier_run(runs: Path, application: str | None) -> Path | None:
    """The journal of the newest run of the same application under ``runs`` that learned something;
    None when there is none.
    """
    for learned in sorted(runs.glob("attach-*/learned-micro-batch.json"), reverse=True):
        journal = learned.with_name("journal.jsonl")
        try:
            _, run = next(read_lines(journal))
        except (JournalError, StopIteration):
            continue
        if isinstance(run, Run) and run.settings.get("application") == application:
            return journal
    return None


def continue_from(earlier: Path | None, journal: Path) -> None:
    """Give a new run what an earlier one had learned; not being able to only costs the memory."""
    if earlier is None:
        return
    name = learned_path(journal, "micro-batch").name
    try:
        journal.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(earlier.with_name(name), journal.with_name(name))
    except OSError as error:
        log.warning("what %s had learned could not be copied: %s", earlier.parent, error)
    else:
        log.info("foretide attach goes on with what %s had learned", earlier.parent)
