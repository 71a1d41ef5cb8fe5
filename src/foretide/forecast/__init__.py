"""Forecasters by name: one line per method."""

from __future__ import annotations

from foretide.parts import Forecaster
from foretide.registry import Part, Registry

_HERE = "foretide.forecast."


def _network(name: str, summary: str, bidirectional: bool = False, local: bool = False) -> Part:
    constants = {
        "cell": "lstm" if "lstm" in name else "gru",
        "bidirectional": bidirectional,
        "local": local,
    }
    source = "ours, after BGElasor" if local else "BGElasor, section 3.2"
    return Part(name, _HERE + "recurrent:Recurrent", summary, source, "deep", constants)


FORECASTERS: Registry[Forecaster] = Registry(
    "forecaster",
    (
        Part(
            "basic",
            _HERE + "basic:Basic",
            "the next windows equal the last one",
            "PA-SPS, section 3.1",
        ),
        Part(
            "lr",
            _HERE + "lr:LinearTrend",
            "a straight line through the last 100 windows",
            "PA-SPS, section 3.1",
        ),
        Part(
            "fft",
            _HERE + "fft:DartsFourier",
            "cubic trend and strongest frequencies of the last 100 windows",
            "PA-SPS, section 3.1",
        ),
        Part(
            "ann",
            _HERE + "ann:DefaultNetwork",
            "a perceptron on the time index, library defaults",
            "PA-SPS, section 3.1",
            "ml",
        ),
        Part(
            "rf",
            _HERE + "rf:TimeForest",
            "a random forest on the time index, library defaults",
            "PA-SPS, section 3.1",
            "ml",
        ),
        Part(
            "fft-tuned",
            _HERE + "fft:Fourier",
            "straight trend and strongest frequencies of the last 100 windows",
            "ours, after PA-SPS",
        ),
        Part(
            "ann-tuned",
            _HERE + "ann:TimeNetwork",
            "a small perceptron on the time index, trained by L-BFGS",
            "ours, after PA-SPS",
            "ml",
        ),
        Part(
            "rf-tuned",
            _HERE + "rf:TimeForest",
            "a random forest of 20 trees on the time index",
            "ours, after PA-SPS",
            "ml",
            {"trees": 20},
        ),
        Part(
            "lr-lags",
            _HERE + "lr:linear_lags",
            "least squares on the last 30 windows",
            "ours, after PA-SPS",
        ),
        Part(
            "ann-lags",
            _HERE + "ann:network_lags",
            "a perceptron on the last 30 windows",
            "ours, after PA-SPS",
            "ml",
        ),
        Part(
            "rf-lags",
            _HERE + "rf:forest_lags",
            "a random forest on the last 30 windows",
            "ours, after PA-SPS",
            "ml",
        ),
        Part(
            "median-lags",
            _HERE + "lr:median_lags",
            "least absolute errors on the last 30 windows",
            "field standard",
        ),
        Part(
            "growth-lags",
            _HERE + "lr:growth_lags",
            "least absolute errors on logarithms of 30 windows",
            "field standard",
        ),
        Part(
            "regression",
            _HERE + "regression:BestCurve",
            "best of line, logarithm, exponential",
            "DABS-Storm, section 4.1",
        ),
        Part(
            "svr",
            _HERE + "svr:support_vectors",
            "support vector regression on the last 30 windows",
            "BGElasor, section 5.2",
            "ml",
        ),
        Part(
            "arima", _HERE + "arima:arima", "ARIMA without season", "BGElasor, section 5.2", "stats"
        ),
        _network("lstm", "an LSTM network on the last 96 windows"),
        _network("gru", "a GRU network on the last 96 windows"),
        _network("bilstm", "an LSTM network, read in both directions", bidirectional=True),
        _network("bigru", "a GRU network, read in both directions", bidirectional=True),
        _network("lstm-local", "lstm, scaled by each input window: follows growth", local=True),
        _network("gru-local", "gru, scaled by each input window: follows growth", local=True),
        _network(
            "bilstm-local",
            "bilstm, scaled by each input window: follows growth",
            bidirectional=True,
            local=True,
        ),
        _network(
            "bigru-local",
            "bigru, scaled by each input window: follows growth",
            bidirectional=True,
            local=True,
        ),
        Part(
            "smooth",
            _HERE + "smooth:Smooth",
            "a fading average of the last windows",
            "field standard",
        ),
        Part(
            "seasonal",
            _HERE + "seasonal:Seasonal",
            "the same window of the last season",
            "field standard",
        ),
        Part(
            "seasonal-lags",
            _HERE + "seasonal:SeasonalLags",
            "least squares on recent windows and past seasons",
            "field standard",
        ),
        Part(
            "ets",
            _HERE + "ets:ets",
            "exponential smoothing, best of the family",
            "field standard",
            "stats",
        ),
        Part(
            "theta",
            _HERE + "theta:theta",
            "the Theta method, best of four variants",
            "field standard",
            "stats",
        ),
        Part(
            "auto-arima",
            _HERE + "arima:auto_arima",
            "ARIMA with season, orders found",
            "field standard",
            "stats",
        ),
        Part(
            "levels",
            _HERE + "levels:Levels",
            "averages of several speeds with an upper quantile for every step",
            "ours",
        ),
        Part(
            "auto",
            _HERE + "auto:Auto",
            "follows a small, fast set and uses the best of late",
            "ours",
        ),
    ),
)
