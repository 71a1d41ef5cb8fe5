"""A cluster that follows a script: what ``ExecutorPool`` calls, without Spark."""

from dataclasses import replace

from foretide.spark.control.jvm import ExecutorInfo, JobInfo


class ScriptedCluster:
    """Executors come ``lead_s`` after they were asked for. ``refuses`` and ``fails`` are what the
    cluster manager does with requests.
    """

    master = "spark://scripted:7077"
    started_at = 0.0

    def __init__(self, executors: int = 2, cores: int = 1, lead_s: float = 8.0, **settings: str):
        self.now = 10.0
        self.cores, self.lead_s, self.settings = cores, lead_s, settings
        self.refuses = self.fails = False
        self.asked: list[int] = []
        self.given_back: list[str] = []
        self.busy: set[str] = set()
        self._number = 0
        self._coming: list[float] = []
        self.live: list[ExecutorInfo] = []
        for _ in range(executors):
            self._add(4.0)

    def _add(self, at: float) -> None:
        self.live.append(ExecutorInfo(str(self._number), self.cores, 0.0, at))
        self._number += 1

    def setting(self, key: str, default: str) -> str:
        return self.settings.get(key.replace(".", "_"), default)

    def executors(self) -> list[ExecutorInfo]:
        while self._coming and self._coming[0] <= self.now:
            self._add(self._coming.pop(0))
        return [ExecutorInfo("driver", 0, 0.0, 0.0), *self.live]

    def work(self, name: str, seconds: float) -> None:
        self.live = [replace(e, task_s=e.task_s + seconds * (e.name == name)) for e in self.live]

    def die(self, name: str) -> None:
        self.live = [e for e in self.live if e.name != name]

    def request_total(self, total: int) -> bool:
        if self.fails:
            raise OSError("connection refused")
        if self.refuses:
            return False
        self.asked.append(total)
        missing = total - len(self.live) - len(self._coming)
        self._coming += [self.now + self.lead_s] * max(0, missing)
        return True

    def decommission(self, name: str) -> bool:
        self.given_back.append(name)
        self.die(name)
        return True

    def kill_if_idle(self, name: str) -> bool:
        return name not in self.busy and self.decommission(name)

    def ended_jobs(self, run_id: str, after: int) -> list[JobInfo]:
        return [JobInfo(n, 1.0, ()) for n in range(after + 1, 3)]
