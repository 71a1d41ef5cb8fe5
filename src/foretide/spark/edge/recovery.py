"""What a start finds on disk: goes on from it, heals it, or refuses with one sentence.

Nothing is deleted before an operator's checkpoint and its delivered batches are seen to fit. What a
power cut tore is healed where Spark's replay makes it again exactly: a log that nothing was
delivered from yet, a commit of a delivered batch, a manifest that no reader has used.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from foretide.errors import PipelineFailed
from foretide.spark.edge.checkpoint import Checkpoint
from foretide.spark.edge.outbox import Outbox
from foretide.spark.edge.protocol import Output, Position

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Place:
    """Where one operator keeps what it did. ``written_out``: users' own writers take its batches,
    so a batch must not be made again once they may have seen it.
    """

    operator: str
    checkpoint: Checkpoint
    output: Output
    producers: tuple[str, ...] = ()
    written_out: bool = False


def recover(places: Mapping[str, Place]) -> None:
    """Make every operator ready to go on, or raise PipelineFailed. Nothing but torn ends is removed
    here, and no query has started yet.
    """
    for place in places.values():
        if not place.checkpoint.begun:
            place.output.create()
    for place in places.values():
        heal_manifest(place, places)
        heal_logs(place)
        check(place)
        if isinstance(place.output, Outbox):
            place.output.renew_hint()


def check(place: Place) -> None:
    """Every logged batch was delivered, except perhaps the last one, and every committed batch was:
    anything else on disk is a loss or an old copy.
    """
    place.checkpoint.check()
    last = place.checkpoint.last_batch()
    logged, delivered = -1 if last is None else last, place.output.newest()
    committed = place.checkpoint.last_commit()
    if delivered not in (logged, max(-1, logged - 1)) or committed > delivered:
        raise PipelineFailed(
            f"operator '{place.operator}': the newest batch is {delivered} in its edge directory "
            f"but {logged} is logged and {committed} committed in {place.checkpoint.root} (-1: "
            "none), so one of them is lost or an old copy: nothing was deleted; restore both from "
            "the same moment, or start the pipeline anew in another directory"
        )


def heal_logs(place: Place) -> None:
    """Remove a torn newest commit of a delivered batch, and a torn newest log of a batch that was
    not delivered: Spark replays the one and plans the other again.
    """
    delivered = place.output.newest()
    checkpoint = place.checkpoint
    torn = checkpoint.torn("offsets")
    if torn is not None and delivered < torn and checkpoint.last_commit() < torn:
        checkpoint.remove("offsets", torn)
        log.warning(
            "operator '%s': batch %d was logged and not delivered when the power went; it is "
            "planned again",
            place.operator,
            torn,
        )
    torn = checkpoint.torn("commits")
    if torn is not None and torn <= delivered:
        checkpoint.remove("commits", torn)
        log.warning(
            "operator '%s': the commit of batch %d was torn; Spark sees that it was delivered",
            place.operator,
            torn,
        )
    if delivered < 0 and checkpoint.last_batch() is None:
        checkpoint.remove_torn_metadata()


def heal_manifest(place: Place, places: Mapping[str, Place]) -> None:
    """Drop the newest batch when its manifest is torn and Spark will make the batch again: it is
    logged, not committed, and no reader or writer can have used it.
    """
    outbox, checkpoint = place.output, place.checkpoint
    if not isinstance(outbox, Outbox) or not checkpoint.begun:
        return
    newest = max(outbox.batches(), default=-1)
    if newest < 0 or not outbox.torn(newest):
        return
    used = max(_read_up_to(c, place.operator) for c in places.values())
    logged = checkpoint.last_batch()
    if (
        place.written_out
        or used >= newest
        or logged != newest
        or checkpoint.last_commit() >= newest
    ):
        return  # reading it fails with a sentence
    outbox.drop(outbox.folder(newest))
    log.warning(
        "operator '%s': the manifest of batch %d was torn; Spark makes the batch again",
        place.operator,
        newest,
    )


def _read_up_to(consumer: Place, producer: str) -> int:
    """The newest batch of ``producer`` that a consumer's log names; -1 when there is none."""
    if producer not in consumer.producers or (last := consumer.checkpoint.last_batch()) is None:
        return -1
    if consumer.checkpoint.torn("offsets") == last:
        if last == 0:
            return -1
        last -= 1
    end = consumer.checkpoint.offsets(last).end[-1] or {}
    position = Position.parse(end.get(producer, "0.0"))
    return position.batch if position.files else position.batch - 1
