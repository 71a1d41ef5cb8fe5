"""Whatever stops a query, as one sentence that says what to do."""

from __future__ import annotations

import errno
import re
from pathlib import Path

from foretide.errors import InvalidConfig, PipelineFailed
from foretide.spark.worker.work import MARK

_OURS = re.escape(f"{PipelineFailed.__module__}.{PipelineFailed.__name__}")
"""How our sentence begins in the trace of a Python process of Spark's."""
_CUT_OFF = "Broken pipe|Stream closed|Connection reset|EOFException|worker exited unexpectedly"
_TO_PYTHON = r"org\.apache\.spark\.(sql\.execution|api)\.python\."
"""What Spark reports when a Python process at the other end of its socket is gone."""


def explain(name: str, error: BaseException, path: Path) -> PipelineFailed:
    """Any failure of a query as one sentence that says what to do."""
    if isinstance(error, PipelineFailed):
        return error
    text = str(error)
    if isinstance(error, InvalidConfig):
        return PipelineFailed(text)
    if found := re.search(f"{MARK}(.*?){MARK}", text, re.DOTALL) or re.search(
        rf"{_OURS}: (.*)", text
    ):
        return PipelineFailed(found[1])
    if getattr(error, "errno", None) == errno.ENOSPC or "No space left on device" in text:
        return PipelineFailed(
            f"operator '{name}': the disk under {path} is full; nothing was lost: free space and "
            "start again"
        )
    if isinstance(error, FileNotFoundError) or re.search(
        "FileNotFound(Exception|Error)|PATH_NOT_FOUND", text
    ):
        lost = getattr(error, "filename", None) or path
        return PipelineFailed(
            f"operator '{name}': {lost} has vanished; restore {path} from a copy, or start in "
            "another directory"
        )
    if gone := re.search(r"KAFKA_DATA_LOSS\.?\w*|UnknownTopicOrPartitionException", text):
        return PipelineFailed(
            f"operator '{name}': its Kafka topic, or records in it that were not read yet, are "
            f"gone ({gone[0]}). Start anew in another directory; with "
            "options={'failOnDataLoss': 'false'} a source goes on without lost records"
        )
    if re.search(_CUT_OFF, text) and re.search(_TO_PYTHON, text):
        return PipelineFailed(
            f"operator '{name}': one of Spark's Python processes ended (killed, out of memory or "
            "crashed); nothing was lost: start again, with fewer replicas if it was memory"
        )
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [type(error).__name__]
    raised = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Invalid)\b.*: ", line)]
    cause = raised[-1] if lines[0].endswith(":") and raised else lines[0]
    return PipelineFailed(f"operator '{name}' stopped: {cause}")
