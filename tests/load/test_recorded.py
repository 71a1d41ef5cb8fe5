"""CSV files: columns by name, units guessed and said, mistakes with their place."""

import time
from pathlib import Path

import pytest

from foretide.errors import InvalidConfig
from foretide.load import CsvFormat, load, read_csv


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_csv_traces(tmp_path: Path) -> None:
    iso = "timestamp,rate\n2024-05-01T00:00:00,60\n2024-05-01T00:01:00,0\n2024-05-01T00:02:00,90\n"
    path = write(tmp_path / "a.csv", iso)
    trace = load(path)
    assert (trace.name, trace.interval_s, trace.counts.tolist()) == ("a", 60.0, [60, 0, 90])
    assert load(str(path), speed=1, scale=2).rates().tolist() == [120, 0, 180]
    numbers = write(tmp_path / "b.csv", "timestamp,rate\n0,1.5\n5,2\n")
    assert read_csv(numbers).rates().tolist() == [0.3, 0.4]


def test_a_trace_reads_the_same_in_every_time_zone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In New York the hour after 02:00 of that night does not exist: taken for local time, the
    stamps would go backward.
    """
    stamps = (
        "2015-03-08T01:30:00",
        "2015-03-08T02:00:00",
        "2015-03-08T02:30:00",
        "2015-03-08T03:00:00",
    )
    path = write(tmp_path / "night.csv", "timestamp,rate\n" + "".join(f"{s},1\n" for s in stamps))
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert (read_csv(path).interval_s, len(read_csv(path))) == (1800.0, 4)
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("day,people\n1,2\n", "it is 'day,people': name the column with --time-column"),
        ("time,people\n1,2\n", "name the column with --count-column or --rate-column"),
        ("", "first line must name the columns, as 'timestamp,rate'"),
        ("timestamp,rate\n0,1\n", "has 1 rows"),
        ("timestamp,rate\n0,1\n1,abc\n", "line 3: rate 'abc' must be a number from 0 to 1e.15"),
        ("timestamp,rate\n0,1\n1,1e300\n", "line 3: rate '1e300' must be a number from 0"),
        ("timestamp,rate\n0,1\nnan,2\n2,3\n", "line 3: time stamp 'nan' is neither"),
        ("timestamp,rate\n0,1\n1," + "5" * 200_000 + "\n", "line 3: not CSV: field larger"),
        ("timestamp,rate\n0,1\n1\n", "line 3: rate ''"),
        ("timestamp,rate\n0,1\n1,-2\n", "line 3: rate '-2'"),
        ("timestamp,rate\n0,1\nmonday,2\n", "line 3: time stamp 'monday' is neither"),
        ("timestamp,rate\n5,1\n1,2\n", "row 2: time stamps must not go backward"),
        ("timestamp,rate\n5,1\n5,2\n", "interval between rows is unknown"),
    ],
)
def test_csv_errors_say_where(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InvalidConfig, match=says):
        load(write(tmp_path / "bad.csv", text))


def test_missing_file_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match=r"cannot read the load .*none\.csv: No such file"):
        load(tmp_path / "none.csv")


def test_columns_are_found_whatever_their_case_and_order(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "Host,Requests,Time\nx,5,0\nx,7,1\n")
    assert read_csv(path).counts.tolist() == [5, 7]
    named = CsvFormat(time_column="time", count_column="HOST")
    with pytest.raises(InvalidConfig, match="Host 'x' must be"):
        read_csv(path, named)
    with pytest.raises(InvalidConfig, match="unknown column 'reqests'; did you mean 'Requests'"):
        read_csv(path, CsvFormat(count_column="reqests"))


@pytest.mark.parametrize(
    ("stamps", "unit", "interval_s"),
    [
        ((0, 60_000, 120_000), "milliseconds", 60.0),
        ((1.7e12, 1.7e12 + 1000, 1.7e12 + 2000), "milliseconds", 1.0),
        ((1.7e15, 1.7e15 + 5e6), "microseconds", 5.0),
        ((1.7e18, 1.7e18 + 1e9), "nanoseconds", 1.0),
    ],
)
def test_the_unit_of_stamps_is_guessed_and_said(
    stamps: tuple[float, ...], unit: str, interval_s: float, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.csv", "time,count\n" + "".join(f"{s:.0f},3\n" for s in stamps))
    guessed = read_csv(path)
    assert guessed.interval_s == pytest.approx(interval_s)
    (note,) = guessed.notes
    assert f"look like {unit} and are taken as such" in note
    seconds = read_csv(path, CsvFormat(unit="s"))
    assert (seconds.interval_s, seconds.notes) == (stamps[1] - stamps[0], ())


def test_a_rate_per_second_is_not_a_count(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "timestamp,rate\n0,10\n60,20\n")
    (note,) = read_csv(path).notes
    assert "read as events per row of 60 s, 0.3333 events/s at the peak" in note
    assert "give --rate-column rate" in note
    rated = read_csv(path, CsvFormat(rate_column="rate"))
    assert (rated.rates().tolist(), rated.notes) == ([10, 20], ())
    with pytest.raises(InvalidConfig, match="exclude each other"):
        CsvFormat(count_column="a", rate_column="b")
    with pytest.raises(InvalidConfig, match="unknown unit 'minutes'"):
        CsvFormat(unit="minutes")


def test_dates_are_kept_until_the_speed_changes(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "time,count\n2024-05-01,1\n2024-05-02,2\n")
    assert read_csv(path).started_at == 1714521600.0
    assert load(path, scale=2).started_at == 1714521600.0
    assert load(path, speed=1).started_at is None
    assert read_csv(write(tmp_path / "b.csv", "time,count\n0,1\n1,2\n")).started_at is None
