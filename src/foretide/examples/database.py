"""A table in SQLite as a sink: a batch that comes again after a crash is not written twice.

Each batch is one transaction that also notes the batch's id. Used by the other examples; copy it
and change ``connect`` for another database.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path


class SqliteTable:
    """Writes the columns of a sink. A row whose ``key`` is there already is merged into it: columns
    in ``add`` are summed, of the others the larger value stays.
    """

    def __init__(
        self,
        path: str | Path,
        name: str,
        columns: Sequence[str],
        key: Sequence[str] = (),
        add: Sequence[str] = (),
    ) -> None:
        self.path, self.name, self.columns = Path(path), name, tuple(columns)
        self.key, self.add = tuple(key), tuple(add)

    def __call__(self, frame, batch):
        self.write([tuple(row) for row in frame.select(*self.columns).collect()], batch)

    def write(self, rows, batch):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self.path)) as db, db:
            self._create(db)
            if db.execute(
                f"INSERT OR IGNORE INTO {self.name}_batches VALUES (?)", (batch,)
            ).rowcount:
                marks = ", ".join("?" * len(self.columns))
                db.executemany(f"INSERT INTO {self.name} VALUES ({marks}) {self._conflict()}", rows)

    def rows(self, columns="*", rest=""):
        """What the table holds; none before the first batch."""
        if not self.path.exists():
            return []
        with closing(sqlite3.connect(self.path)) as db:
            self._create(db)
            return db.execute(f"SELECT {columns} FROM {self.name} {rest}").fetchall()

    def _create(self, db):
        unique = f", UNIQUE ({', '.join(self.key)})" if self.key else ""
        db.execute(f"CREATE TABLE IF NOT EXISTS {self.name}_batches (id INTEGER PRIMARY KEY)")
        db.execute(f"CREATE TABLE IF NOT EXISTS {self.name} ({', '.join(self.columns)}{unique})")

    def _conflict(self):
        if not self.key:
            return ""
        values = [
            f"{c} = {c} + excluded.{c}" if c in self.add else f"{c} = max({c}, excluded.{c})"
            for c in self.columns
            if c not in self.key
        ]
        return f"ON CONFLICT ({', '.join(self.key)}) DO UPDATE SET {', '.join(values)}"
