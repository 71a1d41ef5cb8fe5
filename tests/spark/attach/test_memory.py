"""A new run starts with what the newest run of the same application had learned."""

from pathlib import Path

from foretide.journal import Journal, Run
from foretide.spark.attach.memory import continue_from, earlier_run
from foretide.topology import Operator, Topology


def past(runs: Path, name: str, application: str, learned: str | None) -> Path:
    journal = runs / name / "journal.jsonl"
    run = Run(
        "attach", "attach", Topology((Operator("q"),)), 5.0, 0.0,
        settings={"application": application},
    )  # fmt: skip
    with Journal(journal, run):
        pass
    if learned is not None:
        journal.with_name("learned-micro-batch.json").write_text(learned)
    return journal


def test_the_newest_run_of_the_same_application_that_learned_something(tmp_path: Path) -> None:
    past(tmp_path, "attach-20260101-000000", "mine", "old")
    newest = past(tmp_path, "attach-20260102-000000", "mine", "new")
    past(tmp_path, "attach-20260103-000000", "another", "theirs")
    past(tmp_path, "attach-20260104-000000", "mine", None)
    empty = past(tmp_path, "attach-20260105-000000", "mine", "killed before its first line")
    empty.write_text("")
    assert earlier_run(tmp_path, "mine") == newest
    assert earlier_run(tmp_path, "unknown") is None
    assert earlier_run(tmp_path / "nothing", "mine") is None


def test_what_was_learned_is_copied_and_the_earlier_run_stays(tmp_path: Path) -> None:
    earlier = past(tmp_path, "attach-1", "mine", "learned")
    journal = tmp_path / "attach-2" / "journal.jsonl"
    continue_from(earlier, journal)
    assert journal.with_name("learned-micro-batch.json").read_text() == "learned"
    assert earlier.with_name("learned-micro-batch.json").exists()
    continue_from(None, tmp_path / "attach-3" / "journal.jsonl")
    assert not (tmp_path / "attach-3").exists()


def test_a_memory_that_cannot_be_copied_is_a_warning(tmp_path: Path, caplog) -> None:
    earlier = past(tmp_path, "attach-1", "mine", None)
    continue_from(earlier, tmp_path / "attach-2" / "journal.jsonl")
    assert "could not be copied" in caplog.text
