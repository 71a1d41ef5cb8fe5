"""Video logo detection: SIFT features of frames, matched against a logo library, one verdict each.

Frames show a drawn moving scene with up to two logos at a random size, angle and place, and noise.
``extract`` turns a frame into hundreds of features, ``match`` lets each feature vote for a logo's
centre, ``aggregate`` collects all votes of a frame and gives one verdict. Needs OpenCV:
pip install 'foretide[vision]'.
Run it: foretide run foretide.examples.vld:pipeline --mode act --target 20
"""

import json
import math
from functools import cache

import numpy as np

from foretide.load import load
from foretide.spark import Generator, Pipeline

WIDTH, HEIGHT, LOGO = 320, 240, 64
LOGOS = ("anchor", "comet", "maple", "tower")
FEATURES = 250
RATIO = 0.75
VOTES = 6
NEAR = 12.0


def logo(name):
    """A logo: random shapes that are always the same for a name."""
    import cv2

    draw = np.random.default_rng(sum(map(ord, name)))
    image = np.full((LOGO, LOGO), 255, np.uint8)
    for _ in range(14):
        corners = draw.integers(4, LOGO - 4, (int(draw.integers(3, 6)), 2)).astype(np.int32)
        cv2.fillPoly(image, [corners], int(draw.integers(0, 220)))
    cv2.rectangle(image, (1, 1), (LOGO - 2, LOGO - 2), 0, 2)
    return image


def truth(number):
    """The logos in frame ``number``: (name, x, y, scale, degrees) each."""
    draw = np.random.default_rng(number)
    shown = []
    for name in draw.permutation(LOGOS)[: int(draw.integers(0, 3))]:
        x, y = draw.uniform(60, WIDTH - 60), draw.uniform(60, HEIGHT - 60)
        if all(math.hypot(x - a, y - b) > 100 for _, a, b, _, _ in shown):
            shown.append((str(name), x, y, draw.uniform(0.8, 1.4), draw.uniform(-40, 40)))
    return shown


def frame(number):
    """Frame ``number`` as PNG bytes."""
    import cv2

    draw = np.random.default_rng(number + 1)
    row = np.linspace(60, 190, WIDTH)
    image = np.tile(row, (HEIGHT, 1)).astype(np.uint8)
    for x, y, w, h, grey in draw.integers(0, (WIDTH, HEIGHT, 30, 20, 255), (60, 5)):
        cv2.rectangle(image, (int(x), int(y)), (int(x + w), int(y + h)), int(grey), -1)
    for i in range(5):  # the scene moves with the frame's number
        x = (40 * i + 3 * number) % WIDTH
        cv2.circle(image, (x, 30 + 40 * i), 14 + 4 * i, 40 + 35 * i, -1)
    for name, x, y, scale, degrees in truth(number):
        turn = cv2.getRotationMatrix2D((LOGO / 2, LOGO / 2), degrees, scale)
        turn[:, 2] += (x - LOGO / 2, y - LOGO / 2)
        pasted = cv2.warpAffine(logo(name), turn, (WIDTH, HEIGHT))
        mask = cv2.warpAffine(np.full((LOGO, LOGO), 255, np.uint8), turn, (WIDTH, HEIGHT))
        image = np.where(mask > 127, pasted, image)
    noisy = image + draw.normal(0, 6, image.shape)
    return cv2.imencode(".png", np.clip(noisy, 0, 255).astype(np.uint8))[1].tobytes()


def features(image, most=FEATURES):
    """(x, y, size, angle in radians, descriptor) of an image's SIFT features."""
    import cv2

    points, descriptors = cv2.SIFT_create(nfeatures=most).detectAndCompute(image, None)
    return [
        (*p.pt, p.size, math.radians(p.angle), d.astype(np.uint8))
        for p, d in zip(points, () if descriptors is None else descriptors, strict=True)
    ]


@cache
def library():
    """Descriptors of all logos, the logo of each, and where its centre lies from the feature."""
    rows = [
        (i, f[4], (LOGO / 2 - f[0], LOGO / 2 - f[1], f[2], f[3]))
        for i, name in enumerate(LOGOS)
        for f in features(logo(name))
    ]
    names, descriptors, offsets = zip(*rows, strict=True)
    return np.array(names), np.array(descriptors, np.float32), np.array(offsets)


def votes(descriptors, where):
    """For each feature the logo it votes for (-1: none) and the centre it votes for.

    A feature votes when its nearest descriptor is clearly nearer (``RATIO``) than the nearest of
    any other place in the library (Lowe 2004); size and angle of both features place the centre.
    """
    names, known, offsets = library()
    apart = np.linalg.norm(descriptors[:, None, :] - known[None, :, :], axis=2)
    order = np.argsort(apart, axis=1)[:, :2]
    first, second = (np.take_along_axis(apart, order[:, i : i + 1], 1)[:, 0] for i in (0, 1))
    best = order[:, 0]
    dx, dy, size, angle = offsets[best].T
    x, y, own_size, own_angle = where.T
    scale, turn = own_size / size, own_angle - angle
    cx = x + scale * (dx * np.cos(turn) - dy * np.sin(turn))
    cy = y + scale * (dx * np.sin(turn) + dy * np.cos(turn))
    return np.where(first < RATIO * second, names[best], -1), cx, cy


def verdict(cast):
    """Logos with at least ``VOTES`` votes near one centre, as (name, x, y).

    >>> verdict([(0, 100.0 + i, 50.0) for i in range(8)] + [(1, 5.0, 5.0)])
    [('anchor', 103.5, 50.0)]
    """
    seen = []
    for i, name in enumerate(LOGOS):
        centres = np.array([(x, y) for number, x, y in cast if number == i])
        if len(centres) < VOTES:
            continue
        middle = np.median(centres, axis=0)
        near = centres[np.hypot(*(centres - middle).T) <= NEAR]
        if len(near) >= VOTES:
            seen.append((name, *(round(float(v), 1) for v in near.mean(axis=0))))
    return seen


def quality(verdicts, tolerance=15.0):
    """(precision, recall) of verdicts by frame number against the known positions."""
    right = shown = said = 0
    for number, logos in verdicts.items():
        known = truth(number)
        shown, said = shown + len(known), said + len(logos)
        right += sum(
            any(n == name and math.hypot(x - a, y - b) <= tolerance for n, a, b, _, _ in known)
            for name, x, y in logos
        )
    return right / max(said, 1), right / max(shown, 1)


def collected(key, frames, state):
    """A verdict when all features of a frame have been matched."""
    import pandas as pd

    seen, cast = state.get if state.exists else (0, "[]")
    cast = json.loads(cast)
    total = 0
    for part in frames:
        seen, total = seen + len(part), int(part["features"].iloc[0])
        cast += part.loc[part["logo"] >= 0, ["logo", "x", "y"]].to_numpy().tolist()
    if seen < total:
        state.update((seen, json.dumps(cast)))
        return
    state.remove()
    yield pd.DataFrame({"frame": [key[0]], "logos": [json.dumps(verdict(cast))]})


def build(source=None, replicas=4):
    """The pipeline. ``source`` is a load or a function of the session with columns ``id`` and
    ``raw``, a PNG or JPEG image.
    """
    import cv2
    import pyarrow as pa

    source = source or Generator(
        load("frame-rate-long", scale=0.1), payload=frame, payload_type="binary"
    )
    p = Pipeline("vld", trigger_s=1.0)
    p.source("video", source)
    point = "frame long, features int, x double, y double, size double, angle double"

    @p.operator(inputs="video", schema=f"{point}, descriptor binary", max_replicas=8)
    def extract(event):
        image = cv2.imdecode(np.frombuffer(event["raw"], np.uint8), cv2.IMREAD_GRAYSCALE)
        points = features(image)
        base = {"frame": event["id"], "features": max(1, len(points))}
        names = ("x", "y", "size", "angle")
        return [
            {**base, **dict(zip(names, map(float, f[:4]), strict=True)), "descriptor": bytes(f[4])}
            for f in points
        ] or [base]

    @p.batches(
        inputs="extract",
        schema="frame long, features int, logo int, x double, y double",
        max_replicas=8,
    )
    def match(batch):
        rows = batch.num_rows
        logo, cx, cy = np.full(rows, -1), np.zeros(rows), np.zeros(rows)
        full = np.flatnonzero(~batch.column("descriptor").is_null().to_numpy(zero_copy_only=False))
        if len(full):
            taken = batch.column("descriptor").to_pylist()
            known = np.array([np.frombuffer(taken[i], np.uint8) for i in full], np.float32)
            columns = [batch.column(c).to_numpy(zero_copy_only=False)[full] for c in
                       ("x", "y", "size", "angle")]  # fmt: skip
            logo[full], cx[full], cy[full] = votes(known, np.column_stack(columns))
        return pa.RecordBatch.from_pydict(
            {
                "frame": batch.column("frame"),
                "features": batch.column("features"),
                "logo": pa.array(logo, pa.int32()),
                "x": cx,
                "y": cy,
            }
        )

    @p.frame(inputs="match", max_replicas=replicas, output_mode="update")
    def aggregate(frame):
        return frame.groupBy("frame").applyInPandasWithState(
            collected, "frame long, logos string", "seen int, cast string", "update", "NoTimeout"
        )

    p.sink("verdicts", inputs="aggregate")
    return p


def __getattr__(name):
    """``pipeline`` is built when it is asked for: it needs OpenCV."""
    if name == "pipeline":
        globals()[name] = build()
        return globals()[name]
    raise AttributeError(name)
